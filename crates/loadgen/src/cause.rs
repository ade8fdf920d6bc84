//! Why operations fail.

use serde::{Deserialize, Serialize};

/// Why an operation failed. Each failed operation counts under one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// A transaction had its time and no final response.
    Timeout,
    /// The server said that it is overloaded: 503.
    Refused,
    /// A connection could not be opened.
    Unreachable,
    /// The connection ended with the operation under way.
    ConnectionLost,
    /// Credentials were not taken, or there were none to give.
    Credentials,
    /// A final response that is not what the operation is for.
    Response,
    /// The server's bytes could not be understood.
    Rubbish,
    /// This machine gave out: descriptors, ports, memory.
    Local,
    /// It was due, and so many were under way that it was not begun.
    NotBegun,
    /// It was ended before its time: the run was asked to end, or the server had fallen silent.
    GaveUp,
}

/// How an operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Good,
    Failed(Cause),
}

/// Failed operations by cause.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)] // as those of `Cause`
pub struct Failures {
    pub timeout: u64,
    pub refused: u64,
    pub unreachable: u64,
    pub connection_lost: u64,
    pub credentials: u64,
    pub response: u64,
    pub rubbish: u64,
    pub local: u64,
    pub not_begun: u64,
    pub gave_up: u64,
}

impl Failures {
    pub(crate) fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::Timeout => &mut self.timeout,
            Cause::Refused => &mut self.refused,
            Cause::Unreachable => &mut self.unreachable,
            Cause::ConnectionLost => &mut self.connection_lost,
            Cause::Credentials => &mut self.credentials,
            Cause::Response => &mut self.response,
            Cause::Rubbish => &mut self.rubbish,
            Cause::Local => &mut self.local,
            Cause::NotBegun => &mut self.not_begun,
            Cause::GaveUp => &mut self.gave_up,
        } += 1;
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self {
            timeout,
            refused,
            unreachable,
            connection_lost,
            credentials,
            response,
            rubbish,
            local,
            not_begun,
            gave_up,
        } = *self;
        let by_server = timeout + refused + connection_lost + credentials + response + rubbish;
        by_server + unreachable + local + not_begun + gave_up
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.timeout += other.timeout;
        self.refused += other.refused;
        self.unreachable += other.unreachable;
        self.connection_lost += other.connection_lost;
        self.credentials += other.credentials;
        self.response += other.response;
        self.rubbish += other.rubbish;
        self.local += other.local;
        self.not_begun += other.not_begun;
        self.gave_up += other.gave_up;
    }
}
