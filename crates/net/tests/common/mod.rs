//! A `Net` with time in the test's hand, and a handler that keeps what it is told.
#![allow(dead_code, unreachable_pub)]

use net::{
    Closed, ConnectionId, Handler, Io, Net, Options, SocketOptions, Source, Tag, Why, bind_udp,
    listen_tcp,
};
use sip_wire::ParseError;
use std::io::Read;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Turns that a test waits for something at most; each ends with an event or after `WAIT`.
const TURNS_MAX: usize = 2000;
const WAIT: Duration = Duration::from_secs(5);

pub struct Rig {
    pub net: Net,
    pub seen: Seen,
    pub now_ms: u64,
}

#[derive(Default)]
pub struct Seen {
    pub messages: Vec<(Source, Vec<u8>)>,
    pub broken: Vec<ParseError>,
    pub connected: Vec<ConnectionId>,
    pub closed: Vec<Closed>,
    pub unsent: Vec<Tag>,
    /// Send each message back.
    pub echo: bool,
    /// Sent back on a broken stream.
    pub last_words: Option<Vec<u8>>,
}

impl Handler for Seen {
    fn message(&mut self, io: &mut Io, from: &Source, bytes: &[u8]) {
        self.messages.push((*from, bytes.to_vec()));
        if self.echo {
            io.send_back(from, Some(tag(self.messages.len() as u64)), bytes);
        }
    }
    fn broken(&mut self, io: &mut Io, from: &Source, _: &[u8], error: ParseError) {
        self.broken.push(error);
        if let Some(words) = &self.last_words {
            io.send_back(from, None, words);
        }
    }
    fn connected(&mut self, _: &mut Io, id: ConnectionId) {
        self.connected.push(id);
    }
    fn closed(&mut self, _: &mut Io, closed: &Closed) {
        self.closed.push(*closed);
    }
    fn unsent(&mut self, _: &mut Io, tag: Tag) {
        self.unsent.push(tag);
    }
}

impl Rig {
    pub fn new(options: Options) -> Self {
        let mut rig = Self {
            net: Net::new(options).expect("a poller"),
            seen: Seen::default(),
            now_ms: 1000,
        };
        rig.turn_now();
        rig
    }

    pub fn udp(&mut self, address: &str) -> (u16, SocketAddr) {
        let address = address.parse().expect("an address");
        let socket = bind_udp(address, &SocketOptions::default()).expect("a socket");
        let bound = socket.local_addr().expect("bound");
        (self.net.add_udp(socket).expect("added"), bound)
    }

    pub fn tcp(&mut self, address: &str) -> SocketAddr {
        let address = address.parse().expect("an address");
        let listener = listen_tcp(address, &SocketOptions::default()).expect("a listener");
        let bound = listener.local_addr().expect("bound");
        self.net.add_listener(listener).expect("added");
        bound
    }

    /// One turn, which waits for an event.
    pub fn turn(&mut self) {
        self.net.wait(Some(WAIT)).expect("a poller that works");
        self.turn_now();
    }

    pub fn turn_now(&mut self) {
        self.net.turn(self.now_ms, &mut self.seen);
        self.net.flush(&mut self.seen);
    }

    pub fn until(&mut self, what: &str, mut reached: impl FnMut(&mut Self) -> bool) {
        for _ in 0..TURNS_MAX {
            if reached(self) {
                return;
            }
            self.turn();
        }
        panic!("not reached: {what}");
    }

    pub fn messages(&mut self, count: usize) {
        self.until("messages", |rig| rig.seen.messages.len() >= count);
        assert_eq!(self.seen.messages.len(), count);
    }

    pub fn closed(&mut self) -> Why {
        self.until("an ended connection", |rig| !rig.seen.closed.is_empty());
        self.seen.closed.remove(0).why
    }

    /// An accepted connection with a first message, and the peer's end of it.
    pub fn accepted(&mut self, listener: SocketAddr) -> (ConnectionId, TcpStream) {
        use std::io::Write;
        let mut peer = TcpStream::connect(listener).expect("accepted by the kernel");
        peer.set_read_timeout(Some(WAIT)).expect("set");
        peer.write_all(&message(0)).expect("taken by the kernel");
        let before = self.seen.messages.len();
        self.messages(before + 1);
        let id = self.seen.messages[before].0.connection;
        (id, peer)
    }

    /// Time passes, and deadlines are looked at.
    pub fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.net.wait(Some(Duration::ZERO)).expect("a poller");
        self.turn_now();
    }
}

pub fn tag(value: u64) -> Tag {
    Tag { owner: 7, value }
}

/// A request with a body of that many bytes.
pub fn message(body: usize) -> Vec<u8> {
    let mut bytes = format!(
        "OPTIONS sip:a@example.com SIP/2.0\r\nCall-ID: x\r\nContent-Length: {body}\r\n\r\n"
    )
    .into_bytes();
    bytes.extend((0..body).map(|i| b'a' + (i % 23) as u8));
    bytes
}

pub fn udp_peer(address: &str) -> UdpSocket {
    let peer = UdpSocket::bind(address).expect("a socket");
    peer.set_read_timeout(Some(WAIT)).expect("set");
    peer
}

pub fn read_exactly(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream
        .read_exact(&mut bytes)
        .expect("so many bytes in time");
    bytes
}
