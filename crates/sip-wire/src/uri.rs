use crate::{Params, ParseError};

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
/// colon, parameters cut off for `tel`) are filled in.
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

impl<'a> Uri<'a> {
    /// # Errors
    /// Not a URI, or a sip URI that breaks the grammar.
    pub fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        let _ = text;
        todo!()
    }

    /// The host as an address, where it is one (brackets removed).
    #[must_use]
    pub fn host_ip(&self) -> Option<std::net::IpAddr> {
        todo!()
    }

    /// Appends the address-of-record (RFC 3261 section 10.3 item 5): `user@host`, user unescaped where escaping was
    /// not needed and otherwise escaped one way, user parameters kept, host in lower case, no scheme, no port, no parameters, no password.
    pub fn write_aor(&self, out: &mut Vec<u8>) {
        let _ = out;
        todo!()
    }

    /// Appends only the user as in [`Self::write_aor`]; nothing without a user.
    pub fn write_user(&self, out: &mut Vec<u8>) {
        let _ = out;
        todo!()
    }

    /// Equality of RFC 3261 section 19.1.4 (escapes, case of host, order of parameters, defaults).
    #[must_use]
    pub fn equals(&self, other: &Uri<'_>) -> bool {
        let _ = other;
        todo!()
    }
}
