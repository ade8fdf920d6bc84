//! What carries messages between the phones and the server: datagrams that get lost, doubled and held back, and connections
//! that break.

use crate::attack;
use crate::phone::{Role, Timer};
use crate::server::Connection;
use crate::world::{Event, World};
use location::{Flow, Transport};
use sip_core::{Destination, Origin};
use std::net::{IpAddr, SocketAddr};

impl World {
    pub(crate) fn phone_sends(&mut self, number: usize, message: Vec<u8>) {
        self.trace
            .message(self.now_us, "from phone", number, &message);
        match self.phones[number].transport {
            Transport::Udp => {
                let from = self.phones[number].address;
                for wait_us in self.weather(&message) {
                    let message = message.clone();
                    self.after(wait_us, Event::DatagramToServer { from, message });
                }
            }
            _ => {
                let delay_us = self.delay_us();
                let connection = self.links[number];
                let Some((id, c)) =
                    connection.and_then(|id| Some((id, self.connections.get_mut(&id)?)))
                else {
                    return self.judge.lost_for_good(&message);
                };
                c.to_server_us = c.to_server_us.max(self.now_us + delay_us);
                let at_us = c.to_server_us;
                self.at(
                    at_us,
                    Event::StreamToServer {
                        connection: id,
                        message,
                    },
                );
            }
        }
    }

    pub(crate) fn server_sends(
        &mut self,
        worker: usize,
        to: &Destination,
        origin: Option<Origin>,
        message: Vec<u8>,
    ) {
        self.judge.stats.sent += 1;
        let (transport, peer) = match to {
            Destination::Flow(flow) => (flow.transport, flow.peer),
            Destination::Address { transport, peer } => (*transport, *peer),
        };
        self.trace
            .message(self.now_us, "from server to", peer, &message);
        self.check_recipient(transport, peer, &message);
        if transport == Transport::Udp {
            for wait_us in self.weather(&message) {
                let message = message.clone();
                self.after(wait_us, Event::DatagramToPhone { to: peer, message });
            }
            return;
        }
        let delay_us = self.delay_us();
        let connection = match to {
            Destination::Flow(flow) => self.connections.get_mut(&flow.connection),
            Destination::Address { .. } => self
                .connections
                .values_mut()
                .find(|c| c.flow.peer == peer && c.open),
        };
        match connection.filter(|c| c.open) {
            Some(c) => {
                c.to_phone_us = c.to_phone_us.max(self.now_us + delay_us);
                let event = Event::StreamToPhone {
                    connection: c.flow.connection,
                    message,
                };
                let at_us = c.to_phone_us;
                self.at(at_us, event);
            }
            // Nobody listens for connections in this world.
            None => self.refuse(worker, origin, &message),
        }
    }

    fn refuse(&mut self, worker: usize, origin: Option<Origin>, message: &[u8]) {
        let Some(start) = self.server.as_ref().map(|s| s.start) else {
            return;
        };
        self.trace.event(self.now_us, format_args!("(refused)"));
        match origin {
            Some(origin) => {
                let wait_us = self.rng.range(10, 100_000);
                self.after(
                    wait_us,
                    Event::SendFailed {
                        worker,
                        start,
                        origin,
                    },
                );
            }
            None => self.judge.lost_for_good(message),
        }
    }

    /// Nothing is sent to where no phone has ever been, and to strangers nothing but responses. Without digest a stranger
    /// passes for a subscriber, and is relayed.
    fn check_recipient(&mut self, transport: Transport, peer: SocketAddr, message: &[u8]) {
        let is_response = message.starts_with(b"SIP/2.0 ");
        let fine = self.known.contains_key(&peer)
            || (is_response && attack::is_attacker(peer))
            || (!self.plan.auth && attack::passes_for_subscriber(message))
            // Where the connection is gone, the Via's port at the address it came from (RFC 3261 section 18.2.2).
            || (is_response && transport.is_reliable() && self.known.keys().any(|known| known.ip() == peer.ip()));
        if !fine {
            let head = String::from_utf8_lossy(message);
            let line = head.lines().next().unwrap_or_default();
            self.judge.fault(format!(
                "the server sent to {peer}, where nobody is: {line}"
            ));
        }
    }

    /// After how long each copy of a datagram arrives; empty when it is lost.
    fn weather(&mut self, message: &[u8]) -> Vec<u64> {
        let mut arrivals = Vec::with_capacity(1);
        if self.rng.per_mille(self.plan.loss) {
            self.trace.event(self.now_us, format_args!("(lost)"));
            self.judge.lost(message);
            return arrivals;
        }
        arrivals.push(self.delay_us());
        if self.rng.per_mille(self.plan.doubled) {
            arrivals.push(self.delay_us());
        }
        if self.rng.per_mille(self.plan.held_back) {
            arrivals[0] += self.rng.range(0, 2_500_000);
        }
        arrivals
    }

    fn delay_us(&mut self) -> u64 {
        self.rng.range(100, self.plan.delay_ms * 2000 + 200)
    }
}

/// Arrivals.
impl World {
    /// The kernel gives all datagrams of one peer to one worker.
    pub(crate) fn datagram_at_server(&mut self, from: SocketAddr, message: &[u8]) {
        self.trace
            .message(self.now_us, "at server from", from, message);
        let Some(start) = self.server.as_ref().map(|s| s.start) else {
            return self.judge.lost_for_good(message);
        };
        self.judge.stats.received += 1;
        let flow = Flow {
            transport: Transport::Udp,
            listener: 0,
            connection: 0,
            local: self.names.server_for(from),
            peer: from,
        };
        let worker = self.worker_of(from);
        self.with_core(worker, start, |core, now, port| {
            core.receive(now, &flow, message, port)
        });
    }

    pub(crate) fn stream_at_server(&mut self, id: u64, message: &[u8]) {
        let Some(c) = self.connections.get(&id).filter(|c| c.whole) else {
            return self.judge.lost_for_good(message);
        };
        let flow = c.flow;
        self.trace
            .message(self.now_us, "at server from", flow.peer, message);
        let Some(start) = self.server.as_ref().map(|s| s.start) else {
            return;
        };
        self.judge.stats.received += 1;
        let worker = (id >> 56) as usize;
        self.with_core(worker, start, |core, now, port| {
            core.receive(now, &flow, message, port)
        });
    }

    pub(crate) fn datagram_at_phone(&mut self, to: SocketAddr, message: &[u8]) {
        let Some(&phone) = self.present.get(&to) else {
            if !attack::is_attacker(to) {
                self.judge.lost_for_good(message);
            }
            return;
        };
        self.phone_hears(phone, message);
    }

    pub(crate) fn stream_at_phone(&mut self, id: u64, message: &[u8]) {
        match self.connections.get(&id).filter(|c| c.whole) {
            Some(c) => self.phone_hears(c.phone, message),
            None => self.judge.lost_for_good(message),
        }
    }

    fn phone_hears(&mut self, number: usize, message: &[u8]) {
        self.trace.message(self.now_us, "at phone", number, message);
        self.with_phone(number, |phone, now_ms, fx| {
            phone.on_message(now_ms, message, fx)
        });
    }

    pub(crate) fn connect(&mut self, number: usize) {
        let Some(_) = &self.server else {
            let again_us = self.rng.range(500_000, 2_000_000);
            return self.after(again_us, Event::Connect { phone: number });
        };
        if self.phones[number].transport == Transport::Udp
            || self.phones[number].role == Role::Abroad
        {
            return;
        }
        self.settle(number);
        let peer = self.phones[number].address;
        self.connection_last += 1;
        // Generation and slot as the event loop numbers them; the slot alone would do.
        let id = (self.worker_of(peer) as u64) << 56 | 1 << 32 | self.connection_last;
        let flow = Flow {
            transport: Transport::Tcp,
            listener: 1,
            connection: id,
            local: self.names.server_for(peer),
            peer,
        };
        let (to_server_us, to_phone_us) = (self.now_us, self.now_us);
        let connection = Connection {
            flow,
            phone: number,
            whole: true,
            open: true,
            to_server_us,
            to_phone_us,
        };
        self.connections.insert(id, connection);
        self.links[number] = Some(id);
        self.trace.event(
            self.now_us,
            format_args!("phone {number} connects from {peer}"),
        );
        self.after(
            0,
            Event::PhoneTimer {
                phone: number,
                timer: Timer::Register,
            },
        );
    }

    fn worker_of(&self, peer: SocketAddr) -> usize {
        let ip = match peer.ip() {
            IpAddr::V4(ip) => u64::from(u32::from(ip)),
            IpAddr::V6(ip) => u128::from(ip) as u64 ^ (u128::from(ip) >> 64) as u64,
        };
        let mixed = (ip << 16 | u64::from(peer.port())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize % usize::from(self.plan.workers)
    }
}
