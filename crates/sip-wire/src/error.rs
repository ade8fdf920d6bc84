use std::fmt;

/// Why bytes are not a message that can be served, each with the answer of RFC 3261.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum ParseError {
    NotSip,
    StartLine,
    /// The version is not SIP/2.0: 505.
    Version,
    /// The Request-URI has no meaning to a SIP server: 416.
    Scheme,
    RequestUri,
    HeaderLine,
    Missing(crate::Name),
    Malformed(crate::Name),
    /// A header that may occur once occurs more often.
    Repeated(crate::Name),
    /// CSeq's method differs from the request's.
    MethodMismatch,
    BodyShorterThanContentLength,
    /// 513.
    TooLarge,
    TooManyHeaders,
    TooManyVias,
    HeaderTooLong,
}

impl ParseError {
    /// The status a request gets; `None`: discard silently (RFC 3261 section 18.3).
    #[must_use]
    pub const fn answer(self) -> Option<u16> {
        todo!()
    }

    /// A reason phrase that a person understands, to send behind the status.
    #[must_use]
    pub fn phrase(self) -> &'static str {
        todo!()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.phrase())
    }
}

impl std::error::Error for ParseError {}
