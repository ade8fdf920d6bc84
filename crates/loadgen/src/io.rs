//! The sockets of the tools: UDP sockets and TCP connections, called flows here, polled by one
//! thread.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::SocketAddr,
    ops::Range,
    time::Duration,
};

use mio::{
    Events, Interest, Poll, Token,
    net::{TcpListener, TcpStream, UdpSocket},
};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::message::frame;

/// Index of a flow. Reused once the flow is closed.
pub(crate) type FlowId = u32;

/// What carries messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    Udp,
    Tcp,
}

/// Messages of one read, and the bytes they are in. Kept by the caller and used again.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    messages: Vec<(Range<usize>, SocketAddr)>,
    /// The peer has closed the connection, or it broke.
    pub(crate) closed: bool,
    /// There may be more to read: call again.
    pub(crate) more: bool,
}

impl Inbox {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; INBOX_BYTES],
            messages: Vec::new(),
            closed: false,
            more: false,
        }
    }

    /// The messages and where each came from.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (&[u8], SocketAddr)> {
        let part = |(range, from): &(Range<usize>, _)| (&self.bytes[range.clone()], *from);
        self.messages.iter().map(part)
    }
}

const INBOX_BYTES: usize = 256 * 1024;
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// A connection whose peer takes nothing is closed beyond so many bytes.
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;

enum Flow {
    Udp(Udp),
    Tcp(Tcp),
    Listener(TcpListener),
}

struct Udp {
    socket: UdpSocket,
    local: SocketAddr,
    host: Box<str>,
}

struct Tcp {
    stream: TcpStream,
    peer: SocketAddr,
    local: SocketAddr,
    /// The local address as text, of connections that were opened from here.
    host: Box<str>,
    /// The start of a message whose end has not come.
    remainder: Vec<u8>,
    /// What the kernel has not taken yet.
    queue: Vec<u8>,
    connected: bool,
    waits_for_flush: bool,
}

/// All flows of one thread.
pub(crate) struct Io {
    poll: Poll,
    events: Events,
    flows: Vec<Option<Flow>>,
    free: Vec<FlowId>,
    unflushed: Vec<FlowId>,
}

impl Io {
    /// Without flows.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            flows: Vec::new(),
            free: Vec::new(),
            unflushed: Vec::new(),
        })
    }

    /// Opens a UDP socket; several on one address share what arrives there.
    pub(crate) fn udp(&mut self, address: SocketAddr) -> io::Result<FlowId> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        socket.set_nonblocking(true)?;
        if address.port() != 0 {
            socket.set_reuse_port(true)?;
        }
        socket.set_recv_buffer_size(4 * 1024 * 1024)?;
        socket.bind(&address.into())?;
        let mut socket = UdpSocket::from_std(socket.into());
        let token = self.next_token();
        let registry = self.poll.registry();
        registry.register(&mut socket, token, Interest::READABLE)?;
        let local = socket.local_addr()?;
        Ok(self.put(Flow::Udp(Udp {
            socket,
            local,
            host: local.to_string().into(),
        })))
    }

    /// Begins a connection. What is sent meanwhile is queued.
    pub(crate) fn connect(&mut self, peer: SocketAddr) -> io::Result<FlowId> {
        let stream = TcpStream::connect(peer)?;
        self.put_stream(stream, peer, false)
    }

    /// Listens for connections; several on one address share them.
    pub(crate) fn listen(&mut self, address: SocketAddr) -> io::Result<FlowId> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        socket.listen(4096)?;
        let mut listener = TcpListener::from_std(socket.into());
        let token = self.next_token();
        let registry = self.poll.registry();
        registry.register(&mut listener, token, Interest::READABLE)?;
        Ok(self.put(Flow::Listener(listener)))
    }

    /// Closes a flow and drops what it had queued.
    pub(crate) fn close(&mut self, flow: FlowId) {
        if self.flows[flow as usize].take().is_some() {
            self.free.push(flow);
        }
    }

    /// Whether the flow is there, and connected if it is a connection.
    pub(crate) fn is_connected(&self, flow: FlowId) -> bool {
        match self.flows.get(flow as usize) {
            Some(Some(Flow::Tcp(tcp))) => tcp.connected,
            Some(Some(_)) => true,
            _ => false,
        }
    }

    /// Whether what is sent on the flow may be lost.
    pub(crate) fn is_udp(&self, flow: FlowId) -> bool {
        matches!(self.flows.get(flow as usize), Some(Some(Flow::Udp(_))))
    }

    /// The flow's own address; `None` if it is closed.
    pub(crate) fn local(&self, flow: FlowId) -> Option<SocketAddr> {
        match self.flows.get(flow as usize)?.as_ref()? {
            Flow::Udp(udp) => Some(udp.local),
            Flow::Tcp(tcp) => Some(tcp.local),
            Flow::Listener(listener) => listener.local_addr().ok(),
        }
    }

    /// The flow's own address as text; empty for a connection that was accepted.
    pub(crate) fn host(&self, flow: FlowId) -> &str {
        match self.flows.get(flow as usize) {
            Some(Some(Flow::Udp(udp))) => &udp.host,
            Some(Some(Flow::Tcp(tcp))) => &tcp.host,
            _ => "",
        }
    }

    /// Sends a message: over UDP to `to`, over TCP to the peer at the next [`flush`](Self::flush).
    /// A datagram that the kernel refuses is lost, as any may be.
    pub(crate) fn send(&mut self, flow: FlowId, to: SocketAddr, message: &[u8]) {
        match &mut self.flows[flow as usize] {
            Some(Flow::Udp(udp)) => {
                let _ = udp.socket.send_to(message, to);
            }
            Some(Flow::Tcp(tcp)) => {
                if tcp.queue.len() + message.len() <= QUEUE_BYTES_MAX {
                    tcp.queue.extend_from_slice(message);
                }
                if !tcp.waits_for_flush {
                    tcp.waits_for_flush = true;
                    self.unflushed.push(flow);
                }
            }
            Some(Flow::Listener(_)) | None => {}
        }
    }

    /// Hands over to the kernel what was sent since the last time. What fails shows at the next read.
    pub(crate) fn flush(&mut self) {
        for flow in std::mem::take(&mut self.unflushed) {
            if let Some(Flow::Tcp(tcp)) = &mut self.flows[flow as usize] {
                tcp.waits_for_flush = false;
                tcp.write();
            }
        }
    }

    /// Waits until something can be read, or for `timeout`; `None` waits for ever. Appends the
    /// flows that can be read.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        ready: &mut Vec<FlowId>,
    ) -> io::Result<()> {
        if let Err(e) = self.poll.poll(&mut self.events, timeout)
            && e.kind() != ErrorKind::Interrupted
        {
            return Err(e);
        }
        for event in &self.events {
            let flow = event.token().0;
            if event.is_writable()
                && let Some(Some(Flow::Tcp(tcp))) = self.flows.get_mut(flow)
            {
                tcp.connected = tcp.connected || tcp.stream.peer_addr().is_ok();
                tcp.write();
            }
            if event.is_readable() || event.is_error() || event.is_read_closed() {
                ready.push(flow as FlowId);
            }
        }
        Ok(())
    }

    /// Reads what has come on a flow. On a listener it accepts connections, which become flows.
    pub(crate) fn read(&mut self, flow: FlowId, inbox: &mut Inbox) {
        inbox.messages.clear();
        (inbox.closed, inbox.more) = (false, false);
        match &mut self.flows[flow as usize] {
            Some(Flow::Udp(udp)) => udp.read(inbox),
            Some(Flow::Tcp(tcp)) => tcp.read(inbox),
            Some(Flow::Listener(_)) => self.accept(flow),
            None => {}
        }
    }

    fn accept(&mut self, listener: FlowId) {
        loop {
            let Some(Flow::Listener(socket)) = &self.flows[listener as usize] else {
                return;
            };
            match socket.accept() {
                Ok((stream, peer)) => drop(self.put_stream(stream, peer, true)),
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                // Out of descriptors, or no more to accept. What is left waits for the next event.
                Err(_) => return,
            }
        }
    }

    fn put_stream(
        &mut self,
        mut stream: TcpStream,
        peer: SocketAddr,
        connected: bool,
    ) -> io::Result<FlowId> {
        SockRef::from(&stream).set_tcp_nodelay(true)?;
        let local = stream.local_addr()?;
        let token = self.next_token();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        registry.register(&mut stream, token, interest)?;
        Ok(self.put(Flow::Tcp(Tcp {
            stream,
            peer,
            host: if connected {
                Box::default()
            } else {
                local.to_string().into()
            },
            local,
            remainder: Vec::new(),
            queue: Vec::new(),
            connected,
            waits_for_flush: false,
        })))
    }

    fn next_token(&self) -> Token {
        let next = self.free.last().map_or(self.flows.len(), |f| *f as usize);
        Token(next)
    }

    fn put(&mut self, flow: Flow) -> FlowId {
        if let Some(id) = self.free.pop() {
            self.flows[id as usize] = Some(flow);
            return id;
        }
        self.flows.push(Some(flow));
        (self.flows.len() - 1) as FlowId
    }
}

impl Udp {
    fn read(&mut self, inbox: &mut Inbox) {
        let mut at = 0;
        while at + DATAGRAM_BYTES_MAX <= inbox.bytes.len() {
            match self.socket.recv_from(&mut inbox.bytes[at..]) {
                Ok((length, from)) => {
                    inbox.messages.push((at..at + length, from));
                    at += length;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                // An ICMP error of an earlier datagram; that one is lost, the socket is not.
                Err(_) => {}
            }
        }
        inbox.more = true;
    }
}

impl Tcp {
    fn write(&mut self) {
        if !self.connected {
            return;
        }
        let mut done = 0;
        while done < self.queue.len() {
            match self.stream.write(&self.queue[done..]) {
                Ok(length) => done += length,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => done = self.queue.len(),
            }
        }
        self.queue.drain(..done);
        if self.queue.is_empty() && self.queue.capacity() > 16 * 1024 {
            self.queue = Vec::new();
        }
    }

    fn read(&mut self, inbox: &mut Inbox) {
        if !self.connected {
            inbox.closed = matches!(self.stream.take_error(), Ok(Some(_)) | Err(_));
            return;
        }
        let mut end = self.remainder.len();
        if end > inbox.bytes.len() / 2 {
            inbox.closed = true; // no message is that long
            return;
        }
        inbox.bytes[..end].copy_from_slice(&self.remainder);
        self.remainder.clear();
        loop {
            let room = &mut inbox.bytes[end..];
            match self.stream.read(room) {
                Ok(0) => inbox.closed = true,
                Ok(length) if length < room.len() => end += length,
                Ok(length) => {
                    end += length;
                    inbox.more = true;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(_) => inbox.closed = true,
            }
            break;
        }
        let mut at = 0;
        while let Some(length) = frame(&inbox.bytes[at..end]) {
            let blank = inbox.bytes[at..]
                .iter()
                .take_while(|b| matches!(b, b'\r' | b'\n'))
                .count();
            inbox.messages.push((at + blank..at + length, self.peer));
            at += length;
        }
        self.remainder.extend_from_slice(&inbox.bytes[at..end]);
    }
}
