use crate::index::{empty_line, field_name, looks_like_sip};
use crate::{Limits, Name, ParseError, scan};

/// What the front of a stream's bytes is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// More bytes are needed; nothing may be dropped.
    Incomplete,
    /// So many bytes of CRLF between messages: skip them. `ping`: it is a double CRLF, answer with one CRLF (RFC 5626 section 3.5.1).
    Blank {
        /** bytes */
        len: usize,
        /** answer it */
        ping: bool,
    },
    /// A whole message of so many bytes.
    Message {
        /** bytes */
        len: usize,
    },
    /// The stream can't be followed further: answer this if the head can be read, then close.
    Broken(ParseError),
}

/// Cuts messages out of a stream by Content-Length (RFC 3261 section 18.3). Remembers how far it has looked, so that a
/// message which comes byte by byte is not scanned again from its start. One per connection only while a message is
/// incomplete; it is small.
///
/// A fresh one may be used for each call that begins a message. Then only one thing is lost: a ping whose two CRLFs come
/// in two reads is seen as two CRLFs without a ping.
#[derive(Clone, Copy, Default, Debug)]
pub struct Framer {
    /// Where the line begins that is being looked for the end of.
    line: usize,
    /// Before this there is no line end that `line` could end with.
    scanned: usize,
    /// Of the whole message, once the head is known; 0 before.
    message_len: usize,
    content_length: Option<u32>,
    /// What is wrong with Content-Length; said at the end of the head, so that an answer can be built.
    fault: Option<ParseError>,
    /// The last thing seen was one CRLF: with another it makes a ping.
    half_ping: bool,
}

impl Framer {
    /// Looks at the front of `bytes`, all that has arrived and was not consumed. After `Blank` and `Message` the
    /// caller drops that many bytes and calls again; after `Incomplete` it calls with more bytes behind the same ones.
    /// A message without Content-Length has an empty body: some phones leave it out, and to wait would hang the connection.
    pub fn next(&mut self, bytes: &[u8], limits: &Limits) -> Frame {
        if self.message_len == 0 {
            let found = if self.line == 0 && self.scanned == 0 {
                self.begin(bytes, limits)
            } else {
                self.head(bytes, limits)
            };
            match found {
                Ok(Some(len)) => self.message_len = len,
                Ok(None) => return Frame::Incomplete,
                Err(frame) => return frame,
            }
        }
        if bytes.len() < self.message_len {
            return Frame::Incomplete;
        }
        let len = self.message_len;
        *self = Self::default();
        Frame::Message { len }
    }

    /// The first bytes: line ends between messages, or the first letter of a start line.
    fn begin(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Frame> {
        let (len, ping) = match bytes {
            [] | [b'\r'] => return Ok(None),
            [b'\r', b'\n', b'\r', b'\n', ..] if !self.half_ping => (4, true),
            [b'\r', b'\n', ..] => (2, self.half_ping),
            [b'\n', ..] => (1, false),
            [first, ..] if !scan::is_token(*first) => {
                return Err(Frame::Broken(ParseError::NotSip));
            }
            _ => {
                self.half_ping = false;
                return self.head(bytes, limits);
            }
        };
        self.half_ping = len == 2 && !ping;
        Err(Frame::Blank { len, ping })
    }

    /// Goes on through the lines of the head; the message's length once the empty line is there.
    fn head(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Frame> {
        let window = &bytes[..bytes.len().min(limits.head_bytes_max)];
        let unfinished = || {
            if bytes.len() >= limits.head_bytes_max {
                Err(Frame::Broken(ParseError::TooLarge))
            } else {
                Ok(None)
            }
        };
        loop {
            let Some(found) = memchr::memchr(b'\n', &window[self.scanned..]) else {
                self.scanned = window.len();
                return unfinished();
            };
            let line_feed = self.scanned + found;
            let next = line_feed + 1;
            match window.get(next..).unwrap_or_default() {
                // Whether the line goes on, or the head ends, is not known yet.
                [] | [b'\r'] => {
                    self.scanned = line_feed;
                    return unfinished();
                }
                [b' ' | b'\t', ..] => self.scanned = next,
                _ => {
                    self.line_ended(&window[self.line..next])?;
                    self.line = next;
                    self.scanned = next;
                    if let Some(body) = empty_line(window, next) {
                        return self.whole(body, limits).map(Some);
                    }
                }
            }
        }
    }

    fn line_ended(&mut self, line: &[u8]) -> Result<(), Frame> {
        if self.line == 0 {
            return if looks_like_sip(line) {
                Ok(())
            } else {
                Err(Frame::Broken(ParseError::NotSip))
            };
        }
        if !matches!(line[0], b'C' | b'c' | b'L' | b'l') {
            return Ok(());
        }
        let (name, _, value) = field_name(line, 0);
        if name == Name::ContentLength {
            match scan::number(scan::trim(&line[value..])) {
                None => self.fault = Some(ParseError::Malformed(name)),
                number if self.content_length.is_none() => self.content_length = number,
                number if self.content_length == number => {}
                _ => self.fault = Some(ParseError::Repeated(name)),
            }
        }
        Ok(())
    }

    fn whole(&self, body: usize, limits: &Limits) -> Result<usize, Frame> {
        if let Some(fault) = self.fault {
            return Err(Frame::Broken(fault));
        }
        let len = body.saturating_add(self.content_length.unwrap_or(0) as usize);
        if len > limits.message_bytes_max {
            return Err(Frame::Broken(ParseError::TooLarge));
        }
        Ok(len)
    }
}
