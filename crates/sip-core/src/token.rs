use crate::keyed::Keyed;
use location::{Flow, Transport};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What our Record-Route URI carries as its user part, so that requests inside a dialog need no table.
///
/// It is authenticated over the Call-ID, and says which of the two sides are ours: who proved to be a local user, and phones registered
/// here. Both sides get to see it, strangers too, so it must not make a relay of us: it opens the way to a side that is ours, and
/// for one that is ours. It also names the flows of the two sides where their contacts alone would not reach them (connections,
/// phones behind a NAT), and that of our side where the other is a stranger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    /// Keyed hash of the caller's tag: tells which side a request comes from. Of 16 bits it would send one call in 65,536 back to the callee.
    caller: u32,
    caller_side: Side,
    callee_side: Side,
}

/// One side of a dialog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Side {
    /// A local user who proved it, or a phone registered here.
    pub(crate) is_ours: bool,
    /// How to reach it; `None`: by its contact.
    pub(crate) flow: Option<Flow>,
}

const MAC_LEN: usize = 8;
/// Longest token in binary: flags, caller, two IPv6 flows, MAC.
const LEN_MAX: usize = 5 + 2 * (12 + 36) + MAC_LEN;

impl Token {
    pub(crate) fn new(
        keyed: &Keyed,
        caller_tag: &[u8],
        caller_side: Side,
        callee_side: Side,
    ) -> Self {
        Self {
            caller: caller_hash(keyed, caller_tag),
            caller_side,
            callee_side,
        }
    }

    /// Sender and receiver of a request with this From tag. Anybody may write any tag: the sender is who it says to be.
    pub(crate) fn sides(&self, keyed: &Keyed, from_tag: &[u8]) -> (Side, Side) {
        if self.caller == caller_hash(keyed, from_tag) {
            (self.caller_side, self.callee_side)
        } else {
            (self.callee_side, self.caller_side)
        }
    }

    /// Appends the text.
    pub(crate) fn write(&self, keyed: &Keyed, call_id: &[u8], out: &mut Vec<u8>) {
        let mut bytes = Buffer {
            bytes: [0; LEN_MAX],
            len: 0,
        };
        let sides = [self.caller_side, self.callee_side];
        let flags = sides.iter().rev().fold(0, |flags, side| {
            flags << 2 | u8::from(side.is_ours) << 1 | u8::from(side.flow.is_some())
        });
        bytes.put(&[flags]);
        bytes.put(&self.caller.to_be_bytes());
        for flow in sides.iter().filter_map(|side| side.flow) {
            put_flow(&flow, &mut bytes);
        }
        let mac = keyed
            .hash(&[b"token", call_id, bytes.filled()])
            .to_be_bytes();
        bytes.put(&mac);
        write_base64url(bytes.filled(), out);
    }

    /// Reads the text; `None` when it is not ours or not of this Call-ID.
    pub(crate) fn read(keyed: &Keyed, call_id: &[u8], text: &[u8]) -> Option<Self> {
        let mut buffer = [0; LEN_MAX + 3];
        let bytes = read_base64url(text, &mut buffer)?;
        let (body, mac) = bytes.split_at_checked(bytes.len().checked_sub(MAC_LEN)?)?;
        if keyed.hash(&[b"token", call_id, body]).to_be_bytes() != *mac {
            return None;
        }
        let (&[flags, caller @ ..], mut rest) = body.split_first_chunk::<5>()?;
        let mut side = |flags: u8| {
            let flow = if flags & 1 != 0 {
                Some(take_flow(&mut rest)?)
            } else {
                None
            };
            let is_ours = flags & 2 != 0;
            Some(Side { is_ours, flow })
        };
        Some(Self {
            caller: u32::from_be_bytes(caller),
            caller_side: side(flags)?,
            callee_side: side(flags >> 2)?,
        })
    }
}

fn caller_hash(keyed: &Keyed, tag: &[u8]) -> u32 {
    keyed.hash(&[b"caller", tag]) as u32
}

struct Buffer {
    bytes: [u8; LEN_MAX],
    len: usize,
}

impl Buffer {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn filled(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn put_flow(flow: &Flow, out: &mut Buffer) {
    let v6 = flow.peer.is_ipv6() || flow.local.is_ipv6();
    out.put(&[flow.transport as u8 | if v6 { 0x80 } else { 0 }]);
    out.put(&flow.listener.to_be_bytes());
    out.put(&flow.connection.to_be_bytes());
    for address in [flow.peer, flow.local] {
        match (address.ip(), v6) {
            (IpAddr::V4(ip), false) => out.put(&ip.octets()),
            (IpAddr::V4(ip), true) => out.put(&ip.to_ipv6_mapped().octets()),
            (IpAddr::V6(ip), _) => out.put(&ip.octets()),
        }
        out.put(&address.port().to_be_bytes());
    }
}

fn take_flow(rest: &mut &[u8]) -> Option<Flow> {
    let &[kind] = take::<1>(rest)?;
    let transport = match kind & 0x7f {
        0 => Transport::Udp,
        1 => Transport::Tcp,
        2 => Transport::Tls,
        3 => Transport::Ws,
        4 => Transport::Wss,
        5 => Transport::Sctp,
        _ => return None,
    };
    let listener = u16::from_be_bytes(*take(rest)?);
    let connection = u64::from_be_bytes(*take(rest)?);
    let mut address = || {
        let ip = if kind & 0x80 == 0 {
            IpAddr::V4(Ipv4Addr::from(*take::<4>(rest)?))
        } else {
            IpAddr::V6(Ipv6Addr::from(*take::<16>(rest)?)).to_canonical()
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes(*take(rest)?)))
    };
    Some(Flow {
        transport,
        listener,
        connection,
        peer: address()?,
        local: address()?,
    })
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(head)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn write_base64url(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0u32, |n, &b| n << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..=chunk.len() {
            out.push(ALPHABET[(n >> (18 - 6 * i)) as usize & 63]);
        }
    }
}

fn read_base64url<'b>(text: &[u8], buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let mut len = 0;
    for chunk in text.chunks(4) {
        let mut n = 0u32;
        for &c in chunk {
            let value = match c {
                b'A'..=b'Z' => c - b'A',
                b'a'..=b'z' => c - b'a' + 26,
                b'0'..=b'9' => c - b'0' + 52,
                b'-' => 62,
                b'_' => 63,
                _ => return None,
            };
            n = n << 6 | u32::from(value);
        }
        n <<= 6 * (4 - chunk.len());
        let count = chunk.len() * 6 / 8;
        // Bits that decode to nothing must be zero: one token has one text.
        if n & (0x00ff_ffff >> (8 * count)) != 0 {
            return None;
        }
        buffer
            .get_mut(len..len + count)?
            .copy_from_slice(&n.to_be_bytes()[1..=count]);
        len += count;
    }
    Some(&buffer[..len])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(peer: &str, connection: u64) -> Flow {
        Flow {
            transport: Transport::Tcp,
            listener: 3,
            connection,
            local: "192.0.2.1:5060".parse().unwrap(),
            peer: peer.parse().unwrap(),
        }
    }

    fn side(flow: Option<Flow>) -> Side {
        Side {
            is_ours: flow.is_some(),
            flow,
        }
    }

    fn text(token: &Token, keyed: &Keyed, call_id: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        token.write(keyed, call_id, &mut text);
        text
    }

    #[test]
    fn a_token_reads_back_for_its_own_call_only() {
        let keyed = Keyed::new([7; 16]);
        let v6 = Flow {
            local: "[2001:db8::1]:5060".parse().unwrap(),
            ..flow("[2001:db8::2]:40000", 9)
        };
        for (caller, callee) in [
            (None, None),
            (Some(flow("10.0.0.1:1", 5)), None),
            (None, Some(v6)),
            (Some(v6), Some(v6)),
        ] {
            let token = Token::new(&keyed, b"tag", side(caller), side(callee));
            let text = text(&token, &keyed, b"call-1");
            assert_eq!(Token::read(&keyed, b"call-1", &text), Some(token));
            assert_eq!(Token::read(&keyed, b"call-2", &text), None);
            assert_eq!(Token::read(&Keyed::new([8; 16]), b"call-1", &text), None);
        }
    }

    #[test]
    fn a_changed_token_is_refused() {
        let keyed = Keyed::new([7; 16]);
        let good = text(
            &Token::new(
                &keyed,
                b"tag",
                side(Some(flow("10.0.0.1:1", 5))),
                side(None),
            ),
            &keyed,
            b"c",
        );
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] = if bad[i] == b'A' { b'B' } else { b'A' };
            assert_eq!(Token::read(&keyed, b"c", &bad), None, "byte {i}");
        }
        assert_eq!(Token::read(&keyed, b"c", b""), None);
        assert_eq!(Token::read(&keyed, b"c", &[b'A'; 500]), None);
    }

    #[test]
    fn the_from_tag_decides_the_direction() {
        let keyed = Keyed::new([7; 16]);
        let (caller, callee) = (side(Some(flow("10.0.0.1:1", 5))), side(None));
        let token = Token::new(&keyed, b"caller-tag", caller, callee);
        assert_eq!(token.sides(&keyed, b"caller-tag"), (caller, callee));
        assert_eq!(token.sides(&keyed, b"callee-tag"), (callee, caller));
    }
}
