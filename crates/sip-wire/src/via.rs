use crate::{Params, ParseError, Span};

/// Transport named in a Via.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum ViaTransport {
    Udp,
    Tcp,
    Tls,
    Ws,
    Wss,
    Sctp,
    TlsSctp,
    Other,
}

/// One Via value (RFC 3261 section 20.42).
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Via<'a> {
    pub transport: ViaTransport,
    /// IPv6 references keep their brackets.
    pub host: &'a [u8],
    pub port: Option<u16>,
    pub params: Params<'a>,
    /// This value in the message it was taken from (without the comma behind it).
    pub span: Span,
}

impl<'a> Via<'a> {
    /// Parses one value; `offset` is where `text` begins in its message.
    /// # Errors
    /// Malformed.
    pub fn parse(text: &'a [u8], offset: u32) -> Result<Self, ParseError> {
        let _ = (text, offset);
        todo!()
    }
    /// The branch, empty when absent.
    #[must_use]
    pub fn branch(&self) -> &'a [u8] {
        self.params.value("branch").unwrap_or_default()
    }
    /// `rport` is there without a value (RFC 3581).
    #[must_use]
    pub fn wants_rport(&self) -> bool {
        todo!()
    }
}
