use sip_wire::Limits;

/// Bounds of a [`crate::Net`]. Times are in milliseconds and are kept to a tenth of a second.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of the thread that it serves: the top 8 bits of its [`crate::ConnectionId`]s.
    pub worker: u8,
    /// Whether connections are found by their peer ([`crate::Io::connection_to`]). Without, any number of connections to one peer costs
    /// the same each; with, finding the place of one among them takes longer the more there are.
    pub by_peer: bool,
    /// Connections open at once; beyond it new ones wait in the kernel's backlog.
    pub connections_max: usize,
    /// From accepting a connection to its first whole message; 0: no bound.
    pub first_message_ms: u32,
    /// From the first byte of a message to its last; 0: no bound.
    pub half_message_ms: u32,
    /// How long a peer may take nothing while something waits for it; 0: no bound.
    pub pushed_back_ms: u32,
    /// How long nothing may happen on a connection; 0: no bound.
    pub idle_ms: u32,
    /// From opening a connection to its being open; 0: as the kernel does.
    pub connect_ms: u32,
    /// How long what was sent on a stream may go unacknowledged before the system ends the connection, milliseconds; 0: as the kernel
    /// does, which is a quarter of an hour. Without it, calls to a phone that has lost its network would go nowhere for that long.
    pub unacknowledged_ms: u32,
    /// How long the rest of what a peer sends is read and dropped after the last answer, so that the answer is not lost with a reset.
    pub drain_ms: u32,
    /// Bytes that wait for one peer; a message beyond it comes back unsent.
    pub pushed_back_bytes_max: usize,
    /// Bytes held for all half-received and waiting messages together.
    pub held_bytes_max: usize,
    /// Bytes of datagrams that wait for one socket when the kernel takes no more; beyond it they are dropped and counted.
    pub datagram_bytes_max: usize,
    /// Limits on the messages of streams.
    pub limits: Limits,
    /// Measure how long each stage of the work takes ([`crate::Stages`]); some 20 ns for each change of stage.
    pub stage_times: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            worker: 0,
            by_peer: true,
            connections_max: 1_000_000,
            first_message_ms: 32_000,
            half_message_ms: 30_000,
            pushed_back_ms: 30_000,
            idle_ms: 7_200_000,
            connect_ms: 8_000,
            unacknowledged_ms: 30_000,
            drain_ms: 2_000,
            pushed_back_bytes_max: 256 * 1024,
            held_bytes_max: 256 * 1024 * 1024,
            datagram_bytes_max: 4 * 1024 * 1024,
            limits: Limits::default(),
            stage_times: false,
        }
    }
}

/// How a listening or datagram socket is made.
#[derive(Clone, Copy, Debug)]
pub struct SocketOptions {
    /// Several sockets of this process on one address (`SO_REUSEPORT`): the kernel spreads peers over them.
    pub shared: bool,
    /// Datagrams that the peer's side says it could not deliver come back ([`crate::Handler::undelivered`]).
    pub take_back: bool,
    /// Connections that may wait to be accepted; cut by `net.core.somaxconn`.
    pub backlog: i32,
    /// Bytes of the receive and of the send buffer of a datagram socket; cut by `net.core.rmem_max` and `wmem_max` unless privileged.
    pub buffer_bytes: usize,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            shared: true,
            take_back: false,
            backlog: 4096,
            buffer_bytes: 8 * 1024 * 1024,
        }
    }
}
