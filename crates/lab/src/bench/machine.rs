//! What the figures were measured on.

use std::{fs, process::Command};

use serde::Serialize;

use super::servers::Installed;

/// Machine, kernel and versions.
#[derive(Serialize)]
pub(super) struct Machine {
    pub(super) processor: String,
    pub(super) cores: usize,
    pub(super) memory_gib: u64,
    pub(super) kernel: String,
    pub(super) kamailio: String,
    /// Commit of the tree and its date.
    pub(super) commit: String,
}

pub(super) fn describe(installed: &Installed) -> Machine {
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
        kamailio: installed.kamailio.as_ref().map_or_else(
            || "not installed".to_owned(),
            |k| format!("{} with -x {}", k.version, k.allocator),
        ),
        commit: commit(),
    }
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
