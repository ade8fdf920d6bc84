use crate::case::{text, within};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A program that runs beside the test, with its output in a file; killed when dropped.
pub struct Peer {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Peer {
    /// Starts it; standard output and standard error go to `log`.
    ///
    /// # Panics
    /// When it does not start: the package is missing, see `cargo xtask test`.
    #[must_use]
    pub fn start(command: &mut Command, log: PathBuf) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .expect("a log file");
        let err = out.try_clone().expect("a log file");
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name, child, log }
    }

    /// What it has printed.
    #[must_use]
    pub fn said(&self) -> String {
        text(&self.log)
    }

    /// Waits until it has printed `words`.
    ///
    /// # Panics
    /// When it has not within `seconds`, or ends before.
    pub fn says(&mut self, words: &str, seconds: u64) {
        let Self { name, child, log } = self;
        within(seconds, &format!("{name} says `{words}`"), || {
            if text(log).contains(words) {
                return Some(());
            }
            let ended = child.try_wait().ok().flatten();
            assert!(ended.is_none(), "{name} ended: {ended:?}\n{}", text(log));
            None
        });
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it has not come within `seconds`.
    pub fn ends(&mut self, seconds: u64) -> ExitStatus {
        let Self { name, child, .. } = self;
        within(seconds, &format!("the end of {name}"), || {
            child.try_wait().ok().flatten()
        })
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and its end awaited.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM; the end is not awaited.
    ///
    /// # Panics
    /// When there is no `kill` program.
    pub fn terminate(&self) {
        let mut kill = Command::new("kill");
        kill.arg(self.id().to_string());
        assert!(
            kill.status().is_ok_and(|status| status.success()),
            "kill {}",
            self.id()
        );
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}
