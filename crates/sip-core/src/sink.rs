use crate::resolve::ResolveRequest;
use location::{Flow, Ticket, Transport};
use std::net::SocketAddr;

/// Where the effects of a [`crate::Core`] go. The event loop and the simulation each implement it. No call blocks.
pub trait Sink {
    /// Sends a whole message. A failure that is known later (connection refused, broken before the bytes were written, queue over its
    /// bound) comes back through [`crate::Core::send_failed`] when `origin` is given. Datagrams go out with the end of the turn; a
    /// message for a connection of another worker goes through that worker's mailbox.
    fn send(&mut self, to: &Destination, origin: Option<Origin>, message: &[u8]);

    /// Sends `message` on `to` once the ticket is durable; when its batch failed, gives it to [`crate::Core::durability_failed`] instead.
    fn send_when_durable(&mut self, ticket: Ticket, to: &Flow, message: &[u8]);

    /// Our address as the destination will see it, for Via and Record-Route: never 0.0.0.0. For a connection that is yet to be
    /// opened, the port is that of our listener for the transport. `None`: we have no way there.
    fn local_address(&mut self, to: &Destination) -> Option<SocketAddr>;

    /// Whether the flow's connection is still open. Datagram flows always are. For another worker's connection the answer may be
    /// `true` a moment too long.
    fn is_open(&mut self, flow: &Flow) -> bool;

    /// Asks for a host's addresses; the answer comes through [`crate::Core::resolved`], always, within the resolver's time budget.
    fn resolve(&mut self, id: ResolveId, request: &ResolveRequest);

    /// Gives a message that belongs to another worker's transaction to that worker, whose core gets it by [`crate::Core::receive_handed`].
    fn hand_over(&mut self, worker: u8, flow: &Flow, message: &[u8]);

    /// Something worth a log line; the sink limits the rate.
    fn event(&mut self, event: &Event<'_>);

    /// The core has come to that part of its work; for a sink that measures how long each takes.
    fn stage(&mut self, stage: Stage) {
        let _ = stage;
    }
}

/// A part of the core's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// A message is taken to pieces.
    Parse,
    /// It is decided what a message, a failure or the time makes the server do, and that is done.
    Decide,
    /// In the middle of it, bindings are looked up or changed.
    LookUp,
    /// That is done, and deciding goes on.
    LookedUp,
}

/// Where to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// Back along a flow.
    Flow(Flow),
    /// To an address: an open connection to it is used, otherwise one is opened.
    Address {
        /// By this transport.
        transport: Transport,
        /// To it.
        peer: SocketAddr,
    },
}

impl Destination {
    /// What carries what is sent there.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        match self {
            Self::Flow(flow) => flow.transport,
            Self::Address { transport, .. } => *transport,
        }
    }
}

/// Names what a message was sent for, so that a failure finds its way back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Origin(pub u64);

/// Names a question to the resolver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResolveId(pub u64);

/// What is worth a log line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Bytes that are no message: dropped or refused with the status.
    Malformed {
        /// From where.
        flow: &'a Flow,
        /// Why.
        why: &'static str,
        /// Answered so; 0: dropped.
        status: u16,
    },
    /// Credentials that do not fit.
    AuthFailed {
        /// From where.
        flow: &'a Flow,
        /// The name that was tried.
        username: &'a [u8],
    },
    /// A stranger wanted to be relayed.
    RelayDenied {
        /// From where.
        flow: &'a Flow,
    },
    /// A bound of a table was reached.
    TableFull {
        /// Which one.
        table: &'static str,
    },
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What a core has counted since its start. Plain numbers, read by the event loop.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[$doc])* pub $name: u64),* }

        impl Counters {
            /// Every counter with its name, for status and metrics.
            pub fn each(&self, mut f: impl FnMut(&'static str, u64)) { $(f(stringify!($name), self.$name);)* }
            /// Adds another core's.
            pub fn add(&mut self, other: &Self) { $(self.$name += other.$name;)* }
        }
    };
}

counters! {
    /// Requests received.
    requests_received,
    /// Responses received.
    responses_received,
    /// Requests sent, retransmissions included.
    requests_sent,
    /// Responses sent, retransmissions included.
    responses_sent,
    /// Messages refused or dropped as malformed.
    malformed,
    /// Retransmitted requests absorbed.
    retransmissions_received,
    /// Messages that our timers sent again.
    retransmissions_sent,
    /// REGISTER requests that were accepted.
    registrations_accepted,
    /// REGISTER requests that were refused.
    registrations_refused,
    /// Challenges sent.
    challenges,
    /// Credentials that did not fit.
    auth_failures,
    /// INVITEs answered 2xx through us.
    calls_answered,
    /// INVITEs that ended otherwise.
    calls_failed,
    /// Server transactions now.
    server_transactions,
    /// Client transactions now.
    client_transactions,
    /// Transactions that timed out.
    timeouts,
}
