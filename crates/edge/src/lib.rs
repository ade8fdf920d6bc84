//! The event loop of one core: reads the clock, moves bytes, runs the machines. Knows no SIP rules.
//!
//! [`Server::bind`] opens the listeners for every worker, [`Bound::start`] gives each worker a thread. A worker owns what it accepts: its sockets
//! ([`net::Net`]), its [`sip_core::Core`], and what waits for the journal. Workers and the control plane reach each other by bounded
//! mailboxes only ([`Post`]).
//!
//! A turn of a worker: wait for events; read both clocks, once; datagrams, new connections, streams, each message into the core;
//! the mailbox; the core's timers; answers whose journal batch is on disk; then all writes. Nothing in it blocks.

mod clock;
mod durable;
mod hub;
mod log;
mod outlet;
mod post;
mod server;
mod status;
mod ways;
mod worker;

pub use log::Log;
pub use post::{Mail, Post};
pub use server::{BindError, Bound, Listen, Options, Server};
pub use status::WorkerStatus;

use sip_core::{ResolveId, ResolveRequest};

/// Looks up hosts outside of the workers. The answer goes to the worker by [`Post::resolved`]: always, and within the resolver's time budget.
pub trait Resolver: Send + Sync {
    /// Takes a question. Does not block.
    ///
    /// # Errors
    /// Too many questions wait: there will be no answer to this one.
    fn ask(&self, worker: u8, id: ResolveId, request: ResolveRequest) -> Result<(), Busy>;
}

/// Too much waits already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;
