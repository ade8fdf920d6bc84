use super::{CONTACT_BYTES_MAX, Refusal, bad, too_large};
use crate::Domains;
use location::{Binding, BindingParts, Flow};
use sip_wire::{NameAddr, Params, Scheme, Uri};
use smallvec::SmallVec;
use std::net::IpAddr;

/// One Contact of a REGISTER.
pub(super) struct Contact<'a> {
    pub(super) uri: Uri<'a>,
    /// Header parameters without `expires`, as they are kept.
    pub(super) params: SmallVec<[u8; 128]>,
    /// `+sip.instance` without quotes; empty without.
    pub(super) instance: &'a [u8],
    /// `reg-id`; 0 without.
    pub(super) reg_id: u32,
    /// Preference in thousandths.
    pub(super) q: u16,
    /// Its own `expires`, seconds.
    pub(super) asked_s: Option<u32>,
    /// How long the binding will last, seconds; 0: it is removed.
    pub(super) granted_s: u32,
    /// Where the request came from.
    source: IpAddr,
}

/// What a malformed `expires` of a Contact counts as (RFC 3261 section 20.10).
const EXPIRES_MALFORMED_S: u32 = 3600;
/// The preference of a Contact without `q`.
const Q_DEFAULT: u16 = 1000;

impl<'a> Contact<'a> {
    pub(super) fn read(text: &'a [u8], flow: &Flow, domains: &Domains) -> Result<Self, Refusal> {
        if text.len() > CONTACT_BYTES_MAX {
            return Err(too_large("Contact Too Long"));
        }
        let address = NameAddr::parse(text).map_err(|()| bad("Malformed Contact"))?;
        let uri = address.uri().map_err(|_| bad("Malformed URI In Contact"))?;
        if !matches!(uri.scheme, Scheme::Sip | Scheme::Sips) {
            return Err(bad("Contact Must Be A SIP URI"));
        }
        if is_ourselves(&uri, flow, domains) {
            return Err(bad("Contact Points At This Server"));
        }
        let mut contact = Self {
            uri,
            params: SmallVec::new(),
            instance: b"",
            reg_id: 0,
            q: Q_DEFAULT,
            asked_s: None,
            granted_s: 0,
            source: flow.peer.ip(),
        };
        contact.read_params(address.params)?;
        Ok(contact)
    }

    fn read_params(&mut self, params: Params<'a>) -> Result<(), Refusal> {
        for param in params.iter() {
            let value = param.value.unwrap_or_default();
            if param.name.eq_ignore_ascii_case(b"expires") {
                self.asked_s = Some(number(unquoted(value)).unwrap_or(EXPIRES_MALFORMED_S));
                continue;
            }
            if param.name.eq_ignore_ascii_case(b"q") {
                self.q = thousandths(value).ok_or(bad("Malformed q In Contact"))?;
            } else if param.name.eq_ignore_ascii_case(b"+sip.instance") {
                self.instance = unquoted(value);
            } else if param.name.eq_ignore_ascii_case(b"reg-id") {
                self.reg_id = number(value).ok_or(bad("Malformed reg-id In Contact"))?;
            }
            self.params.push(b';');
            self.params.extend_from_slice(param.name);
            if let Some(value) = param.value {
                self.params.push(b'=');
                self.params.extend(on_one_line(value));
            }
        }
        Ok(())
    }

    /// Its binding: the one of the same phone and flow (RFC 5626 section 6), otherwise the one with the same URI (RFC 3261
    /// section 19.1.4). The cheap comparisons first.
    pub(super) fn find(&self, bindings: &[Binding]) -> Option<usize> {
        let same = |b: &BindingParts<'_>| {
            self.is_same_phone(b) || b.contact == self.uri.text && !self.is_other_phone(b)
        };
        let equal = |b: &BindingParts<'_>| {
            Uri::parse(b.contact).is_ok_and(|uri| uri.equals(&self.uri)) && !self.is_other_phone(b)
        };
        let position = |is: &dyn Fn(&BindingParts<'_>) -> bool| {
            bindings.iter().position(|binding| is(&binding.parts()))
        };
        position(&same).or_else(|| position(&equal))
    }

    fn is_same_phone(&self, binding: &BindingParts<'_>) -> bool {
        !self.instance.is_empty()
            && self.instance == binding.instance
            && self.reg_id == binding.reg_id
    }

    /// Two phones may have the same private address, each behind a NAT of its own.
    fn is_other_phone(&self, binding: &BindingParts<'_>) -> bool {
        !self.instance.is_empty()
            && !binding.instance.is_empty()
            && self.instance != binding.instance
            && self.source != binding.flow.peer.ip()
    }

    /// Whether the contact does not say where the phone is: another host than the request came from, or another port though the phone takes
    /// answers where it sends from (`is_symmetric`, RFC 3581). An old phone that sends from a port of its own is where its Contact says.
    pub(super) fn is_behind_nat(&self, flow: &Flow, is_symmetric: impl Fn() -> bool) -> bool {
        flow.transport.is_reliable()
            || self.uri.host_ip() != Some(flow.peer.ip().to_canonical())
            || port(&self.uri) != flow.peer.port() && is_symmetric()
    }
}

/// A binding to ourselves would be a loop. A private address that is like ours may be that of a phone behind its own NAT.
fn is_ourselves(uri: &Uri<'_>, flow: &Flow, domains: &Domains) -> bool {
    if let Some(ip) = uri.host_ip() {
        return ip == flow.local.ip().to_canonical()
            && port(uri) == flow.local.port()
            && !is_private(ip);
    }
    let named = |name: &String| uri.host.eq_ignore_ascii_case(name.as_bytes());
    uri.port.is_none_or(|port| domains.ports.contains(&port))
        && domains.names.iter().chain(&domains.aliases).any(named)
}

const fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

fn port(uri: &Uri<'_>) -> u16 {
    let default = if uri.scheme == Scheme::Sips {
        5061
    } else {
        5060
    };
    uri.port.unwrap_or(default)
}

/// A number of digits; saturates.
fn number(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0_u32, |n, digit| {
        n.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
    }))
}

/// qvalue (RFC 3261 section 25.1) in thousandths; digits beyond are cut off.
fn thousandths(text: &[u8]) -> Option<u16> {
    let (whole, fraction) = match text.iter().position(|c| *c == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &b""[..]),
    };
    if !fraction.iter().all(u8::is_ascii_digit) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let digit = |i: usize| fraction.get(i).map_or(0, |c| u16::from(c - b'0'));
    let fraction = digit(0) * 100 + digit(1) * 10 + digit(2);
    match (whole, fraction) {
        (b"" | b"0", _) => Some(fraction),
        (b"1", 0) => Some(1000),
        _ => None,
    }
}

/// Text without the line ends of folding: what is kept is written into lines of others.
pub(super) fn on_one_line(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    text.iter()
        .map(|byte| if byte.is_ascii_control() { b' ' } else { *byte })
}

fn unquoted(value: &[u8]) -> &[u8] {
    value
        .strip_prefix(b"\"")
        .and_then(|v| v.strip_suffix(b"\""))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_is_read_to_thousandths() {
        for (text, q) in [
            ("1", Some(1000)),
            ("1.0", Some(1000)),
            ("1.000", Some(1000)),
            ("0", Some(0)),
            ("0.", Some(0)),
            ("0.7", Some(700)),
            ("0.123", Some(123)),
            ("0.1239", Some(123)),
            (".5", Some(500)),
            ("1.001", None),
            ("2", None),
            ("-1", None),
            ("", None),
            (".", None),
            ("0.x", None),
            ("0,5", None),
        ] {
            assert_eq!(thousandths(text.as_bytes()), q, "{text}");
        }
    }

    #[test]
    fn numbers_saturate() {
        assert_eq!(number(b"4294967296"), Some(u32::MAX));
        assert_eq!(number(b"99999999999999999999"), Some(u32::MAX));
        assert_eq!(number(b"-1"), None);
        assert_eq!(number(b""), None);
    }
}
