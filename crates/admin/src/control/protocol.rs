use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the socket in the data directory.
pub const SOCKET_NAME: &str = "control.sock";

/// Subscribers in one request, and in one page of a list.
pub const USERS_PER_REQUEST_MAX: usize = 10_000;

/// Bytes of one request's line; a full [`Request::UsersPut`] of long names fits.
pub(crate) const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of one response's line: a page of bindings of a server with ten million.
pub(crate) const RESPONSE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What a client asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// Is anyone there: [`Response::Done`].
    Ping,
    /// [`Response::Status`].
    Status,
    /// Adds or replaces subscribers: [`Response::Put`]. At most [`USERS_PER_REQUEST_MAX`].
    UsersPut {
        /// They.
        users: Vec<User>,
        /// What to do with those that exist: replace them, or refuse the whole request.
        replace: bool,
    },
    /// [`Response::Done`], or `NotFound`.
    UserRemove {
        /// `user@domain`.
        aor: String,
    },
    /// [`Response::Users`] with one, or `NotFound`.
    UserShow {
        /// `user@domain`.
        aor: String,
    },
    /// [`Response::Users`]: those after `after`, ordered by domain and then user.
    UsersList {
        /// The last address of the page before; empty: from the start.
        after: String,
        /// How many at most.
        limit: usize,
    },
    /// [`Response::Bindings`] of one address-of-record.
    BindingsShow {
        /// `user@domain`.
        aor: String,
    },
    /// [`Response::Bindings`] of all, a page at a time.
    BindingsList {
        /// 0, then `next` of the response before.
        page: usize,
    },
    /// Removes all bindings of one address-of-record: [`Response::Removed`], once that is on disk.
    BindingsRemove {
        /// `user@domain`.
        aor: String,
    },
    /// Reads the configuration again: [`Response::Reloaded`].
    Reload,
    /// Ends the server in order: [`Response::Done`].
    Shutdown,
}

/// What the server answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Response {
    /// Done.
    Done,
    /// No such subscriber.
    NotFound,
    /// Not done.
    Error {
        /// Why, and what to do next.
        message: String,
    },
    /// State and counters.
    Status(Box<Status>),
    /// Subscribers were written.
    Put {
        /// Those that did not exist.
        added: u64,
        /// Those that did.
        replaced: u64,
    },
    /// Subscribers.
    Users {
        /// A page of them.
        users: Vec<User>,
        /// How many there are in all.
        total: u64,
    },
    /// Bindings.
    Bindings {
        /// Addresses-of-record with bindings, in no order.
        aors: Vec<AorView>,
        /// The next page, when there is one.
        next: Option<usize>,
    },
    /// Bindings were removed.
    Removed {
        /// How many.
        count: u64,
    },
    /// The configuration was taken over.
    Reloaded {
        /// Keys that changed and wait for a restart.
        restart: Vec<String>,
    },
}

/// A subscriber. Hashes only: the password is nowhere.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct User {
    /// `user@domain`.
    pub aor: String,
    /// HA1 of MD5, 32 hex digits; empty: not known.
    pub ha1: String,
    /// HA1 of SHA-256, 64 hex digits; empty: not known.
    pub ha1_sha256: String,
}

/// One address-of-record with its bindings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct AorView {
    pub aor: String,
    pub bindings: Vec<BindingView>,
}

/// One binding, for people and their programs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BindingView {
    /// The Contact's URI.
    pub contact: String,
    /// The Contact's parameters.
    pub params: String,
    /// `udp`, `tcp`.
    pub transport: String,
    /// Where the phone is, as seen from here.
    pub peer: String,
    /// Our address that it came to.
    pub local: String,
    /// Seconds left.
    pub expires_s: u32,
    /// Preference in thousandths.
    pub q: u16,
    /// `+sip.instance`, where the phone gave one.
    pub instance: String,
    /// Path, where it came through other proxies.
    pub path: String,
    /// The phone's name of itself.
    pub user_agent: String,
    /// It is reached over the flow it came on, not by its Contact.
    pub behind_nat: bool,
}

/// State of a running server.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Version of the server.
    pub version: String,
    /// Process.
    pub pid: u32,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Worker threads.
    pub workers: u32,
    /// Whether digest is on.
    pub auth: bool,
    /// Listeners.
    pub listen: Vec<String>,
    /// Domains served, the primary one first.
    pub domains: Vec<String>,
    /// Subscribers.
    pub subscribers: u64,
    /// Bindings.
    pub bindings: u64,
    /// Addresses-of-record with a binding.
    pub aors: u64,
    /// Open connections by transport.
    pub connections: BTreeMap<String, u64>,
    /// How long a worker took to come around to its newest messages: the slowest one's, microseconds.
    pub queue_delay_us: u64,
    /// Resident memory, bytes.
    pub memory_bytes: u64,
    /// CPU time used since the start, user and system, milliseconds.
    pub cpu_ms: u64,
    /// Everything the workers count, since the start.
    pub counters: BTreeMap<String, u64>,
    /// How long the workers were in each stage of their work, all together; only where the setting `stage_times` is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_times: Option<StageTimes>,
}

/// Stage times, since the start. What happened in between is the difference of two of these.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StageTimes {
    /// Each stage, in the order in which a message goes through them.
    pub stages: Vec<StageTime>,
    /// Answers that waited for the journal; `nanoseconds` is how long together, to a microsecond. Workers do other things meanwhile.
    pub disk: StageTime,
    /// What the clock costs at each change of stage, as found at the start; it has been subtracted.
    pub clock_nanoseconds: u64,
}

/// One stage.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StageTime {
    /// `wait`, `read`, `connections`, `classify`, `parse`, `look_up`, `decide`, `write`, `other`.
    pub name: String,
    /// Times that it was entered.
    pub calls: u64,
    /// Nanoseconds in it.
    pub nanoseconds: u64,
    /// The quotient of the two, rounded.
    pub nanoseconds_per_call: u64,
}

impl StageTime {
    /// With the quotient.
    #[must_use]
    pub fn new(name: &str, calls: u64, nanoseconds: u64) -> Self {
        Self {
            name: name.to_owned(),
            calls,
            nanoseconds,
            nanoseconds_per_call: (nanoseconds + calls / 2).checked_div(calls).unwrap_or(0),
        }
    }

    /// What has come since an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self::new(
            &self.name,
            self.calls.saturating_sub(earlier.calls),
            self.nanoseconds.saturating_sub(earlier.nanoseconds),
        )
    }
}

/// Lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Bytes from exactly `2 * N` hex digits of any case.
#[must_use]
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(out)
}
