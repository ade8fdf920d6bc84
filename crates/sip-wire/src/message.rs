use crate::{Credentials, Method, Name, NameAddr, ParseError, Span, Uri, Values, Via};

/// A message: borrowed bytes and their index. Copying it is free.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    _p: std::marker::PhantomData<&'a ()>,
}

/// The first line.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum StartLine<'a> {
    Request {
        method: Method,
        method_text: &'a [u8],
        uri: &'a [u8],
    },
    Response {
        code: u16,
        reason: &'a [u8],
    },
}

/// One header field.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// The name known, or [`Name::Other`].
    pub name: Name,
    /// The name as written.
    pub name_text: &'a [u8],
    /// The value without surrounding white space; folded lines still contain their line ends.
    pub value: &'a [u8],
    /// Where `value` is in the message.
    pub value_span: Span,
    /// The whole field, from the name to its line end inclusive: what to remove, or where to insert.
    pub field_span: Span,
}

/// Iterator over header fields.
pub struct Headers<'a> {
    _p: std::marker::PhantomData<&'a ()>,
}
impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;
    fn next(&mut self) -> Option<Header<'a>> {
        todo!()
    }
}

/// CSeq (RFC 3261 section 20.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CSeq<'a> {
    pub number: u32,
    pub method: Method,
    pub method_text: &'a [u8],
}

impl<'a> Message<'a> {
    /// The bytes, cut to the message: what follows Content-Length in a datagram is not included.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        todo!()
    }
    /// The first line.
    #[must_use]
    pub fn start(&self) -> StartLine<'a> {
        todo!()
    }
    /// Method of the request; `None` for a response.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        todo!()
    }
    /// Text of the request's method, or of CSeq's for a response.
    #[must_use]
    pub fn method_text(&self) -> &'a [u8] {
        todo!()
    }
    /// Status code of a response.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        todo!()
    }
    /// Request-URI's bytes (empty for a response) and where they are.
    #[must_use]
    pub fn request_uri(&self) -> (&'a [u8], Span) {
        todo!()
    }
    /// First header field of that name. O(1) for known names.
    #[must_use]
    pub fn header(&self, name: Name) -> Option<Header<'a>> {
        let _ = name;
        todo!()
    }
    /// All header fields of that name, in order.
    #[must_use]
    pub fn headers(&self, name: Name) -> Headers<'a> {
        let _ = name;
        todo!()
    }
    /// All header fields.
    #[must_use]
    pub fn all_headers(&self) -> Headers<'a> {
        todo!()
    }
    /// First header field of a name that [`Name`] does not list, long form, any case.
    #[must_use]
    pub fn other(&self, name: &str) -> Option<Header<'a>> {
        let _ = name;
        todo!()
    }
    /// The comma-separated values of all header fields of that name, in order (RFC 3261 section 7.3.1).
    #[must_use]
    pub fn values(&self, name: Name) -> Values<'a> {
        let _ = name;
        todo!()
    }
    /// Whether a token is among the comma-separated values, any case (`Supported: path`).
    #[must_use]
    pub fn has_token(&self, name: Name, token: &str) -> bool {
        let _ = (name, token);
        todo!()
    }
    /// The topmost Via.
    /// # Errors
    /// Missing or malformed.
    pub fn top_via(&self) -> Result<Via<'a>, ParseError> {
        todo!()
    }
    /// # Errors
    /// Missing or malformed.
    pub fn from(&self) -> Result<NameAddr<'a>, ParseError> {
        todo!()
    }
    /// # Errors
    /// Missing or malformed.
    pub fn to(&self) -> Result<NameAddr<'a>, ParseError> {
        todo!()
    }
    /// # Errors
    /// Missing or empty.
    pub fn call_id(&self) -> Result<&'a [u8], ParseError> {
        todo!()
    }
    /// # Errors
    /// Missing, malformed, or over 2^31-1... (RFC 3261 section 8.1.1.5).
    pub fn cseq(&self) -> Result<CSeq<'a>, ParseError> {
        todo!()
    }
    /// `None` when absent.
    /// # Errors
    /// Malformed or over 255.
    pub fn max_forwards(&self) -> Result<Option<u8>, ParseError> {
        todo!()
    }
    /// A header that is one non-negative number (Expires, Min-Expires, Max-Breadth, Retry-After's first); values beyond u32 saturate.
    /// # Errors
    /// Malformed.
    pub fn number(&self, name: Name) -> Result<Option<u32>, ParseError> {
        let _ = name;
        todo!()
    }
    /// Digest credentials in Authorization or Proxy-Authorization, every field of it. Other schemes are skipped.
    pub fn credentials(&self, name: Name) -> impl Iterator<Item = Credentials<'a>> + 'a {
        let _ = name;
        std::iter::empty()
    }
    /// The body.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        todo!()
    }
    /// Where the header fields end: the offset of the empty line. Insert last header fields here.
    #[must_use]
    pub fn head_end(&self) -> u32 {
        todo!()
    }
    /// Offset just after the start line: insert first header fields here.
    #[must_use]
    pub fn head_start(&self) -> u32 {
        todo!()
    }

    /// What every request must have (RFC 3261 sections 8.1.1, 16.3 item 1): one each of To, From, CSeq, Call-ID, Via at least,
    /// all well formed; CSeq's method is the request's; Max-Forwards, Content-Length, Expires, Date well formed where present; Request-URI
    /// well formed without angle brackets or white space, and scheme sip, sips or another token with a colon (the proxy answers 416 later);
    /// no second value of a header that may be there once. Responses: Via, From, To, Call-ID, CSeq, status 100 to 699.
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), ParseError> {
        todo!()
    }

    /// The Request-URI parsed.
    /// # Errors
    /// Not a URI.
    pub fn uri(&self) -> Result<Uri<'a>, ParseError> {
        todo!()
    }
}
