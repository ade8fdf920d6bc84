use crate::{params, scan};

/// Digest credentials (RFC 3261 section 22.4, RFC 7616), quotes removed. Empty where absent.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Credentials<'a> {
    pub username: &'a [u8],
    pub realm: &'a [u8],
    pub nonce: &'a [u8],
    pub uri: &'a [u8],
    pub response: &'a [u8],
    pub algorithm: &'a [u8],
    pub cnonce: &'a [u8],
    pub opaque: &'a [u8],
    pub qop: &'a [u8],
    pub nc: &'a [u8],
}

impl<'a> Credentials<'a> {
    /// Parses the value of Authorization or Proxy-Authorization; `None` when the scheme is not Digest or it is malformed.
    /// Quotes may be there or not, whatever the parameter; one that comes twice makes the value malformed.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let mut at = scan::skip_space(value, 0);
        let scheme_end = scan::skip_token(value, at);
        if !value[at..scheme_end].eq_ignore_ascii_case(b"Digest") {
            return None;
        }
        let mut credentials = Self::default();
        at = scan::skip_space(value, scheme_end);
        while at < value.len() {
            let name = at;
            let name_end = scan::skip_token(value, name);
            at = scan::skip_space(value, name_end);
            if name == name_end || value.get(at) != Some(&b'=') {
                return None;
            }
            let text = scan::skip_space(value, at + 1);
            let end = value_end(value, text)?;
            credentials.set(&value[name..name_end], params::unquote(&value[text..end]))?;
            at = skip_comma(value, end)?;
        }
        Some(credentials)
    }

    /// `None` when the parameter was there already.
    fn set(&mut self, name: &[u8], value: &'a [u8]) -> Option<()> {
        let field = match name.len() {
            2 if name.eq_ignore_ascii_case(b"nc") => &mut self.nc,
            3 if name.eq_ignore_ascii_case(b"uri") => &mut self.uri,
            3 if name.eq_ignore_ascii_case(b"qop") => &mut self.qop,
            5 if name.eq_ignore_ascii_case(b"realm") => &mut self.realm,
            5 if name.eq_ignore_ascii_case(b"nonce") => &mut self.nonce,
            6 if name.eq_ignore_ascii_case(b"cnonce") => &mut self.cnonce,
            6 if name.eq_ignore_ascii_case(b"opaque") => &mut self.opaque,
            8 if name.eq_ignore_ascii_case(b"username") => &mut self.username,
            8 if name.eq_ignore_ascii_case(b"response") => &mut self.response,
            9 if name.eq_ignore_ascii_case(b"algorithm") => &mut self.algorithm,
            _ => return Some(()),
        };
        field.is_empty().then(|| *field = value)
    }
}

fn value_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) == Some(&b'"') {
        return scan::quoted_end(text, at);
    }
    let len = text[at..]
        .iter()
        .position(|&b| b == b',' || scan::is_space(b))
        .unwrap_or(text.len() - at);
    Some(at + len)
}

/// Past the comma behind a parameter, or to the end; `None` when something else stands there.
fn skip_comma(text: &[u8], at: usize) -> Option<usize> {
    let at = scan::skip_space(text, at);
    match text.get(at) {
        None => Some(at),
        Some(b',') => Some(scan::skip_space(text, at + 1)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_whatever_their_quoting() {
        let c = Credentials::parse(
            b"digest Username=\"al,ice\", realm = \"a b\" ,\r\n nonce=\"n\", uri=\"sip:x;transport=tcp\",\
              response=\"r\",algorithm=\"md5\",qop=\"auth\", nc=00000001, cnonce=\"c\", opaque=\"\", extra=1",
        )
        .unwrap();
        assert_eq!(c.username, b"al,ice");
        assert_eq!(c.realm, b"a b");
        assert_eq!(c.nonce, b"n");
        assert_eq!(c.uri, b"sip:x;transport=tcp");
        assert_eq!(c.response, b"r");
        assert_eq!(c.algorithm, b"md5");
        assert_eq!(c.qop, b"auth");
        assert_eq!(c.nc, b"00000001");
        assert_eq!(c.cnonce, b"c");
        assert_eq!(c.opaque, b"");
    }

    #[test]
    fn other_schemes_and_malformed_credentials_are_none() {
        for bad in [
            "",
            "Basic abc",
            "Digest username",
            "Digest username=\"x",
            "Digest =x",
            "Digest username=\"x\" realm=\"y\"",
            "Digest realm=\"x\", realm=\"y\"",
        ] {
            assert!(Credentials::parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
