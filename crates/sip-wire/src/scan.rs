//! Characters and the few steps that every decoder takes.

/// `token` of RFC 3261 section 25.1.
pub(crate) const fn is_token(b: u8) -> bool {
    CLASS[b as usize] & TOKEN != 0
}

/// White space between tokens; CR and LF count, since a folded value still holds its line ends.
pub(crate) const fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\n')
}

/// What may stand unquoted behind `=` in a header parameter: more than a token, since hosts with
/// colons and brackets do (RFC 5118 section 4.5).
pub(crate) const fn is_param_value(b: u8) -> bool {
    CLASS[b as usize] & PARAM_VALUE != 0
}

/// What no URI may contain: controls, white space, quotes, angle brackets.
pub(crate) const fn is_uri_stopper(b: u8) -> bool {
    CLASS[b as usize] & URI_STOPPER != 0
}

/// What stands in a URI's text, as a set of [`URI_STOPPER`], [`PERCENT`] and [`AT`].
pub(crate) fn uri_contents(text: &[u8]) -> u8 {
    text.iter().fold(0, |all, &b| all | CLASS[usize::from(b)])
}

/// `hostname` of RFC 3261, and the underscore that real networks use.
pub(crate) const fn is_hostname(b: u8) -> bool {
    CLASS[b as usize] & HOSTNAME != 0
}

/// `unreserved`: equal to its escape wherever it stands in a URI (RFC 3261 section 19.1.2).
pub(crate) const fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')'
        )
}

/// `user-unreserved`: may stand in a user part without an escape, besides `unreserved`.
pub(crate) const fn is_user_unreserved(b: u8) -> bool {
    matches!(b, b'&' | b'=' | b'+' | b'$' | b',' | b';' | b'?' | b'/')
}

/// `reserved`: not equal to its escape (RFC 3261 section 19.1.4).
pub(crate) const fn is_reserved(b: u8) -> bool {
    matches!(
        b,
        b';' | b'/' | b'?' | b':' | b'@' | b'&' | b'=' | b'+' | b'$' | b','
    )
}

/// First offset from `at` on that is not white space.
pub(crate) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && is_space(text[at]) {
        at += 1;
    }
    at
}

/// First offset from `at` on that is no token character.
pub(crate) fn skip_token(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && is_token(text[at]) {
        at += 1;
    }
    at
}

/// `text[start..end]` without white space at its end, as the new end.
pub(crate) fn trim_end(text: &[u8], start: usize, mut end: usize) -> usize {
    while end > start && is_space(text[end - 1]) {
        end -= 1;
    }
    end
}

/// `text` without surrounding white space.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    let start = skip_space(text, 0);
    &text[start..trim_end(text, start, text.len())]
}

/// One past the closing quote of the quoted string that opens at `open`; `None` when it never closes.
pub(crate) fn quoted_end(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[found] == b'"' {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// A number of digits only, at least one; values beyond `u32` saturate.
pub(crate) fn number(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    let mut value = 0u32;
    for &b in text {
        if !b.is_ascii_digit() {
            return None;
        }
        value = value.saturating_mul(10).saturating_add(u32::from(b - b'0'));
    }
    Some(value)
}

/// A port, digits only.
pub(crate) fn port(text: &[u8]) -> Option<u16> {
    number(text).and_then(|n| u16::try_from(n).ok())
}

/// Whether `text` begins with `prefix`, any case.
pub(crate) fn starts_with_any_case(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len())
        .is_some_and(|front| front.eq_ignore_ascii_case(prefix))
}

/// The value of a hexadecimal digit.
pub(crate) const fn hex(b: u8) -> Option<u8> {
    match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        b'A'..=b'F' => Some(b - b'A' + 10),
        _ => None,
    }
}

/// The byte that `%HH` at `at` stands for.
pub(crate) fn escape(text: &[u8], at: usize) -> Option<u8> {
    match text.get(at..at + 3) {
        Some(&[b'%', high, low]) => Some(hex(high)? << 4 | hex(low)?),
        _ => None,
    }
}

/// A host's address: IPv4, or IPv6 in brackets. The three colons that the grammar of RFC 3261 allowed
/// by mistake before an embedded IPv4 address are read as two (RFC 5118 section 4.10).
pub(crate) fn host_ip(host: &[u8]) -> Option<std::net::IpAddr> {
    let Some(inner) = host.strip_prefix(b"[") else {
        let text = std::str::from_utf8(host).ok()?;
        return Some(text.parse::<std::net::Ipv4Addr>().ok()?.into());
    };
    let inner = std::str::from_utf8(inner.strip_suffix(b"]")?).ok()?;
    ipv6(inner).map(Into::into)
}

fn ipv6(text: &str) -> Option<std::net::Ipv6Addr> {
    if let Ok(ip) = text.parse() {
        return Some(ip);
    }
    let colons = text.find(":::")?;
    text[colons + 3..].parse::<std::net::Ipv4Addr>().ok()?;
    let mut fixed = [0u8; 46];
    let fixed = fixed.get_mut(..text.len() - 1)?;
    fixed[..colons].copy_from_slice(&text.as_bytes()[..colons]);
    fixed[colons..].copy_from_slice(&text.as_bytes()[colons + 1..]);
    std::str::from_utf8(fixed).ok()?.parse().ok()
}

/// Splits `host`, or `[IPv6]`, off the front of `text`: its end. `None` when it is not a host.
pub(crate) fn host_end(text: &[u8]) -> Option<usize> {
    if text.first() == Some(&b'[') {
        let end = memchr::memchr(b']', text)? + 1;
        return host_ip(&text[..end]).map(|_| end);
    }
    let end = text
        .iter()
        .position(|&b| !is_hostname(b))
        .unwrap_or(text.len());
    (end > 0).then_some(end)
}

const TOKEN: u8 = 1;
const PARAM_VALUE: u8 = 2;
pub(crate) const URI_STOPPER: u8 = 4;
const HOSTNAME: u8 = 8;
pub(crate) const PERCENT: u8 = 16;
pub(crate) const AT: u8 = 32;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        if b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'-' | b'.' | b'!' | b'%' | b'*' | b'_' | b'+' | b'`' | b'\'' | b'~'
            )
        {
            table[i] |= TOKEN;
        }
        if b > 0x20 && b != 0x7f && !matches!(b, b';' | b',' | b'<' | b'>' | b'"') {
            table[i] |= PARAM_VALUE;
        }
        if b <= 0x20 || b == 0x7f || matches!(b, b'<' | b'>' | b'"') {
            table[i] |= URI_STOPPER;
        }
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_') {
            table[i] |= HOSTNAME;
        }
        if b == b'%' {
            table[i] |= PERCENT;
        }
        if b == b'@' {
            table[i] |= AT;
        }
        i += 1;
    }
    table
}
