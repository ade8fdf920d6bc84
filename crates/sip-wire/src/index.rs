use crate::{Limits, Message, ParseError};

/// How the end of a message is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// A datagram: bytes beyond Content-Length are dropped, too few are an error, none given means
    /// to the end (RFC 3261 section 18.3).
    Datagram,
    /// One message cut out of a stream by [`crate::Framer`]: Content-Length is the length.
    Stream,
}

/// Where everything is in a message. Made to be reused: parsing allocates nothing once it has
/// grown to the size of the usual message.
#[derive(Clone, Default)]
pub struct Index {}

impl Index {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Splits `bytes` into start line, header fields and body. Structure only: the values are
    /// checked by [`Message::check`] and by their accessors.
    ///
    /// # Errors
    /// When the structure is broken or over a limit. What was indexed before the fault stays
    /// readable through [`Index::message`], so that a 400 can be built when Via, From, To, Call-ID and
    /// CSeq came before it.
    pub fn parse(
        &mut self,
        bytes: &[u8],
        framing: Framing,
        limits: &Limits,
    ) -> Result<(), ParseError> {
        let _ = (bytes, framing, limits);
        todo!()
    }

    /// The message last parsed; `bytes` are the ones given to [`Index::parse`].
    #[must_use]
    pub fn message<'a>(&'a self, bytes: &'a [u8]) -> Message<'a> {
        let _ = bytes;
        todo!()
    }
}
