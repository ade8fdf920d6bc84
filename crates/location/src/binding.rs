use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use smallvec::SmallVec;

use crate::list::List;
use crate::{Flow, Transport, Wall};

/// One binding, packed into one allocation (aim: 300 bytes with its address-of-record and place in the map).
///
/// The packed form is also what the journal keeps, so that journaling a change copies bytes and encodes nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Binding {
    packed: Box<[u8]>,
}

/// What a binding is made from, and what it reads as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BindingParts<'a> {
    /// The Contact's URI, byte for byte as the phone sent it.
    pub contact: &'a [u8],
    /// The Contact's header parameters, byte for byte, `expires` taken out: `;q=0.7;+sip.instance="..."`.
    pub params: &'a [u8],
    /// Identity of the phone, `+sip.instance` without quotes; empty when it gave none.
    pub instance: &'a [u8],
    /// `reg-id` (RFC 5626); 0 when it gave none.
    pub reg_id: u32,
    /// Preference in thousandths, 0 to 1000 (RFC 3261 section 20.10).
    pub q: u16,
    /// Call-ID of the REGISTER that made or refreshed it.
    pub call_id: &'a [u8],
    /// Its CSeq number.
    pub cseq: u32,
    /// When it ends.
    pub expires: Wall,
    /// The flow it came on. The flow label of an IPv6 address is not kept.
    pub flow: Flow,
    /// The contact does not say where it came from: reach it over the flow, not by the URI.
    pub behind_nat: bool,
    /// Path values, comma-separated (RFC 3327); empty when none.
    pub path: &'a [u8],
    /// User-Agent, for people; cut to 64 bytes.
    pub user_agent: &'a [u8],
}

impl Binding {
    /// Packs the parts.
    #[must_use]
    pub fn new(parts: &BindingParts<'_>) -> Self {
        let user_agent = &parts.user_agent[..parts.user_agent.len().min(USER_AGENT_LEN_MAX)];
        let instance_at = find(parts.params, parts.instance);
        let mut buffer: SmallVec<[u8; 512]> = SmallVec::new();
        buffer.extend_from_slice(&[0; FIXED_LEN]);
        let lengths = [
            parts.q.into(),
            parts.reg_id,
            length(parts.contact),
            length(parts.params),
            instance_at.map_or(0, |at| at + 1),
            length(parts.instance),
            length(parts.call_id),
            length(parts.path),
            length(user_agent),
        ];
        for number in lengths {
            put_varint(&mut buffer, number);
        }
        for address in [parts.flow.local, parts.flow.peer] {
            let (bytes, len) = encode_address(address);
            buffer.extend_from_slice(&bytes[..len]);
        }
        buffer.extend_from_slice(parts.contact);
        buffer.extend_from_slice(parts.params);
        if instance_at.is_none() {
            buffer.extend_from_slice(parts.instance);
        }
        for text in [parts.call_id, parts.path, user_agent] {
            buffer.extend_from_slice(text);
        }
        write_fixed(
            &mut buffer,
            parts.expires,
            parts.cseq,
            parts.flow,
            parts.behind_nat,
        );
        Self {
            packed: buffer.as_slice().into(),
        }
    }

    /// Unpacks them.
    #[must_use]
    pub fn parts(&self) -> BindingParts<'_> {
        self.unpack().0
    }

    /// When it ends.
    #[must_use]
    pub fn expires(&self) -> Wall {
        Wall(u64_at(&self.packed, EXPIRES_AT))
    }

    /// A refresh that changes nothing but these: in place, no allocation when the Call-ID and the addresses are as long as before.
    pub fn refresh(&mut self, call_id: &[u8], cseq: u32, expires: Wall, flow: Flow) {
        let (old, places) = self.unpack();
        let same_size = old.call_id.len() == call_id.len()
            && old.flow.local.is_ipv6() == flow.local.is_ipv6()
            && old.flow.peer.is_ipv6() == flow.peer.is_ipv6();
        if !same_size {
            *self = Self::new(&BindingParts {
                call_id,
                cseq,
                expires,
                flow,
                ..old
            });
            return;
        }
        let behind_nat = old.behind_nat;
        self.packed[places.call_id..places.call_id + call_id.len()].copy_from_slice(call_id);
        let mut at = places.addresses;
        for address in [flow.local, flow.peer] {
            let (bytes, len) = encode_address(address);
            self.packed[at..at + len].copy_from_slice(&bytes[..len]);
            at += len;
        }
        write_fixed(&mut self.packed, expires, cseq, flow, behind_nat);
    }

    fn unpack(&self) -> (BindingParts<'_>, Places) {
        unpack(&self.packed).expect("packed by `new`, or checked by `from_packed`")
    }

    /// The form that the journal keeps.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// From the journal's form; `None` when the bytes are not a binding. The connection is forgotten: it did not survive.
    pub(crate) fn from_packed(packed: &[u8]) -> Option<Self> {
        unpack(packed)?;
        let mut binding = Self {
            packed: packed.into(),
        };
        binding.packed[CONNECTION_AT..CONNECTION_AT + 8].fill(0);
        Some(binding)
    }
}

impl std::fmt::Debug for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.parts().fmt(f)
    }
}

/// The bindings of one address-of-record, oldest first, while [`crate::Location::update`] holds them. Expired ones are gone already.
pub struct Bindings<'a> {
    pub(crate) list: &'a mut List,
    pub(crate) changed: bool,
}

impl Bindings<'_> {
    /// They.
    #[must_use]
    pub fn list(&self) -> &[Binding] {
        self.list
    }

    /// To change one in place; marks the address-of-record as changed.
    ///
    /// # Panics
    /// When there is none at `index`.
    pub fn at(&mut self, index: usize) -> &mut Binding {
        self.changed = true;
        &mut self.list[index]
    }

    /// Adds one.
    pub fn push(&mut self, binding: Binding) {
        self.changed = true;
        self.list.push(binding);
    }

    /// Removes one.
    ///
    /// # Panics
    /// When there is none at `index`.
    pub fn remove(&mut self, index: usize) {
        self.changed = true;
        self.list.remove(index);
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.changed |= !self.list.is_empty();
        self.list.clear();
    }
}

// Packed form, little-endian: the fixed part below, nine variable-length numbers (q, reg-id, lengths), local and peer address, text.
const EXPIRES_AT: usize = 0;
const CONNECTION_AT: usize = 8;
const CSEQ_AT: usize = 16;
const LISTENER_AT: usize = 20;
const FLAGS_AT: usize = 22;
const FIXED_LEN: usize = 23;

// Flags: the transport in the low three bits, then these.
const TRANSPORT_MASK: u8 = 0b0111;
const BEHIND_NAT: u8 = 0b1000;
const LOCAL_IPV6: u8 = 0b1_0000;
const PEER_IPV6: u8 = 0b10_0000;

const ADDRESS_V4_LEN: usize = 4 + 2;
const ADDRESS_V6_LEN: usize = 16 + 2 + 4;
const USER_AGENT_LEN_MAX: usize = 64;

fn write_fixed(packed: &mut [u8], expires: Wall, cseq: u32, flow: Flow, behind_nat: bool) {
    packed[EXPIRES_AT..EXPIRES_AT + 8].copy_from_slice(&expires.0.to_le_bytes());
    packed[CONNECTION_AT..CONNECTION_AT + 8].copy_from_slice(&flow.connection.to_le_bytes());
    packed[CSEQ_AT..CSEQ_AT + 4].copy_from_slice(&cseq.to_le_bytes());
    packed[LISTENER_AT..LISTENER_AT + 2].copy_from_slice(&flow.listener.to_le_bytes());
    packed[FLAGS_AT] = flow.transport as u8
        | if behind_nat { BEHIND_NAT } else { 0 }
        | if flow.local.is_ipv6() { LOCAL_IPV6 } else { 0 }
        | if flow.peer.is_ipv6() { PEER_IPV6 } else { 0 };
}

/// Where in the packed form stands what a refresh changes.
struct Places {
    addresses: usize,
    call_id: usize,
}

fn unpack(packed: &[u8]) -> Option<(BindingParts<'_>, Places)> {
    if packed.len() < FIXED_LEN {
        return None;
    }
    let flags = packed[FLAGS_AT];
    let rest = &mut &packed[FIXED_LEN..];
    let q = u16::try_from(take_varint(rest)?).ok()?;
    let reg_id = take_varint(rest)?;
    let contact_len = take_varint(rest)?;
    let params_len = take_varint(rest)?;
    let instance_at = take_varint(rest)?;
    let instance_len = take_varint(rest)?;
    let call_id_len = take_varint(rest)?;
    let path_len = take_varint(rest)?;
    let user_agent_len = take_varint(rest)?;
    let addresses = packed.len() - rest.len();
    let local = take_address(rest, flags & LOCAL_IPV6 != 0)?;
    let peer = take_address(rest, flags & PEER_IPV6 != 0)?;
    let contact = take(rest, contact_len)?;
    let params = take(rest, params_len)?;
    let instance = match instance_at {
        0 => take(rest, instance_len)?,
        at => take(&mut params.get(at as usize - 1..)?, instance_len)?,
    };
    let places = Places {
        addresses,
        call_id: packed.len() - rest.len(),
    };
    let call_id = take(rest, call_id_len)?;
    let path = take(rest, path_len)?;
    let user_agent = take(rest, user_agent_len)?;
    if !rest.is_empty() {
        return None;
    }
    let parts = BindingParts {
        contact,
        params,
        instance,
        reg_id,
        q,
        call_id,
        cseq: u32_at(packed, CSEQ_AT),
        expires: Wall(u64_at(packed, EXPIRES_AT)),
        flow: Flow {
            transport: Transport::from_number(flags & TRANSPORT_MASK)?,
            listener: u16::from_le_bytes([packed[LISTENER_AT], packed[LISTENER_AT + 1]]),
            connection: u64_at(packed, CONNECTION_AT),
            local,
            peer,
        },
        behind_nat: flags & BEHIND_NAT != 0,
        path,
        user_agent,
    };
    Some((parts, places))
}

/// Where the instance stands within the parameters, as it nearly always does: then it is not stored twice.
fn find(params: &[u8], instance: &[u8]) -> Option<u32> {
    if instance.is_empty() {
        return None;
    }
    let at = params.windows(instance.len()).position(|w| w == instance)?;
    u32::try_from(at).ok().filter(|at| *at < u32::MAX)
}

fn length(text: &[u8]) -> u32 {
    u32::try_from(text.len()).expect("a part of a message, which is far shorter")
}

fn put_varint(buffer: &mut impl Extend<u8>, mut number: u32) {
    while number >= 0x80 {
        buffer.extend([number as u8 | 0x80]);
        number >>= 7;
    }
    buffer.extend([number as u8]);
}

fn take_varint(rest: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        number |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn encode_address(address: SocketAddr) -> ([u8; ADDRESS_V6_LEN], usize) {
    let mut bytes = [0; ADDRESS_V6_LEN];
    match address {
        SocketAddr::V4(v4) => {
            bytes[..4].copy_from_slice(&v4.ip().octets());
            bytes[4..6].copy_from_slice(&v4.port().to_le_bytes());
            (bytes, ADDRESS_V4_LEN)
        }
        SocketAddr::V6(v6) => {
            bytes[..16].copy_from_slice(&v6.ip().octets());
            bytes[16..18].copy_from_slice(&v6.port().to_le_bytes());
            bytes[18..].copy_from_slice(&v6.scope_id().to_le_bytes());
            (bytes, ADDRESS_V6_LEN)
        }
    }
}

fn take_address(rest: &mut &[u8], ipv6: bool) -> Option<SocketAddr> {
    if ipv6 {
        let bytes: [u8; ADDRESS_V6_LEN] = take(rest, ADDRESS_V6_LEN as u32)?.try_into().ok()?;
        let ip: [u8; 16] = bytes[..16].try_into().ok()?;
        let port = u16::from_le_bytes([bytes[16], bytes[17]]);
        let scope_id = u32_at(&bytes, 18);
        Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope_id).into())
    } else {
        let bytes: [u8; ADDRESS_V4_LEN] = take(rest, ADDRESS_V4_LEN as u32)?.try_into().ok()?;
        let ip = Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]);
        Some(SocketAddrV4::new(ip, u16::from_le_bytes([bytes[4], bytes[5]])).into())
    }
}

fn take<'a>(rest: &mut &'a [u8], len: u32) -> Option<&'a [u8]> {
    let (text, tail) = rest.split_at_checked(len as usize)?;
    *rest = tail;
    Some(text)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTANCE: &[u8] = b"<urn:uuid:00000000-0000-1000-8000-000a95a0e128>";
    const PARAMS: &[u8] = b";+sip.instance=\"<urn:uuid:00000000-0000-1000-8000-000a95a0e128>\"";

    fn flow(local: &str, peer: &str, connection: u64) -> Flow {
        Flow {
            transport: Transport::Tcp,
            listener: 3,
            connection,
            local: local.parse().unwrap(),
            peer: peer.parse().unwrap(),
        }
    }

    fn parts() -> BindingParts<'static> {
        BindingParts {
            contact: b"sip:alice@192.0.2.10:5060;transport=tcp",
            params: PARAMS,
            instance: INSTANCE,
            reg_id: 1,
            q: 700,
            call_id: b"a84b4c76e66710@pc33",
            cseq: u32::MAX,
            expires: Wall(1_764_000_000_123),
            flow: flow(
                "192.0.2.1:5060",
                "198.51.100.7:49152",
                0x0100_0002_0000_0003,
            ),
            behind_nat: true,
            path: b"<sip:edge.example.com;lr>",
            user_agent: b"Phone/1.0",
        }
    }

    fn check(parts: &BindingParts<'_>) {
        assert_eq!(Binding::new(parts).parts(), *parts);
    }

    #[test]
    fn what_is_packed_reads_the_same() {
        check(&parts());
        check(&BindingParts {
            instance: b"",
            ..parts()
        });
        check(&BindingParts {
            params: b"",
            ..parts()
        });
        check(&BindingParts {
            path: b"",
            user_agent: b"",
            call_id: b"",
            reg_id: u32::MAX,
            ..parts()
        });
        let v6 = flow("[2001:db8::1]:5060", "[fe80::1%7]:5061", 9);
        check(&BindingParts {
            flow: v6,
            ..parts()
        });
        let long = vec![b'x'; 70_000];
        check(&BindingParts {
            contact: &long,
            ..parts()
        });
    }

    #[test]
    fn an_instance_within_the_parameters_is_stored_once() {
        let with = Binding::new(&parts());
        let without = Binding::new(&BindingParts {
            instance: b"",
            ..parts()
        });
        assert_eq!(with.packed.len(), without.packed.len());
    }

    #[test]
    fn a_refresh_changes_what_it_names_and_nothing_else() {
        let v4 = flow("192.0.2.1:5060", "198.51.100.8:50000", 77);
        let v6 = flow("[2001:db8::1]:5060", "[2001:db8::2]:5061", 78);
        let cases: [(&[u8], Flow); 4] = [
            (b"a84b4c76e66710@pc33", v4),
            (b"b84b4c76e66710@pc34", v4),
            (b"short", v4),
            (b"a84b4c76e66710@pc33", v6),
        ];
        for instance in [INSTANCE, b"elsewhere", b""] {
            for (call_id, flow) in cases {
                let old = BindingParts {
                    instance,
                    ..parts()
                };
                let mut binding = Binding::new(&old);
                binding.refresh(call_id, 42, Wall(5), flow);
                let expected = BindingParts {
                    call_id,
                    cseq: 42,
                    expires: Wall(5),
                    flow,
                    ..old
                };
                assert_eq!(binding.parts(), expected);
                assert_eq!(binding, Binding::new(&expected));
            }
        }
    }

    #[test]
    fn packing_adds_less_than_50_bytes_to_the_text() {
        let parts = parts();
        let text = parts.contact.len()
            + parts.params.len()
            + parts.call_id.len()
            + parts.path.len()
            + parts.user_agent.len();
        let packed = Binding::new(&parts).packed.len();
        println!("{packed} bytes for {text} bytes of text");
        assert!(packed < text + 50);
    }

    #[test]
    fn a_long_user_agent_is_cut() {
        let binding = Binding::new(&BindingParts {
            user_agent: &[b'u'; 100],
            ..parts()
        });
        assert_eq!(binding.parts().user_agent, [b'u'; 64]);
    }

    #[test]
    fn every_cut_of_the_packed_form_is_refused() {
        let binding = Binding::new(&parts());
        for len in 0..binding.packed.len() {
            assert_eq!(Binding::from_packed(&binding.packed[..len]), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn bytes_that_are_no_binding_are_refused_and_never_panic(mut bytes: Vec<u8>, at: usize, byte: u8) {
            if let Some(binding) = Binding::from_packed(&bytes) {
                let _ = binding.parts();
            }
            bytes = Binding::new(&parts()).packed().to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            if let Some(binding) = Binding::from_packed(&bytes) {
                let _ = binding.parts();
            }
        }
    }

    #[test]
    fn a_recovered_binding_has_no_connection() {
        let recovered = Binding::from_packed(Binding::new(&parts()).packed()).unwrap();
        assert_eq!(recovered.parts().flow.connection, 0);
        assert_eq!(recovered.parts().contact, parts().contact);
    }
}
