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
use serde_json::Value;

use crate::{
    child::{self, LOAD_CORE, SERVER_CORE, on_core},
    record::{StageUse, Who},
};

/// What is needed to start each.
pub(crate) struct Servers {
    pub(crate) kamailio: Option<Kamailio>,
    /// The binary.
    sipolis: PathBuf,
    /// The first listener's, UDP and TCP.
    port: u16,
    /// Where servers may write; on a disk, so that durability costs what it costs.
    scratch: PathBuf,
}

/// What a server is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Features {
    /// It asks for digest credentials, on REGISTER and INVITE. The echo server never does.
    pub(crate) digest: bool,
    /// Users it knows, with digest: user00000 and so on, each with the name as its password.
    pub(crate) users: u32,
    /// Listeners, UDP and TCP each, on consecutive ports.
    pub(crate) listeners: u16,
    /// It measures the stages of its work. Only sipolis can.
    pub(crate) stage_times: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            digest: false,
            users: 10_000,
            listeners: 1,
            stage_times: false,
        }
    }
}

/// Kamailio as installed.
pub(crate) struct Kamailio {
    pub(crate) version: String,
    /// Its allocators differ several-fold; this is the fastest it has.
    pub(crate) allocator: &'static str,
}

const KAMAILIO_CONFIGURATION: &str = include_str!("../../../bench/kamailio/kamailio.cfg");
const SIPOLIS_CONFIGURATION: &str = include_str!("../../../bench/sipolis/lab.toml");
/// The users' domain.
pub(crate) const DOMAIN: &str = "example.com";

impl Servers {
    /// Looks for the servers: `sipolis` is this program unless given.
    ///
    /// # Errors
    /// Nothing can be written beside this program.
    pub(crate) fn find(sipolis: Option<PathBuf>, port: u16) -> io::Result<Self> {
        let own = env::current_exe()?;
        let directory = own.parent().unwrap_or(Path::new("."));
        // Named by the port, which no two labs can share, so that what an interrupted one left is used again.
        let scratch = directory.join(format!("lab-{port}"));
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(&scratch)?;
        Ok(Self {
            kamailio: Kamailio::find(),
            sipolis: sipolis.unwrap_or(own),
            port,
            scratch,
        })
    }

    /// Why a server can't be run; `None` if it can.
    pub(crate) fn missing(&self, who: Who) -> Option<&'static str> {
        match who {
            Who::Kamailio if self.kamailio.is_none() => {
                Some("Kamailio is not installed: apt-get install kamailio")
            }
            Who::Sipolis if !self.sipolis.is_file() => {
                Some("sipolis is not built: cargo build --release")
            }
            _ => None,
        }
    }

    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// It ends or does not answer; the text has what it said.
    pub(crate) fn start(&self, who: Who, features: Features) -> io::Result<Server> {
        let data = self.scratch.join("data");
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(&data)?;
        let (program, arguments) = match who {
            Who::Echo => (env::current_exe()?, self.echo(features)),
            Who::Kamailio => (PathBuf::from("kamailio"), self.kamailio(features)?),
            Who::Sipolis => (self.sipolis.clone(), self.sipolis(&data, features)?),
            Who::Paper => return Err(io::Error::other("a paper is no server")),
        };
        let log = self.scratch.join(format!("{}.log", who.name()));
        let output = fs::File::create(&log)?;
        let mut command = on_core(SERVER_CORE, &program);
        command
            .args(&arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let mut server = Server {
            child: child::start(&mut command)?,
            command: self.typed(who, &arguments),
            status: (who == Who::Sipolis && features.stage_times).then_some(program),
            port: self.port,
            data,
        };
        server.wait_ready().map_err(|e| {
            let log = fs::read_to_string(&log).unwrap_or_default();
            io::Error::new(e.kind(), format!("{} {e}; it said:\n{log}", who.name()))
        })?;
        Ok(server)
    }

    fn echo(&self, features: Features) -> Vec<String> {
        let mut words = vec!["echo".to_owned()];
        for port in self.ports(features) {
            words.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
        }
        words
    }

    fn kamailio(&self, features: Features) -> io::Result<Vec<String>> {
        let kamailio = self.kamailio.as_ref();
        let allocator = kamailio.ok_or_else(|| io::Error::other("Kamailio is not installed"))?;
        fs::write(self.kamailio_configuration(), KAMAILIO_CONFIGURATION)?;
        // Gigabytes of shared memory, so that it holds what is finished for as long as it wants to and never has
        // to look long for a free piece, and room in the sockets for all that is under way.
        let tuned = "-DD -E -m 6144 -M 32 -b 8388608";
        let mut words = vec!["-x".to_owned(), allocator.allocator.to_owned()];
        words.extend(tuned.split(' ').map(String::from));
        words.extend([
            "-f".to_owned(),
            self.kamailio_configuration().to_string_lossy().into_owned(),
        ]);
        if features.digest {
            words.extend(["-A", "WITH_AUTH"].map(String::from));
        }
        words.extend(self.listen(features, "-l", ":"));
        Ok(words)
    }

    fn sipolis(&self, data: &Path, features: Features) -> io::Result<Vec<String>> {
        if features.digest {
            self.import(data, features.users)?;
        }
        fs::write(self.sipolis_configuration(), SIPOLIS_CONFIGURATION)?;
        let configuration = self.sipolis_configuration();
        let auth = if features.digest { "on" } else { "off" };
        let words = [
            "serve",
            "--workers",
            "1",
            "--domain",
            DOMAIN,
            "--auth",
            auth,
        ];
        let mut words: Vec<String> = words.map(String::from).to_vec();
        for (option, path) in [("--config", configuration.as_path()), ("--data", data)] {
            words.extend([option.to_owned(), path.to_string_lossy().into_owned()]);
        }
        if features.stage_times {
            words.push("--stage-times".to_owned());
        }
        words.extend(self.listen(features, "--listen", "://"));
        Ok(words)
    }

    /// Makes the users, with their passwords, before the server starts.
    fn import(&self, data: &Path, count: u32) -> io::Result<()> {
        let users = self.scratch.join("users.csv");
        let mut text = String::from("user,domain,password\n");
        for i in 0..count {
            text += &format!("user{i:05},{DOMAIN},user{i:05}\n");
        }
        fs::write(&users, text)?;
        let mut import = Command::new(&self.sipolis);
        import.args(["user", "import", "--data"]).arg(data);
        let done = import
            .arg(&users)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        if done.success() {
            return Ok(());
        }
        Err(io::Error::other("`sipolis user import` failed"))
    }

    fn ports(&self, features: Features) -> impl Iterator<Item = u16> {
        (self.port..).take(usize::from(features.listeners.max(1)))
    }

    fn listen(&self, features: Features, option: &str, separator: &str) -> Vec<String> {
        let ports = self.ports(features);
        let both = ports.flat_map(|port| [("udp", port), ("tcp", port)]);
        both.flat_map(|(transport, port)| {
            let url = format!("{transport}{separator}127.0.0.1:{port}");
            [option.to_owned(), url]
        })
        .collect()
    }

    fn kamailio_configuration(&self) -> PathBuf {
        self.scratch.join("kamailio.cfg")
    }

    fn sipolis_configuration(&self) -> PathBuf {
        self.scratch.join("lab.toml")
    }

    /// The command as a person types it, in the tree's root.
    fn typed(&self, who: Who, arguments: &[String]) -> String {
        let program = if who == Who::Kamailio {
            "kamailio"
        } else {
            "sipolis"
        };
        let scratch = self.scratch.to_string_lossy();
        let line = format!("taskset -c {SERVER_CORE} {program} {}", arguments.join(" "));
        let own = [
            (self.kamailio_configuration(), "bench/kamailio/kamailio.cfg"),
            (self.sipolis_configuration(), "bench/sipolis/lab.toml"),
        ];
        let line = own.iter().fold(line, |line, (path, tree)| {
            line.replace(&*path.to_string_lossy(), tree)
        });
        line.replace(&format!("{scratch}/"), "")
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

impl Kamailio {
    fn find() -> Option<Self> {
        let version = Self::version()?;
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
pub(crate) struct Server {
    child: Child,
    /// As a person types it.
    pub(crate) command: String,
    /// The first listener's.
    pub(crate) port: u16,
    data: PathBuf,
    /// The program that tells its stage times, where it measures them.
    status: Option<PathBuf>,
}

impl Server {
    /// Processor time of all its processes.
    pub(crate) fn cpu(&self) -> CpuTime {
        CpuTime::of_processes(&self.pids())
    }

    /// Memory of all its processes, bytes; what they share counts once. Pages of program files do not
    /// count: other programs have them too, one of which may be the load.
    pub(crate) fn memory(&self) -> u64 {
        let of = |pid: u32| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
        let texts = self.pids().into_iter().filter_map(of);
        texts.map(|text| own_memory(&text)).sum()
    }

    /// What it has spent in each stage since its start; nothing from a server that does not measure it.
    ///
    /// # Errors
    /// It does not tell.
    pub(crate) fn stages(&self) -> io::Result<Vec<StageUse>> {
        let Some(program) = &self.status else {
            return Ok(Vec::new());
        };
        let mut command = on_core(LOAD_CORE, program);
        command.args(["status", "--json", "--once", "--data"]);
        let output = command.arg(&self.data).output()?;
        let status: Value = serde_json::from_slice(&output.stdout)?;
        let times = &status["stage_times"];
        let mut stages: Vec<StageUse> = serde_json::from_value(times["stages"].clone())?;
        stages.push(serde_json::from_value(times["disk"].clone())?);
        Ok(stages)
    }

    /// The process and all that descend from it.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let of = |entry: fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((pid, parent(&stat)?))
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let parents: Vec<(u32, u32)> = processes.filter_map(of).collect();
        descendants(self.child.id(), &parents)
    }

    /// Waits for an answer to an OPTIONS over UDP, and a moment more for its other processes.
    fn wait_ready(&mut self) -> io::Result<()> {
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
            let sent = socket.send_to(request.as_bytes(), ("127.0.0.1", self.port));
            if sent.is_ok() && socket.recv(&mut [0; 2048]).is_ok() {
                thread::sleep(Duration::from_millis(300));
                return Ok(());
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "does not answer"))
    }
}

/// Bytes that are no file's, of `/proc/PID/smaps_rollup`.
fn own_memory(smaps: &str) -> u64 {
    let of = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let own = ["Pss_Anon", "Pss_Shmem"].contains(&name);
        let kib = value.split_whitespace().next()?.parse::<u64>().ok()?;
        own.then_some(kib * 1024)
    };
    smaps.lines().filter_map(of).sum()
}

/// The parent's number, of a line of `/proc/PID/stat`: the second field behind the name in parentheses.
fn parent(stat: &str) -> Option<u32> {
    let rest = &stat[stat.rfind(')')? + 1..];
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// A process and all below it, of pairs of process and parent.
fn descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut pids = vec![root];
    let mut done = 0;
    while done < pids.len() {
        let parent = pids[done];
        pids.extend(parents.iter().filter(|p| p.1 == parent).map(|p| p.0));
        done += 1;
    }
    pids
}

/// Longer than any server takes to write what it knows.
const PATIENCE: Duration = Duration::from_secs(5);

impl Drop for Server {
    fn drop(&mut self) {
        let pids = self.pids();
        child::end(&mut self.child, &pids, PATIENCE);
        let _ = fs::remove_dir_all(&self.data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_files_are_not_a_servers_own_memory() {
        let smaps =
            "Rss: 1696 kB\nPss: 246 kB\nPss_Anon: 112 kB\nPss_File: 134 kB\nPss_Shmem: 8 kB\n";
        assert_eq!(own_memory(smaps), 120 * 1024);
    }

    #[test]
    fn a_server_of_many_processes_is_counted_whole() {
        let stat = "12 (ka (1) x) S 7 12 12 0 -1 4194560";
        assert_eq!(parent(stat), Some(7));
        let parents = [(2, 1), (5, 4), (4, 3), (6, 3), (9, 8)];
        assert_eq!(descendants(3, &parents), [3, 4, 6, 5]);
    }
}
