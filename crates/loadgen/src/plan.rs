//! A whole load, as the command line or a mix file describes it.

use std::{net::IpAddr, ops::Range, time::Duration};

use crate::{
    distribution::Distribution, io::Transport, pace::Pace, requests::Digest, stop::Stop,
    target::Target, users::Users,
};

/// What to do against which server.
#[derive(Clone)]
pub(crate) struct Plan {
    /// Of the scenario or the mix.
    pub(crate) name: String,
    /// What it stands for, in a line; may be empty.
    pub(crate) comment: String,
    pub(crate) target: Target,
    pub(crate) users: Users,
    pub(crate) parts: Vec<PartPlan>,
    pub(crate) connections: Connections,
    /// Operations, of all parts together, after which no other begins.
    pub(crate) count: Option<u64>,
    /// Time after which no operation begins.
    pub(crate) duration: Option<Duration>,
    /// How long one transaction may take.
    pub(crate) timeout: Duration,
    /// Operations under way at most, of all parts.
    pub(crate) outstanding_max: usize,
    pub(crate) threads: usize,
    /// Operations done in preparation, not counted.
    pub(crate) warm_up: u64,
    /// Ends the run, or its preparation, early.
    pub(crate) stop: Stop,
}

/// One part of a mix; a plain scenario is a mix of one.
#[derive(Clone, Debug)]
pub(crate) struct PartPlan {
    pub(crate) name: String,
    /// Indices of its users.
    pub(crate) users: Range<usize>,
    pub(crate) kind: Kind,
    pub(crate) pace: Pace,
}

/// What the operations of a part are.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Register {
        digest: Digest,
        expires_s: u32,
        /// Each is a first registration: a Call-ID of its own.
        first: bool,
    },
    Options {
        body: usize,
    },
    /// As OPTIONS; its own request coming back is what is expected.
    Echo {
        body: usize,
    },
    /// A keep-alive for the server itself.
    Notify {
        digest: Digest,
    },
    /// From one user to another, who answers it.
    Message {
        digest: Digest,
        body: usize,
    },
    Call(CallPlan),
}

/// How calls go. Shares are percent of the calls.
#[derive(Clone, Debug)]
pub(crate) struct CallPlan {
    pub(crate) digest: Digest,
    pub(crate) ring: Distribution,
    pub(crate) talk: Distribution,
    pub(crate) prack: f64,
    pub(crate) update: f64,
    pub(crate) reinvite: f64,
    /// Ended by the caller while it rings.
    pub(crate) cancel: f64,
    /// Refused by the callee with 486.
    pub(crate) busy: f64,
}

/// How the server is reached.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pub(crate) transport: Transport,
    pub(crate) callee_transport: Transport,
    pub(crate) lifetime: Lifetime,
    /// Connections, or UDP sockets; of all threads together, one for each at least. Callees have as many again.
    pub(crate) count: usize,
    /// Local addresses, used in turn.
    pub(crate) sources: Vec<IpAddr>,
}

/// How long a connection lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lifetime {
    /// Opened before the run.
    Persistent,
    /// Opened when a user's first operation is due, within its latency, and kept.
    PersistentOpen,
    /// Closed after so many operations; the next one opens another.
    Operations(u32),
    /// One for each operation.
    Dialog,
    /// One for each client transaction.
    Transaction,
}
