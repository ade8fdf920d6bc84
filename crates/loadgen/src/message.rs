//! The few things that the tools read in a message and write into one.
//!
//! The driver's own cost is the gauge of a benchmark's noise, so it does not parse what it does not
//! need: a field is looked for when it is asked for, line by line. It is also a second reading of
//! the bytes that the server under test wrote, by other code than the server's. Departures: folded
//! header fields are read up to the fold; no server folds what it writes.

use memchr::memchr;

/// Status code of a response, `None` for anything else.
pub(crate) fn code(message: &[u8]) -> Option<u16> {
    let digits = message.strip_prefix(b"SIP/2.0 ")?.get(..3)?;
    let code = digits.iter().try_fold(0u16, |n, b| {
        b.is_ascii_digit().then(|| n * 10 + u16::from(b - b'0'))
    })?;
    (100..700).contains(&code).then_some(code)
}

/// Whether the first line is a request's.
pub(crate) fn is_request(message: &[u8]) -> bool {
    let end = memchr(b'\n', message).unwrap_or(0);
    message[..end].trim_ascii_end().ends_with(b" SIP/2.0")
}

/// Whether as much body is there as Content-Length says, or it says nothing (RFC 3261 section 18.3).
pub(crate) fn is_whole(message: &[u8]) -> bool {
    if message.ends_with(b"Content-Length: 0\r\n\r\n") {
        return true; // nearly all are
    }
    let mut lines = Lines::of(message);
    let said = lines.find_map(|line| CONTENT_LENGTH.value_in(line));
    lines.by_ref().for_each(drop);
    let body = lines.rest.strip_prefix(b"\r").unwrap_or(lines.rest);
    match (body.strip_prefix(b"\n"), said) {
        (None, _) => false, // its header does not end
        (Some(_), None) => true,
        (Some(body), Some(said)) => length(said).is_some_and(|said| said <= body.len()),
    }
}

fn length(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Method of a request: the bytes before the first space.
pub(crate) fn method(message: &[u8]) -> &[u8] {
    &message[..memchr(b' ', message).unwrap_or(0)]
}

/// A header field with its name in long form and, where there is one, in short form.
#[derive(Clone, Copy)]
pub(crate) struct Name(&'static str, u8);

pub(crate) const VIA: Name = Name("via", b'v');
pub(crate) const FROM: Name = Name("from", b'f');
pub(crate) const TO: Name = Name("to", b't');
pub(crate) const CALL_ID: Name = Name("call-id", b'i');
pub(crate) const CSEQ: Name = Name("cseq", 0);
pub(crate) const CONTENT_LENGTH: Name = Name("content-length", b'l');
pub(crate) const CONTACT: Name = Name("contact", b'm');
pub(crate) const RECORD_ROUTE: Name = Name("record-route", 0);
pub(crate) const REQUIRE: Name = Name("require", 0);
pub(crate) const RSEQ: Name = Name("rseq", 0);
pub(crate) const RACK: Name = Name("rack", 0);
pub(crate) const WWW_AUTHENTICATE: Name = Name("www-authenticate", 0);
pub(crate) const PROXY_AUTHENTICATE: Name = Name("proxy-authenticate", 0);

impl Name {
    /// Whether a field's name, as written, is this one.
    #[inline]
    pub(crate) fn is(self, written: &[u8]) -> bool {
        match written {
            [short] => short.to_ascii_lowercase() == self.1,
            long => long.eq_ignore_ascii_case(self.0.as_bytes()),
        }
    }

    /// The value of a line, if it is a field of this name. Most lines are told by their first letter.
    #[inline]
    fn value_in(self, line: &[u8]) -> Option<&[u8]> {
        let first = line.first()? | 0x20;
        let name = self.0.as_bytes();
        if first != name[0] && first != self.1 {
            return None;
        }
        let is_long = first == name[0]
            && line
                .get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name));
        let after = &line[if is_long { name.len() } else { 1 }..];
        if !is_long && first != self.1 {
            return None;
        }
        let value = after.trim_ascii_start().strip_prefix(b":")?;
        Some(value.trim_ascii())
    }
}

/// Lines of a message's header, with their ends. `rest` is what comes behind the last one.
#[derive(Clone)]
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    #[inline]
    fn of(message: &'a [u8]) -> Self {
        let start = memchr(b'\n', message).map_or(message.len(), |end| end + 1);
        Self {
            rest: &message[start..],
        }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if matches!(self.rest, [b'\r' | b'\n', ..]) {
            return None;
        }
        let end = memchr(b'\n', self.rest)? + 1;
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(line)
    }
}

/// Header fields of a message as (name, value, whole line with its end), in order.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = (&[u8], &[u8], &[u8])> {
    Lines::of(message).filter_map(|line| {
        // Names are short: it is found before a search for it would have begun.
        let colon = line.iter().position(|b| *b == b':')?;
        let name = line[..colon].trim_ascii_end();
        Some((name, line[colon + 1..].trim_ascii(), line))
    })
}

/// Value of the first header field of that name.
pub(crate) fn field(message: &[u8], name: Name) -> Option<&[u8]> {
    values(message, name).next()
}

/// Values of all header fields of that name, in order.
pub(crate) fn values(message: &[u8], name: Name) -> impl Iterator<Item = &[u8]> {
    Lines::of(message).filter_map(move |line| name.value_in(line))
}

/// A number in decimal; `None` for anything else.
pub(crate) fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

/// Number of the CSeq.
pub(crate) fn sequence(message: &[u8]) -> Option<u32> {
    let value = field(message, CSEQ)?;
    number(&value[..memchr(b' ', value)?])
}

/// RSeq of a provisional response that wants a PRACK (RFC 3262 section 4).
pub(crate) fn reliable(message: &[u8]) -> Option<u32> {
    let number = number(field(message, RSEQ)?)?;
    let required = values(message, REQUIRE).flat_map(comma_separated);
    let reliable = |tag: &[u8]| tag.eq_ignore_ascii_case(b"100rel");
    required.into_iter().any(reliable).then_some(number)
}

/// The parts between commas that are outside of quotes and angle brackets (RFC 3261 section 7.3.1).
pub(crate) fn comma_separated(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut bracketed) = (false, false);
    value
        .split(move |b| {
            match b {
                b'"' => quoted = !quoted,
                b'<' if !quoted => bracketed = true,
                b'>' if !quoted => bracketed = false,
                b',' => return !quoted && !bracketed,
                _ => {}
            }
            false
        })
        .map(<[u8]>::trim_ascii)
        .filter(|part| !part.is_empty())
}

/// The URI of a name-addr or addr-spec: what is between the angle brackets, or what is before the
/// first parameter.
pub(crate) fn uri(value: &[u8]) -> &[u8] {
    if let Some(open) = memchr(b'<', value) {
        let rest = &value[open + 1..];
        return &rest[..memchr(b'>', rest).unwrap_or(rest.len())];
    }
    value[..memchr(b';', value).unwrap_or(value.len())].trim_ascii()
}

/// Value of a parameter `;name=value` behind the URI, without quotes.
pub(crate) fn parameter<'a>(value: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let after = memchr(b'>', value).map_or(0, |close| close + 1);
    value[after..].split(|b| *b == b';').skip(1).find_map(|p| {
        let equals = memchr(b'=', p)?;
        p[..equals]
            .trim_ascii()
            .eq_ignore_ascii_case(name.as_bytes())
            .then(|| p[equals + 1..].trim_ascii())
    })
}

/// Writes text, bytes and numbers one behind the other.
pub(crate) trait Put {
    /// Appends the parts.
    fn put(&mut self, parts: &[&[u8]]);
    /// Appends a number in decimal.
    fn put_number(&mut self, number: u64);
    /// Appends a number in eight hexadecimal digits.
    fn put_hex(&mut self, number: u32);
}

impl Put for Vec<u8> {
    #[inline]
    fn put(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.extend_from_slice(part);
        }
    }

    fn put_number(&mut self, mut number: u64) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.extend_from_slice(&digits[at..]);
    }

    #[inline]
    fn put_hex(&mut self, number: u32) {
        // A nibble in each byte, the first one highest; then all are made digits at once.
        let mut nibbles = u64::from(number);
        nibbles = (nibbles | (nibbles << 16)) & 0x0000_ffff_0000_ffff;
        nibbles = (nibbles | (nibbles << 8)) & 0x00ff_00ff_00ff_00ff;
        nibbles = (nibbles | (nibbles << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
        let letters = ((nibbles + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
        let digits = nibbles + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10);
        self.extend_from_slice(&digits.to_be_bytes());
    }
}

/// Names one operation of one run. It is written into branches and Call-IDs, and read back from
/// what comes in, so that no table is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Id {
    /// Place in the driver's table of operations.
    pub(crate) slot: u32,
    /// How many operations the place has had: a late message of an earlier one does not fit.
    pub(crate) generation: u32,
    /// Which transaction of the operation; 0 in a Call-ID.
    pub(crate) step: u32,
}

impl Id {
    /// Appends the identifier behind the run's tag.
    pub(crate) fn put(self, tag: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(tag);
        out.put_hex(self.slot);
        out.put_hex(self.generation);
        out.put_hex(self.step);
    }

    /// Finds the identifier in a branch or Call-ID; `None` if the tag of this run is not in it.
    pub(crate) fn find(tag: &[u8], text: &[u8]) -> Option<Self> {
        let first = *tag.first()?;
        let mut rest = text;
        loop {
            rest = &rest[memchr(first, rest)?..];
            if let Some(digits) = rest.strip_prefix(tag) {
                return Some(Self {
                    slot: hexadecimal(digits.get(..8)?)?,
                    generation: hexadecimal(digits.get(8..16)?)?,
                    step: hexadecimal(digits.get(16..24)?)?,
                });
            }
            rest = &rest[1..];
        }
    }
}

/// The number that hexadecimal digits in lower case stand for.
#[inline]
fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u32::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"SIP/2.0 200 OK\r\nv: SIP/2.0/UDP a;branch=z9hG4bKx\r\nVIA : b\r\n\
        Record-Route: <sip:p1;lr>, \"a, b\" <sip:p2;lr>\r\nTo: <sip:u@h;x=y>;Tag=t1\r\n\
        Contact: sip:c@h;expires=3\r\nl: 3\r\n\r\nabc";

    #[test]
    fn reads_fields_by_long_and_short_name() {
        assert_eq!(code(RESPONSE), Some(200));
        assert_eq!(method(b"BYE sip:x SIP/2.0\r\n"), b"BYE");
        let vias: Vec<_> = values(RESPONSE, VIA).collect();
        assert_eq!(vias, [&b"SIP/2.0/UDP a;branch=z9hG4bKx"[..], b"b"]);
        let to = field(RESPONSE, TO).unwrap();
        assert_eq!(parameter(to, "tag"), Some(&b"t1"[..]));
        assert_eq!(parameter(to, "x"), None);
        assert_eq!(uri(field(RESPONSE, CONTACT).unwrap()), b"sip:c@h");
        assert_eq!(field(RESPONSE, CSEQ), None);
    }

    #[test]
    fn only_a_response_that_requires_it_is_reliable() {
        let response =
            |fields: &str| format!("SIP/2.0 180 Ringing\r\nCSeq: 7 INVITE\r\n{fields}\r\n");
        let reliable_in = |fields| reliable(response(fields).as_bytes());
        assert_eq!(reliable_in("Require: x, 100REL\r\nRSeq: 5\r\n"), Some(5));
        assert_eq!(reliable_in("RSeq: 5\r\n"), None);
        assert_eq!(reliable_in("Require: 100rel\r\n"), None);
        assert_eq!(reliable_in("Require: 100rel\r\nRSeq: 4294967296\r\n"), None);
        assert_eq!(sequence(response("").as_bytes()), Some(7));
        assert_eq!(sequence(b"BYE x SIP/2.0\r\nCSeq: BYE\r\n\r\n"), None);
    }

    #[test]
    fn a_body_shorter_than_said_makes_a_message_rubbish() {
        assert!(is_whole(RESPONSE));
        assert!(!is_whole(&RESPONSE[..RESPONSE.len() - 1]));
        assert!(!is_whole(b"SIP/2.0 200 OK\r\nContent-Length: x\r\n\r\n"));
        assert!(!is_whole(b"SIP/2.0 200 OK\r\n"));
        assert!(is_whole(b"SIP/2.0 200 OK\r\n\r\n"));
        assert!(is_request(b"BYE sip:x SIP/2.0\r\n\r\n"));
        assert!(!is_request(b"HTTP/1.1 200 OK\r\n\r\n") && !is_request(b"SIP/2.0"));
    }

    #[test]
    fn commas_inside_quotes_and_brackets_do_not_separate() {
        let routes: Vec<_> = comma_separated(field(RESPONSE, RECORD_ROUTE).unwrap())
            .map(uri)
            .collect();
        assert_eq!(routes, [&b"sip:p1;lr"[..], b"sip:p2;lr"]);
    }

    #[test]
    fn an_identifier_is_found_again_and_a_foreign_one_is_not() {
        let id = Id {
            slot: 7,
            generation: 0xdead_beef,
            step: 2,
        };
        let mut branch = b"SIP/2.0/UDP h;branch=z9hG4bK".to_vec();
        id.put(b"run1", &mut branch);
        branch.put(&[b";rport=5"]);
        assert_eq!(Id::find(b"run1", &branch), Some(id));
        assert_eq!(Id::find(b"run2", &branch), None);
        assert_eq!(Id::find(b"run1", b"run1abc"), None);
    }

    #[test]
    fn numbers_are_written_whole() {
        let mut out = Vec::new();
        out.put_number(0);
        out.put_number(18_446_744_073_709_551_615);
        out.put_hex(0x1f);
        assert_eq!(out, b"0184467440737095516150000001f");
    }
}
