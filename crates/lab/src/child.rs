//! Child processes: each on its core, and gone when this process is gone.

use std::{
    io,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Where servers run.
pub(crate) const SERVER_CORE: usize = 0;
/// Where the load runs, so that neither takes time from the other.
pub(crate) const LOAD_CORE: usize = 1;

/// A command on a core, on the last one where there are fewer; its process becomes the program itself.
///
/// The kernel ends it when the thread that started it ends, however that happens; so it has to be
/// started by the main thread, and an interrupted run leaves nothing behind.
pub(crate) fn on_core(core: usize, program: &Path) -> Command {
    let core = core.min(super::machine::cores().saturating_sub(1));
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "taskset", "-c", &core.to_string()]);
    command.arg(program);
    command
}

/// Starts a command.
///
/// # Errors
/// Names the package of what is missing.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    command.spawn().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            e.kind(),
            "setpriv is missing: install the package util-linux",
        ),
        _ => e,
    })
}

/// Asks a child and what descends from it to end, and makes them after `patience`.
pub(crate) fn end(child: &mut Child, pids: &[u32], patience: Duration) {
    signal(&[child.id()], "-TERM");
    if !ended_within(child, patience) {
        signal(pids, "-KILL");
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Waits for a child's end, for so long at most; whether it has ended.
pub(crate) fn ended_within(child: &mut Child, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

fn signal(pids: &[u32], signal: &str) {
    let mut kill = Command::new("kill");
    kill.arg(signal).args(pids.iter().map(u32::to_string));
    let _ = kill.stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_does_not_listen_is_made_to_end() {
        let mut stubborn = on_core(LOAD_CORE, Path::new("sh"));
        // `read` waits without a process of its own.
        stubborn.args(["-c", "trap '' TERM; echo; while :; do read -r x || :; done"]);
        stubborn.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = start(&mut stubborn).unwrap();
        // Its first line: the signal is ignored from now on.
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let pid = child.id();
        end(&mut child, &[pid], Duration::ZERO);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
