use crate::Resolver;
use crate::clock::Clock;
use crate::durable::Durable;
use crate::hub::Hub;
use crate::log::{Log, Voice};
use crate::outlet::State;
use crate::post::{Mailbox, Post};
use crate::ways::Ways;
use crate::worker::Worker;
use location::Transport;
use net::{Net, OpenSet, SocketOptions, bind_udp, listen_tcp};
use sip_core::{Core, Settings, Shared};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A running server: its workers.
pub struct Server {
    post: Post,
    listeners: Vec<Listen>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Where to listen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Listen {
    /// `Udp` or `Tcp`.
    pub transport: Transport,
    /// An address of this machine, or 0.0.0.0 or `[::]` for all of its family; port 0: any.
    pub address: SocketAddr,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.transport {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Tls => "tls",
            Transport::Ws => "ws",
            Transport::Wss => "wss",
            Transport::Sctp => "sctp",
        };
        write!(f, "{scheme}://{}", self.address)
    }
}

/// How the workers run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Listeners; their order gives their numbers in [`location::Flow`].
    pub listen: Vec<Listen>,
    /// Workers, 1 to 255.
    pub workers: u8,
    /// Bounds of each worker's sockets; `worker` is filled in.
    pub net: net::Options,
    /// How the sockets are made.
    pub sockets: SocketOptions,
    /// Secret, from the system's random source: for branches and tags.
    pub seed: u64,
    /// Messages that may wait in one worker's mailbox.
    pub letters_max: usize,
    /// How long a shutdown may take, milliseconds.
    pub shutdown_ms: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            workers: 1,
            net: net::Options::default(),
            sockets: SocketOptions::default(),
            seed: 0,
            letters_max: 64 * 1024,
            shutdown_ms: 5000,
        }
    }
}

/// A listener that could not be opened.
#[derive(Debug)]
pub struct BindError {
    /// Which.
    pub listen: Listen,
    /// What the system said.
    pub error: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.listen.address.port();
        write!(f, "can't listen on {}: {}. ", self.listen, self.error)?;
        match self.error.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "Another program has this port; `ss -lunpt 'sport = :{port}'` shows which. Stop it, or listen elsewhere with --listen"
            ),
            io::ErrorKind::AddrNotAvailable => write!(
                f,
                "This machine has no such address; `ip address` shows those it has"
            ),
            io::ErrorKind::PermissionDenied => write!(
                f,
                "Ports below 1024 need root or the capability CAP_NET_BIND_SERVICE; or choose a port above"
            ),
            _ if self.error.raw_os_error() == Some(97) => {
                write!(f, "This machine has no IPv6; listen on IPv4 addresses only")
            }
            _ => write!(f, "Change it with --listen or in the configuration"),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// A server whose listeners are open, and which does not serve yet: what comes waits in the kernel.
pub struct Bound {
    options: Options,
    post: Post,
    clock: Clock,
    nets: Vec<Net>,
    left_out: Vec<Listen>,
}

impl Server {
    /// Opens all listeners for all workers.
    ///
    /// # Errors
    /// Which listener could not be opened, why, and what to do.
    pub fn bind(mut options: Options) -> Result<Bound, BindError> {
        options.workers = options.workers.max(1);
        let (mut free, mut left_out) = (Vec::new(), Vec::new());
        for listen in options.listen {
            match check_free(&listen, &options.sockets) {
                Ok(()) => free.push(listen),
                Err(error) if is_without_ipv6(&listen, &error) => left_out.push(listen),
                Err(error) => return Err(BindError { listen, error }),
            }
        }
        if let (true, Some(listen)) = (free.is_empty(), left_out.pop()) {
            let error = io::Error::from_raw_os_error(EAFNOSUPPORT);
            return Err(BindError { listen, error });
        }
        options.listen = free;
        let mut nets = Vec::new();
        let mut mailboxes = Vec::new();
        for worker in 0..options.workers {
            let open = Arc::new(OpenSet::default());
            let mut listen = Listen {
                transport: Transport::Udp,
                address: SocketAddr::from(([0; 4], 0)),
            };
            let made = open_worker(&mut options, worker, &open, &mut listen);
            let (net, waker) = made.map_err(|error| BindError { listen, error })?;
            nets.push(net);
            mailboxes.push(Mailbox {
                waker,
                open,
                letters_max: options.letters_max,
                queue: Mutex::new(VecDeque::new()),
                dropped: AtomicU64::new(0),
                waits_for_disk: AtomicBool::new(false),
            });
        }
        Ok(Bound {
            options,
            post: Post::new(mailboxes),
            clock: Clock::start(),
            nets,
            left_out,
        })
    }

    /// The way to the workers.
    #[must_use]
    pub fn post(&self) -> &Post {
        &self.post
    }

    /// Where it listens, in the order of the listeners' numbers; ports chosen by the system are filled in.
    #[must_use]
    pub fn listeners(&self) -> &[Listen] {
        &self.listeners
    }

    /// Waits until all workers have ended, which they do after [`Post::shut_down`], or when one of them has failed: messages for the
    /// transactions of that one would be lost, so that a new start serves the phones better.
    ///
    /// # Errors
    /// A worker has failed, by its poller or by a panic.
    pub fn join(self) -> io::Result<()> {
        let mut result = Ok(());
        for thread in self.threads {
            let ended = thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a worker has panicked; see above")));
            result = result.and(ended);
        }
        result
    }
}

impl Bound {
    /// Where it listens, in the order of the listeners' numbers; ports chosen by the system are filled in.
    #[must_use]
    pub fn listeners(&self) -> &[Listen] {
        &self.options.listen
    }

    /// Listeners on `[::]` that were left out because this machine has no IPv6.
    #[must_use]
    pub fn left_out(&self) -> &[Listen] {
        &self.left_out
    }

    /// The way to the workers, for the resolver and for the journal's writer.
    #[must_use]
    pub fn post(&self) -> &Post {
        &self.post
    }

    /// Starts the workers.
    ///
    /// # Errors
    /// A thread could not be made.
    pub fn start(
        self,
        shared: &Arc<Shared>,
        settings: &Arc<Settings>,
        resolver: &Arc<dyn Resolver>,
        log: &Log,
    ) -> io::Result<Server> {
        let Self {
            options,
            post,
            clock,
            nets,
            left_out: _,
        } = self;
        let mut threads = Vec::new();
        for (worker, mut net) in (0..options.workers).zip(nets) {
            net.io().set_limits(settings.limits);
            let now = clock.now();
            let core = Core::new(
                worker,
                options.workers,
                Arc::clone(shared),
                Arc::clone(settings),
                seed_of(options.seed, worker),
                now,
            );
            let state = State {
                worker,
                now: now.mono,
                ways: Ways::new(options.listen.clone()),
                post: post.clone(),
                location: Arc::clone(&shared.location),
                resolver: Arc::clone(resolver),
                durable: Durable::default(),
                voice: Voice::new(log.clone()),
                failed: Vec::new(),
                unresolved: Vec::new(),
                refused: Vec::new(),
                answers_refused: 0,
            };
            let worker_loop =
                Worker::new(net, Hub::new(core, state, now), clock, options.shutdown_ms);
            let thread = std::thread::Builder::new()
                .name(format!("worker-{worker}"))
                .spawn({
                    let others = post.clone();
                    move || run_or_end_all(worker_loop, &others)
                });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    post.shut_down();
                    return Err(error);
                }
            }
        }
        Ok(Server {
            post,
            listeners: options.listen,
            threads,
        })
    }
}

/// Runs a worker. When it fails, by an error or by a panic, the others are ended in order.
fn run_or_end_all(worker: Worker, others: &Post) -> io::Result<()> {
    struct EndAll<'a>(&'a Post);
    impl Drop for EndAll<'_> {
        fn drop(&mut self) {
            self.0.shut_down();
        }
    }
    // Ended in order, this one was told to, and so were all.
    let _guard = EndAll(others);
    worker.run()
}

enum Opened {
    Udp(UdpSocket),
    Tcp(TcpListener),
}

/// Opens the sockets of one worker. The first one settles the ports that were left to the system. `at` says how far it got.
fn open_worker(
    options: &mut Options,
    worker: u8,
    open: &Arc<OpenSet>,
    at: &mut Listen,
) -> io::Result<(Net, net::Waker)> {
    let net_options = net::Options {
        worker,
        ..options.net
    };
    let mut net = Net::with_open_set(net_options, Arc::clone(open))?;
    for listen in &mut options.listen {
        *at = *listen;
        match open_socket(listen, &options.sockets)? {
            Opened::Udp(socket) => {
                listen.address = socket.local_addr()?;
                net.add_udp(socket)?;
            }
            Opened::Tcp(listener) => {
                listen.address = listener.local_addr()?;
                net.add_listener(listener)?;
            }
        }
    }
    let waker = net.waker()?;
    Ok((net, waker))
}

fn open_socket(listen: &Listen, options: &SocketOptions) -> io::Result<Opened> {
    match listen.transport {
        Transport::Udp => bind_udp(listen.address, options).map(Opened::Udp),
        Transport::Tcp => listen_tcp(listen.address, options).map(Opened::Tcp),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this transport is not spoken yet; use udp:// or tcp://",
        )),
    }
}

/// Workers share an address, and so would two servers of one user, by mistake: a socket that does not share finds out.
fn check_free(listen: &Listen, options: &SocketOptions) -> io::Result<()> {
    let alone = SocketOptions {
        shared: false,
        ..*options
    };
    open_socket(listen, &alone).map(drop)
}

/// "All addresses" is meant as far as the machine goes: one without IPv6 is listened on by IPv4.
fn is_without_ipv6(listen: &Listen, error: &io::Error) -> bool {
    let any_ipv6 = listen.address.is_ipv6() && listen.address.ip().is_unspecified();
    any_ipv6
        && (error.raw_os_error() == Some(EAFNOSUPPORT)
            || error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// What Linux says of an address family that it does not have.
const EAFNOSUPPORT: i32 = 97;

/// A seed of its own for each worker (the finalizer of SplitMix64, which maps no two to one).
fn seed_of(seed: u64, worker: u8) -> u64 {
    let mut z = seed.wrapping_add((u64::from(worker) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_of_ipv6_is_left_out_where_there_is_none() {
        let listen = |address: &str| Listen {
            transport: Transport::Udp,
            address: address.parse().expect("an address"),
        };
        let no_family = io::Error::from_raw_os_error(EAFNOSUPPORT);
        let in_use = io::Error::from(io::ErrorKind::AddrInUse);
        assert!(is_without_ipv6(&listen("[::]:5060"), &no_family));
        assert!(!is_without_ipv6(&listen("[::]:5060"), &in_use));
        assert!(!is_without_ipv6(&listen("[2001:db8::1]:5060"), &no_family));
        assert!(!is_without_ipv6(&listen("0.0.0.0:5060"), &no_family));
    }
}
