use crate::scan;

/// `;name=value` parameters, borrowed, decoded as they are walked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Params<'a> {
    text: &'a [u8],
}

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Param<'a> {
    pub name: &'a [u8],
    pub value: Option<&'a [u8]>,
}

impl<'a> Params<'a> {
    /// Over the text from the first `;` on.
    #[must_use]
    pub const fn new(text: &'a [u8]) -> Self {
        Self { text }
    }

    /// The text.
    #[must_use]
    pub const fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Walks them. Empty ones (`;;`) are passed over.
    pub fn iter(&self) -> impl Iterator<Item = Param<'a>> + 'a {
        Iter {
            text: self.text,
            at: 0,
        }
    }

    /// The first of that name, any case, with or without a value.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Param<'a>> {
        self.iter()
            .find(|param| param.name.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Its value (quotes kept, see [`Self::unquoted`]); `None` when absent or without a value.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&'a [u8]> {
        self.param(name)?.value
    }

    /// Its value, surrounding quotes removed (escapes left).
    #[must_use]
    pub fn unquoted(&self, name: &str) -> Option<&'a [u8]> {
        self.value(name).map(unquote)
    }

    /// Whether it is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.param(name).is_some()
    }

    /// Whether the text is `*( SEMI generic-param )`: no empty parameter, names are tokens, quotes close.
    pub(crate) fn well_formed(&self) -> bool {
        let text = self.text;
        let mut at = scan::skip_space(text, 0);
        while at < text.len() {
            if text[at] != b';' {
                return false;
            }
            let name = scan::skip_space(text, at + 1);
            let name_end = scan::skip_token(text, name);
            if name_end == name {
                return false;
            }
            at = scan::skip_space(text, name_end);
            if text.get(at) != Some(&b'=') {
                continue;
            }
            let value = scan::skip_space(text, at + 1);
            if text.get(value) == Some(&b'"') {
                let Some(end) = scan::quoted_end(text, value) else {
                    return false;
                };
                at = end;
            } else {
                at = value;
                while at < text.len() && scan::is_param_value(text[at]) {
                    at += 1;
                }
            }
            at = scan::skip_space(text, at);
        }
        true
    }
}

/// `text` without the quotes around it, if it has any.
pub(crate) fn unquote(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        _ => text,
    }
}

struct Iter<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Param<'a>;

    fn next(&mut self) -> Option<Param<'a>> {
        let text = self.text;
        let mut start = self.at;
        while start < text.len() && (text[start] == b';' || scan::is_space(text[start])) {
            start += 1;
        }
        if start == text.len() {
            self.at = start;
            return None;
        }
        let mut at = start;
        while at < text.len() && text[at] != b';' && text[at] != b'=' {
            at += 1;
        }
        let name = &text[start..scan::trim_end(text, start, at)];
        if text.get(at) != Some(&b'=') {
            self.at = at;
            return Some(Param { name, value: None });
        }
        let start = scan::skip_space(text, at + 1);
        let (end, next) = if text.get(start) == Some(&b'"') {
            let end = scan::quoted_end(text, start).unwrap_or(text.len());
            (end, next_semicolon(text, end))
        } else {
            let next = next_semicolon(text, start);
            (scan::trim_end(text, start, next), next)
        };
        self.at = next;
        Some(Param {
            name,
            value: Some(&text[start..end]),
        })
    }
}

fn next_semicolon(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] != b';' {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_walked_through_white_space_quotes_and_folds() {
        let params = Params::new(b" ;a ; b = 1\r\n ;c=\"x;y\\\"=\" ; D=;e");
        let all: Vec<_> = params.iter().collect();
        assert_eq!(all.len(), 5);
        assert_eq!(params.param("a").unwrap().value, None);
        assert_eq!(params.value("B"), Some(&b"1"[..]));
        assert_eq!(params.value("c"), Some(&b"\"x;y\\\"=\""[..]));
        assert_eq!(params.unquoted("c"), Some(&b"x;y\\\"="[..]));
        assert_eq!(params.value("d"), Some(&b""[..]));
        assert!(params.has("E") && !params.has("f"));
        assert!(params.well_formed());
    }

    #[test]
    fn malformed_parameters_are_told_from_well_formed_ones() {
        for good in ["", " ", ";a", ";a=b", " ; a = [::1] ", ";a=2001:db8::1"] {
            assert!(Params::new(good.as_bytes()).well_formed(), "{good}");
        }
        for bad in [
            ";",
            ";;",
            ";a;",
            "a",
            ";=b",
            ";a=\"b",
            ";a=b c",
            ";a=\"b\"c",
            ";a,b",
            ";a=<b>",
        ] {
            assert!(!Params::new(bad.as_bytes()).well_formed(), "{bad}");
        }
    }
}
