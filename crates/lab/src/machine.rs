//! What the figures are measured on, and what it can't give.

use std::{fs, process::Command, thread};

use crate::{record::Machine, servers::Kamailio};

/// Processors that this process may use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Machine, kernel and versions.
pub(crate) fn describe(kamailio: Option<&Kamailio>) -> Machine {
    let kilobytes: u64 = field("/proc/meminfo", "MemTotal")
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        processor: field("/proc/cpuinfo", "model name"),
        cores: fs::read_to_string("/proc/cpuinfo")
            .unwrap_or_default()
            .lines()
            .filter(|l| l.starts_with("processor"))
            .count(),
        memory_gib: kilobytes.div_ceil(1024 * 1024),
        kernel: kernel.trim().to_owned(),
        kamailio: kamailio.map_or_else(
            || "not installed".to_owned(),
            |k| format!("{} with -x {}", k.version, k.allocator),
        ),
        commit: commit(),
    }
}

/// Descriptors that the experiments with the most connections want of one process.
const DESCRIPTORS_WANTED: u64 = 20_000;

/// What this machine can't give, and what would change it.
pub(crate) fn warnings() -> Vec<String> {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut warnings = Vec::new();
    if cores() < 2 {
        warnings.push(
            "one processor: server and load share it, so that no rate is the server's own"
                .to_owned(),
        );
    }
    if let Some(descriptors) = descriptors(&limits).filter(|n| *n < DESCRIPTORS_WANTED) {
        warnings.push(format!(
            "{descriptors} descriptors a process, which bounds the connections: ulimit -n {DESCRIPTORS_WANTED}"
        ));
    }
    if let Some(busy) = busy(&load).filter(|busy| *busy > 0.5) {
        warnings.push(format!(
            "other programs run here ({busy} on average in the last minute): times are worth less"
        ));
    }
    if fs::read("/proc/slabinfo").is_err() {
        warnings.push(
            "/proc/slabinfo can't be read, so kernel memory is missing: run as root".to_owned(),
        );
    }
    warnings
}

/// The hard limit, as far as which a process may raise its own.
fn descriptors(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max open files"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn busy(loadavg: &str) -> Option<f64> {
    loadavg.split(' ').next()?.parse().ok()
}

/// Value of the first line `NAME : VALUE` of a file.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_default()
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let Some(commit) = git(&["log", "-1", "--format=%h of %cs"]) else {
        return "unknown".to_owned();
    };
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"]);
    if dirty.is_some_and(|changes| changes.is_empty()) {
        return commit;
    }
    commit + ", with changes"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_load_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max cpu time              unlimited            unlimited            seconds   \n\
                      Max open files            1024                 20000                files     \n";
        assert_eq!(descriptors(limits), Some(20_000));
        assert_eq!(descriptors("Max open files  1024  unlimited  files"), None);
        assert_eq!(busy("0.61 0.20 0.10 1/80 5\n"), Some(0.61));
    }
}
