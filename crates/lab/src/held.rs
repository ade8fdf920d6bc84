//! Connections that are opened, used once and then kept: how many a machine gives, and a load that holds them.

use std::{fs, time::Duration};

use crate::{
    experiment::Stop,
    lab::Lab,
    load::{Load, Prepared},
    record::Who,
    servers::{DOMAIN, Server},
};

/// One load process holds so many at most; more come from several.
const OF_A_PROCESS: usize = 15_000;
/// Descriptors that a server needs for everything else, and for connections that come on top.
const SPARE: u64 = 1_000;
/// Kernel memory that a connection is reckoned with, both ends, bytes.
const RECKONED: u64 = 12_000;
/// What the papers held.
const PUBLISHED: usize = 520_000;

impl Lab {
    /// The most connections that one server process and the memory of this machine hold, and a
    /// warning when it is less than the papers had.
    pub(crate) fn holdable(&mut self) -> usize {
        let descriptors = descriptors(&text("/proc/self/limits"));
        let memory = available(&text("/proc/meminfo"));
        let most = holdable(descriptors, memory);
        if most < PUBLISHED {
            self.warn(format!(
                "A process has {descriptors} descriptors here, so that a server holds {most} connections at most; \
                 the paper's held {PUBLISHED}. More: raise the hard limit, `prlimit --nofile=1048576` or LimitNOFILE."
            ));
        }
        self.size(most, most.min(1_000))
    }

    /// Starts a load that opens connections, lets one request go over each, and keeps them.
    ///
    /// # Errors
    /// The server did not take that many, or did not answer.
    pub(crate) fn hold(
        &mut self,
        server: &Server,
        who: Who,
        count: usize,
    ) -> Result<Prepared, Stop> {
        let processes = count.div_ceil(OF_A_PROCESS);
        let load = exchange(who, "tcp")
            .with(&format!(
                "--connections {count} --users {count} --warm-up {count} --count 0"
            ))
            .within(Duration::from_secs(60 + count as u64 / 1_000));
        let load = if processes > 1 {
            load.with(&format!("--processes {processes}"))
        } else {
            load
        };
        let before = open_files(server);
        let mut held = self.prepare(server, &load)?;
        held.begin().map_err(Stop::Fail)?;
        held.wait().map_err(Stop::Fail)?;
        let held_by_server = open_files(server).saturating_sub(before);
        if held_by_server < count {
            let text = format!(
                "{} holds only {held_by_server} of {count} connections",
                who.name()
            );
            return Err(Stop::Fail(text));
        }
        Ok(held)
    }
}

/// One request and its answer with the server itself: OPTIONS, or what the echo server sends back.
pub(crate) fn exchange(who: Who, transport: &str) -> Load {
    let scenario = if who == Who::Echo { "echo" } else { "options" };
    Load::new(scenario, transport).with(&format!("--domain {DOMAIN} --digest none"))
}

fn holdable(descriptors: u64, memory: u64) -> usize {
    let most = descriptors.saturating_sub(SPARE).min(memory / 2 / RECKONED);
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(PUBLISHED);
    // Of one process where that is nearly all.
    if most < 2 * OF_A_PROCESS {
        most.min(OF_A_PROCESS)
    } else {
        most / 1_000 * 1_000
    }
}

/// Descriptors of all the server's processes.
fn open_files(server: &Server) -> usize {
    let of = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    server.pids().into_iter().map(of).sum()
}

/// The hard limit of open files, of `/proc/PID/limits`.
fn descriptors(limits: &str) -> u64 {
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max open files"));
    let hard = line.and_then(|l| l.split_whitespace().nth(1));
    hard.and_then(|n| n.parse().ok()).unwrap_or(1_024)
}

/// Bytes of memory that can be had, of `/proc/meminfo`.
fn available(meminfo: &str) -> u64 {
    let line = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1_024
}

fn text(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_machine_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            1024                 20000                files     \n";
        assert_eq!(descriptors(limits), 20_000);
        assert_eq!(
            available("MemTotal: 1 kB\nMemAvailable:   1000 kB\n"),
            1_024_000
        );
    }

    #[test]
    fn a_server_holds_what_its_descriptors_and_the_memory_allow() {
        let plenty = 1 << 40;
        assert_eq!(holdable(20_000, plenty), 15_000);
        assert_eq!(holdable(8_000, plenty), 7_000);
        assert_eq!(holdable(65_536, plenty), 64_000);
        assert_eq!(holdable(2_000_000, plenty), PUBLISHED);
        assert_eq!(holdable(2_000_000, 240_000_000), 10_000);
        assert_eq!(holdable(500, plenty), 0);
    }
}
