use location::Transport;
use std::net::{IpAddr, SocketAddr};

/// A host to find (RFC 3263).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ResolveRequest {
    /// Name, lower case; IP addresses are never asked for.
    pub host: String,
    /// Port, when the URI had one.
    pub port: Option<u16>,
    /// Transport, when the URI had one, or when the message does not fit UDP.
    pub transport: Option<Transport>,
    /// `sips`.
    pub secure: bool,
    /// A response's Via (section 5), not a request's URI (section 4).
    pub response: bool,
}

/// Where to try, in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub struct Target {
    pub transport: Transport,
    pub peer: SocketAddr,
}

/// A question to the DNS.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Query {
    Naptr(String),
    Srv(String),
    Addresses(String),
}

/// Its answer; empty when the name or the type does not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Answer {
    /// order, preference, flags, service, replacement
    Naptr(Vec<(u16, u16, String, String, String)>),
    /// priority, weight, port, target
    Srv(Vec<(u16, u16, u16, String)>),
    Addresses(Vec<IpAddr>),
    /// The servers did not answer.
    Failed,
}

/// What the plan wants next.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Step {
    Ask(Query),
    Done(Vec<Target>),
}

/// The decisions of RFC 3263 and RFC 2782 for one request; the caller asks the DNS.
pub struct Plan {}

impl Plan {
    /// Starts. `available`: the transports that we speak. `random` decides among SRV weights.
    #[must_use]
    pub fn new(request: ResolveRequest, available: &[Transport], random: u64) -> Self {
        let _ = (request, available, random);
        todo!()
    }
    /// The next step; the same until answered.
    #[must_use]
    pub fn step(&self) -> Step {
        todo!()
    }
    /// Gives the answer to the last question.
    pub fn answer(&mut self, answer: Answer) {
        let _ = answer;
        todo!()
    }
}
