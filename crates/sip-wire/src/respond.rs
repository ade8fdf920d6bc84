use crate::Message;
use std::net::SocketAddr;

/// Writes the response to a request (RFC 3261 section 8.2.6): Via (all, the top one with `received` and `rport` as RFC 3581
/// says), From, To, Call-ID, CSeq copied; Record-Route too for a 1xx beyond 100 and 2xx to INVITE and SUBSCRIBE; Timestamp in a 100.
pub struct Response<'a> {
    /// The request.
    pub request: Message<'a>,
    /// Status code.
    pub code: u16,
    /// Reason phrase; empty: the usual one.
    pub reason: &'a str,
    /// Where the request came from, for `received` and `rport`; `None` leaves the top Via as it is.
    pub source: Option<SocketAddr>,
    /// To tag to add when the request has none; empty: none added (100).
    pub to_tag: &'a [u8],
}

impl Response<'_> {
    /// Appends the response to `out`. `headers`: further whole header lines, each ending in CRLF. Content-Length is always written.
    /// Works on what can be read of a malformed request; headers that are missing are left out.
    pub fn write(&self, headers: &[u8], body: &[u8], out: &mut Vec<u8>) {
        let _ = (headers, body, out);
        todo!()
    }
}

/// The usual reason phrase of a status code (RFC 3261 section 21 and later RFCs); a class name for unknown ones.
#[must_use]
pub fn reason_phrase(code: u16) -> &'static str {
    let _ = code;
    todo!()
}
