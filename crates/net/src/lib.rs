//! UDP and TCP sockets, connections, framing and batching; all unsafe code.
//!
//! [`Net`] is the sockets of one thread: a poller, datagram sockets, listeners and connections. A turn is
//! [`Net::wait`], [`Net::turn`], [`Net::flush`]; what happened goes to a [`Handler`], which sends through the [`Io`] it is given.
//! The server's workers, the echo server and the load generator all stand on it. It cuts messages out of streams
//! (with [`sip_wire::Framer`]) and knows nothing else of SIP.
//!
//! Bounds, all in [`Options`]: connections, bytes held for half-received and unsent messages, datagrams that wait for the
//! kernel, and the time that a peer may take for each thing it owes. Work per socket and turn is bounded too, so that one busy peer
//! does not keep the others waiting.
//!
//! A connection at rest costs about 130 bytes here and holds no buffer.

mod addresses;
mod connections;
mod counters;
mod deadlines;
pub mod echo;
mod exact;
mod io;
pub mod limits;
mod net;
mod open_set;
mod options;
mod stages;
mod tcp;
mod udp;

pub use addresses::{local_addresses, source_address};
pub use connections::{Closed, ConnectionId, Why};
pub use counters::Counters;
pub use exact::exact_timeouts;
pub use io::{Io, Tag};
pub use mio::Waker;
pub use net::{Handler, Net, Source};
pub use open_set::OpenSet;
pub use options::{Options, SocketOptions};
pub use stages::{Stage, StageTime, StageTimes, Stages};
pub use tcp::listen_tcp;
pub use udp::bind_udp;
