//! Which connection an operation uses, and how long it lives.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use crate::{
    cause::Cause,
    io::{FlowId, Inbox, Io, Transport},
    operation::Operation,
    plan::{Connections, Lifetime},
};

/// The flows of one driver.
pub(crate) struct Flows {
    target: SocketAddr,
    settings: Connections,
    callers: Vec<FlowId>,
    callees: Vec<FlowId>,
}

impl Flows {
    pub(crate) fn new(target: SocketAddr, settings: Connections) -> Self {
        Self {
            target,
            settings,
            callers: Vec::new(),
            callees: Vec::new(),
        }
    }

    /// Transport of the callers' requests.
    pub(crate) fn transport(&self) -> Transport {
        self.settings.transport
    }

    /// Transport that the callees are reached by.
    pub(crate) fn callee_transport(&self) -> Transport {
        self.settings.callee_transport
    }

    /// Opens what is open before the first operation, the callees' flows too if there are any.
    pub(crate) fn open(&mut self, io: &mut Io, callees: bool, deadline: Instant) -> io::Result<()> {
        let transport = self.settings.transport;
        if transport == Transport::Udp || self.settings.lifetime == Lifetime::Persistent {
            self.callers = self.open_many(io, transport, deadline)?;
        }
        if callees {
            self.callees = self.open_many(io, self.settings.callee_transport, deadline)?;
        }
        Ok(())
    }

    fn open_many(
        &self,
        io: &mut Io,
        transport: Transport,
        deadline: Instant,
    ) -> io::Result<Vec<FlowId>> {
        let count = self.settings.count;
        let mut flows: Vec<FlowId> = Vec::with_capacity(count);
        while flows.len() < count {
            // A few at a time: no listening socket's queue overflows.
            for _ in 0..(count - flows.len()).min(64) {
                flows.push(match transport {
                    Transport::Udp => io.udp(SocketAddr::new(self.settings.sources[0], 0))?,
                    Transport::Tcp => io.connect(self.target)?,
                });
            }
            self.wait_connected(io, &flows[flows.len().saturating_sub(64)..], deadline)?;
        }
        Ok(flows)
    }

    fn wait_connected(&self, io: &mut Io, flows: &[FlowId], deadline: Instant) -> io::Result<()> {
        let mut inbox = Inbox::default();
        while !flows.iter().all(|f| io.is_connected(*f)) {
            if Instant::now() > deadline {
                let text = format!("{} does not accept connections in time", self.target);
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            io.turn(Duration::from_millis(100), &mut inbox)?;
            if !inbox.lost.is_empty() {
                let text = format!("{} closes or refuses connections", self.target);
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, text));
            }
        }
        Ok(())
    }

    /// The flow for an operation's next transaction.
    pub(crate) fn next(
        &mut self,
        io: &mut Io,
        operation: &Operation,
        user: usize,
    ) -> Result<FlowId, Cause> {
        let _ = operation;
        // TODO(engine): the other lifetimes
        if self.callers.is_empty() {
            return io.connect(self.target).map_err(|_| Cause::Unreachable);
        }
        let place = user % self.callers.len();
        let flow = &mut self.callers[place];
        if self.settings.transport == Transport::Tcp && io.is_closed(*flow) {
            *flow = io.connect(self.target).map_err(|_| Cause::Unreachable)?;
        }
        Ok(*flow)
    }

    /// The flow that a callee registered over.
    pub(crate) fn callee(&self, user: usize) -> FlowId {
        self.callees[user % self.callees.len()]
    }

    /// An operation has ended: its connection may have, too.
    pub(crate) fn ended(&mut self, io: &mut Io, operation: &Operation) {
        if self.callers.is_empty() && operation.flow != FlowId::MAX {
            io.close(operation.flow);
        }
    }
}
