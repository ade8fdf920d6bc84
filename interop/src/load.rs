//! The project's own load generator.

use crate::server::binary;
use crate::{Case, Transport, within};
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A `sipolis load` that is ready to begin.
pub struct Load {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    words: String,
}

impl Load {
    /// Starts `sipolis load SCENARIO` on a server, with the options, and waits until it has prepared: callees are registered.
    ///
    /// # Panics
    /// When it ends instead.
    #[must_use]
    pub fn prepare(case: &Case, to: (Transport, SocketAddr), scenario: &str) -> Self {
        let (transport, address) = to;
        let transport = match transport {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
        };
        let mut words = scenario.split(' ');
        let name = words.next().unwrap_or_default();
        let (out, err) = (case.path("load.out"), case.path("load.err"));
        let file = |path| File::create(path).expect("a file in the case's folder");
        let mut command = Command::new(binary());
        command.args(["load", name, &format!("{transport}://{address}")]);
        command
            .args(words)
            .args(["--json", "--no-screen", "--wait"]);
        command.stdin(Stdio::piped());
        command.stdout(file(&out)).stderr(file(&err));
        let child = command.spawn().expect("sipolis runs");
        let words = format!("sipolis load {scenario} {transport}://{address}");
        let mut load = Self {
            child,
            out,
            err,
            words,
        };
        within(60, &format!("{}: ready", load.words), || {
            let ended = load.child.try_wait().ok().flatten();
            let said = crate::case::text(&load.err);
            assert!(ended.is_none(), "{}: {ended:?}\n{said}", load.words);
            said.contains("sipolis load: ready").then_some(())
        });
        load
    }

    /// Begins, and gives the figures.
    ///
    /// # Panics
    /// When it has not ended within a minute, or an operation failed.
    #[must_use]
    pub fn runs(mut self) -> serde_json::Value {
        let mut begin = self.child.stdin.take().expect("a pipe");
        begin.write_all(b"\n").expect("it reads");
        let ended = within(60, &format!("the end of {}", self.words), || {
            self.child.try_wait().ok().flatten()
        });
        let (said, out) = (crate::case::text(&self.err), crate::case::text(&self.out));
        assert!(ended.success(), "{}: {ended}\n{said}\n{out}", self.words);
        serde_json::from_str(&out).expect("JSON")
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
