//! The sockets of the tools: UDP sockets and TCP connections, called flows here, of one thread.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io,
    net::{IpAddr, SocketAddr},
    ops::Range,
    time::{Duration, Instant},
};

use net::{Closed, ConnectionId, Handler, Net, Options, SocketOptions, Source, Why, bind_udp};

use crate::cause::Cause;

/// Index of a flow. Used again once the flow is released.
pub(crate) type FlowId = u32;

/// What carries messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    Udp,
    Tcp,
}

/// What has come in one turn. Kept by the caller and used again.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    messages: Vec<(Range<usize>, Source)>,
    undelivered: Vec<Range<usize>>,
    connected: Vec<ConnectionId>,
    ended: Vec<(ConnectionId, Cause)>,
    /// Flows that are open now, and how long that took, microseconds.
    pub(crate) opened: Vec<(FlowId, u64)>,
    /// Flows that ended without having been closed from here, and why.
    pub(crate) lost: Vec<(FlowId, Cause)>,
}

impl Inbox {
    /// The messages and where each came from.
    pub(crate) fn messages<'a>(&'a self) -> impl Iterator<Item = (&'a [u8], &'a Source)> {
        let message =
            |(range, from): &'a (Range<usize>, Source)| (&self.bytes[range.clone()], from);
        self.messages.iter().map(message)
    }

    /// Starts of datagrams that came to nobody.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = &[u8]> {
        self.undelivered.iter().map(|r| &self.bytes[r.clone()])
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.messages.clear();
        self.undelivered.clear();
        self.connected.clear();
        self.ended.clear();
        self.opened.clear();
        self.lost.clear();
    }
}

/// A turn's messages are copied, so that what they lead to may send freely.
impl Handler for Inbox {
    fn message(&mut self, _: &mut net::Io, from: &Source, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.messages.push((start..self.bytes.len(), *from));
    }

    fn broken(&mut self, _: &mut net::Io, from: &Source, _: &[u8], _: sip_wire::ParseError) {
        self.ended.push((from.connection, Cause::Rubbish));
    }

    fn undelivered(&mut self, _: &mut net::Io, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.undelivered.push(start..self.bytes.len());
    }

    fn connected(&mut self, _: &mut net::Io, id: ConnectionId) {
        self.connected.push(id);
    }

    fn closed(&mut self, _: &mut net::Io, closed: &Closed) {
        let cause = match closed.why {
            Why::NotOpened => Cause::Unreachable,
            Why::Broken | Why::HeldTooMuch => Cause::Rubbish,
            _ => Cause::ConnectionLost,
        };
        self.ended.push((closed.id, cause));
    }
}

struct Flow {
    path: Path,
    /// Own address as text.
    host: String,
    /// When it began to open, by this thread's clock.
    begun_us: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Udp(u16),
    Tcp { id: ConnectionId, connected: bool },
    Closed,
}

/// All flows of one thread, and its clock.
pub(crate) struct Io {
    net: Net,
    start: Instant,
    now_us: u64,
    flows: Vec<Flow>,
    free: Vec<FlowId>,
    /// The flow of each connection that is not closed, by the connection's slot.
    by_slot: Vec<Option<(ConnectionId, FlowId)>>,
    /// The flows of connections that have ended and whose slot is another's, until their end is told.
    untold: HashMap<u64, FlowId>,
}

/// Bytes that may wait for the server on one connection.
const PUSHED_BACK_BYTES_MAX: usize = 64 * 1024 * 1024;

impl Io {
    /// Without flows. A connection that is not open after `timeout` is unreachable.
    pub(crate) fn new(timeout: Duration) -> io::Result<Self> {
        let options = Options {
            connect_ms: timeout.as_millis().clamp(1, u128::from(u32::MAX)) as u32,
            idle_ms: 0,
            by_peer: false,
            pushed_back_bytes_max: PUSHED_BACK_BYTES_MAX,
            ..Options::default()
        };
        Ok(Self {
            net: Net::new(options)?,
            start: Instant::now(),
            now_us: 0,
            flows: Vec::new(),
            free: Vec::new(),
            by_slot: Vec::new(),
            untold: HashMap::new(),
        })
    }

    /// When this turn began: microseconds since this was made.
    pub(crate) fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Looks at the clock.
    pub(crate) fn read_clock(&mut self) {
        self.now_us = self.start.elapsed().as_micros() as u64;
    }

    /// Connections that are open, or being opened or closed.
    pub(crate) fn connections(&mut self) -> u64 {
        self.net.io().counters().connections_open
    }

    /// Opens a UDP socket on any port of an address.
    pub(crate) fn udp(&mut self, address: IpAddr) -> io::Result<FlowId> {
        let options = SocketOptions {
            shared: false,
            take_back: true,
            ..SocketOptions::default()
        };
        let socket = bind_udp(SocketAddr::new(address, 0), &options)?;
        let local = socket.local_addr()?;
        let number = self.net.add_udp(socket)?;
        let flow = self.new_flow();
        self.set(flow, Path::Udp(number), local);
        Ok(flow)
    }

    /// Begins a connection, from an address of this machine if one is given. What is sent meanwhile waits.
    pub(crate) fn connect(
        &mut self,
        peer: SocketAddr,
        source: Option<IpAddr>,
    ) -> io::Result<FlowId> {
        let flow = self.new_flow();
        let begun = self.reconnect(flow, peer, source);
        if let Err(error) = begun {
            self.free.push(flow);
            return Err(error);
        }
        Ok(flow)
    }

    /// Begins another connection for a flow that is closed.
    pub(crate) fn reconnect(
        &mut self,
        flow: FlowId,
        peer: SocketAddr,
        source: Option<IpAddr>,
    ) -> io::Result<()> {
        let source = source.map(|ip| SocketAddr::new(ip, 0));
        let id = self.net.io().connect(peer, source)?;
        let local = self.net.io().addresses(id).map_or(peer, |(local, _)| local);
        let connected = false;
        self.set(flow, Path::Tcp { id, connected }, local);
        let slot = slot_of(id);
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, None);
        }
        // One that ended in this turn has given up its slot, and is told of in the next.
        if let Some((before, flow)) = self.by_slot[slot].replace((id, flow)) {
            self.untold.insert(before.0, flow);
        }
        Ok(())
    }

    /// Closes a connection: at once, or when what was sent on it is written. Its flow is used again for another.
    pub(crate) fn release(&mut self, flow: FlowId, at_once: bool) {
        if let Some(Path::Tcp { id, .. }) = self.path(flow) {
            match at_once {
                true => self.net.io().close(id),
                false => self.net.io().close_when_written(id),
            }
            self.forget(id);
        }
        self.free.push(flow);
    }

    /// Whether the flow has ended.
    pub(crate) fn is_closed(&self, flow: FlowId) -> bool {
        matches!(self.path(flow), Some(Path::Closed) | None)
    }

    /// Whether what is sent on the flow may be lost.
    pub(crate) fn is_udp(&self, flow: FlowId) -> bool {
        matches!(self.path(flow), Some(Path::Udp(_)))
    }

    /// The flow's own address as text.
    pub(crate) fn host(&self, flow: FlowId) -> &str {
        self.flows.get(flow as usize).map_or("", |f| &f.host)
    }

    /// Sends a message with the next [`turn`](Self::turn): over UDP to `to`, over TCP to the peer.
    pub(crate) fn send(&mut self, flow: FlowId, to: SocketAddr, message: &[u8]) {
        match self.path(flow) {
            Some(Path::Udp(number)) => {
                let io = self.net.io();
                io.send_datagram(number, None, to, None, message);
            }
            Some(Path::Tcp { id, .. }) => self.net.io().send(id, None, message),
            Some(Path::Closed) | None => {}
        }
    }

    /// Sends a message to where another came from.
    pub(crate) fn reply(&mut self, to: &Source, message: &[u8]) {
        self.net.io().send_back(to, None, message);
    }

    /// Hands over what was sent, waits until something comes, at most for `timeout`, and takes it in.
    pub(crate) fn turn(&mut self, timeout: Duration, inbox: &mut Inbox) -> io::Result<()> {
        inbox.clear();
        self.net.flush(inbox);
        let wait = match inbox.ended.is_empty() {
            true => timeout,
            false => Duration::ZERO,
        };
        self.net.wait(Some(wait))?;
        self.read_clock();
        self.net.turn(self.now_us / 1000, inbox);
        for id in &inbox.connected {
            if let Some(flow) = self.flow_of(*id) {
                let (id, connected) = (*id, true);
                let state = &mut self.flows[flow as usize];
                state.path = Path::Tcp { id, connected };
                inbox.opened.push((flow, self.now_us - state.begun_us));
            }
        }
        for (id, cause) in inbox.ended.drain(..) {
            let lost = self.forget(id);
            inbox.lost.extend(lost.map(|flow| (flow, cause)));
        }
        Ok(())
    }

    fn path(&self, flow: FlowId) -> Option<Path> {
        self.flows.get(flow as usize).map(|f| f.path)
    }

    fn flow_of(&self, id: ConnectionId) -> Option<FlowId> {
        match self.by_slot.get(slot_of(id)) {
            Some(Some((known, flow))) if *known == id => Some(*flow),
            _ => self.untold.get(&id.0).copied(),
        }
    }

    fn forget(&mut self, id: ConnectionId) -> Option<FlowId> {
        let flow = self.flow_of(id)?;
        if self.untold.remove(&id.0).is_none() {
            self.by_slot[slot_of(id)] = None;
        }
        self.flows[flow as usize].path = Path::Closed;
        Some(flow)
    }

    fn new_flow(&mut self) -> FlowId {
        self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow {
                path: Path::Closed,
                host: String::new(),
                begun_us: 0,
            });
            (self.flows.len() - 1) as FlowId
        })
    }

    fn set(&mut self, flow: FlowId, path: Path, local: SocketAddr) {
        let begun_us = self.start.elapsed().as_micros() as u64;
        let flow = &mut self.flows[flow as usize];
        flow.path = path;
        flow.begun_us = begun_us;
        flow.host.clear();
        let _ = write!(flow.host, "{local}"); // into a String: it can't fail
    }
}

/// The low half of an identifier is the connection's place in a table, which is used again.
fn slot_of(id: ConnectionId) -> usize {
    id.0 as u32 as usize
}
