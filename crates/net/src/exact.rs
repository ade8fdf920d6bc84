//! Waiting to the microsecond. A poller's own timeouts are whole milliseconds, and the system may lengthen those of an ordinary thread by
//! 50 microseconds: nothing to a server, but much to what has to send at given times.
#![allow(unsafe_code)]

use mio::Poll;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Has the calling thread's timeouts end when they are due, instead of when it suits the system.
pub fn exact_timeouts() {
    // SAFETY: it takes a number and touches no memory of ours. Where it fails, timeouts are as before.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Waits until the poller has events, at most so long. Whether it has any.
pub(crate) fn wait(poll: &Poll, timeout: Duration) -> io::Result<bool> {
    let mut poller = libc::pollfd {
        fd: poll.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: one entry and a time, both there until the call returns; the descriptor is open for as long as `poll` is borrowed; no signal mask.
    let count = unsafe { libc::ppoll(&raw mut poller, 1, &raw const timeout, std::ptr::null()) };
    match count {
        0 => Ok(false),
        1.. => Ok(true),
        _ => Err(io::Error::last_os_error()),
    }
}
