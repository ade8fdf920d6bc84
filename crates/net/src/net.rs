use crate::connections::{Flags, Inbound};
use crate::io::{Io, Ready, Socket};
use crate::udp::{BATCH, ReceiveBatch, take_back};
use crate::{Closed, ConnectionId, OpenSet, Options, Stage, Tag, Why, exact};
use mio::event::Event;
use mio::{Events, Poll, Waker};
use sip_wire::{Frame, Framer, ParseError};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

/// The sockets of one thread.
pub struct Net {
    poll: Poll,
    events: Events,
    batch: ReceiveBatch,
    buffer: Box<[u8]>,
    due: Vec<u32>,
    ready_spare: Vec<Ready>,
    woken: bool,
    io: Io,
}

/// Where a message came from.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Number of the socket that it came by; `u16::MAX`: a connection that we opened.
    pub listener: u16,
    /// The connection; [`ConnectionId::NONE`] for a datagram.
    pub connection: ConnectionId,
    /// Our address, the one that the peer sees.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
}

/// Who is told what happened. It sends and closes through the [`Io`] that it is given.
pub trait Handler {
    /// A datagram, or a message cut out of a stream.
    fn message(&mut self, io: &mut Io, from: &Source, bytes: &[u8]);

    /// A stream that can't be followed further, from `bytes` on. It is closed when what is sent now is written.
    fn broken(&mut self, io: &mut Io, from: &Source, bytes: &[u8], error: ParseError) {
        let _ = (io, from, bytes, error);
    }

    /// A connection that we opened is open.
    fn connected(&mut self, io: &mut Io, id: ConnectionId) {
        let _ = (io, id);
    }

    /// A connection has ended. Messages that were not written have been told of before.
    fn closed(&mut self, io: &mut Io, closed: &Closed) {
        let _ = (io, closed);
    }

    /// The start of a datagram that came to nobody: its port is closed, or its host is not there. Of sockets made with
    /// [`crate::SocketOptions::take_back`].
    fn undelivered(&mut self, io: &mut Io, bytes: &[u8]) {
        let _ = (io, bytes);
    }

    /// A message could not be sent.
    fn unsent(&mut self, io: &mut Io, tag: Tag) {
        let _ = (io, tag);
    }
}

/// Bytes of one read, and so the most that one connection gets of a turn.
const READ_BYTES: usize = 64 * 1024;
/// Batches that one socket gets of a turn.
const BATCHES_PER_TURN: usize = 4;
/// Connections that one listener may accept in a turn.
const ACCEPTS_PER_TURN: usize = 64;
/// How long accepting rests when descriptors or places have run out.
const ACCEPT_PAUSE_MS: u64 = 100;
/// Rounds of a flush: handlers may send again when told of a failure.
const FLUSH_ROUNDS: usize = 4;

impl Net {
    /// Without sockets.
    ///
    /// # Errors
    /// As the system says: out of descriptors.
    pub fn new(options: Options) -> io::Result<Self> {
        Self::with_open_set(options, Arc::default())
    }

    /// The same; which connections are open is told to `open`.
    ///
    /// # Errors
    /// As the system says: out of descriptors.
    pub fn with_open_set(options: Options, open: Arc<OpenSet>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            batch: ReceiveBatch::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            due: Vec::new(),
            ready_spare: Vec::new(),
            woken: false,
            io: Io::new(options, registry, open),
        })
    }

    /// Adds a datagram socket, non-blocking, as [`crate::bind_udp`] makes it. Returns its number.
    ///
    /// # Errors
    /// As the system says.
    pub fn add_udp(&mut self, socket: UdpSocket) -> io::Result<u16> {
        self.io.add_udp(socket)
    }

    /// Adds a listening socket, non-blocking, as [`crate::listen_tcp`] makes it. Returns its number.
    ///
    /// # Errors
    /// As the system says.
    pub fn add_listener(&mut self, listener: TcpListener) -> io::Result<u16> {
        self.io.add_listener(listener)
    }

    /// Something for other threads to end [`Self::wait`] with. One per `Net`.
    ///
    /// # Errors
    /// As the system says: out of descriptors.
    pub fn waker(&self) -> io::Result<Waker> {
        Waker::new(self.poll.registry(), token::WAKER)
    }

    /// Sending, outside of a [`Handler`]'s calls.
    pub fn io(&mut self) -> &mut Io {
        &mut self.io
    }

    /// Waits until there is something to do, at most until `timeout` (`None`: no bound). Whole milliseconds cost least; others
    /// are kept to the microsecond.
    ///
    /// # Errors
    /// The poller does not work; nothing else does then.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let own = self.io.timeout();
        let timeout = match (timeout, own) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.io.stages.enter(Stage::Wait);
        let polled = self.poll(timeout);
        self.io.stages.enter(Stage::Other);
        match polled {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            result => result,
        }
    }

    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match timeout {
            Some(exact) if exact.subsec_nanos() % 1_000_000 > 0 => {
                self.events.clear();
                match exact::wait(&self.poll, exact)? {
                    true => self.poll.poll(&mut self.events, Some(Duration::ZERO)),
                    false => Ok(()),
                }
            }
            _ => self.poll.poll(&mut self.events, timeout),
        }
    }

    /// Does what there is to do, except for writing. `now_ms`: milliseconds since an epoch of the caller's choice, such as the
    /// program's start; it does not go back, and what is beyond 13 years is not told apart from what is before.
    pub fn turn(&mut self, now_ms: u64, handler: &mut impl Handler) {
        self.io.now_ms = now_ms.max(self.io.now_ms);
        self.do_ready(handler);
        let mut context = Context {
            io: &mut self.io,
            batch: &mut self.batch,
            buffer: &mut self.buffer,
        };
        for event in &self.events {
            match token::kind(event.token()) {
                token::Kind::Waker => self.woken = true,
                token::Kind::Socket(index) => {
                    if event.is_error() {
                        context.undelivered(index, handler);
                    }
                    if event.is_writable() {
                        context.io.flush_socket(index);
                    }
                    if event.is_readable() {
                        context.socket(index, handler);
                    }
                }
                token::Kind::Connection(bits) => {
                    let id = ConnectionId(u64::from(context.io.options.worker) << 56 | bits);
                    context.connection(id, event, handler);
                }
            }
        }
        self.events.clear();
        self.do_deadlines(handler);
    }

    /// Whether the [`Waker`] has been used since the last call.
    pub fn take_woken(&mut self) -> bool {
        std::mem::take(&mut self.woken)
    }

    /// Writes what has been sent, and tells what could not be and what has ended.
    pub fn flush(&mut self, handler: &mut impl Handler) {
        for _ in 0..FLUSH_ROUNDS {
            self.io.flush();
            if self.io.unsent.is_empty() && self.io.closed.is_empty() {
                return;
            }
            for tag in std::mem::take(&mut self.io.unsent) {
                handler.unsent(&mut self.io, tag);
            }
            for closed in std::mem::take(&mut self.io.closed) {
                handler.closed(&mut self.io, &closed);
            }
        }
    }

    fn do_ready(&mut self, handler: &mut impl Handler) {
        if self.io.ready.is_empty() {
            return;
        }
        let spare = std::mem::take(&mut self.ready_spare);
        let mut ready = std::mem::replace(&mut self.io.ready, spare);
        let mut context = Context {
            io: &mut self.io,
            batch: &mut self.batch,
            buffer: &mut self.buffer,
        };
        for item in ready.drain(..) {
            match item {
                Ready::Socket(index) => context.socket(index, handler),
                Ready::Connection(id) => {
                    if let Some(connection) = context.io.table.get_mut(id) {
                        connection.flags.clear(Flags::READY);
                    }
                    // The event that told of the peer's end, if one did, is gone.
                    context.read(id, true, handler);
                }
            }
        }
        self.ready_spare = ready;
    }

    fn do_deadlines(&mut self, handler: &mut impl Handler) {
        let tick = self.io.tick();
        self.io.wheel.advance(tick, &mut self.due);
        for slot in self.due.drain(..) {
            self.io.check_deadline(slot);
        }
        if !std::mem::take(&mut self.io.accept_paused) {
            return;
        }
        for index in 0..self.io.sockets.len() {
            let Socket::Tcp(port) = &mut self.io.sockets[index] else {
                continue;
            };
            if port.paused_until_ms.is_some_and(|at| at > self.io.now_ms) {
                self.io.accept_paused = true;
            } else if port.paused_until_ms.is_some() {
                port.paused_until_ms = None;
                let mut context = Context {
                    io: &mut self.io,
                    batch: &mut self.batch,
                    buffer: &mut self.buffer,
                };
                context.socket(index, handler);
            }
        }
    }
}

impl Io {
    /// How long nothing has to be done here without an event.
    fn timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() || self.is_dirty() {
            return Some(Duration::ZERO);
        }
        let tick_ms = crate::deadlines::TICK_MS;
        let deadline = self.wheel.next_tick().map(|t| u64::from(t) * tick_ms);
        let sockets = if self.accept_paused {
            &self.sockets[..]
        } else {
            &[]
        };
        let paused = sockets.iter().filter_map(|socket| match socket {
            Socket::Tcp(port) => port.paused_until_ms,
            Socket::Udp(_) => None,
        });
        deadline
            .into_iter()
            .chain(paused)
            .min()
            .map(|at| Duration::from_millis(at.saturating_sub(self.now_ms)))
    }
}

/// What reading needs: the buffers of the thread, beside the sockets.
struct Context<'a> {
    io: &'a mut Io,
    batch: &'a mut ReceiveBatch,
    buffer: &'a mut [u8],
}

impl Context<'_> {
    fn socket(&mut self, index: usize, handler: &mut impl Handler) {
        let before = self.io.stages.now();
        match self.io.sockets[index] {
            Socket::Udp(_) => self.receive(index, handler),
            Socket::Tcp(_) => self.accept(index),
        }
        self.io.stages.back_to(before);
    }

    /// Receives datagrams until none is left, or enough for a turn.
    fn receive(&mut self, index: usize, handler: &mut impl Handler) {
        for _ in 0..BATCHES_PER_TURN {
            let Socket::Udp(port) = &self.io.sockets[index] else {
                return;
            };
            let (descriptor, bound) = (port.socket.as_raw_fd(), port.address);
            self.io.stages.enter(Stage::Read);
            let count = match self.batch.receive(descriptor) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An ICMP error about something sent earlier, or a signal: the call took it away.
                Err(_) => continue,
            };
            for i in 0..count {
                self.datagram(index, bound, i, handler);
            }
            if count < BATCH {
                return;
            }
        }
        self.io.ready.push(Ready::Socket(index));
    }

    fn undelivered(&mut self, index: usize, handler: &mut impl Handler) {
        let Socket::Udp(port) = &self.io.sockets[index] else {
            return;
        };
        let descriptor = port.socket.as_raw_fd();
        for _ in 0..BATCHES_PER_TURN * BATCH {
            match take_back(descriptor, self.buffer) {
                Some(bytes) => handler.undelivered(self.io, bytes),
                None => return,
            }
        }
    }

    fn datagram(&mut self, index: usize, bound: SocketAddr, i: usize, handler: &mut impl Handler) {
        self.io.stages.enter(Stage::Classify);
        let Some(datagram) = self.batch.datagram(i) else {
            return;
        };
        let counters = &mut self.io.counters;
        counters.datagrams_received += 1;
        counters.datagram_bytes_received += datagram.bytes.len() as u64;
        if let Some(overflowed) = datagram.said.overflowed
            && let Socket::Udp(port) = &mut self.io.sockets[index]
        {
            let more = overflowed.wrapping_sub(port.overflowed);
            port.overflowed = overflowed;
            counters.datagrams_overflowed += u64::from(more);
        }
        if is_keepalive(datagram.bytes) {
            counters.keepalives_received += 1;
            return;
        }
        let mut local = bound;
        if let Some(ip) = datagram.said.local {
            local.set_ip(ip);
        }
        let source = Source {
            listener: index as u16,
            connection: ConnectionId::NONE,
            local,
            peer: datagram.peer,
        };
        handler.message(self.io, &source, datagram.bytes);
    }

    /// Accepts connections until none waits, or enough for a turn.
    fn accept(&mut self, index: usize) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Socket::Tcp(port) = &mut self.io.sockets[index] else {
                return;
            };
            let Some(listener) = &port.listener else {
                return;
            };
            self.io.stages.enter(Stage::Connections);
            let full = self.io.table.len() >= self.io.options.connections_max;
            let bound = port.address;
            let accepted = if full {
                Err(io::Error::from_raw_os_error(libc::EMFILE))
            } else {
                listener.accept()
            };
            match accepted {
                Ok((stream, peer)) => {
                    // When it can't be taken in it is closed by being dropped.
                    let _ = self.io.admit(stream, peer, index, bound);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return,
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        // They wait in the backlog; trying again at once would only burn time.
                        port.paused_until_ms = Some(self.io.now_ms + ACCEPT_PAUSE_MS);
                        self.io.accept_paused = true;
                        self.io.counters.accept_pauses += 1;
                        return;
                    }
                    // Gone before it was accepted.
                    _ => {}
                },
            }
        }
        self.io.ready.push(Ready::Socket(index));
    }

    fn connection(&mut self, id: ConnectionId, event: &Event, handler: &mut impl Handler) {
        let Some(connection) = self.io.table.get(id) else {
            return;
        };
        let flags = connection.flags;
        if flags.has(Flags::CONNECTING) {
            if !event.is_writable() && !event.is_error() && !event.is_read_closed() {
                return;
            }
            let before = self.io.stages.enter(Stage::Connections);
            let is_open = self.finish_connect(id);
            self.io.stages.back_to(before);
            if !is_open {
                return;
            }
            handler.connected(self.io, id);
        } else if event.is_writable() && flags.has(Flags::BLOCKED) {
            self.io.write(id);
        }
        if event.is_readable() || event.is_error() || event.is_read_closed() {
            let to_end = event.is_error() || event.is_read_closed();
            self.read(id, to_end, handler);
        }
    }

    /// Whether the connection is open now.
    fn finish_connect(&mut self, id: ConnectionId) -> bool {
        let Some(connection) = self.io.table.get_mut(id) else {
            return false;
        };
        match connection.stream.take_error() {
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => {
                self.io.end(id, Why::NotOpened);
                return false;
            }
        }
        if connection.stream.peer_addr().is_err() {
            return false;
        }
        connection.flags.clear(Flags::CONNECTING);
        self.io.stamp(id, false);
        self.io.write(id);
        self.io.is_open(id)
    }

    fn read(&mut self, id: ConnectionId, to_end: bool, handler: &mut impl Handler) {
        let before = self.io.stages.now();
        self.read_messages(id, to_end, handler);
        self.io.stages.back_to(before);
    }

    /// Reads until a read does not fill the buffer, or with `to_end` until there is nothing more; at most so much in one turn.
    fn read_messages(&mut self, id: ConnectionId, to_end: bool, handler: &mut impl Handler) {
        let mut room = READ_BYTES;
        while room > 0 {
            let Some(connection) = self.io.table.get(id) else {
                return;
            };
            if connection.flags.has(Flags::READY) {
                return;
            }
            self.io.stages.enter(Stage::Read);
            let count = match (&connection.stream).read(&mut self.buffer[..room]) {
                Ok(0) => {
                    // What was answered in this turn still goes out.
                    self.io.write(id);
                    self.io.end(id, Why::ByPeer);
                    return;
                }
                Ok(count) => count,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::Interrupted => continue,
                    _ => {
                        self.io.end(id, Why::Failed);
                        return;
                    }
                },
            };
            self.io.counters.stream_bytes_received += count as u64;
            self.received(id, count, handler);
            if count < room && !to_end {
                return;
            }
            room -= count;
        }
        self.io.read_again(id);
    }

    /// Cuts the messages out of the first bytes of the buffer.
    fn received(&mut self, id: ConnectionId, count: usize, handler: &mut impl Handler) {
        let Some(connection) = self.io.table.get_mut(id) else {
            return;
        };
        if connection.flags.has(Flags::CLOSING) || connection.flags.has(Flags::DRAINING) {
            return;
        }
        let source = Source {
            listener: connection.listener,
            connection: id,
            local: connection.local.into(),
            peer: connection.peer.into(),
        };
        let bytes = &self.buffer[..count];
        let Some(mut inbound) = connection.inbound.take() else {
            let mut framer = Framer::default();
            let cut = cut(self.io, &source, &mut framer, bytes, handler);
            let rest = &bytes[cut.consumed..];
            if cut.followed && !rest.is_empty() {
                let inbound = Inbound {
                    framer,
                    bytes: rest.to_vec(),
                    since: self.io.tick(),
                };
                self.keep(id, Box::new(inbound));
            }
            return;
        };
        self.io.release(inbound.bytes.len());
        inbound.bytes.extend_from_slice(bytes);
        let cut = cut(
            self.io,
            &source,
            &mut inbound.framer,
            &inbound.bytes,
            handler,
        );
        if cut.followed && cut.consumed < inbound.bytes.len() {
            if cut.consumed > 0 {
                inbound.bytes.drain(..cut.consumed);
                inbound.bytes.shrink_to(2 * inbound.bytes.len());
                inbound.since = self.io.tick();
            }
            self.keep(id, inbound);
        }
    }

    fn keep(&mut self, id: ConnectionId, inbound: Box<Inbound>) {
        if !self.io.keep(id, inbound) {
            self.io.end(id, Why::HeldTooMuch);
        }
    }
}

struct Cut {
    consumed: usize,
    /// The connection is open and its bytes make sense.
    followed: bool,
}

/// Hands over each message at the front of `bytes`.
fn cut(
    io: &mut Io,
    source: &Source,
    framer: &mut Framer,
    bytes: &[u8],
    handler: &mut impl Handler,
) -> Cut {
    let id = source.connection;
    let limits = io.options.limits;
    let (mut consumed, mut pinged, mut spoke) = (0, false, false);
    let mut half_ping = take_half_ping(io, id);
    let followed = loop {
        if consumed == bytes.len() {
            break true;
        }
        io.stages.enter(Stage::Classify);
        match framer.next(&bytes[consumed..], &limits) {
            Frame::Incomplete => break true,
            Frame::Blank { len, ping } => {
                consumed += len;
                // The framer sees both halves of a ping only when they come in one read.
                let ping = ping || (half_ping && len == 2);
                half_ping = !ping && len == 2;
                // One answer to a read full of pings is enough to keep the flow alive.
                if ping && !pinged {
                    io.counters.pings_answered += 1;
                    io.send(id, None, b"\r\n");
                }
                pinged |= ping;
            }
            Frame::Message { len } => {
                half_ping = false;
                spoke = true;
                io.counters.messages_received += 1;
                handler.message(io, source, &bytes[consumed..consumed + len]);
                consumed += len;
                let going_on = io
                    .table
                    .get(id)
                    .is_some_and(|c| !c.flags.has(Flags::CLOSING));
                if !going_on {
                    break false;
                }
            }
            Frame::Broken(error) => {
                handler.broken(io, source, &bytes[consumed..], error);
                io.counters.connections_expelled += 1;
                io.close_when_written(id);
                break false;
            }
        }
    };
    if spoke || pinged {
        io.stamp(id, spoke);
    }
    if half_ping && let Some(connection) = io.table.get_mut(id) {
        connection.flags.set(Flags::HALF_PING);
    }
    Cut { consumed, followed }
}

fn take_half_ping(io: &mut Io, id: ConnectionId) -> bool {
    io.table.get_mut(id).is_some_and(|connection| {
        let half_ping = connection.flags.has(Flags::HALF_PING);
        connection.flags.clear(Flags::HALF_PING);
        half_ping
    })
}

/// Datagrams that only keep a NAT binding open: CR, LF and NUL, or at most 4 bytes.
fn is_keepalive(bytes: &[u8]) -> bool {
    bytes.len() <= 4 || (bytes.len() <= 64 && bytes.iter().all(|b| matches!(b, b'\r' | b'\n' | 0)))
}

pub(crate) mod token {
    use crate::ConnectionId;
    use mio::Token;

    const WAKER_KIND: usize = 1 << 56;
    const SOCKET_KIND: usize = 2 << 56;
    const BITS: usize = (1 << 56) - 1;

    pub(crate) const WAKER: Token = Token(WAKER_KIND);

    pub(crate) enum Kind {
        Waker,
        Socket(usize),
        /// The id without the worker.
        Connection(u64),
    }

    pub(crate) fn socket(index: usize) -> Token {
        Token(SOCKET_KIND | index)
    }

    pub(crate) fn connection(id: ConnectionId) -> Token {
        Token(id.0 as usize & BITS)
    }

    pub(crate) fn kind(token: Token) -> Kind {
        match token.0 & !BITS {
            WAKER_KIND => Kind::Waker,
            SOCKET_KIND => Kind::Socket(token.0 & BITS),
            _ => Kind::Connection(token.0 as u64),
        }
    }
}
