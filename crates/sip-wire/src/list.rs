use crate::{Header, Headers, Span, scan};

/// One value of a comma-separated header, and where it is.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Value<'a> {
    pub text: &'a [u8],
    pub span: Span,
    /// The field it stands in.
    pub header: Header<'a>,
    /// First and last in its field: when both, removing the value removes the field.
    pub first: bool,
    pub last: bool,
}

/// Iterator over the comma-separated values of all fields of one name; commas in quotes and angle
/// brackets do not separate. Empty values are passed over.
#[derive(Clone)]
pub struct Values<'a> {
    headers: Headers<'a>,
    /// The field being walked, how far, and whether nothing of it was yielded yet.
    field: Option<(Header<'a>, usize, bool)>,
}

impl<'a> Values<'a> {
    pub(crate) const fn new(headers: Headers<'a>) -> Self {
        Self {
            headers,
            field: None,
        }
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        loop {
            let (header, at, first) = match self.field {
                Some(field) => field,
                None => (self.headers.next()?, 0, true),
            };
            let text = header.value;
            let start = skip_empty(text, at);
            if start == text.len() {
                self.field = None;
                continue;
            }
            let stop = value_end(text, start);
            let end = scan::trim_end(text, start, stop);
            self.field = Some((header, stop, false));
            let offset = header.value_span.start;
            return Some(Value {
                text: &text[start..end],
                span: Span {
                    start: offset + start as u32,
                    end: offset + end as u32,
                },
                header,
                first,
                last: skip_empty(text, stop) == text.len(),
            });
        }
    }
}

/// The first of comma-separated values, as they stand in one header field; empty when there is none.
#[must_use]
pub fn first_value(text: &[u8]) -> &[u8] {
    let start = skip_empty(text, 0);
    scan::trim(&text[start..value_end(text, start)])
}

/// How many values a field has.
pub(crate) fn count(value: &[u8]) -> usize {
    let mut count = 0;
    let mut at = skip_empty(value, 0);
    while at < value.len() {
        count += 1;
        at = skip_empty(value, value_end(value, at));
    }
    count
}

fn skip_empty(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && (text[at] == b',' || scan::is_space(text[at])) {
        at += 1;
    }
    at
}

/// Where the value that begins at `at` ends: at the next comma outside quotes and angle brackets.
fn value_end(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr3(b',', b'"', b'<', &text[at..]) {
        let found = at + found;
        at = match text[found] {
            b',' => return found,
            b'"' => scan::quoted_end(text, found),
            _ => memchr::memchr(b'>', &text[found..]).map(|n| found + n + 1),
        }
        .unwrap_or(text.len());
    }
    text.len()
}
