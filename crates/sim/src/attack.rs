use crate::phone::Names;
use crate::rng::Rng;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Sends the server what strangers send: requests to be relayed to a victim in every way that has ever worked somewhere, and garbage.
pub(crate) struct Attacker {
    rng: Rng,
    count: u32,
}

/// The address that must never get anything.
pub(crate) fn victim() -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 66], 5060))
}

/// Whether a stranger sends from there.
pub(crate) fn is_attacker(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(ip) if ip.octets()[..3] == [203, 0, 114])
        && address != victim()
}

/// Whether a stranger's request says that it is from a subscriber.
pub(crate) fn passes_for_subscriber(message: &[u8]) -> bool {
    message.windows(SUBSCRIBER.len()).any(|w| w == SUBSCRIBER)
}

const SUBSCRIBER: &[u8] = b"From: <sip:u0@";

impl Attacker {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed, 3),
            count: 0,
        }
    }

    /// From where, and what.
    pub(crate) fn strike(&mut self, names: &Names, auth: bool) -> (SocketAddr, Vec<u8>) {
        self.count += 1;
        let from = SocketAddr::from((
            Ipv4Addr::new(203, 0, 114, self.rng.range(1, 10) as u8),
            5060,
        ));
        let mut message = self.request(names, from).into_bytes();
        // Without digest it matters whom a request says it is from: that has to stay readable.
        if auth && self.rng.per_mille(300) {
            self.spoil(&mut message);
        }
        (from, message)
    }

    fn request(&mut self, names: &Names, from: SocketAddr) -> String {
        let (domain, server) = (&names.domain, names.server[0]);
        let victim = victim();
        let method = *self.rng.pick(&[
            "INVITE", "MESSAGE", "BYE", "ACK", "CANCEL", "REGISTER", "OPTIONS", "FOO",
        ]);
        let uris = [
            "sip:x@victim.example".to_string(),
            format!("sip:{victim}"),
            format!("sip:x@{victim};transport=udp"),
            format!("sip:nobody-here@{domain}"),
            format!("sip:{server};lr"),
            format!("sip:{domain};maddr={}", victim.ip()),
            format!(
                "sip:nobody-here@{domain};maddr={};transport=udp",
                victim.ip()
            ),
            "tel:+4930123456".to_string(),
        ];
        let uri = self.rng.pick(&uris);
        let routes = [
            String::new(),
            format!("Route: <sip:{server};lr>\r\n"),
            format!("Route: <sip:{server};lr>, <sip:{victim};lr>\r\n"),
            format!("Route: <sip:{victim};lr>\r\n"),
            format!("Route: <sip:0123456789abcdef@{server};lr>, <sip:{victim};lr>\r\n"),
            format!(
                "Route: <sip:{domain};lr>,<sip:{server};lr>\r\nRoute: <sip:victim.example;lr>\r\n"
            ),
        ];
        let route = self.rng.pick(&routes);
        let to_tag = self.rng.pick(&["", ";tag=1234"]);
        let users = [
            "stranger@far.away.example".to_string(),
            format!("u0@{domain}"),
        ];
        let user = self.rng.pick(&users);
        let sent_by = *self.rng.pick(&[from, victim]);
        let count = self.count;
        format!(
            "{method} {uri} SIP/2.0\r\n\
             Via: SIP/2.0/UDP {sent_by};rport;branch=z9hG4bKattack{count}\r\n\
             Max-Forwards: 70\r\n\
             {route}From: <sip:{user}>;tag=a{count}\r\n\
             To: <sip:x@victim.example>{to_tag}\r\n\
             Call-ID: attack-{count}\r\n\
             CSeq: 1 {method}\r\n\
             Contact: <sip:x@{victim}>\r\n\
             Content-Length: 0\r\n\r\n"
        )
    }

    fn spoil(&mut self, message: &mut Vec<u8>) {
        for _ in 0..self.rng.range(1, 6) {
            let at = self.rng.range(0, message.len() as u64) as usize;
            match self.rng.range(0, 3) {
                0 => message[at] = self.rng.next() as u8,
                1 => message.truncate(at.max(1)),
                _ => drop(message.remove(at)),
            }
            if message.len() < 2 {
                return;
            }
        }
    }
}
