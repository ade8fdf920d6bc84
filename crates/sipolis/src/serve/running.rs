use super::host::{Host, Present};
use super::{Source, domains, settings};
use crate::commands::place::open_subscribers;
use crate::data::DataDir;
use crate::failure::{Failure, Result};
use crate::password;
use admin::Dns;
use admin::control::{self, Operations};
use config::Config;
use edge::{Log, Resolver};
use location::{FileDisk, Hooks, Location, Recovery, Subscribers, Wall, Writer, WriterThread};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use sip_core::{Digest, Shared};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A server that is to be started.
pub(crate) struct Setup {
    source: Source,
    config: Config,
}

/// A running server. The parts end in the order of [`Running::stop`].
pub(crate) struct Running {
    host: Arc<Host>,
    signals: Signals,
    control: control::Server,
    /// Waits for the workers, whose end ends the server.
    workers: JoinHandle<io::Result<()>>,
    writer: WriterThread,
    /// What was found on disk, and how long it took to read.
    pub(crate) recovered: (Recovery, Duration),
    /// Why names will not resolve.
    pub(crate) dns_warning: Option<String>,
    /// Listeners that the machine has no IPv6 for.
    pub(crate) left_out: Vec<edge::Listen>,
}

impl Setup {
    /// Reads the configuration.
    pub(crate) fn new(source: Source) -> Result<Self> {
        let config = source.read()?;
        Ok(Self { source, config })
    }

    /// Starts it: listeners first, so that a port in use is known at once, then what is on disk, then the workers.
    pub(crate) fn start(self) -> Result<Running> {
        let Self { source, config } = self;
        let started = Instant::now();
        // Signals before anything that a half-done end could harm.
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let log = Log::stderr();
        let _ = net::limits::raise_descriptors();
        let data = DataDir::open(&config.server.data)?;
        let bound = edge::Server::bind(settings::edge(&config, random()?)).map_err(not_bound)?;
        let stored = Stored::open(&config, data)?;

        let post = bound.post().clone();
        let listeners = bound.listeners().to_vec();
        let left_out = bound.left_out().to_vec();
        let names = domains::domains(&config, &stored.dir, &stored.subscribers, &listeners);
        let core_settings = Arc::new(settings::core(&config, names));
        let shared = Arc::new(stored.shared(&config)?);
        let writer = stored.writer.spawn(hooks(&post, &log))?;
        let dns = resolver(&config, &post)?;
        let dns_warning = dns.warning().map(ToOwned::to_owned);
        let resolver: Arc<dyn Resolver> = Arc::new(dns);
        let server = bound.start(&shared, &core_settings, &resolver, &log)?;
        let workers = watch(server, signals.handle())?;
        let host = Arc::new(Host {
            source,
            data: stored.dir,
            listeners,
            post,
            log,
            subscribers: stored.subscribers,
            started,
            signals: signals.handle(),
            present: Mutex::new(Present {
                config,
                settings: core_settings,
            }),
        });
        Ok(Running {
            control: control_socket(&host, stored.location)?,
            host,
            signals,
            workers,
            writer,
            recovered: stored.recovered,
            dns_warning,
            left_out,
        })
    }
}

/// What a data directory holds, read.
struct Stored {
    dir: PathBuf,
    token_key: [u8; 16],
    subscribers: Arc<Subscribers>,
    location: Arc<Location>,
    writer: Writer<FileDisk>,
    recovered: (Recovery, Duration),
}

impl Stored {
    fn open(config: &Config, data: DataDir) -> Result<Self> {
        let token_key = data.secret()?;
        let subscribers = Arc::new(open_subscribers(&data)?);
        let options = settings::location(config, [random()?, random()?]);
        let location = Arc::new(Location::new(options));
        let DataDir { path: dir, disk } = data;
        let reading = Instant::now();
        let options = settings::writer(config);
        let (writer, recovery) = Writer::open(Arc::clone(&location), disk, options, wall_now())
            .map_err(|error| {
                Failure::during(format_args!("bindings in {}", dir.display()), error)
            })?;
        Ok(Self {
            dir,
            token_key,
            subscribers,
            location,
            writer,
            recovered: (recovery, reading.elapsed()),
        })
    }

    fn shared(&self, config: &Config) -> Result<Shared> {
        let mut digest_key = [0; 16];
        password::fill(&mut digest_key)?;
        let slots = config.digest.nonces_max as usize;
        Ok(Shared {
            location: Arc::clone(&self.location),
            subscribers: Arc::clone(&self.subscribers),
            digest: Digest::new(digest_key, slots, wall_now()),
            token_key: self.token_key,
        })
    }
}

fn resolver(config: &Config, post: &edge::Post) -> Result<Dns> {
    let post = post.clone();
    let options = settings::dns(config, random()?);
    let deliver = move |worker, id, targets| post.resolved(worker, id, targets);
    Ok(Dns::start(options, deliver)?)
}

/// Waits for the workers on a thread of its own: when they end, unasked, the server ends.
fn watch(server: edge::Server, signals: Handle) -> Result<JoinHandle<io::Result<()>>> {
    let thread = std::thread::Builder::new().name(String::from("workers"));
    Ok(thread.spawn(move || {
        let result = server.join();
        signals.close();
        result
    })?)
}

fn control_socket(host: &Arc<Host>, location: Arc<Location>) -> Result<control::Server> {
    let operations = Operations {
        subscribers: Arc::clone(&host.subscribers),
        running: Some(control::Running {
            location,
            host: Arc::clone(host) as Arc<dyn control::Host>,
        }),
    };
    control::Server::start(&host.data, Arc::new(operations)).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::InvalidInput => "; choose a data directory with a shorter path",
            _ => "",
        };
        let dir = host.data.display();
        Failure::new(format!("the control socket in {dir}: {error}{hint}"))
    })
}

impl Running {
    /// Waits until the server is told to end; reloads the configuration when it is told to.
    pub(crate) fn serve(&mut self) {
        for signal in self.signals.forever() {
            if signal != SIGHUP {
                return;
            }
            // What came of it is in the log.
            let _ = control::Host::reload(&*self.host);
        }
    }

    /// Whether it was told to end since the last time that this was asked.
    pub(crate) fn asked_to_stop(&mut self) -> bool {
        self.signals.pending().any(|signal| signal != SIGHUP) || self.signals.is_closed()
    }

    /// Ends in order: no more commands, then the workers, which answer what is under way and still need the journal for that, then the
    /// journal, which writes what waits.
    pub(crate) fn stop(self) -> Result {
        drop(self.control);
        self.host.post.shut_down();
        let ended = self.workers.join();
        drop(self.writer);
        let ended = ended.unwrap_or_else(|_| Err(io::Error::other("its thread has panicked")));
        ended.map_err(|error| Failure::during("a worker has failed, and the server ends", error))
    }

    /// The process.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// The data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.host.data
    }

    /// Subscribers.
    pub(crate) fn subscribers(&self) -> &Subscribers {
        &self.host.subscribers
    }
}

/// A listener that could not be opened, with what to type to get another.
fn not_bound(error: edge::BindError) -> Failure {
    let mut text = error.to_string();
    if error.error.kind() == io::ErrorKind::AddrInUse {
        let mut other = error.listen.address;
        other.set_port(other.port().checked_add(10).unwrap_or(5070));
        text += &format!(", for example --listen udp://{other} --listen tcp://{other}");
    }
    Failure::new(text)
}

fn hooks(post: &edge::Post, log: &Log) -> Hooks {
    let (post, log) = (post.clone(), log.clone());
    Hooks {
        on_commit: Box::new(move || post.committed()),
        on_notice: Box::new(move |notice| log.line(notice.to_string())),
    }
}

fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    password::fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn wall_now() -> Wall {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Wall(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
