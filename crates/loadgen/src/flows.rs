//! Which connection an operation uses, and how long it lives.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use crate::{
    cause::{Cause, Outcome},
    io::{FlowId, Inbox, Io, Transport},
    operation::{NONE, Operation},
    plan::{Connections, Lifetime},
    statistics::Times,
    stop::Stop,
};

/// The flows of one driver.
pub(crate) struct Flows {
    target: SocketAddr,
    settings: Connections,
    /// Local addresses to open from; the system's choice when there are none.
    sources: Vec<IpAddr>,
    next_source: usize,
    /// Where phones are reached that keep no connection; `None` if they are reached over the one they have.
    listening: Option<String>,
    callers: Vec<Place>,
    callees: Vec<FlowId>,
    uses: Vec<Use>,
    /// From opening a connection to its being open.
    pub(crate) setup_us: Times,
    /// Connections that were opened.
    pub(crate) opened: u64,
}

/// A connection that others follow.
#[derive(Clone, Copy)]
struct Place {
    flow: FlowId,
    /// Operations that have begun on it.
    begun: u32,
}

const EMPTY: Place = Place {
    flow: NONE,
    begun: 0,
};

/// Who uses a flow: the first of its operations, which are linked.
#[derive(Clone, Copy)]
struct Use {
    first: u32,
    /// It is closed when its last operation ends.
    retired: bool,
}

const UNUSED: Use = Use {
    first: NONE,
    retired: false,
};

/// Where a phone listens.
const SIP_PORT: u16 = 5060;
/// Connections that are being opened at a time in preparation; more would overflow a listening socket's queue.
const OPENING_MAX: usize = 512;
/// Of those, how many are begun between two looks at what has come.
const OPENED_AT_ONCE: usize = 64;

impl Flows {
    pub(crate) fn new(target: SocketAddr, settings: Connections) -> Self {
        let usual = net::source_address(target).ok();
        let sources = match settings.sources[..] {
            // No need to say what the system does anyway: two calls less for each connection.
            [only] if Some(only) == usual => Vec::new(),
            _ => settings.sources.clone(),
        };
        let kept = matches!(
            settings.lifetime,
            Lifetime::Persistent | Lifetime::PersistentOpen
        );
        let first = settings.sources.first().filter(|_| !kept);
        let listening = first.map(|ip| SocketAddr::new(*ip, SIP_PORT).to_string());
        Self {
            target,
            settings,
            sources,
            next_source: 0,
            listening,
            callers: Vec::new(),
            callees: Vec::new(),
            uses: Vec::new(),
            setup_us: Times::default(),
            opened: 0,
        }
    }

    /// Where phones are reached that keep no connection. The connections' own addresses would make a
    /// binding each, until the server takes no more of a user.
    pub(crate) fn listening(&self) -> Option<&str> {
        self.listening.as_deref()
    }

    /// Transport of the callers' requests.
    pub(crate) fn transport(&self) -> Transport {
        self.settings.transport
    }

    /// Transport that the callees are reached by.
    pub(crate) fn callee_transport(&self) -> Transport {
        self.settings.callee_transport
    }

    /// The flow that a callee registered over.
    pub(crate) fn callee(&self, user: usize) -> FlowId {
        self.callees[user % self.callees.len()]
    }

    /// Opens what is open before the first operation, the callees' flows too if there are any. `watch` is told of each step
    /// how many are open.
    ///
    /// # Errors
    /// The server refuses a connection, or opens none for as long as `timeout`; ports or descriptors run out; `stop` is asked.
    pub(crate) fn open(
        &mut self,
        io: &mut Io,
        callees: bool,
        timeout: Duration,
        stop: &Stop,
        watch: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        let transport = self.settings.transport;
        if transport == Transport::Udp || self.settings.lifetime == Lifetime::Persistent {
            let flows = self.open_many(io, transport, timeout, stop, watch)?;
            let place = |flow| Place { flow, begun: 0 };
            self.callers = flows.into_iter().map(place).collect();
        }
        if callees {
            let transport = self.settings.callee_transport;
            self.callees = self.open_many(io, transport, timeout, stop, watch)?;
        }
        Ok(())
    }

    fn open_many(
        &mut self,
        io: &mut Io,
        transport: Transport,
        timeout: Duration,
        stop: &Stop,
        watch: &mut dyn FnMut(u64),
    ) -> io::Result<Vec<FlowId>> {
        let count = self.settings.count;
        if transport == Transport::Udp {
            return (0..count).map(|_| self.open_udp(io)).collect();
        }
        let mut flows: Vec<FlowId> = Vec::with_capacity(count);
        let (mut open, mut last) = (0, Instant::now());
        let mut inbox = Inbox::default();
        while open < count {
            let begin = (count - flows.len()).min(open + OPENING_MAX - flows.len());
            for _ in 0..begin.min(OPENED_AT_ONCE) {
                flows.push(self.connect(io).map_err(|e| self.explain(e))?);
            }
            let wait = match flows.len() == count || begin == 0 {
                true => Duration::from_millis(100),
                false => Duration::ZERO,
            };
            io.turn(wait, &mut inbox)?;
            if !inbox.lost.is_empty() {
                let text = format!("{} closes or refuses connections", self.target);
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, text));
            }
            if !inbox.opened.is_empty() {
                last = Instant::now();
            }
            for (_, setup_us) in &inbox.opened {
                self.has_opened(*setup_us);
                open += 1;
            }
            watch(self.opened);
            if stop.is_asked() {
                let text = "ended while connections were being opened";
                return Err(io::Error::new(io::ErrorKind::Interrupted, text));
            }
            if last.elapsed() > timeout {
                let text = format!("{} does not accept connections in time", self.target);
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
        Ok(flows)
    }

    fn open_udp(&mut self, io: &mut Io) -> io::Result<FlowId> {
        let source = self.settings.sources[self.next_source % self.settings.sources.len()];
        self.next_source += 1;
        io.udp(source).map_err(|e| self.explain(e))
    }

    /// A connection is open.
    pub(crate) fn has_opened(&mut self, setup_us: u64) {
        self.opened += 1;
        self.setup_us.record(setup_us);
    }

    /// Begins a connection from the next address that has a port left.
    fn connect(&mut self, io: &mut Io) -> io::Result<FlowId> {
        let target = self.target;
        let flow = self.with_source(|source| io.connect(target, source))?;
        if self.uses.len() <= flow as usize {
            self.uses.resize(flow as usize + 1, UNUSED);
        }
        self.uses[flow as usize] = UNUSED;
        Ok(flow)
    }

    fn with_source<T>(
        &mut self,
        mut begin: impl FnMut(Option<IpAddr>) -> io::Result<T>,
    ) -> io::Result<T> {
        let count = self.sources.len();
        if count == 0 {
            return begin(None);
        }
        let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
        for _ in 0..count {
            let source = self.sources[self.next_source % count];
            self.next_source += 1;
            result = begin(Some(source));
            match &result {
                Err(e) if e.kind() == io::ErrorKind::AddrNotAvailable => {}
                _ => break,
            }
        }
        result
    }

    /// The flow for an operation's next transaction.
    ///
    /// # Errors
    /// It has to be opened, and can't be.
    pub(crate) fn next(
        &mut self,
        io: &mut Io,
        operations: &mut [Operation],
        slot: u32,
        user: usize,
    ) -> Result<FlowId, Cause> {
        if self.settings.transport == Transport::Udp {
            return Ok(self.callers[user % self.callers.len()].flow);
        }
        let operation = &operations[slot as usize];
        if self.settings.lifetime == Lifetime::Transaction {
            self.leave(io, operations, slot, Outcome::Good);
        } else if operation.attached {
            return Ok(operation.flow);
        }
        let flow = match self.settings.lifetime {
            Lifetime::Persistent => self.place(io, user % self.callers.len()),
            Lifetime::PersistentOpen => {
                self.make_places(user + 1);
                self.place(io, user)
            }
            Lifetime::Operations(most) => {
                self.make_places(self.settings.count);
                let place = user % self.callers.len();
                self.place(io, place)
                    .inspect(|_| self.used_once(place, most))
            }
            Lifetime::Dialog | Lifetime::Transaction => self
                .connect(io)
                .inspect(|flow| self.uses[*flow as usize].retired = true),
        };
        let flow = flow.map_err(|error| cause_of(&error))?;
        self.attach(operations, slot, flow);
        Ok(flow)
    }

    fn make_places(&mut self, count: usize) {
        if self.callers.len() < count {
            self.callers.resize(count, EMPTY);
        }
    }

    /// The flow at a place, opened if need be.
    fn place(&mut self, io: &mut Io, place: usize) -> io::Result<FlowId> {
        let Place { flow, .. } = self.callers[place];
        if flow != NONE && !io.is_closed(flow) {
            return Ok(flow);
        }
        let flow = if flow == NONE {
            self.connect(io)?
        } else {
            let target = self.target;
            self.with_source(|source| io.reconnect(flow, target, source))?;
            flow
        };
        self.callers[place] = Place { flow, begun: 0 };
        Ok(flow)
    }

    /// An operation begins at a place; after the last one it is given up, and closed when they have ended.
    fn used_once(&mut self, place: usize, most: u32) {
        let place = &mut self.callers[place];
        place.begun += 1;
        if place.begun >= most {
            self.uses[place.flow as usize].retired = true;
            *place = EMPTY;
        }
    }

    /// An operation goes over a flow: it ends when the flow is lost.
    pub(crate) fn attach(&mut self, operations: &mut [Operation], slot: u32, flow: FlowId) {
        if self.uses.len() <= flow as usize {
            self.uses.resize(flow as usize + 1, UNUSED);
        }
        let first = std::mem::replace(&mut self.uses[flow as usize].first, slot);
        if first != NONE {
            operations[first as usize].before = slot;
        }
        let operation = &mut operations[slot as usize];
        operation.flow = flow;
        operation.attached = true;
        operation.before = NONE;
        operation.after = first;
    }

    /// An operation leaves its flow, which may be closed then: with what is still unwritten after a good end.
    pub(crate) fn leave(
        &mut self,
        io: &mut Io,
        operations: &mut [Operation],
        slot: u32,
        outcome: Outcome,
    ) {
        let operation = &mut operations[slot as usize];
        if !std::mem::replace(&mut operation.attached, false) {
            return;
        }
        let (flow, before, after) = (operation.flow, operation.before, operation.after);
        match before {
            NONE => self.uses[flow as usize].first = after,
            before => operations[before as usize].after = after,
        }
        if after != NONE {
            operations[after as usize].before = before;
        }
        let state = self.uses[flow as usize];
        if state.retired && state.first == NONE {
            io.release(flow, outcome != Outcome::Good);
        }
    }

    /// One of the operations on a flow.
    pub(crate) fn operation_on(&self, flow: FlowId) -> Option<u32> {
        let first = self.uses.get(flow as usize)?.first;
        (first != NONE).then_some(first)
    }

    /// What a person is told when a flow can't be opened in preparation.
    fn explain(&self, error: io::Error) -> io::Error {
        let text = match error.kind() {
            io::ErrorKind::AddrNotAvailable => format!(
                "{} connections are open and no port is left ({} local addresses): give more with --source, \
                 such as 127.0.1.1-127.0.1.64, or widen net.ipv4.ip_local_port_range",
                self.opened,
                self.settings.sources.len()
            ),
            _ if matches!(error.raw_os_error(), Some(23 | 24)) => format!(
                "{} connections are open and no descriptor is left: raise the limit (`ulimit -n`), or use more --processes",
                self.opened
            ),
            _ => format!("{}: {error}", self.target),
        };
        io::Error::new(error.kind(), text)
    }
}

/// Why a connection could not be opened.
fn cause_of(error: &io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::TimedOut => Cause::Unreachable,
        // Ports, descriptors, memory, or a source that is not an address of this machine.
        _ => Cause::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_phones_that_keep_no_connection_are_reached_where_they_listen() {
        let listening = |lifetime| {
            let connections = Connections {
                transport: Transport::Tcp,
                callee_transport: Transport::Tcp,
                count: 1,
                lifetime,
                sources: vec![[127, 0, 1, 1].into(), [127, 0, 1, 2].into()],
            };
            let flows = Flows::new(([127, 0, 0, 1], 5060).into(), connections);
            flows.listening().map(String::from)
        };
        assert_eq!(listening(Lifetime::Persistent), None);
        assert_eq!(listening(Lifetime::PersistentOpen), None);
        for lifetime in [
            Lifetime::Operations(5),
            Lifetime::Dialog,
            Lifetime::Transaction,
        ] {
            assert_eq!(listening(lifetime).as_deref(), Some("127.0.1.1:5060"));
        }
    }

    #[test]
    fn a_source_without_a_port_left_is_passed_over_until_none_has_one() {
        let target = "127.0.0.1:5060".parse().expect("an address");
        let [full, free]: [IpAddr; 2] = [[127, 0, 3, 1], [127, 0, 3, 2]].map(IpAddr::from);
        let settings = Connections {
            transport: Transport::Tcp,
            callee_transport: Transport::Tcp,
            lifetime: Lifetime::Dialog,
            count: 1,
            sources: vec![full, free],
        };
        let mut flows = Flows::new(target, settings);
        let none_left = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        let mut used = Vec::new();
        for _ in 0..3 {
            let source = flows.with_source(|source| match source {
                Some(source) if source == free => Ok(source),
                _ => Err(none_left()),
            });
            used.push(source.expect("one is free"));
        }
        assert_eq!(used, [free; 3]);
        let error = flows.with_source(|_| Err::<(), _>(none_left()));
        let error = error.expect_err("all are full");
        assert_eq!(cause_of(&error), Cause::Local);
        assert!(flows.explain(error).to_string().contains("--source"));
    }
}
