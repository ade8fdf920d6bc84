use crate::Listen;
use location::Transport;
use sip_core::Mono;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Which listener a peer is reached from, and by which of our addresses.
pub(crate) struct Ways {
    listeners: Vec<Listen>,
    /// The address that the system sends from, by peer (port 0); `None`: no way there.
    sources: HashMap<SocketAddr, Option<IpAddr>>,
    forget_at: Mono,
}

/// Peers whose source address is kept.
const SOURCES_MAX: usize = 16 * 1024;
/// For how long: addresses and routes of the machine may change.
const SOURCES_MS: u32 = 30_000;

impl Ways {
    pub(crate) fn new(listeners: Vec<Listen>) -> Self {
        Self {
            listeners,
            sources: HashMap::new(),
            forget_at: Mono(0),
        }
    }

    /// Whether the listener of that number is of that transport.
    pub(crate) fn is(&self, listener: u16, transport: Transport) -> bool {
        self.listeners
            .get(usize::from(listener))
            .is_some_and(|listen| listen.transport == transport)
    }

    /// The listener to reach a peer from: of its transport and address family; of several the one bound to the address that the
    /// system would send from, then one bound to all, then the first.
    pub(crate) fn listener(
        &mut self,
        transport: Transport,
        peer: SocketAddr,
        now: Mono,
    ) -> Option<u16> {
        let fits = |listen: &Listen| {
            listen.transport == transport && listen.address.is_ipv4() == peer.is_ipv4()
        };
        let first = self.listeners.iter().position(fits)?;
        if !self.listeners[first + 1..].iter().any(fits) {
            return Some(first as u16);
        }
        let source = self.source(peer, now);
        let is_source = |listen: &Listen| Some(listen.address.ip()) == source;
        let is_any = |listen: &Listen| listen.address.ip().is_unspecified();
        let best = self
            .listeners
            .iter()
            .position(|listen| fits(listen) && is_source(listen))
            .or_else(|| self.listeners.iter().position(|l| fits(l) && is_any(l)));
        Some(best.unwrap_or(first) as u16)
    }

    /// Our address as that peer sees it, with the port of our listener. `None`: no way there.
    pub(crate) fn local(
        &mut self,
        transport: Transport,
        peer: SocketAddr,
        now: Mono,
    ) -> Option<SocketAddr> {
        let listener = self.listener(transport, peer, now)?;
        let mut local = self.listeners[usize::from(listener)].address;
        if local.ip().is_unspecified() {
            local.set_ip(self.source(peer, now)?);
        }
        Some(local)
    }

    /// The address to bind a new connection to; `None`: leave it to the system.
    pub(crate) fn bind_to(
        &mut self,
        transport: Transport,
        peer: SocketAddr,
        now: Mono,
    ) -> Option<SocketAddr> {
        let listener = self.listener(transport, peer, now)?;
        let mut local = self.listeners[usize::from(listener)].address;
        local.set_port(0);
        (!local.ip().is_unspecified()).then_some(local)
    }

    fn source(&mut self, peer: SocketAddr, now: Mono) -> Option<IpAddr> {
        if now >= self.forget_at || self.sources.len() >= SOURCES_MAX {
            self.sources.clear();
            self.forget_at = now.after_ms(SOURCES_MS);
        }
        let mut key = peer;
        key.set_port(0);
        *self
            .sources
            .entry(key)
            .or_insert_with(|| net::source_address(peer).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(listeners: &[(Transport, &str)]) -> Ways {
        let listen = |(transport, address): &(Transport, &str)| Listen {
            transport: *transport,
            address: address.parse().expect("an address"),
        };
        Ways::new(listeners.iter().map(listen).collect())
    }

    fn peer(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_peer_is_reached_from_a_listener_of_its_family_and_transport() {
        let mut ways = ways(&[
            (Transport::Udp, "[::]:5060"),
            (Transport::Tcp, "0.0.0.0:5061"),
            (Transport::Udp, "0.0.0.0:5060"),
        ]);
        let v4 = peer("127.0.0.1:9");
        assert_eq!(ways.listener(Transport::Udp, v4, Mono(0)), Some(2));
        assert_eq!(ways.listener(Transport::Tcp, v4, Mono(0)), Some(1));
        assert_eq!(
            ways.listener(Transport::Tcp, peer("[::1]:9"), Mono(0)),
            None
        );
    }

    #[test]
    fn of_several_listeners_the_one_on_the_way_to_the_peer_is_taken() {
        let mut ways = ways(&[
            (Transport::Udp, "127.0.0.9:5060"),
            (Transport::Udp, "127.0.0.1:5060"),
        ]);
        assert_eq!(
            ways.listener(Transport::Udp, peer("127.0.0.1:9"), Mono(0)),
            Some(1)
        );
    }

    #[test]
    fn a_listener_on_all_addresses_is_named_by_the_one_that_the_peer_sees() {
        let mut ways = ways(&[(Transport::Tcp, "0.0.0.0:5061")]);
        assert_eq!(
            ways.local(Transport::Tcp, peer("127.0.0.1:9"), Mono(0)),
            Some(peer("127.0.0.1:5061"))
        );
        assert_eq!(
            ways.bind_to(Transport::Tcp, peer("127.0.0.1:9"), Mono(0)),
            None
        );
    }
}
