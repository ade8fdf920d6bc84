use crate::{Params, ParseError, scan};
use std::io::Write as _;
use std::net::IpAddr;

/// URI scheme.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Scheme {
    Sip,
    Sips,
    Tel,
    Other,
}

/// A URI (RFC 3261 section 19.1), borrowed. For `tel` and others only `scheme` and `user` (all behind the
/// colon, parameters cut off for `tel`) are filled in, and `params` for `tel`.
///
/// Departures: the user part may hold characters that should have been escaped (`#`, UTF-8), since phones send them; host names
/// may hold underscores.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Uri<'a> {
    pub text: &'a [u8],
    pub scheme: Scheme,
    /// Before `@`, password cut off, still escaped, user parameters (`;phone-context=`) kept; `None` without `@`.
    pub user: Option<&'a [u8]>,
    pub password: Option<&'a [u8]>,
    /// IPv6 references keep their brackets.
    pub host: &'a [u8],
    pub port: Option<u16>,
    pub params: Params<'a>,
    /// Behind `?`.
    pub headers: &'a [u8],
}

/// More parameters or headers than this are not compared one by one: two such URIs are equal when their
/// texts are. It bounds the work that a hostile URI can cause.
const COMPARED_MAX: usize = 32;

impl<'a> Uri<'a> {
    /// # Errors
    /// Not a URI, or a sip URI that breaks the grammar.
    pub fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        Self::parts(text).ok_or(ParseError::RequestUri)
    }

    fn parts(text: &'a [u8]) -> Option<Self> {
        let colon = memchr::memchr(b':', text)?;
        let (scheme, rest) = (&text[..colon], &text[colon + 1..]);
        let contents = scan::uri_contents(text);
        if !scheme.first()?.is_ascii_alphabetic()
            || rest.is_empty()
            || contents & scan::URI_STOPPER != 0
        {
            return None;
        }
        let scheme = match scheme.len() {
            3 if scheme.eq_ignore_ascii_case(b"sip") => Scheme::Sip,
            4 if scheme.eq_ignore_ascii_case(b"sips") => Scheme::Sips,
            3 if scheme.eq_ignore_ascii_case(b"tel") => Scheme::Tel,
            _ if scheme.iter().all(|&b| is_scheme(b)) => Scheme::Other,
            _ => return None,
        };
        let mut uri = Self {
            text,
            scheme,
            user: Some(rest),
            password: None,
            host: &[],
            port: None,
            params: Params::default(),
            headers: &[],
        };
        match scheme {
            Scheme::Sip | Scheme::Sips => uri.sip_parts(rest, contents)?,
            Scheme::Tel => {
                let end = memchr::memchr(b';', rest).unwrap_or(rest.len());
                uri.user = Some(&rest[..end]);
                uri.params = Params::new(&rest[end..]);
            }
            Scheme::Other => {}
        }
        Some(uri)
    }

    /// `[ userinfo ] hostport uri-parameters [ headers ]`.
    fn sip_parts(&mut self, rest: &'a [u8], contents: u8) -> Option<()> {
        if contents & scan::PERCENT != 0 && !escapes_are_whole(rest) {
            return None;
        }
        let mut at = 0;
        self.user = None;
        if contents & scan::AT != 0
            && let Some(end) = memchr::memchr(b'@', rest)
        {
            let info = &rest[..end];
            let user_end = memchr::memchr(b':', info);
            self.user = Some(&info[..user_end.unwrap_or(end)]);
            self.password = user_end.map(|colon| &info[colon + 1..]);
            if self.user.is_some_and(<[u8]>::is_empty) {
                return None;
            }
            at = end + 1;
        }
        let host_end = at + scan::host_end(&rest[at..])?;
        self.host = &rest[at..host_end];
        at = host_end;
        if rest.get(at) == Some(&b':') {
            let start = at + 1;
            at = start;
            while at < rest.len() && rest[at].is_ascii_digit() {
                at += 1;
            }
            self.port = Some(scan::port(&rest[start..at])?);
        }
        let question = memchr::memchr(b'?', &rest[at..]).map(|n| at + n);
        let params_end = question.unwrap_or(rest.len());
        self.params = Params::new(&rest[at..params_end]);
        if let Some(question) = question {
            self.headers = &rest[question + 1..];
        }
        matches!(rest.get(at), None | Some(b';' | b'?')).then_some(())
    }

    /// The host as an address, where it is one (brackets removed).
    #[must_use]
    pub fn host_ip(&self) -> Option<IpAddr> {
        scan::host_ip(self.host)
    }

    /// Appends the address-of-record (RFC 3261 section 10.3 item 5): `user@host`, user unescaped where escaping was
    /// not needed and otherwise escaped one way, user parameters kept, host in lower case, no scheme, no port, no parameters, no password.
    /// Of a `tel` URI the number without visual separators (RFC 3966 section 5.1.1), of others all behind the scheme.
    pub fn write_aor(&self, out: &mut Vec<u8>) {
        self.write_user(out);
        if !matches!(self.scheme, Scheme::Sip | Scheme::Sips) {
            return;
        }
        if self.user.is_some() {
            out.push(b'@');
        }
        match self.host_ip() {
            Some(IpAddr::V6(ip)) => {
                // Writing to a `Vec` does not fail.
                let _ = write!(out, "[{ip}]");
            }
            _ => out.extend(self.host.iter().map(u8::to_ascii_lowercase)),
        }
    }

    /// Appends only the user as in [`Self::write_aor`]; nothing without a user.
    pub fn write_user(&self, out: &mut Vec<u8>) {
        let user = self.user.unwrap_or_default();
        if self.scheme == Scheme::Tel {
            out.extend(user.iter().filter(|b| !is_visual_separator(**b)));
            return;
        }
        for unit in units(user) {
            let b = unit.byte;
            if scan::is_unreserved(b) || scan::is_user_unreserved(b) {
                out.push(b);
            } else {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                out.extend([b'%', HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]]);
            }
        }
    }

    /// Equality of RFC 3261 section 19.1.4 (escapes, case of host, order of parameters, defaults), with addresses compared by
    /// value (RFC 5954 section 4.2). `tel` as RFC 3966 section 4 says, other schemes byte by byte.
    ///
    /// Departures: URIs with more than 32 parameters or headers are equal only when they are the same bytes.
    #[must_use]
    pub fn equals(&self, other: &Uri<'_>) -> bool {
        if self.scheme != other.scheme {
            return false;
        }
        match self.scheme {
            Scheme::Sip | Scheme::Sips => self.text == other.text || self.sip_equals(other),
            Scheme::Tel => {
                let (a, b) = (
                    self.user.unwrap_or_default(),
                    other.user.unwrap_or_default(),
                );
                self.text == other.text
                    || number_of(a).eq(number_of(b))
                        && params_equal(&self.params, &other.params, |_| true)
            }
            Scheme::Other => {
                let split = |text: &[u8]| memchr::memchr(b':', text).unwrap_or_default();
                let (a, b) = (split(self.text), split(other.text));
                self.text[..a].eq_ignore_ascii_case(&other.text[..b])
                    && self.text[a..] == other.text[b..]
            }
        }
    }

    fn sip_equals(&self, other: &Uri<'_>) -> bool {
        let hosts_equal = match (self.host_ip(), other.host_ip()) {
            (None, None) => self.host.eq_ignore_ascii_case(other.host),
            (a, b) => a == b,
        };
        hosts_equal
            && self.port == other.port
            && optional_equal(self.user, other.user)
            && optional_equal(self.password, other.password)
            && params_equal(&self.params, &other.params, never_ignored)
            && headers_equal(self.headers, other.headers)
    }
}

/// One character of a component: escapes of what is not reserved equal the character itself.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unit {
    byte: u8,
    reserved_escaped: bool,
}

fn units(text: &[u8]) -> impl Iterator<Item = Unit> + Clone + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let &first = text.get(at)?;
        let escaped = scan::escape(text, at);
        at += if escaped.is_some() { 3 } else { 1 };
        let byte = escaped.unwrap_or(first);
        Some(Unit {
            byte,
            reserved_escaped: escaped.is_some() && scan::is_reserved(byte),
        })
    })
}

fn units_equal(a: &[u8], b: &[u8]) -> bool {
    a == b || units(a).eq(units(b))
}

fn units_equal_any_case(a: &[u8], b: &[u8]) -> bool {
    let lower = |mut unit: Unit| {
        unit.byte = unit.byte.to_ascii_lowercase();
        unit
    };
    units(a).map(lower).eq(units(b).map(lower))
}

fn optional_equal(a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => units_equal(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Parameters that make URIs differ when only one has them.
fn never_ignored(name: &[u8]) -> bool {
    [&b"user"[..], b"ttl", b"method", b"maddr", b"transport"]
        .iter()
        .any(|known| units_equal_any_case(name, known))
}

/// Whether each parameter that both have is equal, and no other is one that `counts`.
fn params_equal(a: &Params<'_>, b: &Params<'_>, counts: fn(&[u8]) -> bool) -> bool {
    if a.iter().nth(COMPARED_MAX).is_some() || b.iter().nth(COMPARED_MAX).is_some() {
        return false;
    }
    let agrees = |one: &Params<'_>, all: &Params<'_>| {
        one.iter().all(|param| {
            match all
                .iter()
                .find(|other| units_equal_any_case(param.name, other.name))
            {
                None => !counts(param.name),
                Some(other) => match (param.value, other.value) {
                    (Some(a), Some(b)) => units_equal_any_case(a, b),
                    (a, b) => a.is_none() && b.is_none(),
                },
            }
        })
    };
    agrees(a, b) && agrees(b, a)
}

/// Whether both have the same headers, in any order.
fn headers_equal(a: &[u8], b: &[u8]) -> bool {
    fn all(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
        text.split(|&b| b == b'&').map(|header| {
            let end = memchr::memchr(b'=', header).unwrap_or(header.len());
            (&header[..end], header.get(end + 1..).unwrap_or_default())
        })
    }
    if all(a).nth(COMPARED_MAX).is_some() || all(b).nth(COMPARED_MAX).is_some() {
        return false;
    }
    let within = |a, b| {
        all(a).all(|(name, value)| {
            all(b).any(|(n, v)| units_equal_any_case(name, n) && units_equal(value, v))
        })
    };
    within(a, b) && within(b, a)
}

/// Whether each `%` begins an escape.
fn escapes_are_whole(text: &[u8]) -> bool {
    memchr::memchr_iter(b'%', text).all(|at| scan::escape(text, at).is_some())
}

const fn is_scheme(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')
}

const fn is_visual_separator(b: u8) -> bool {
    matches!(b, b'-' | b'.' | b'(' | b')')
}

fn number_of(user: &[u8]) -> impl Iterator<Item = u8> + '_ {
    user.iter()
        .filter(|b| !is_visual_separator(**b))
        .map(u8::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri<'_> {
        Uri::parse(text.as_bytes()).unwrap_or_else(|_| panic!("{text} is a URI"))
    }

    fn aor(text: &str) -> String {
        let mut out = Vec::new();
        uri(text).write_aor(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_part_of_a_sip_uri_is_found() {
        let u = uri("SIPS:a;b=c:p:w@[2001:DB8::1]:5071;transport=tcp;lr?x=y&z=@w");
        assert_eq!(u.scheme, Scheme::Sips);
        assert_eq!(u.user, Some(&b"a;b=c"[..]));
        assert_eq!(u.password, Some(&b"p:w"[..]));
        assert_eq!(u.host, b"[2001:DB8::1]");
        assert_eq!(u.host_ip(), Some("2001:db8::1".parse().unwrap()));
        assert_eq!(u.port, Some(5071));
        assert_eq!(u.params.value("transport"), Some(&b"tcp"[..]));
        assert!(u.params.has("lr"));
        assert_eq!(u.headers, b"x=y&z=@w");
        let u = uri("sip:example.com");
        assert_eq!((u.user, u.port, u.host), (None, None, &b"example.com"[..]));
    }

    #[test]
    fn other_schemes_are_kept_whole() {
        let u = uri("tel:+49-30;phone-context=x");
        assert_eq!((u.scheme, u.user), (Scheme::Tel, Some(&b"+49-30"[..])));
        assert_eq!(u.params.value("phone-context"), Some(&b"x"[..]));
        let u = uri("urn:service:sos");
        assert_eq!(
            (u.scheme, u.user),
            (Scheme::Other, Some(&b"service:sos"[..]))
        );
    }

    #[test]
    fn what_is_no_uri_is_refused() {
        for bad in [
            "",
            "sip",
            "sip:",
            ":x",
            "1:x",
            "s%p:x",
            "sip:@b",
            "sip:a@",
            "sip:a@b@c",
            "sip:a@b:",
            "sip:a@b:65536",
            "sip:a@b:5x",
            "sip:a b@c",
            "<sip:a@b>",
            "sip:2001:db8::10",
            "sip:[2001:db8::1",
            "sip:[1::g]",
            "sip:%4@b",
            "sip:%zz@b",
            "sip:a@b/c",
            "sip:a@b\r\n",
        ] {
            assert!(Uri::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_address_of_record_has_one_spelling() {
        assert_eq!(aor("sip:%61lice@EXAMPLE.com:5070;x=y"), "alice@example.com");
        assert_eq!(aor("sips:alice:secret@example.com"), "alice@example.com");
        assert_eq!(aor("sip:%2b49%3Bx@h"), "+49;x@h");
        assert_eq!(aor("sip:#12@h"), "%2312@h");
        assert_eq!(aor("sip:%2312@h"), "%2312@h");
        assert_eq!(aor("sip:a%40b%00@h"), "a%40b%00@h");
        assert_eq!(aor("sip:Alice@[2001:DB8:0::1]"), "Alice@[2001:db8::1]");
        assert_eq!(aor("sip:example.com"), "example.com");
        assert_eq!(aor("tel:+49(30)12-3"), "+4930123");
    }

    #[test]
    fn uris_that_the_rfc_calls_equal_are_equal() {
        for (a, b) in [
            (
                "sip:%61lice@atlanta.com;transport=TCP",
                "sip:alice@AtLanTa.CoM;Transport=tcp",
            ),
            ("sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5"),
            ("sip:carol@chicago.com", "sip:carol@chicago.com;security=on"),
            (
                "sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com",
                "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com",
            ),
            (
                "sip:alice@atlanta.com?subject=project%20x&priority=urgent",
                "sip:alice@atlanta.com?priority=urgent&subject=project%20x",
            ),
            ("sip:a@[2001:db8::1]", "sip:a@[2001:DB8:0:0::1]"),
            ("tel:+49-30-12", "tel:+493012"),
            ("URN:service:sos", "urn:service:sos"),
        ] {
            assert!(uri(a).equals(&uri(b)), "{a} {b}");
            assert!(uri(b).equals(&uri(a)), "{b} {a}");
        }
    }

    #[test]
    fn uris_that_the_rfc_calls_different_differ() {
        for (a, b) in [
            (
                "SIP:ALICE@AtLanTa.CoM;Transport=udp",
                "sip:alice@AtLanTa.CoM;Transport=UDP",
            ),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com:5060"),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp"),
            (
                "sip:bob@biloxi.com",
                "sip:bob@biloxi.com:6000;transport=tcp",
            ),
            (
                "sip:carol@chicago.com",
                "sip:carol@chicago.com?Subject=next%20meeting",
            ),
            ("sip:bob@phone21.boxesbybob.com", "sip:bob@192.0.2.4"),
            (
                "sip:carol@chicago.com;security=on",
                "sip:carol@chicago.com;security=off",
            ),
            ("sip:a;b@h", "sip:a%3Bb@h"),
            ("sip:a@h", "sips:a@h"),
            ("sip:a:x@h", "sip:a@h"),
            ("sip:a@h;maddr=x", "sip:a@h"),
        ] {
            assert!(!uri(a).equals(&uri(b)), "{a} {b}");
            assert!(!uri(b).equals(&uri(a)), "{b} {a}");
        }
    }
}
