use crate::{Params, ParseError, Span, Uri};

/// `name-addr` or `addr-spec` with header parameters: From, To, Contact, Route, Record-Route, Path, Refer-To. Without angle
/// brackets everything behind `;` belongs to the header (RFC 3261 section 20).
#[derive(Clone, Copy, Debug)]
pub struct NameAddr<'a> {
    /// Display name as written, quotes included.
    pub display: &'a [u8],
    /// The URI's text.
    pub uri: &'a [u8],
    /// Where the URI is, relative to the parsed text.
    pub uri_span: Span,
    /// Header parameters.
    pub params: Params<'a>,
}

impl<'a> NameAddr<'a> {
    /// # Errors
    /// `None`-like: the text breaks the grammar. The caller names the header.
    #[allow(clippy::result_unit_err)]
    pub fn parse(text: &'a [u8]) -> Result<Self, ()> {
        let _ = text;
        todo!()
    }
    /// The URI parsed.
    /// # Errors
    /// Not a URI.
    pub fn uri(&self) -> Result<Uri<'a>, ParseError> {
        Uri::parse(self.uri)
    }
    /// The tag parameter.
    #[must_use]
    pub fn tag(&self) -> Option<&'a [u8]> {
        self.params.value("tag")
    }
}
