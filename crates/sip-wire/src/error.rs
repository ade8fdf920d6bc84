use std::fmt;

/// Why bytes are not a message that can be served, each with the answer of RFC 3261.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ParseError {
    /// Nothing that SIP could have sent: a keep-alive, another protocol, noise.
    NotSip,
    /// The start line is recognisable but breaks the grammar.
    StartLine,
    /// The version is not SIP/2.0: 505.
    Version,
    /// The Request-URI has no meaning to a SIP server: 416.
    Scheme,
    /// Not a URI, or one that may not stand in a start line.
    RequestUri,
    /// A line of the head is no header field.
    HeaderLine,
    /// The bytes end before the empty line that ends the head.
    HeadUnfinished,
    /// A header field that must be there is not.
    Missing(crate::Name),
    /// A header field breaks its grammar or its range.
    Malformed(crate::Name),
    /// A header that may occur once occurs more often.
    Repeated(crate::Name),
    /// CSeq's method differs from the request's.
    MethodMismatch,
    /// The datagram ends before the body does.
    BodyShorterThanContentLength,
    /// 513.
    TooLarge,
    /// More header fields than the limit: 513.
    TooManyHeaders,
    /// More Via values than the limit.
    TooManyVias,
    /// One header field is longer than the limit: 513.
    HeaderTooLong,
}

impl ParseError {
    /// The status a request gets; `None`: discard silently (RFC 3261 section 18.3).
    #[must_use]
    pub const fn answer(self) -> Option<u16> {
        match self {
            Self::NotSip => None,
            Self::Version => Some(505),
            Self::Scheme => Some(416),
            Self::TooLarge | Self::TooManyHeaders | Self::HeaderTooLong => Some(513),
            Self::StartLine
            | Self::RequestUri
            | Self::HeaderLine
            | Self::HeadUnfinished
            | Self::Missing(_)
            | Self::Malformed(_)
            | Self::Repeated(_)
            | Self::MethodMismatch
            | Self::BodyShorterThanContentLength
            | Self::TooManyVias => Some(400),
        }
    }

    /// A reason phrase that a person understands, to send behind the status.
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::NotSip => "Not A SIP Message",
            Self::StartLine => "Malformed Start Line",
            Self::Version => "Version Not Supported",
            Self::Scheme => "Unsupported URI Scheme",
            Self::RequestUri => "Malformed Request-URI",
            Self::HeaderLine => "Malformed Header Line",
            Self::HeadUnfinished => "Missing Empty Line After Header Fields",
            Self::Missing(name) => name.missing(),
            Self::Malformed(name) => name.malformed(),
            Self::Repeated(name) => name.repeated(),
            Self::MethodMismatch => "CSeq Method Differs From Request Method",
            Self::BodyShorterThanContentLength => "Body Shorter Than Content-Length",
            Self::TooLarge => "Message Too Large",
            Self::TooManyHeaders => "Too Many Header Fields",
            Self::TooManyVias => "Too Many Via Header Fields",
            Self::HeaderTooLong => "Header Field Too Long",
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.phrase())
    }
}

impl std::error::Error for ParseError {}
