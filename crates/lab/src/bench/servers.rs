//! The servers that are compared: started one at a time on the first core, and ended.

use std::{
    env, fs, io,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use loadgen::CpuTime;

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Kind {
    Echo,
    Kamailio,
    Sipolis,
}

/// What is needed to start each.
pub(super) struct Installed {
    pub(super) kamailio: Option<Kamailio>,
    /// The binary.
    pub(super) sipolis: Option<PathBuf>,
    pub(super) port: u16,
    /// Where servers may write; on a disk, so that durability costs what it costs.
    pub(super) scratch: PathBuf,
}

/// Kamailio as installed.
pub(super) struct Kamailio {
    pub(super) version: String,
    /// Its allocators differ several-fold; this is the fastest it has.
    pub(super) allocator: &'static str,
}

const KAMAILIO_CONFIGURATION: &str = include_str!("../../../../bench/kamailio/kamailio.cfg");
/// Users and their domain, as `sipolis load` makes them.
pub(super) const DOMAIN: &str = "example.com";
const USERS: usize = 10_000;
const FIRST_CORE: &str = "0";

impl Installed {
    /// Looks for the servers; installs Kamailio if it is missing and this may.
    pub(super) fn find(sipolis: Option<PathBuf>, port: u16) -> io::Result<Self> {
        let own = env::current_exe()?;
        let directory = own.parent().unwrap_or(Path::new("."));
        let sipolis = sipolis.unwrap_or_else(|| directory.join("sipolis"));
        let scratch = directory.join(format!("bench-{}", std::process::id()));
        fs::create_dir_all(&scratch)?;
        Ok(Self {
            kamailio: Kamailio::find(),
            sipolis: sipolis.is_file().then_some(sipolis),
            port,
            scratch,
        })
    }

    /// Why a server can't be run; `None` if it can.
    pub(super) fn missing(&self, kind: Kind) -> Option<&'static str> {
        match kind {
            Kind::Echo => None,
            Kind::Kamailio => self
                .kamailio
                .is_none()
                .then_some("not installed, and could not be: apt-get install kamailio"),
            Kind::Sipolis => self
                .sipolis
                .is_none()
                .then_some("not built: cargo build --release"),
        }
    }

    /// Starts a server and waits until it answers.
    pub(super) fn start(&self, kind: Kind, digest: bool) -> io::Result<Server> {
        let data = self.scratch.join("data");
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(&data)?;
        let mut command = match kind {
            Kind::Echo => pinned(&env::current_exe()?),
            Kind::Kamailio => self.kamailio_command(digest)?,
            Kind::Sipolis => self.sipolis_command(&data, digest)?,
        };
        match kind {
            Kind::Echo => {
                let address = format!("127.0.0.1:{}", self.port);
                command.args(["echo", "--listen", &address])
            }
            Kind::Kamailio => command.args(self.listen("-l", ":")),
            Kind::Sipolis => command.args(self.listen("--listen", "://")),
        };
        let log = self.scratch.join(format!("{kind:?}.log"));
        let output = fs::File::create(&log)?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let child = command.spawn()?;
        let mut server = Server { child, data };
        server.wait_ready(self.port).map_err(|e| {
            let log = fs::read_to_string(&log).unwrap_or_default();
            io::Error::new(e.kind(), format!("{kind:?} {e}; it said:\n{log}"))
        })?;
        Ok(server)
    }

    fn listen(&self, option: &str, separator: &str) -> [String; 4] {
        let url = |transport| format!("{transport}{separator}127.0.0.1:{}", self.port);
        [option.to_owned(), url("udp"), option.to_owned(), url("tcp")]
    }

    fn kamailio_command(&self, digest: bool) -> io::Result<Command> {
        let Some(kamailio) = &self.kamailio else {
            return Err(io::Error::other("Kamailio is not installed"));
        };
        let configuration = self.scratch.join("kamailio.cfg");
        fs::write(&configuration, KAMAILIO_CONFIGURATION)?;
        let mut command = pinned(Path::new("kamailio"));
        command.args(["-x", kamailio.allocator, "-DD", "-E"]);
        // Gigabytes of shared memory, so that it never has to look long for a free piece, and room in
        // the sockets for all that is under way.
        command.args(["-m", "2048", "-M", "32", "-b", "8388608"]);
        command.arg("-f").arg(configuration);
        if digest {
            command.args(["-A", "WITH_AUTH"]);
        }
        Ok(command)
    }

    fn sipolis_command(&self, data: &Path, digest: bool) -> io::Result<Command> {
        let Some(sipolis) = &self.sipolis else {
            return Err(io::Error::other("sipolis is not built"));
        };
        if digest {
            let users = self.scratch.join("users.csv");
            let mut text = String::from("user,domain,password\n");
            for i in 0..USERS {
                text += &format!("user{i:05},{DOMAIN},user{i:05}\n");
            }
            fs::write(&users, text)?;
            let done = Command::new(sipolis)
                .args(["user", "import", "--data"])
                .arg(data)
                .arg(&users)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()?;
            if !done.success() {
                return Err(io::Error::other("`sipolis user import` failed"));
            }
        }
        let mut command = pinned(sipolis);
        command.args(["serve", "--workers", "1", "--domain", DOMAIN, "--data"]);
        command.arg(data);
        command.args(["--auth", if digest { "on" } else { "off" }]);
        Ok(command)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// A command on the first core, `exec`ed so that its process is the child.
fn pinned(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", FIRST_CORE]).arg(program);
    command
}

impl Kamailio {
    fn find() -> Option<Self> {
        let version = Self::version().or_else(|| {
            eprintln!("Kamailio is missing; apt-get install kamailio");
            let mut install = Command::new("apt-get");
            install.args(["install", "-y", "-q", "kamailio"]);
            install.env("DEBIAN_FRONTEND", "noninteractive");
            install.stdout(Stdio::null()).status().ok()?;
            Self::version()
        })?;
        let works = |allocator: &&str| {
            let mut probe = Command::new("kamailio");
            probe.args(["-x", allocator, "-v"]);
            probe.output().is_ok_and(|o| o.status.success())
        };
        let allocator = ["tlsf", "fm"].into_iter().find(works)?;
        Some(Self { version, allocator })
    }

    /// The version's number, as its first line has it.
    fn version() -> Option<String> {
        let output = Command::new("kamailio").arg("-v").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().next()?.strip_prefix("version: kamailio ")?;
        Some(version.split(' ').next()?.to_owned())
    }
}

/// A running server; dropping it ends it.
pub(super) struct Server {
    child: Child,
    data: PathBuf,
}

impl Server {
    /// Processor time of all its processes.
    pub(super) fn cpu(&self) -> CpuTime {
        CpuTime::of_processes(&self.pids())
    }

    /// Memory of all its processes, bytes; what they share counts once.
    pub(super) fn memory(&self) -> u64 {
        let of = |pid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
            let line = text.lines().find_map(|l| l.strip_prefix("Pss:"))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        self.pids().into_iter().filter_map(of).sum::<u64>() * 1024
    }

    /// Waits for an answer to an OPTIONS over UDP, and a moment more for its other processes.
    fn wait_ready(&mut self, port: u16) -> io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let own = socket.local_addr()?;
        let request = format!(
            "OPTIONS sip:{DOMAIN} SIP/2.0\r\nVia: SIP/2.0/UDP {own};rport;branch=z9hG4bKready\r\n\
             Max-Forwards: 70\r\nFrom: <sip:ready@{DOMAIN}>;tag=1\r\nTo: <sip:{DOMAIN}>\r\n\
             Call-ID: ready\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
        );
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("ended, {status}")));
            }
            let sent = socket.send_to(request.as_bytes(), ("127.0.0.1", port));
            if sent.is_ok() && socket.recv(&mut [0; 2048]).is_ok() {
                thread::sleep(Duration::from_millis(300));
                return Ok(());
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "does not answer"))
    }

    /// The process and all that descend from it.
    fn pids(&self) -> Vec<u32> {
        let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
                let rest = &stat[stat.rfind(')')? + 1..];
                Some((pid, rest.split_whitespace().nth(1)?.parse().ok()?))
            })
            .collect();
        let mut pids = vec![self.child.id()];
        let mut done = 0;
        while done < pids.len() {
            let parent = pids[done];
            pids.extend(parents.iter().filter(|p| p.1 == parent).map(|p| p.0));
            done += 1;
        }
        pids
    }

    fn signal(pids: &[u32], signal: &str) {
        let pids = pids.iter().map(u32::to_string);
        let mut kill = Command::new("kill");
        let _ = kill.arg(signal).args(pids).stderr(Stdio::null()).status();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pids = self.pids();
        Self::signal(&pids[..1], "-TERM");
        for _ in 0..100 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            Self::signal(&pids, "-KILL");
            let _ = self.child.wait();
        }
        let _ = fs::remove_dir_all(&self.data);
    }
}
