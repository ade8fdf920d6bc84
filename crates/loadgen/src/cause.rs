//! Why operations fail.

use serde::Serialize;

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
    /// The server fell silent, and what was under way was ended.
    GaveUp,
}

/// How an operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Good,
    Failed(Cause),
}

/// Failed operations by cause.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
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
}
