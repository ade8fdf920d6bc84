use crate::{Limits, ParseError};

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
#[derive(Clone, Copy, Default, Debug)]
pub struct Framer {}

impl Framer {
    /// Looks at the front of `bytes`, all that has arrived and was not consumed. After `Blank` and `Message` the
    /// caller drops that many bytes and calls again; after `Incomplete` it calls with more bytes behind the same ones.
    /// A message without Content-Length has an empty body (`PHONES` 24: never hang).
    pub fn next(&mut self, bytes: &[u8], limits: &Limits) -> Frame {
        let _ = (bytes, limits);
        todo!()
    }
}
