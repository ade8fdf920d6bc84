use crate::{Params, ParseError, Span, Uri, scan};

/// `name-addr` or `addr-spec` with header parameters: From, To, Contact, Route, Record-Route, Path, Refer-To. Without angle
/// brackets everything behind `;` belongs to the header (RFC 3261 section 20).
///
/// Departures: a display name without quotes may hold more than tokens (commas, UTF-8, dots), as phones send it
/// and RFC 4475 section 3.1.2.15 lets a server take it.
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
        let start = scan::skip_space(text, 0);
        if text.get(start) == Some(&b'"') {
            let end = scan::quoted_end(text, start).ok_or(())?;
            let open = scan::skip_space(text, end);
            return Self::bracketed(text, &text[start..end], open);
        }
        match memchr::memchr(b'<', text) {
            Some(open) => {
                let display = scan::trim(&text[..open]);
                if display.iter().any(|b| matches!(b, b'"' | b'>' | b';')) {
                    return Err(());
                }
                Self::bracketed(text, display, open)
            }
            None => Self::bare(text, start),
        }
    }

    /// `<URI>` and parameters, from `open` on.
    fn bracketed(text: &'a [u8], display: &'a [u8], open: usize) -> Result<Self, ()> {
        if text.get(open) != Some(&b'<') {
            return Err(());
        }
        let close = open + memchr::memchr(b'>', &text[open..]).ok_or(())?;
        Self::with_uri(text, display, open + 1, close, close + 1)
    }

    /// A URI without brackets: it may not hold a comma, a question mark or a semicolon
    /// (RFC 3261 section 20.10).
    fn bare(text: &'a [u8], start: usize) -> Result<Self, ()> {
        let mut end = start;
        while end < text.len() && text[end] != b';' && !scan::is_space(text[end]) {
            end += 1;
        }
        if memchr::memchr2(b'?', b',', &text[start..end]).is_some() {
            return Err(());
        }
        Self::with_uri(text, &[], start, end, end)
    }

    fn with_uri(
        text: &'a [u8],
        display: &'a [u8],
        start: usize,
        end: usize,
        params: usize,
    ) -> Result<Self, ()> {
        let uri = &text[start..end];
        let params = Params::new(&text[params..]);
        if uri.is_empty() || uri.iter().any(|&b| scan::is_uri_stopper(b)) || !params.well_formed() {
            return Err(());
        }
        Ok(Self {
            display,
            uri,
            uri_span: Span {
                start: start as u32,
                end: end as u32,
            },
            params,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(&str, &str, &str)> {
        let addr = NameAddr::parse(text.as_bytes()).ok()?;
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        Some((text(addr.display), text(addr.uri), text(addr.params.text())))
    }

    #[test]
    fn without_brackets_parameters_belong_to_the_header() {
        assert_eq!(parse("sip:a@b;tag=1"), Some(("", "sip:a@b", ";tag=1")));
        assert_eq!(
            parse("<sip:a@b;lr>;tag=1"),
            Some(("", "sip:a@b;lr", ";tag=1"))
        );
    }

    #[test]
    fn display_names_are_taken_as_phones_send_them() {
        assert_eq!(
            parse("\"B, \\\"x\\\" <y>\"  <sip:a@b> ; q=1"),
            Some(("\"B, \\\"x\\\" <y>\"", "sip:a@b", " ; q=1"))
        );
        assert_eq!(parse("caller<sip:a@b>"), Some(("caller", "sip:a@b", "")));
        assert_eq!(
            parse("Jörg, A. <sip:a@b>"),
            Some(("Jörg, A.", "sip:a@b", ""))
        );
    }

    #[test]
    fn what_breaks_the_grammar_is_refused() {
        for bad in [
            "",
            " ",
            "<>",
            "<sip:a@b",
            "\"x <sip:a@b>",
            "\"x\" sip:a@b",
            "< sip:a@b >",
            "<sip:a@b> x",
            "sip:a@b?x=y",
            "sip:a@b, sip:c@d",
            "<sip:a@b>, <sip:c@d>",
            "sip:a@b;;",
            "sip:a@b c",
            "sip:a@b;tag=1<sip:c@d>",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
