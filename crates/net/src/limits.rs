//! What of this machine will limit the server, as data for the start page and `sipolis check`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// What the system calls it.
    pub name: &'static str,
    /// What it is now.
    pub value: String,
    /// What it should be at least.
    pub wanted: String,
    /// Whether it is that much.
    pub enough: bool,
    /// What it means for the server at the present value.
    pub effect: String,
    /// The command, for the administrator, that lifts it.
    pub command: String,
}

/// What the server is to reach.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Connections at once.
    pub connections: u64,
    /// Connections that may wait to be accepted by one worker.
    pub backlog: u64,
    /// Buffer of a datagram socket, bytes.
    pub buffer_bytes: u64,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            connections: 300_000,
            backlog: 4096,
            buffer_bytes: 8 * 1024 * 1024,
        }
    }
}

/// Descriptors that are not connections: sockets of workers, files, pipes.
const DESCRIPTORS_OTHER: u64 = 256;

/// Reads the limits. What this system does not have is left out.
#[must_use]
pub fn probe(wanted: &Wanted) -> Vec<Limit> {
    [
        descriptors(wanted),
        ports(),
        backlog(wanted),
        receive_buffer(wanted),
        send_buffer(wanted),
        tcp_memory(wanted),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Places in the table of descriptors that are made at once; half a megabyte of the kernel's.
const DESCRIPTORS_AT_ONCE: u64 = 65_536;

/// Raises the soft limit of descriptors to the hard one, and has the kernel make room for many of them now: each time that it
/// doubles the table of a process with threads, whoever opens or accepts a connection waits some tens of milliseconds for all
/// processors. To be called before threads are started. Returns the limit that then holds.
///
/// # Errors
/// As the system says.
#[allow(unsafe_code)]
pub fn raise_descriptors() -> io::Result<u64> {
    let mut limit = descriptor_limit()?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the structure is initialised and only read.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // What is not made now is made when it is needed; the limit holds all the same.
    let _ = make_room(limit.rlim_cur.min(DESCRIPTORS_AT_ONCE));
    Ok(limit.rlim_cur)
}

/// Takes the last of so many descriptors, for a moment.
#[allow(unsafe_code)]
fn make_room(count: u64) -> io::Result<()> {
    let any = std::fs::File::open("/dev/null")?;
    let last = libc::c_int::try_from(count.saturating_sub(1)).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is open, and the call takes a number and gives one.
    let taken = unsafe { libc::fcntl(any.as_raw_fd(), libc::F_DUPFD_CLOEXEC, last) };
    if taken < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and known to nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(taken) });
    Ok(())
}

#[allow(unsafe_code)]
fn descriptor_limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is a place for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limit)
}

fn descriptors(wanted: &Wanted) -> Option<Limit> {
    let limit = descriptor_limit().ok()?;
    let need = wanted.connections + DESCRIPTORS_OTHER;
    let possible = limit.rlim_max.saturating_sub(DESCRIPTORS_OTHER);
    Some(Limit {
        name: "descriptors (RLIMIT_NOFILE)",
        value: format!("{} (hard limit {})", limit.rlim_cur, limit.rlim_max),
        wanted: need.to_string(),
        enough: limit.rlim_max >= need,
        effect: format!("at most {possible} TCP connections at once"),
        command: format!(
            "sysctl -w fs.nr_open={nr_open}; then start with `prlimit --nofile={need}` or `LimitNOFILE={need}` in the systemd unit",
            nr_open = need.max(1_048_576)
        ),
    })
}

fn ports() -> Option<Limit> {
    let text = read("net/ipv4/ip_local_port_range")?;
    let [low, high] = numbers(&text)[..] else {
        return None;
    };
    let count = (high + 1).saturating_sub(low);
    Some(Limit {
        name: "net.ipv4.ip_local_port_range",
        value: format!("{low} {high}"),
        wanted: String::from("10240 65535"),
        enough: count >= 50_000,
        effect: format!("at most {count} connections opened by us to one address and port"),
        command: String::from("sysctl -w net.ipv4.ip_local_port_range=\"10240 65535\""),
    })
}

fn backlog(wanted: &Wanted) -> Option<Limit> {
    let value = *numbers(&read("net/core/somaxconn")?).first()?;
    Some(simple(
        "net.core.somaxconn",
        value,
        wanted.backlog,
        format!(
            "{} new connections may wait for a worker; in a storm more are turned away and try again",
            value.min(wanted.backlog)
        ),
    ))
}

fn receive_buffer(wanted: &Wanted) -> Option<Limit> {
    let value = *numbers(&read("net/core/rmem_max")?).first()?;
    Some(simple(
        "net.core.rmem_max",
        value,
        wanted.buffer_bytes,
        format!(
            "a UDP socket holds some {} requests while its worker is busy; more are lost",
            value / DATAGRAM_COST
        ),
    ))
}

fn send_buffer(wanted: &Wanted) -> Option<Limit> {
    let value = *numbers(&read("net/core/wmem_max")?).first()?;
    Some(simple(
        "net.core.wmem_max",
        value,
        wanted.buffer_bytes,
        format!(
            "a UDP socket holds some {} messages that wait for the network card",
            value / DATAGRAM_COST
        ),
    ))
}

/// What a message of usual size takes of a socket's buffer, with the kernel's own overhead, bytes.
const DATAGRAM_COST: u64 = 2304;

fn tcp_memory(wanted: &Wanted) -> Option<Limit> {
    let text = read("net/ipv4/tcp_mem")?;
    let [low, pressure, high] = numbers(&text)[..] else {
        return None;
    };
    let need = wanted.connections;
    Some(Limit {
        name: "net.ipv4.tcp_mem",
        value: format!("{low} {pressure} {high}"),
        wanted: format!("{} {} {need}", need / 2, need * 3 / 4),
        enough: high >= need,
        effect: format!(
            "all TCP buffers of this machine together: {} MiB (pages of 4 KiB)",
            high / 256
        ),
        command: format!(
            "sysctl -w net.ipv4.tcp_mem=\"{} {} {need}\"",
            need / 2,
            need * 3 / 4
        ),
    })
}

fn simple(name: &'static str, value: u64, wanted: u64, effect: String) -> Limit {
    Limit {
        name,
        value: value.to_string(),
        wanted: wanted.to_string(),
        enough: value >= wanted,
        effect,
        command: format!("sysctl -w {name}={wanted}"),
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/sys/{path}")).ok()
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_says_what_it_means_and_what_lifts_it() {
        let limits = probe(&Wanted {
            connections: u64::MAX / 1024,
            ..Wanted::default()
        });
        let descriptors = &limits[0];
        assert!(!descriptors.enough, "no machine has so many");
        assert!(descriptors.command.contains("LimitNOFILE"));
        for limit in &limits {
            assert!(!limit.effect.is_empty() && !limit.command.is_empty());
        }
    }

    #[test]
    fn raising_descriptors_makes_room_for_them() {
        let limit = raise_descriptors().expect("allowed to everyone");
        let status = std::fs::read_to_string("/proc/self/status").expect("there");
        let line = status.lines().find_map(|l| l.strip_prefix("FDSize:"));
        let room: u64 = line.expect("a line").trim().parse().expect("a number");
        assert!(room >= limit.min(DESCRIPTORS_AT_ONCE), "{room}");
    }

    #[test]
    fn raising_descriptors_reaches_the_hard_limit() {
        let raised = raise_descriptors().expect("allowed to everyone");
        assert_eq!(raised, descriptor_limit().expect("readable").rlim_max);
    }
}
