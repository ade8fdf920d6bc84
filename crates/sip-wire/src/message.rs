use crate::index::{Field, Index, NONE, Start};
use crate::{
    Credentials, Method, Name, NameAddr, ParseError, Scheme, Span, Uri, Value, Values, Via, name,
    scan,
};

/// A message: borrowed bytes and their index. Copying it is free.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    index: &'a Index,
    bytes: &'a [u8],
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
#[derive(Clone)]
pub struct Headers<'a> {
    message: Message<'a>,
    next: u16,
    /// Follow the chain of one name, or walk all.
    one_name: bool,
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        let field = self.message.index.fields.get(usize::from(self.next))?;
        self.next = if self.one_name {
            field.next
        } else {
            self.next + 1
        };
        Some(self.message.header_of(field))
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

/// Header fields that may stand once in a message, whatever it is.
const SINGLE: [Name; 13] = [
    Name::From,
    Name::To,
    Name::CallId,
    Name::CSeq,
    Name::MaxForwards,
    Name::ContentLength,
    Name::ContentType,
    Name::Expires,
    Name::Date,
    Name::Event,
    Name::MaxBreadth,
    Name::ReferTo,
    Name::SessionExpires,
];

/// What every message must have, decoded.
#[derive(Clone, Copy, Debug)]
pub struct Essentials<'a> {
    /// The Request-URI; of a response, the URI in To.
    pub uri: Uri<'a>,
    /// The topmost Via.
    pub via: Via<'a>,
    /// From.
    pub from: NameAddr<'a>,
    /// The URI in From.
    pub from_uri: Uri<'a>,
    /// To.
    pub to: NameAddr<'a>,
    /// The URI in To.
    pub to_uri: Uri<'a>,
    /// Call-ID.
    pub call_id: &'a [u8],
    /// CSeq.
    pub cseq: CSeq<'a>,
}

impl<'a> Message<'a> {
    pub(crate) const fn new(index: &'a Index, bytes: &'a [u8]) -> Self {
        Self { index, bytes }
    }

    /// The bytes, cut to the message: what follows Content-Length in a datagram is not included, nor are CRLFs before the start line.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The first line. When [`Index::parse`] failed on it, what could be read of it, the rest empty or 0.
    #[must_use]
    pub fn start(&self) -> StartLine<'a> {
        match self.index.start {
            Start::Request {
                method,
                method_text,
                uri,
            } => StartLine::Request {
                method,
                method_text: self.text(method_text),
                uri: self.text(uri),
            },
            Start::Response { code, reason } => StartLine::Response {
                code,
                reason: self.text(reason),
            },
        }
    }

    /// Whether it is a request.
    #[must_use]
    pub const fn is_request(&self) -> bool {
        matches!(self.index.start, Start::Request { .. })
    }

    /// Method of the request; `None` for a response.
    #[must_use]
    pub const fn method(&self) -> Option<Method> {
        match self.index.start {
            Start::Request { method, .. } => Some(method),
            Start::Response { .. } => None,
        }
    }

    /// Text of the request's method, or of CSeq's for a response.
    #[must_use]
    pub fn method_text(&self) -> &'a [u8] {
        match self.index.start {
            Start::Request { method_text, .. } => self.text(method_text),
            Start::Response { .. } => self.cseq().map_or(&[], |cseq| cseq.method_text),
        }
    }

    /// Status code of a response.
    #[must_use]
    pub const fn code(&self) -> Option<u16> {
        match self.index.start {
            Start::Request { .. } => None,
            Start::Response { code, .. } => Some(code),
        }
    }

    /// Request-URI's bytes (empty for a response) and where they are.
    #[must_use]
    pub fn request_uri(&self) -> (&'a [u8], Span) {
        match self.index.start {
            Start::Request { uri, .. } => (self.text(uri), uri),
            Start::Response { .. } => (&[], Span::default()),
        }
    }

    /// The Request-URI parsed.
    /// # Errors
    /// Not a URI.
    pub fn uri(&self) -> Result<Uri<'a>, ParseError> {
        Uri::parse(self.request_uri().0)
    }

    /// First header field of that name. O(1) for known names.
    #[must_use]
    pub fn header(&self, name: Name) -> Option<Header<'a>> {
        let field = self.index.fields.get(usize::from(self.first(name)))?;
        Some(self.header_of(field))
    }

    /// All header fields of that name, in order.
    #[must_use]
    pub fn headers(&self, name: Name) -> Headers<'a> {
        Headers {
            message: *self,
            next: self.first(name),
            one_name: true,
        }
    }

    /// All header fields.
    #[must_use]
    pub const fn all_headers(&self) -> Headers<'a> {
        Headers {
            message: *self,
            next: 0,
            one_name: false,
        }
    }

    /// How many header fields there are.
    #[must_use]
    pub const fn header_count(&self) -> usize {
        self.index.fields.len()
    }

    /// How many Via values there are.
    #[must_use]
    pub const fn via_count(&self) -> usize {
        self.index.via_count as usize
    }

    /// First header field of a name that [`Name`] does not list, any case; `name` is the long form, and its compact form is found too.
    #[must_use]
    pub fn other(&self, name: &str) -> Option<Header<'a>> {
        let compact = name::compact_of_other(name);
        self.headers(Name::Other).find(|header| {
            header.name_text.eq_ignore_ascii_case(name.as_bytes())
                || matches!(header.name_text, [letter] if Some(letter.to_ascii_lowercase()) == compact)
        })
    }

    /// The comma-separated values of all header fields of that name, in order (RFC 3261 section 7.3.1).
    #[must_use]
    pub fn values(&self, name: Name) -> Values<'a> {
        Values::new(self.headers(name))
    }

    /// Whether a token is among the comma-separated values, any case (`Supported: path`).
    #[must_use]
    pub fn has_token(&self, name: Name, token: &str) -> bool {
        self.values(name)
            .any(|value| value.text.eq_ignore_ascii_case(token.as_bytes()))
    }

    /// The topmost Via.
    /// # Errors
    /// Missing or malformed.
    pub fn top_via(&self) -> Result<Via<'a>, ParseError> {
        let top = self.values(Name::Via).next();
        via_of(top.ok_or(ParseError::Missing(Name::Via))?)
    }

    /// All Via values, the topmost first; each malformed one is an error in its place.
    pub fn vias(&self) -> impl Iterator<Item = Result<Via<'a>, ParseError>> + 'a {
        self.values(Name::Via).map(via_of)
    }

    /// # Errors
    /// Missing or malformed.
    pub fn from(&self) -> Result<NameAddr<'a>, ParseError> {
        self.name_addr(Name::From)
    }

    /// # Errors
    /// Missing or malformed.
    pub fn to(&self) -> Result<NameAddr<'a>, ParseError> {
        self.name_addr(Name::To)
    }

    /// # Errors
    /// Missing or empty.
    pub fn call_id(&self) -> Result<&'a [u8], ParseError> {
        let value = self.required(Name::CallId)?.value;
        let word = |b: &u8| *b > b' ' && *b != 0x7f;
        if value.is_empty() || !value.iter().all(word) {
            return Err(ParseError::Malformed(Name::CallId));
        }
        Ok(value)
    }

    /// # Errors
    /// Missing, malformed, or not below 2^31 (RFC 3261 section 8.1.1.5).
    pub fn cseq(&self) -> Result<CSeq<'a>, ParseError> {
        const ERROR: ParseError = ParseError::Malformed(Name::CSeq);
        let value = self.required(Name::CSeq)?.value;
        let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
        let method = scan::skip_space(value, digits);
        let method_text = &value[method..];
        if method == digits
            || method_text.is_empty()
            || scan::skip_token(method_text, 0) != method_text.len()
        {
            return Err(ERROR);
        }
        let number = scan::number(&value[..digits]).ok_or(ERROR)?;
        if number >= 1 << 31 {
            return Err(ERROR);
        }
        Ok(CSeq {
            number,
            method: Method::of(method_text),
            method_text,
        })
    }

    /// `None` when absent.
    /// # Errors
    /// Malformed or over 255.
    pub fn max_forwards(&self) -> Result<Option<u8>, ParseError> {
        let Some(header) = self.header(Name::MaxForwards) else {
            return Ok(None);
        };
        scan::number(header.value)
            .and_then(|hops| u8::try_from(hops).ok())
            .map(Some)
            .ok_or(ParseError::Malformed(Name::MaxForwards))
    }

    /// A header that is one non-negative number (Expires, Min-Expires, Max-Breadth, Retry-After's first); values beyond u32 saturate.
    /// A comment or parameters may follow it.
    /// # Errors
    /// Malformed.
    pub fn number(&self, name: Name) -> Result<Option<u32>, ParseError> {
        let Some(header) = self.header(name) else {
            return Ok(None);
        };
        let value = header.value;
        let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
        let rest = scan::skip_space(value, digits);
        if !matches!(value.get(rest), None | Some(b';' | b'(')) {
            return Err(ParseError::Malformed(name));
        }
        scan::number(&value[..digits])
            .map(Some)
            .ok_or(ParseError::Malformed(name))
    }

    /// Digest credentials in Authorization or Proxy-Authorization, every field of it. Other schemes are skipped.
    pub fn credentials(&self, name: Name) -> impl Iterator<Item = Credentials<'a>> + 'a {
        self.headers(name)
            .filter_map(|header| Credentials::parse(header.value))
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[self.index.body_start as usize..]
    }

    /// Where the header fields end: the offset of the empty line. Insert last header fields here.
    #[must_use]
    pub const fn head_end(&self) -> u32 {
        self.index.head_end
    }

    /// Offset just after the start line: insert first header fields here.
    #[must_use]
    pub const fn head_start(&self) -> u32 {
        self.index.head_start
    }

    /// What every request must have (RFC 3261 sections 8.1.1, 16.3 item 1): one each of To, From, CSeq, Call-ID, Via at least,
    /// all well formed; CSeq's method is the request's; Max-Forwards, Content-Length, Expires, Date well formed where present; Request-URI
    /// well formed without angle brackets or white space, and scheme sip, sips or another token with a colon (the proxy answers 416 later);
    /// no second value of a header that may be there once; the Contacts of a REGISTER well formed. Responses: Via, From, To, Call-ID, CSeq, status 100 to 699.
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), ParseError> {
        self.essentials().map(|_| ())
    }

    /// [`Self::check`], and what it has decoded on its way, so that nobody has to decode it again.
    /// # Errors
    /// As [`Self::check`].
    pub fn essentials(&self) -> Result<Essentials<'a>, ParseError> {
        for name in SINGLE {
            if self.first(name) != self.index.last[name as usize] {
                return Err(ParseError::Repeated(name));
            }
        }
        self.required(Name::Via)?;
        let (from, from_uri) = self.person(Name::From)?;
        let (to, to_uri) = self.person(Name::To)?;
        let call_id = self.call_id()?;
        let cseq = self.cseq()?;
        let (uri, via) = match self.index.start {
            Start::Request { .. } => (self.checked_uri(&cseq)?, self.checked_vias()?),
            Start::Response { code, .. } if !(100..700).contains(&code) => {
                return Err(ParseError::StartLine);
            }
            Start::Response { .. } => (to_uri, self.top_via()?),
        };
        if self.is_request() {
            self.check_rest()?;
        }
        Ok(Essentials {
            uri,
            via,
            from,
            from_uri,
            to,
            to_uri,
            call_id,
            cseq,
        })
    }

    fn person(&self, name: Name) -> Result<(NameAddr<'a>, Uri<'a>), ParseError> {
        let person = self.name_addr(name)?;
        let uri = person.uri().map_err(|_| ParseError::Malformed(name))?;
        Ok((person, uri))
    }

    fn checked_uri(&self, cseq: &CSeq<'_>) -> Result<Uri<'a>, ParseError> {
        let uri = self.uri()?;
        // A Request-URI has no headers (RFC 3261 section 19.1.1).
        if matches!(uri.scheme, Scheme::Sip | Scheme::Sips) && !uri.headers.is_empty() {
            return Err(ParseError::RequestUri);
        }
        if cseq.method_text != self.method_text() {
            return Err(ParseError::MethodMismatch);
        }
        Ok(uri)
    }

    /// The topmost Via, when all are well formed.
    fn checked_vias(&self) -> Result<Via<'a>, ParseError> {
        let mut vias = self.vias();
        // A field may be there and hold no value.
        let top = vias.next().ok_or(ParseError::Missing(Name::Via))??;
        vias.try_for_each(|via| via.map(|_| ()))?;
        Ok(top)
    }

    fn check_rest(&self) -> Result<(), ParseError> {
        self.max_forwards()?;
        self.number(Name::Expires)?;
        if let Some(date) = self.header(Name::Date)
            && !is_date(date.value)
        {
            return Err(ParseError::Malformed(Name::Date));
        }
        if self.method() == Some(Method::Register) {
            self.check_contacts()?;
        }
        Ok(())
    }

    fn check_contacts(&self) -> Result<(), ParseError> {
        for contact in self.values(Name::Contact) {
            NameAddr::parse(contact.text).map_err(|()| ParseError::Malformed(Name::Contact))?;
        }
        Ok(())
    }

    fn name_addr(&self, name: Name) -> Result<NameAddr<'a>, ParseError> {
        let value = self.required(name)?.value;
        NameAddr::parse(value).map_err(|()| ParseError::Malformed(name))
    }

    fn required(&self, name: Name) -> Result<Header<'a>, ParseError> {
        self.header(name).ok_or(ParseError::Missing(name))
    }

    const fn first(&self, name: Name) -> u16 {
        self.index.first[name as usize]
    }

    fn text(&self, span: Span) -> &'a [u8] {
        self.bytes.get(span.range()).unwrap_or_default()
    }

    fn header_of(&self, field: &Field) -> Header<'a> {
        let start = field.start as usize;
        Header {
            name: field.name,
            name_text: &self.bytes[start..start + usize::from(field.name_len)],
            value: &self.bytes[field.value as usize..field.value_end as usize],
            value_span: Span {
                start: field.value,
                end: field.value_end,
            },
            field_span: Span {
                start: field.start,
                end: field.end,
            },
        }
    }
}

const _: () = assert!(NONE as usize >= Name::COUNT);

fn via_of(value: Value<'_>) -> Result<Via<'_>, ParseError> {
    Via::parse(value.text, value.span.start)
}

/// `SIP-date = rfc1123-date`, which is always GMT (RFC 3261 section 20.17).
fn is_date(text: &[u8]) -> bool {
    const DAYS: &[&[u8]] = &[b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
    const MONTHS: &[&[u8]] = &[
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    let any = |names: &[&[u8]], at: usize| {
        names
            .iter()
            .any(|name| text[at..at + 3].eq_ignore_ascii_case(name))
    };
    text.len() == 29
        && any(DAYS, 0)
        && any(MONTHS, 8)
        && b"ddd, 00 mmm 0000 00:00:00 GMT"
            .iter()
            .zip(text)
            .all(|(shape, b)| match shape {
                b'0' => b.is_ascii_digit(),
                b'd' | b'm' => true,
                _ => b.eq_ignore_ascii_case(shape),
            })
}
