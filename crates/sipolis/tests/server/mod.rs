use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a test waits for what has to come; never reached when all is well.
const WAIT: Duration = Duration::from_secs(30);

/// A running `sipolis serve`, killed when dropped.
pub(crate) struct Serve {
    child: Child,
    udp: SocketAddr,
    log: Receiver<String>,
}

impl Serve {
    /// Starts it for example.com on free ports of 127.0.0.1, and waits until it is ready.
    pub(crate) fn start(data: &Path, more: &[&str]) -> Self {
        let mut child = command(data, "serve")
            .args([
                "--listen",
                "udp://127.0.0.1:0",
                "--listen",
                "tcp://127.0.0.1:0",
            ])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let log = lines_of(child.stderr.take().unwrap());
        let listens = lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.contains("listens on"))
            .unwrap_or_else(|| panic!("it did not start: {:?}", log.iter().collect::<Vec<_>>()));
        // Read on, so that the server can go on printing.
        std::thread::spawn(move || lines.for_each(drop));
        let udp = listens
            .split_whitespace()
            .find_map(|word| word.strip_prefix("udp://"));
        Self {
            udp: udp.unwrap().parse().unwrap(),
            child,
            log,
        }
    }

    /// Its UDP address.
    pub(crate) fn udp(&self) -> SocketAddr {
        self.udp
    }

    /// Waits for a line of the log that contains `text`.
    pub(crate) fn expect_log(&self, text: &str) -> String {
        loop {
            match self.log.recv_timeout(WAIT) {
                Ok(line) if line.contains(text) => return line,
                Ok(_) => {}
                Err(error) => panic!("no line with {text:?} in the log: {error}"),
            }
        }
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for its end; whether its status is 0.
    pub(crate) fn ended(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// `sipolis NAME... --data DIR`, not yet run.
fn command(data: &Path, name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sipolis"));
    command.args(name.split(' ')).arg("--data").arg(data);
    command.stdin(Stdio::null());
    command
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            ok: output.status.success(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs a command on a data directory.
pub(crate) fn run(data: &Path, name: &str, more: &[&str]) -> Done {
    command(data, name).args(more).output().unwrap().into()
}

/// Runs a command that has to succeed; its output.
pub(crate) fn sipolis(data: &Path, name: &str, more: &[&str]) -> String {
    let done = run(data, name, more);
    assert!(done.ok, "sipolis {name} {more:?}: {done:?}");
    done.out
}

/// Runs a command that has to fail; what it says.
pub(crate) fn refused(data: &Path, name: &str, more: &[&str]) -> String {
    let done = run(data, name, more);
    assert!(!done.ok, "sipolis {name} {more:?}: {done:?}");
    done.err
}
