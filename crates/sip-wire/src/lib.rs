//! Bytes to borrowed views of SIP messages and back (RFC 3261 section 25).
//!
//! A message is parsed once into an [`Index`]: spans over the bytes it arrived in. A header is
//! decoded when it is asked for, every time with a `Result`. Forwarding applies [`Edits`] to the
//! old bytes. This crate knows no time, no sockets and no policy.

mod addr;
mod credentials;
mod edit;
mod error;
mod frame;
mod index;
mod limits;
mod list;
mod message;
mod method;
mod name;
mod params;
mod respond;
mod scan;
mod uri;
mod via;

pub use addr::NameAddr;
pub use credentials::Credentials;
pub use edit::Edits;
pub use error::ParseError;
pub use frame::{Frame, Framer};
pub use index::{Framing, Index};
pub use limits::Limits;
pub use list::{Value, Values, first_value};
pub use message::{CSeq, Essentials, Header, Headers, Message, StartLine};
pub use method::Method;
pub use name::Name;
pub use params::{Param, Params};
pub use respond::{Response, reason_phrase, write_ip, write_number};
pub use uri::{Scheme, Uri};
pub use via::{Via, ViaTransport};

/// A range of bytes in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span as a range to slice with.
    #[must_use]
    pub const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it spans nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }
}
