//! The sockets of the tools: UDP sockets and TCP connections, called flows here, of one thread.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    ops::Range,
    time::{Duration, Instant},
};

use net::{Closed, ConnectionId, Handler, Net, Options, SocketOptions, Source, bind_udp};

/// Index of a flow. Used again once the flow is closed.
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
    connected: Vec<ConnectionId>,
    closed: Vec<ConnectionId>,
    /// Flows that ended without having been closed from here.
    pub(crate) lost: Vec<FlowId>,
}

impl Inbox {
    /// The messages and where each came from.
    pub(crate) fn messages<'a>(&'a self) -> impl Iterator<Item = (&'a [u8], &'a Source)> {
        let message =
            |(range, from): &'a (Range<usize>, Source)| (&self.bytes[range.clone()], from);
        self.messages.iter().map(message)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.messages.clear();
        self.connected.clear();
        self.closed.clear();
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

    fn connected(&mut self, _: &mut net::Io, id: ConnectionId) {
        self.connected.push(id);
    }

    fn closed(&mut self, _: &mut net::Io, closed: &Closed) {
        self.closed.push(closed.id);
    }
}

struct Flow {
    path: Path,
    /// Own address as text.
    host: Box<str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Udp(u16),
    Tcp { id: ConnectionId, connected: bool },
    Closed,
}

/// All flows of one thread.
pub(crate) struct Io {
    net: Net,
    start: Instant,
    flows: Vec<Flow>,
    free: Vec<FlowId>,
    by_connection: HashMap<u64, FlowId>,
}

impl Io {
    /// Without flows.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            net: Net::new(Options::default())?,
            start: Instant::now(),
            flows: Vec::new(),
            free: Vec::new(),
            by_connection: HashMap::new(),
        })
    }

    /// Opens a UDP socket on any port of an address.
    pub(crate) fn udp(&mut self, address: SocketAddr) -> io::Result<FlowId> {
        let options = SocketOptions {
            shared: false,
            ..SocketOptions::default()
        };
        let socket = bind_udp(address, &options)?;
        let local = socket.local_addr()?;
        let number = self.net.add_udp(socket)?;
        Ok(self.put(Path::Udp(number), local))
    }

    /// Begins a connection. What is sent meanwhile waits.
    pub(crate) fn connect(&mut self, peer: SocketAddr) -> io::Result<FlowId> {
        let id = self.net.io().connect(peer, None)?;
        let local = self.net.io().addresses(id).map_or(peer, |(local, _)| local);
        let connected = false;
        let flow = self.put(Path::Tcp { id, connected }, local);
        self.by_connection.insert(id.0, flow);
        Ok(flow)
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, flow: FlowId) {
        if let Some(Path::Tcp { id, .. }) = self.path(flow) {
            self.net.io().close(id);
            self.forget(id);
        }
    }

    /// Whether the flow is a UDP socket or a connection that has been opened.
    pub(crate) fn is_connected(&self, flow: FlowId) -> bool {
        match self.path(flow) {
            Some(Path::Udp(_)) => true,
            Some(Path::Tcp { connected, .. }) => connected,
            Some(Path::Closed) | None => false,
        }
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
        let wait = if inbox.closed.is_empty() {
            timeout
        } else {
            Duration::ZERO
        };
        self.net.wait(Some(wait))?;
        let now_ms = self.start.elapsed().as_millis() as u64;
        self.net.turn(now_ms, inbox);
        for id in &inbox.connected {
            if let Some(flow) = self.by_connection.get(&id.0) {
                let connected = true;
                let id = *id;
                self.flows[*flow as usize].path = Path::Tcp { id, connected };
            }
        }
        for id in std::mem::take(&mut inbox.closed) {
            inbox.lost.extend(self.forget(id));
        }
        Ok(())
    }

    fn path(&self, flow: FlowId) -> Option<Path> {
        self.flows.get(flow as usize).map(|f| f.path)
    }

    fn forget(&mut self, id: ConnectionId) -> Option<FlowId> {
        let flow = self.by_connection.remove(&id.0)?;
        self.flows[flow as usize].path = Path::Closed;
        self.free.push(flow);
        Some(flow)
    }

    fn put(&mut self, path: Path, local: SocketAddr) -> FlowId {
        let flow = Flow {
            path,
            host: local.to_string().into(),
        };
        if let Some(id) = self.free.pop() {
            self.flows[id as usize] = flow;
            return id;
        }
        self.flows.push(flow);
        (self.flows.len() - 1) as FlowId
    }
}
