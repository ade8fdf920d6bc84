//! A way through the network that loses datagrams.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Passes datagrams on to a server and its answers back, as a translator of addresses does; one of so many is lost.
pub struct Relay {
    /// Where clients send to.
    pub address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    ends: AtomicBool,
    came: AtomicU64,
    lost: AtomicU64,
    loses_every: u64,
}

impl Relay {
    /// Listens at `address`, for a server.
    ///
    /// # Panics
    /// When the address is taken.
    #[must_use]
    pub fn start(address: SocketAddr, server: SocketAddr, loses_every: u64) -> Self {
        let socket = Arc::new(bind(address));
        let address = socket.local_addr().expect("an address");
        let state = Arc::new(State {
            ends: AtomicBool::new(false),
            came: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            loses_every,
        });
        let own = Arc::clone(&state);
        let thread = thread::spawn(move || {
            let mut clients: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
            thread::scope(|scope| {
                own.pass(&socket, |from, datagram| {
                    let outside = clients.entry(from).or_insert_with(|| {
                        let outside = Arc::new(bind(SocketAddr::new(address.ip(), 0)));
                        let (own, socket) = (Arc::clone(&own), Arc::clone(&socket));
                        let inward = Arc::clone(&outside);
                        scope.spawn(move || {
                            own.pass(&inward, |_, datagram| {
                                let _ = socket.send_to(datagram, from);
                            });
                        });
                        outside
                    });
                    let _ = outside.send_to(datagram, server);
                });
            });
        });
        Self {
            address,
            state,
            thread: Some(thread),
        }
    }

    /// How many datagrams were lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::Relaxed)
    }
}

impl State {
    /// Gives every datagram that comes and is not lost.
    fn pass(&self, socket: &UdpSocket, mut to: impl FnMut(SocketAddr, &[u8])) {
        let mut buffer = [0; 65_536];
        while !self.ends.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            let number = self.came.fetch_add(1, Ordering::Relaxed) + 1;
            if number.is_multiple_of(self.loses_every) {
                self.lost.fetch_add(1, Ordering::Relaxed);
            } else {
                to(from, &buffer[..length]);
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn bind(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("an address that is free");
    let wait = Some(Duration::from_millis(20));
    socket.set_read_timeout(wait).expect("a wait");
    socket
}
