use crate::connections::{Connection, Flags, Inbound, Outbound, Table};
use crate::deadlines::{TICK_MS, Wheel};
use crate::net::token;
use crate::udp::{SendQueue, SendScratch};
use crate::{
    Closed, ConnectionId, Counters, OpenSet, Options, Source, Stage, Stages, Why, open_set, tcp,
};
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use socket2::SockRef;
use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Names a message to whoever sent it, so that it can be told when the message did not leave. Opaque here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// Who sent it.
    pub owner: u8,
    /// Which message.
    pub value: u64,
}

/// The sending side of a [`crate::Net`], and what a [`crate::Handler`] may do with it.
///
/// Nothing leaves before [`crate::Net::flush`], unless much is waiting. Nothing blocks, and nothing calls back: what could not be sent and which connections
/// have ended is told by the flush.
pub struct Io {
    pub(crate) options: Options,
    pub(crate) registry: Registry,
    pub(crate) now_ms: u64,
    pub(crate) sockets: Vec<Socket>,
    pub(crate) table: Table,
    pub(crate) wheel: Wheel,
    pub(crate) ready: Vec<Ready>,
    pub(crate) unsent: Vec<Tag>,
    pub(crate) closed: Vec<Closed>,
    pub(crate) counters: Counters,
    pub(crate) stages: Stages,
    dirty: Vec<ConnectionId>,
    /// Datagram sockets that something has been queued for.
    dirty_sockets: Vec<usize>,
    /// Some listener may rest.
    pub(crate) accept_paused: bool,
    dirty_spare: Vec<ConnectionId>,
    // Boxed, because they move between here and the connections, which are to be small.
    #[allow(clippy::vec_box)]
    pool: Vec<Box<Outbound>>,
    scratch: SendScratch,
    open: Arc<OpenSet>,
    /// Connections that wait for the kernel.
    blocked_count: usize,
}

/// A socket that is there from the start; its index is the listener's number.
pub(crate) enum Socket {
    Udp(UdpPort),
    Tcp(TcpPort),
}

pub(crate) struct UdpPort {
    pub(crate) socket: UdpSocket,
    pub(crate) address: SocketAddr,
    pub(crate) queue: SendQueue,
    pub(crate) overflowed: u32,
    writable_wanted: bool,
}

pub(crate) struct TcpPort {
    /// `None` once accepting has stopped.
    pub(crate) listener: Option<mio::net::TcpListener>,
    pub(crate) address: SocketAddr,
    /// Accepting rests until then, for want of descriptors or places.
    pub(crate) paused_until_ms: Option<u64>,
}

/// What has more to do than one turn allows; edge-triggered polling will not name it again.
#[derive(Clone, Copy)]
pub(crate) enum Ready {
    Socket(usize),
    Connection(ConnectionId),
}

/// Datagrams that wait before a flush in the middle of a turn.
const DATAGRAMS_PER_FLUSH: usize = 128;
/// Bytes that wait for a connection before a write in the middle of a turn.
const STREAM_BYTES_PER_WRITE: usize = 64 * 1024;
/// Write buffers kept for the next turns, and how large each may be.
const POOL_COUNT: usize = 256;
const POOL_BYTES_MAX: usize = 64 * 1024;

impl Io {
    pub(crate) fn new(options: Options, registry: Registry, open: Arc<OpenSet>) -> Self {
        Self {
            options: Options {
                connections_max: options.connections_max.min(open_set::SLOTS_MAX),
                ..options
            },
            registry,
            now_ms: 0,
            sockets: Vec::new(),
            table: Table::new(options.worker, options.by_peer),
            wheel: Wheel::new(0),
            ready: Vec::new(),
            unsent: Vec::new(),
            closed: Vec::new(),
            counters: Counters::default(),
            stages: Stages::new(options.stage_times),
            dirty: Vec::new(),
            dirty_sockets: Vec::new(),
            accept_paused: false,
            dirty_spare: Vec::new(),
            pool: Vec::new(),
            scratch: SendScratch::new(),
            open,
            blocked_count: 0,
        }
    }

    /// Sends a datagram from the socket with that number, and from `local` when that socket is bound to all addresses.
    /// A failure that the system knows at once comes back by the tag.
    pub fn send_datagram(
        &mut self,
        listener: u16,
        local: Option<IpAddr>,
        peer: SocketAddr,
        tag: Option<Tag>,
        bytes: &[u8],
    ) {
        let room = self.options.datagram_bytes_max;
        match self.sockets.get_mut(usize::from(listener)) {
            Some(Socket::Udp(port)) if port.queue.byte_count() + bytes.len() <= room => {
                let wildcard = port.address.ip().is_unspecified();
                let local = local.filter(|ip| wildcard && !ip.is_unspecified());
                if port.queue.entry_count() == 0 {
                    self.dirty_sockets.push(usize::from(listener));
                }
                port.queue.push(local, peer, tag, bytes);
                if port.queue.entry_count() >= DATAGRAMS_PER_FLUSH && !port.queue.blocked {
                    self.flush_socket(usize::from(listener));
                }
            }
            _ => {
                self.counters.datagrams_unsent += 1;
                self.unsent.extend(tag);
            }
        }
    }

    /// Sends a message on a connection. When it could not be written whole before the connection ended, or too much waits already, it comes back by the tag.
    pub fn send(&mut self, id: ConnectionId, tag: Option<Tag>, bytes: &[u8]) {
        let room = self.options.pushed_back_bytes_max;
        let held_room = self.options.held_bytes_max as u64;
        let refused = match self.table.get_mut(id) {
            None => true,
            Some(c) if c.flags.has(Flags::CLOSING) || c.flags.has(Flags::DRAINING) => true,
            Some(c) => {
                let waits = c.flags.has(Flags::BLOCKED) || c.flags.has(Flags::CONNECTING);
                let unwritten = c.outbound.as_ref().map_or(0, |out| out.unwritten());
                waits
                    && (unwritten + bytes.len() > room
                        || self.counters.held_bytes + bytes.len() as u64 > held_room)
            }
        };
        if refused {
            self.counters.messages_unsent += 1;
            self.unsent.extend(tag);
            return;
        }
        self.counters.messages_sent += 1;
        self.append(id, tag, bytes);
    }

    /// Sends a message to where another one came from: from the same socket and address, or on the same connection.
    pub fn send_back(&mut self, to: &Source, tag: Option<Tag>, bytes: &[u8]) {
        if to.connection == ConnectionId::NONE {
            self.send_datagram(to.listener, Some(to.local.ip()), to.peer, tag, bytes);
        } else {
            self.send(to.connection, tag, bytes);
        }
    }

    /// Opens a connection, from the address `source` when given (port 0: any port). Messages may be sent on it at once; they wait until it is open.
    ///
    /// # Errors
    /// As the system says, when it says so at once; or too many connections are open.
    pub fn connect(
        &mut self,
        peer: SocketAddr,
        source: Option<SocketAddr>,
    ) -> io::Result<ConnectionId> {
        if self.table.len() >= self.options.connections_max {
            return Err(io::Error::other("too many connections"));
        }
        let before = self.stages.enter(Stage::Connections);
        let opened = self.open_to(peer, source);
        self.stages.back_to(before);
        opened
    }

    fn open_to(
        &mut self,
        peer: SocketAddr,
        source: Option<SocketAddr>,
    ) -> io::Result<ConnectionId> {
        let stream = tcp::connect(peer, source, self.options.unacknowledged_ms)?;
        let local = stream.local_addr()?;
        let mut flags = Flags::CONNECTING;
        flags.set(Flags::WRITABLE);
        self.counters.connections_opened += 1;
        let id = self.insert(stream, local, peer, u16::MAX, flags)?;
        self.arm(id);
        Ok(id)
    }

    /// An open connection of this thread to that peer, whoever opened it.
    #[must_use]
    pub fn connection_to(&self, peer: SocketAddr) -> Option<ConnectionId> {
        self.table.find(peer)
    }

    /// Whether a connection of this thread is open, or being opened.
    #[must_use]
    pub fn is_open(&self, id: ConnectionId) -> bool {
        self.table.get(id).is_some()
    }

    /// Our address on a connection, and the peer's.
    #[must_use]
    pub fn addresses(&self, id: ConnectionId) -> Option<(SocketAddr, SocketAddr)> {
        let connection = self.table.get(id)?;
        Some((connection.local.into(), connection.peer.into()))
    }

    /// Closes a connection now; what waits on it comes back unsent.
    pub fn close(&mut self, id: ConnectionId) {
        self.end(id, Why::ByUs);
    }

    /// Closes a connection once what waits on it is written. Nothing more is received from it.
    pub fn close_when_written(&mut self, id: ConnectionId) {
        if let Some(connection) = self.table.get_mut(id) {
            connection.flags.set(Flags::CLOSING);
            self.mark_dirty(id);
        }
    }

    /// Closes the listening sockets. What waits to be accepted is reset by the system.
    pub fn stop_accepting(&mut self) {
        for socket in &mut self.sockets {
            if let Socket::Tcp(port) = socket {
                port.listener = None;
            }
        }
    }

    /// Whether something waits for the kernel or for a peer to take it.
    #[must_use]
    pub fn is_pushed_back(&self) -> bool {
        self.blocked_count > 0
            || self
                .sockets
                .iter()
                .any(|s| matches!(s, Socket::Udp(port) if port.queue.blocked))
    }

    /// The address that a datagram or listening socket is bound to.
    #[must_use]
    pub fn bound_address(&self, listener: u16) -> Option<SocketAddr> {
        self.sockets
            .get(usize::from(listener))
            .map(|socket| match socket {
                Socket::Udp(port) => port.address,
                Socket::Tcp(port) => port.address,
            })
    }

    /// What has been counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            connections_open: self.table.len() as u64,
            ..self.counters
        }
    }

    /// For telling in which stage of the work the thread is, and how long it was in each.
    pub fn stages(&mut self) -> &mut Stages {
        &mut self.stages
    }

    /// The time of this turn, as the caller gave it: milliseconds since an epoch of its choice.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Takes new limits on the messages of streams.
    pub fn set_limits(&mut self, limits: sip_wire::Limits) {
        self.options.limits = limits;
    }

    pub(crate) fn tick(&self) -> u32 {
        (self.now_ms / TICK_MS) as u32
    }

    pub(crate) fn add_udp(&mut self, socket: UdpSocket) -> io::Result<u16> {
        let index = self.sockets.len();
        self.registry.register(
            &mut SourceFd(&socket.as_raw_fd()),
            token::socket(index),
            Interest::READABLE,
        )?;
        self.sockets.push(Socket::Udp(UdpPort {
            address: socket.local_addr()?,
            socket,
            queue: SendQueue::default(),
            overflowed: 0,
            writable_wanted: false,
        }));
        Ok(index as u16)
    }

    pub(crate) fn add_listener(&mut self, listener: std::net::TcpListener) -> io::Result<u16> {
        let index = self.sockets.len();
        let address = listener.local_addr()?;
        tcp::limit_unacknowledged(SockRef::from(&listener), self.options.unacknowledged_ms)?;
        let mut listener = mio::net::TcpListener::from_std(listener);
        self.registry
            .register(&mut listener, token::socket(index), Interest::READABLE)?;
        self.sockets.push(Socket::Tcp(TcpPort {
            listener: Some(listener),
            address,
            paused_until_ms: None,
        }));
        Ok(index as u16)
    }

    /// Takes an accepted connection in.
    pub(crate) fn admit(
        &mut self,
        stream: mio::net::TcpStream,
        peer: SocketAddr,
        listener: usize,
        bound: SocketAddr,
    ) -> io::Result<()> {
        let stream = TcpStream::from(OwnedFd::from(stream));
        let local = if bound.ip().is_unspecified() {
            stream.local_addr()?
        } else {
            bound
        };
        self.counters.connections_accepted += 1;
        let id = self.insert(stream, local, peer, listener as u16, Flags::NONE)?;
        self.arm(id);
        Ok(())
    }

    fn insert(
        &mut self,
        stream: TcpStream,
        local: SocketAddr,
        peer: SocketAddr,
        listener: u16,
        flags: Flags,
    ) -> io::Result<ConnectionId> {
        let interest = if flags.has(Flags::WRITABLE) {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        self.registry.register(
            &mut SourceFd(&stream.as_raw_fd()),
            token::connection(self.table.next_id()),
            interest,
        )?;
        let id = self.table.insert(Connection {
            stream,
            since: self.tick(),
            peer: peer.into(),
            local: local.into(),
            inbound: None,
            outbound: None,
            listener,
            flags,
        });
        self.open.insert(id);
        Ok(id)
    }

    /// Ends a connection.
    pub(crate) fn end(&mut self, id: ConnectionId, why: Why) {
        let Some(mut connection) = self.table.remove(id) else {
            return;
        };
        let before = self.stages.enter(Stage::Connections);
        self.open.remove(id);
        self.wheel.disarm(id.slot());
        if let Some(inbound) = connection.inbound.take() {
            self.release(inbound.bytes.len());
        }
        if let Some(outbound) = connection.outbound.take() {
            let before = self.unsent.len();
            self.unsent.extend(outbound.unwritten_tags());
            self.counters.messages_unsent += (self.unsent.len() - before) as u64;
            self.recycle(outbound);
        }
        if connection.flags.has(Flags::BLOCKED) {
            self.blocked_count -= 1;
        }
        self.counters.connections_closed += 1;
        let expelled = matches!(
            why,
            Why::FirstMessageLate
                | Why::HalfMessageLate
                | Why::PushedBack
                | Why::Broken
                | Why::HeldTooMuch
        );
        self.counters.connections_expelled += u64::from(expelled);
        self.closed.push(Closed {
            id,
            peer: connection.peer.into(),
            why,
        });
        drop(connection);
        self.stages.back_to(before);
    }

    /// Keeps the start of a message until more of it comes. `false`: too much is held already.
    pub(crate) fn keep(&mut self, id: ConnectionId, inbound: Box<Inbound>) -> bool {
        let len = inbound.bytes.len() as u64;
        if self.counters.held_bytes + len > self.options.held_bytes_max as u64 {
            return false;
        }
        let Some(connection) = self.table.get_mut(id) else {
            return true;
        };
        self.counters.held_bytes += len;
        let deadline = after(inbound.since, self.options.half_message_ms);
        connection.inbound = Some(inbound);
        if let Some(deadline) = deadline {
            self.wheel.arm_earlier(id.slot(), deadline);
        }
        true
    }

    pub(crate) fn release(&mut self, bytes: usize) {
        self.counters.held_bytes -= bytes as u64;
    }

    /// Something has happened on it.
    pub(crate) fn stamp(&mut self, id: ConnectionId, spoke: bool) {
        let tick = self.tick();
        if let Some(connection) = self.table.get_mut(id) {
            if spoke {
                connection.flags.set(Flags::SPOKE);
            }
            // Until it has spoken, the time since its acceptance is what counts.
            if connection.flags.has(Flags::SPOKE) || connection.listener == u16::MAX {
                connection.since = tick;
            }
        }
    }

    /// Looks at a connection whose deadline may have come.
    pub(crate) fn check_deadline(&mut self, slot: u32) {
        let id = self.table.id_in(slot);
        let tick = self.tick();
        match self.deadline(id) {
            Some((at, why)) if at <= tick => self.end(id, why),
            Some((at, _)) => self.wheel.arm(slot, at),
            None => {}
        }
    }

    fn arm(&mut self, id: ConnectionId) {
        if let Some((at, _)) = self.deadline(id) {
            self.wheel.arm_earlier(id.slot(), at);
        }
    }

    fn deadline(&self, id: ConnectionId) -> Option<(u32, Why)> {
        let (connection, options) = (self.table.get(id)?, &self.options);
        let flags = connection.flags;
        let of = |since, ms, why| after(since, ms).map(|at| (at, why));
        if flags.has(Flags::DRAINING) {
            return of(connection.since, options.drain_ms.max(1), Why::ByUs);
        }
        let general = if flags.has(Flags::CONNECTING) {
            of(connection.since, options.connect_ms, Why::NotOpened)
        } else if flags.has(Flags::SPOKE) || connection.listener == u16::MAX {
            of(connection.since, options.idle_ms, Why::Idle)
        } else {
            of(
                connection.since,
                options.first_message_ms,
                Why::FirstMessageLate,
            )
        };
        let half = connection
            .inbound
            .as_ref()
            .and_then(|inbound| of(inbound.since, options.half_message_ms, Why::HalfMessageLate));
        let pushed_back = connection
            .outbound
            .as_ref()
            .filter(|_| flags.has(Flags::BLOCKED))
            .and_then(|outbound| of(outbound.since, options.pushed_back_ms, Why::PushedBack));
        [general, half, pushed_back]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    fn append(&mut self, id: ConnectionId, tag: Option<Tag>, bytes: &[u8]) {
        let tick = self.tick();
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        let pool = &mut self.pool;
        let outbound = connection.outbound.get_or_insert_with(|| {
            let mut outbound = pool.pop().unwrap_or_default();
            outbound.since = tick;
            outbound
        });
        outbound.push(bytes, tag);
        let flags = connection.flags;
        if flags.has(Flags::BLOCKED) || flags.has(Flags::CONNECTING) {
            outbound.held += bytes.len();
            self.counters.held_bytes += bytes.len() as u64;
        } else if outbound.unwritten() >= STREAM_BYTES_PER_WRITE {
            self.write(id);
        } else {
            self.mark_dirty(id);
        }
    }

    fn mark_dirty(&mut self, id: ConnectionId) {
        if let Some(connection) = self.table.get_mut(id)
            && !connection.flags.has(Flags::DIRTY)
        {
            connection.flags.set(Flags::DIRTY);
            self.dirty.push(id);
        }
    }

    /// Whether something is left to flush.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.unsent.is_empty() || !self.closed.is_empty()
    }

    /// Writes what this turn has gathered.
    pub(crate) fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty_sockets);
        for index in dirty.drain(..) {
            if let Socket::Udp(port) = &self.sockets[index]
                && port.queue.entry_count() > 0
                && !port.queue.blocked
            {
                self.flush_socket(index);
            }
        }
        self.dirty_sockets = dirty;
        let mut dirty = std::mem::replace(&mut self.dirty, std::mem::take(&mut self.dirty_spare));
        for id in dirty.drain(..) {
            if let Some(connection) = self.table.get_mut(id) {
                connection.flags.clear(Flags::DIRTY);
                let flags = connection.flags;
                if !flags.has(Flags::BLOCKED) && !flags.has(Flags::CONNECTING) {
                    self.write(id);
                }
            }
        }
        self.dirty_spare = dirty;
    }

    /// Sends the datagrams that wait for a socket, as far as the kernel takes them.
    pub(crate) fn flush_socket(&mut self, index: usize) {
        let Some(Socket::Udp(port)) = self.sockets.get_mut(index) else {
            return;
        };
        let descriptor = port.socket.as_raw_fd();
        let before = self.stages.now();
        port.queue.flush(
            descriptor,
            &mut self.scratch,
            &mut self.stages,
            &mut self.counters,
            &mut self.unsent,
        );
        self.stages.back_to(before);
        if port.queue.blocked == port.writable_wanted {
            return;
        }
        // Each datagram that leaves makes the socket writable anew, so this is asked for only while it matters.
        let interest = if port.queue.blocked {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        let asked =
            self.registry
                .reregister(&mut SourceFd(&descriptor), token::socket(index), interest);
        port.writable_wanted = port.queue.blocked && asked.is_ok();
    }

    /// Writes what waits for a connection, as far as the kernel takes it.
    pub(crate) fn write(&mut self, id: ConnectionId) {
        let tick = self.tick();
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        let Some(mut outbound) = connection.outbound.take() else {
            self.written(id);
            return;
        };
        let before = outbound.written;
        let stage = self.stages.now();
        let result = write_all(&connection.stream, &mut outbound, &mut self.stages);
        self.stages.back_to(stage);
        let progress = outbound.written - before;
        if progress > 0 {
            outbound.since = tick;
            if connection.flags.has(Flags::SPOKE) || connection.listener == u16::MAX {
                connection.since = tick;
            }
        }
        self.counters.stream_bytes_sent += progress as u64;
        match result {
            Ok(true) => {
                if connection.flags.has(Flags::BLOCKED) {
                    connection.flags.clear(Flags::BLOCKED);
                    self.blocked_count -= 1;
                }
                self.recycle(outbound);
                self.written(id);
            }
            Ok(false) => self.block(id, outbound),
            Err(_) => {
                connection.outbound = Some(outbound);
                self.end(id, Why::Failed);
            }
        }
    }

    /// The kernel takes no more: the rest waits until it says so.
    fn block(&mut self, id: ConnectionId, mut outbound: Box<Outbound>) {
        let connection = self.table.get_mut(id).expect("the caller has just seen it");
        outbound.compact();
        let unwritten = outbound.unwritten();
        self.counters.held_bytes =
            self.counters.held_bytes + unwritten as u64 - outbound.held as u64;
        outbound.held = unwritten;
        connection.outbound = Some(outbound);
        if !connection.flags.has(Flags::BLOCKED) {
            connection.flags.set(Flags::BLOCKED);
            self.blocked_count += 1;
        }
        if !connection.flags.has(Flags::WRITABLE) {
            let asked = self.registry.reregister(
                &mut SourceFd(&connection.stream.as_raw_fd()),
                token::connection(id),
                Interest::READABLE | Interest::WRITABLE,
            );
            if asked.is_err() {
                self.end(id, Why::Failed);
                return;
            }
            connection.flags.set(Flags::WRITABLE);
        }
        self.arm(id);
    }

    /// All is written: a connection that was to be closed then says so to its peer, and waits for it to close too.
    fn written(&mut self, id: ConnectionId) {
        let tick = self.tick();
        let Some(connection) = self.table.get_mut(id) else {
            return;
        };
        if !connection.flags.has(Flags::CLOSING) || connection.flags.has(Flags::DRAINING) {
            return;
        }
        let before = self.stages.enter(Stage::Connections);
        let shut = connection.stream.shutdown(Shutdown::Write);
        self.stages.back_to(before);
        if shut.is_err() {
            self.end(id, Why::ByUs);
            return;
        }
        connection.flags.set(Flags::DRAINING);
        connection.since = tick;
        if let Some(inbound) = connection.inbound.take() {
            self.release(inbound.bytes.len());
        }
        // What has been read but not looked at may have been all there is.
        self.read_again(id);
        self.arm(id);
    }

    /// Has a connection read in the next turn, event or not.
    pub(crate) fn read_again(&mut self, id: ConnectionId) {
        if let Some(connection) = self.table.get_mut(id)
            && !connection.flags.has(Flags::READY)
        {
            connection.flags.set(Flags::READY);
            self.ready.push(Ready::Connection(id));
        }
    }

    fn recycle(&mut self, mut outbound: Box<Outbound>) {
        self.release(outbound.held);
        outbound.reset();
        if self.pool.len() < POOL_COUNT && outbound.bytes.capacity() <= POOL_BYTES_MAX {
            self.pool.push(outbound);
        }
    }
}

/// The tick `ms` after `since`, at least one later; `None` for 0: never.
fn after(since: u32, ms: u32) -> Option<u32> {
    (ms > 0).then(|| since.saturating_add((u64::from(ms).div_ceil(TICK_MS)) as u32))
}

/// Writes until all is written (`true`) or the kernel takes no more.
fn write_all(
    mut stream: &TcpStream,
    outbound: &mut Outbound,
    stages: &mut Stages,
) -> io::Result<bool> {
    while outbound.unwritten() > 0 {
        stages.enter(Stage::Write);
        match stream.write(&outbound.bytes[outbound.written..]) {
            Ok(count) => outbound.written += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
