use crate::{Limits, Message, Method, Name, ParseError, Span, list, scan};

/// How the end of a message is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// A datagram: bytes beyond Content-Length are dropped, too few are an error, none given means
    /// to the end (RFC 3261 section 18.3).
    Datagram,
    /// One message cut out of a stream by [`crate::Framer`]: Content-Length is the length, and none
    /// given means no body.
    Stream,
}

/// Where everything is in a message. Made to be reused: parsing allocates nothing once it has
/// grown to the size of the usual message.
///
/// Lines may end in a bare LF; a bare CR in the head is an error.
#[derive(Clone)]
pub struct Index {
    /// Where the message begins in the bytes given, behind leading CRLFs, and how long it is. All
    /// spans are relative to its begin.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) start: Start,
    /// Just after the start line; the empty line; just after that.
    pub(crate) head_start: u32,
    pub(crate) head_end: u32,
    pub(crate) body_start: u32,
    pub(crate) via_count: u32,
    pub(crate) fields: Vec<Field>,
    /// First and last field of each name, as indices into `fields`.
    pub(crate) first: [u16; Name::COUNT],
    pub(crate) last: [u16; Name::COUNT],
}

/// The first line, as far as it could be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    Request {
        method: Method,
        method_text: Span,
        uri: Span,
    },
    Response {
        code: u16,
        reason: Span,
    },
}

/// A header field: `start..name_end` is its name, `value..value_end` its trimmed value, `start..end` all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) start: u32,
    pub(crate) value: u32,
    pub(crate) value_end: u32,
    pub(crate) end: u32,
    pub(crate) name_len: u16,
    /// The next field of the same name, or [`NONE`].
    pub(crate) next: u16,
    pub(crate) name: Name,
}

/// No field.
pub(crate) const NONE: u16 = u16::MAX;

impl Default for Index {
    fn default() -> Self {
        Self {
            offset: 0,
            len: 0,
            start: Start::NOTHING,
            head_start: 0,
            head_end: 0,
            body_start: 0,
            via_count: 0,
            fields: Vec::new(),
            first: [NONE; Name::COUNT],
            last: [NONE; Name::COUNT],
        }
    }
}

impl Index {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Splits `bytes` into start line, header fields and body. Structure only: the values are
    /// checked by [`Message::check`] and by their accessors. CRLFs before the start line are skipped.
    ///
    /// # Errors
    /// When the structure is broken or over a limit. What can be read stays readable through
    /// [`Index::message`], so that a 400 can be built when Via, From, To, Call-ID and CSeq are there; a
    /// [`ParseError::NotSip`] leaves nothing.
    pub fn parse(
        &mut self,
        bytes: &[u8],
        framing: Framing,
        limits: &Limits,
    ) -> Result<(), ParseError> {
        self.clear();
        if u32::try_from(bytes.len()).is_err() {
            return Err(ParseError::TooLarge);
        }
        let blank = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n'));
        let offset = blank.count();
        let bytes = &bytes[offset..];
        self.offset = offset as u32;

        let (line_end, head_start) = match line(bytes, 0) {
            Some(line) => (line.content_end, line.next),
            None => (bytes.len(), bytes.len()),
        };
        if !looks_like_sip(&bytes[..line_end]) {
            return Err(ParseError::NotSip);
        }
        let mut fault = self.parse_start(&bytes[..line_end]).err();
        self.head_start = head_start as u32;
        if let Err(error) = self.parse_fields(bytes, head_start, limits) {
            fault.get_or_insert(error);
        }
        if let Err(error) = self.parse_body(bytes, framing) {
            fault.get_or_insert(error);
        }
        fault.map_or(Ok(()), Err)
    }

    /// The message last parsed; `bytes` are the ones given to [`Index::parse`].
    #[must_use]
    pub fn message<'a>(&'a self, bytes: &'a [u8]) -> Message<'a> {
        let start = self.offset as usize;
        Message::new(self, &bytes[start..start + self.len as usize])
    }

    fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = Self {
            fields,
            ..Self::default()
        };
    }

    /// `Request-Line` or `Status-Line` (RFC 3261 sections 7.1, 7.2).
    fn parse_start(&mut self, line: &[u8]) -> Result<(), ParseError> {
        if scan::starts_with_any_case(line, b"SIP/") {
            return self.parse_status_line(line);
        }
        let method_end = scan::skip_token(line, 0);
        // `looks_like_sip` has found a space.
        let version = memchr::memrchr(b' ', line).map_or(line.len(), |at| at + 1);
        let uri = Span {
            start: (method_end + 1).min(version) as u32,
            end: (version - 1).max(method_end + 1).min(version) as u32,
        };
        self.start = Start::Request {
            method: Method::of(&line[..method_end]),
            method_text: Span {
                start: 0,
                end: method_end as u32,
            },
            uri,
        };
        if method_end == 0 || line[method_end] != b' ' {
            return Err(ParseError::StartLine);
        }
        check_version(&line[version..])?;
        if uri.is_empty() {
            return Err(ParseError::StartLine);
        }
        if line[uri.range()].iter().any(|&b| scan::is_space(b)) {
            return Err(ParseError::RequestUri);
        }
        Ok(())
    }

    fn parse_status_line(&mut self, line: &[u8]) -> Result<(), ParseError> {
        let end = line.len() as u32;
        let mut reason = Span { start: end, end };
        self.start = Start::Response { code: 0, reason };
        let version_end = memchr::memchr(b' ', line).ok_or(ParseError::StartLine)?;
        check_version(&line[..version_end])?;
        let (code, rest) = line[version_end + 1..]
            .split_first_chunk::<3>()
            .ok_or(ParseError::StartLine)?;
        match rest {
            [] => {}
            [b' ', ..] => reason.start = version_end as u32 + 5,
            _ => return Err(ParseError::StartLine),
        }
        let code = scan::port(code).ok_or(ParseError::StartLine)?;
        self.start = Start::Response { code, reason };
        Ok(())
    }

    /// The header fields from `at` to the empty line. Faulty lines are left out, the rest is indexed.
    fn parse_fields(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        limits: &Limits,
    ) -> Result<(), ParseError> {
        let fields_max = limits.header_count_max.min(usize::from(NONE));
        let mut fault = None;
        let stop = loop {
            if let Some(body) = empty_line(bytes, at) {
                self.head_end = at as u32;
                self.body_start = body as u32;
                let too_large = body > limits.head_bytes_max;
                return match fault {
                    _ if too_large => Err(ParseError::TooLarge),
                    None => Ok(()),
                    Some(fault) => Err(fault),
                };
            }
            let (name, name_end, value) = field_name(bytes, at);
            let Some(line) = line(bytes, value) else {
                break ParseError::HeadUnfinished;
            };
            if line.next > limits.head_bytes_max {
                break ParseError::TooLarge;
            }
            if self.fields.len() == fields_max {
                break ParseError::TooManyHeaders;
            }
            if line.next - at > limits.header_bytes_max {
                fault.get_or_insert(ParseError::HeaderTooLong);
            } else if name_end == at || line.bare_cr || value == name_end {
                fault.get_or_insert(ParseError::HeaderLine);
            } else {
                let value = skip_space_to(bytes, value, line.content_end);
                self.push(Field {
                    start: at as u32,
                    value: value as u32,
                    value_end: scan::trim_end(bytes, value, line.content_end) as u32,
                    end: line.next as u32,
                    name_len: (name_end - at) as u16,
                    next: NONE,
                    name,
                });
                if name == Name::Via && !self.count_vias(bytes, limits) {
                    fault.get_or_insert(ParseError::TooManyVias);
                }
            }
            at = line.next;
        };
        self.head_end = at as u32;
        self.body_start = at as u32;
        Err(fault.unwrap_or(stop))
    }

    fn push(&mut self, field: Field) {
        let name = field.name as usize;
        let number = self.fields.len() as u16;
        match self.last[name] {
            NONE => self.first[name] = number,
            last => self.fields[usize::from(last)].next = number,
        }
        self.last[name] = number;
        self.fields.push(field);
    }

    /// Counts the values of the Via just indexed; false when there are too many.
    fn count_vias(&mut self, bytes: &[u8], limits: &Limits) -> bool {
        if let Some(field) = self.fields.last() {
            let value = &bytes[field.value as usize..field.value_end as usize];
            self.via_count += match memchr::memchr(b',', value) {
                None => u32::from(!value.is_empty()),
                Some(_) => list::count(value) as u32,
            };
        }
        self.via_count as usize <= limits.via_count_max
    }

    /// Cuts the message at the end of its body.
    fn parse_body(&mut self, bytes: &[u8], framing: Framing) -> Result<(), ParseError> {
        let start = self.body_start as usize;
        let available = bytes.len() - start;
        let field = self.first[Name::ContentLength as usize];
        let (len, result) = match self.fields.get(usize::from(field)) {
            None if framing == Framing::Stream => (0, Ok(())),
            None => (available, Ok(())),
            Some(field) => {
                let text = &bytes[field.value as usize..field.value_end as usize];
                match scan::number(text) {
                    None => (available, Err(ParseError::Malformed(Name::ContentLength))),
                    Some(len) if len as usize > available => {
                        (available, Err(ParseError::BodyShorterThanContentLength))
                    }
                    Some(len) => (len as usize, Ok(())),
                }
            }
        };
        self.len = (start + len) as u32;
        result
    }
}

impl Start {
    const NOTHING: Self = Self::Request {
        method: Method::Other,
        method_text: Span { start: 0, end: 0 },
        uri: Span { start: 0, end: 0 },
    };
}

/// Whether a first line may be SIP's at all: it begins with `SIP/`, or its last word does.
pub(crate) fn looks_like_sip(line: &[u8]) -> bool {
    let line = &line[..scan::trim_end(line, 0, line.len())];
    scan::starts_with_any_case(line, b"SIP/")
        || memchr::memrchr(b' ', line)
            .is_some_and(|at| scan::starts_with_any_case(&line[at + 1..], b"SIP/"))
}

/// `SIP-Version = "SIP" "/" 1*DIGIT "." 1*DIGIT`, any case (RFC 3261 section 7.1).
fn check_version(text: &[u8]) -> Result<(), ParseError> {
    if text.eq_ignore_ascii_case(b"SIP/2.0") {
        return Ok(());
    }
    let well_formed = text.len() > 4 && scan::starts_with_any_case(text, b"SIP/") && {
        let mut parts = text[4..].split(|&b| b == b'.');
        let mut number = || {
            parts
                .next()
                .is_some_and(|part| scan::number(part).is_some())
        };
        number() && number() && parts.next().is_none()
    };
    Err(if well_formed {
        ParseError::Version
    } else {
        ParseError::StartLine
    })
}

/// The name of the field at `at`: which, its end, and the offset behind the colon, or the name's end when
/// there is no colon.
pub(crate) fn field_name(bytes: &[u8], at: usize) -> (Name, usize, usize) {
    let end = scan::skip_token(bytes, at);
    let mut colon = end;
    while matches!(bytes.get(colon), Some(b' ' | b'\t')) {
        colon += 1;
    }
    if bytes.get(colon) == Some(&b':') && end - at <= usize::from(u16::MAX) {
        (Name::of(&bytes[at..end]), end, colon + 1)
    } else {
        (Name::Other, end, end)
    }
}

/// If the line at `at` is empty, the offset behind it.
pub(crate) fn empty_line(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at..)? {
        [b'\r', b'\n', ..] => Some(at + 2),
        [b'\n', ..] => Some(at + 1),
        _ => None,
    }
}

/// A line with its continuation lines (RFC 3261 section 7.3.1).
struct Line {
    content_end: usize,
    next: usize,
    bare_cr: bool,
}

/// The line that goes on at `at`; `None` when it does not end.
fn line(bytes: &[u8], mut at: usize) -> Option<Line> {
    let mut bare_cr = false;
    loop {
        let found = at + memchr::memchr2(b'\r', b'\n', bytes.get(at..)?)?;
        let lf = if bytes[found] == b'\n' {
            found
        } else if bytes.get(found + 1) == Some(&b'\n') {
            found + 1
        } else {
            bare_cr = true;
            at = found + 1;
            continue;
        };
        if !matches!(bytes.get(lf + 1), Some(b' ' | b'\t')) {
            return Some(Line {
                content_end: found,
                next: lf + 1,
                bare_cr,
            });
        }
        at = lf + 1;
    }
}

fn skip_space_to(bytes: &[u8], mut at: usize, end: usize) -> usize {
    while at < end && scan::is_space(bytes[at]) {
        at += 1;
    }
    at
}
