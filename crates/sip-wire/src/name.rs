/// Declares the names once: the enum, their text, and the sentences about them.
macro_rules! names {
    ($($variant:ident $text:literal,)*) => {
        /// A header field name that the server knows, long and compact form alike (RFC 3261 section 7.3.3).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Name {
            $($variant,)*
            /// Any other name; its text is in the message.
            Other,
        }

        impl Name {
            /// How many there are, [`Name::Other`] included.
            pub(crate) const COUNT: usize = Self::Other as usize + 1;

            /// The long form as the RFCs write it; empty for [`Name::Other`].
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Other => "",
                }
            }

            pub(crate) const fn missing(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!("Missing ", $text, " Header Field"),)*
                    Self::Other => "Missing Header Field",
                }
            }

            pub(crate) const fn malformed(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!("Malformed ", $text, " Header Field"),)*
                    Self::Other => "Malformed Header Field",
                }
            }

            pub(crate) const fn repeated(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!("Repeated ", $text, " Header Field"),)*
                    Self::Other => "Repeated Header Field",
                }
            }

            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$variant,)*];
        }
    };
}

names! {
    Via "Via",
    From "From",
    To "To",
    CallId "Call-ID",
    CSeq "CSeq",
    Contact "Contact",
    MaxForwards "Max-Forwards",
    Route "Route",
    RecordRoute "Record-Route",
    ContentLength "Content-Length",
    ContentType "Content-Type",
    ContentEncoding "Content-Encoding",
    Expires "Expires",
    MinExpires "Min-Expires",
    Authorization "Authorization",
    ProxyAuthorization "Proxy-Authorization",
    WwwAuthenticate "WWW-Authenticate",
    ProxyAuthenticate "Proxy-Authenticate",
    Require "Require",
    ProxyRequire "Proxy-Require",
    Supported "Supported",
    Unsupported "Unsupported",
    Allow "Allow",
    Accept "Accept",
    AcceptEncoding "Accept-Encoding",
    UserAgent "User-Agent",
    Server "Server",
    Path "Path",
    ServiceRoute "Service-Route",
    RetryAfter "Retry-After",
    Date "Date",
    Event "Event",
    MaxBreadth "Max-Breadth",
    Reason "Reason",
    Warning "Warning",
    Subject "Subject",
    Timestamp "Timestamp",
    ReferTo "Refer-To",
    SessionExpires "Session-Expires",
    MinSe "Min-SE",
    RAck "RAck",
    RSeq "RSeq",
}

impl Name {
    /// The name that `text` is, long or compact, any case.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        if let [letter] = text {
            return Self::of_compact(*letter);
        }
        let name = Self::candidate(text);
        if same_any_case(text, name.text().as_bytes()) {
            name
        } else {
            Self::Other
        }
    }

    const fn of_compact(letter: u8) -> Self {
        match letter.to_ascii_lowercase() {
            b'v' => Self::Via,
            b'f' => Self::From,
            b't' => Self::To,
            b'i' => Self::CallId,
            b'm' => Self::Contact,
            b'l' => Self::ContentLength,
            b'c' => Self::ContentType,
            b'e' => Self::ContentEncoding,
            b'k' => Self::Supported,
            b'o' => Self::Event,
            b's' => Self::Subject,
            b'r' => Self::ReferTo,
            b'x' => Self::SessionExpires,
            _ => Self::Other,
        }
    }

    /// The only name with this length and these first two letters.
    const fn candidate(text: &[u8]) -> Self {
        let [first, second, ..] = text else {
            return Self::Other;
        };
        match (text.len(), *first | 0x20, *second | 0x20) {
            (2, b't', _) => Self::To,
            (3, b'v', _) => Self::Via,
            (4, b'f', _) => Self::From,
            (4, b'c', _) => Self::CSeq,
            (4, b'p', _) => Self::Path,
            (4, b'd', _) => Self::Date,
            (4, b'r', b'a') => Self::RAck,
            (4, b'r', _) => Self::RSeq,
            (5, b'r', _) => Self::Route,
            (5, b'a', _) => Self::Allow,
            (5, b'e', _) => Self::Event,
            (6, b'a', _) => Self::Accept,
            (6, b's', _) => Self::Server,
            (6, b'r', _) => Self::Reason,
            (6, b'm', _) => Self::MinSe,
            (7, b'c', b'a') => Self::CallId,
            (7, b'c', _) => Self::Contact,
            (7, b'e', _) => Self::Expires,
            (7, b'r', _) => Self::Require,
            (7, b'w', _) => Self::Warning,
            (7, b's', _) => Self::Subject,
            (8, b'r', _) => Self::ReferTo,
            (9, b's', _) => Self::Supported,
            (9, b't', _) => Self::Timestamp,
            (10, b'u', _) => Self::UserAgent,
            (11, b'm', b'a') => Self::MaxBreadth,
            (11, b'm', _) => Self::MinExpires,
            (11, b'u', _) => Self::Unsupported,
            (11, b'r', _) => Self::RetryAfter,
            (12, b'm', _) => Self::MaxForwards,
            (12, b'r', _) => Self::RecordRoute,
            (12, b'c', _) => Self::ContentType,
            (13, b'a', _) => Self::Authorization,
            (13, b'p', _) => Self::ProxyRequire,
            (13, b's', _) => Self::ServiceRoute,
            (14, b'c', _) => Self::ContentLength,
            (15, b'a', _) => Self::AcceptEncoding,
            (15, b's', _) => Self::SessionExpires,
            (16, b'c', _) => Self::ContentEncoding,
            (16, b'w', _) => Self::WwwAuthenticate,
            (18, b'p', _) => Self::ProxyAuthenticate,
            (19, b'p', _) => Self::ProxyAuthorization,
            _ => Self::Other,
        }
    }
}

/// `eq_ignore_ascii_case` by words instead of bytes: it runs for every field of every message.
fn same_any_case(a: &[u8], b: &[u8]) -> bool {
    // The pieces overlap when the length is no multiple of theirs.
    match a.len() {
        len if len != b.len() => false,
        len @ 4..8 => word(a, 0, len - 4) == word(b, 0, len - 4),
        len @ 8..=24 => [0, len - 8, (len - 8) / 2]
            .iter()
            .all(|&at| word(a, at, at + 4) == word(b, at, at + 4)),
        _ => a.eq_ignore_ascii_case(b),
    }
}

/// Four characters from `one` on and four from `other` on, letters in lower case.
fn word(text: &[u8], one: usize, other: usize) -> u64 {
    let mut word = [0; 8];
    word[..4].copy_from_slice(&text[one..one + 4]);
    word[4..].copy_from_slice(&text[other..other + 4]);
    lower(u64::from_ne_bytes(word))
}

/// Eight characters, ASCII letters in lower case.
const fn lower(word: u64) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let low_bits = word & all(0x7f);
    let from_a = low_bits + all(0x80 - b'A');
    let beyond_z = low_bits + all(0x7f - b'Z');
    let upper = from_a & !beyond_z & !word & all(0x80);
    word | upper >> 2
}

/// Compact forms of header fields that have no [`Name`] (RFC 3841, 3892, 6665, 8224).
pub(crate) const fn compact_of_other(long: &str) -> Option<u8> {
    let long = long.as_bytes();
    if long.eq_ignore_ascii_case(b"Referred-By") {
        Some(b'b')
    } else if long.eq_ignore_ascii_case(b"Accept-Contact") {
        Some(b'a')
    } else if long.eq_ignore_ascii_case(b"Reject-Contact") {
        Some(b'j')
    } else if long.eq_ignore_ascii_case(b"Request-Disposition") {
        Some(b'd')
    } else if long.eq_ignore_ascii_case(b"Allow-Events") {
        Some(b'u')
    } else if long.eq_ignore_ascii_case(b"Identity") {
        Some(b'y')
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_by_its_text_in_any_case() {
        for &name in Name::ALL {
            assert_eq!(Name::of(name.text().as_bytes()), name);
            assert_eq!(Name::of(name.text().to_lowercase().as_bytes()), name);
            assert_eq!(Name::of(name.text().to_uppercase().as_bytes()), name);
        }
    }

    #[test]
    fn a_name_one_letter_off_is_another() {
        for &name in Name::ALL {
            let mut text = name.text().as_bytes().to_vec();
            *text.last_mut().unwrap() = b'_';
            assert_eq!(Name::of(&text), Name::Other);
        }
        assert_eq!(Name::of(b""), Name::Other);
        assert_eq!(Name::of(b"z"), Name::Other);
    }

    #[test]
    fn words_are_compared_as_bytes_are() {
        for first in 0..=u8::MAX {
            for second in [
                b'A',
                b'Z',
                b'a',
                b'@',
                b'[',
                b'`',
                b'-',
                0x0d,
                0xc1,
                first ^ 0x20,
            ] {
                for (len, at) in [3, 4, 5, 7, 8, 15, 16, 24, 25]
                    .into_iter()
                    .flat_map(|len| (0..len).map(move |at| (len, at)))
                {
                    let (mut a, mut b) = ([b'x'; 25], [b'X'; 25]);
                    (a[at], b[at]) = (first, second);
                    let (a, b) = (&a[..len], &b[..len]);
                    assert_eq!(same_any_case(a, b), a.eq_ignore_ascii_case(b));
                }
            }
        }
    }

    #[test]
    fn compact_forms_are_names_too() {
        assert_eq!(Name::of(b"V"), Name::Via);
        assert_eq!(Name::of(b"i"), Name::CallId);
        assert_eq!(Name::of(b"x"), Name::SessionExpires);
    }
}
