//! Messages as text. The phones write theirs with nothing but `format!`, so that they check the server's writer.

use location::Transport;
use sip_wire::{Message, Name};
use std::net::SocketAddr;

/// A request to be written.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) uri: &'a str,
    pub(crate) transport: Transport,
    pub(crate) sent_by: SocketAddr,
    pub(crate) branch: &'a str,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) call_id: &'a str,
    pub(crate) cseq: u32,
    /// Route values, topmost first.
    pub(crate) routes: &'a [String],
    /// Whole header lines.
    pub(crate) headers: &'a str,
    pub(crate) body: &'a str,
}

impl Request<'_> {
    pub(crate) fn write(&self) -> Vec<u8> {
        let Self {
            method,
            uri,
            sent_by,
            branch,
            from,
            to,
            call_id,
            cseq,
            headers,
            body,
            ..
        } = self;
        let transport = transport_name(self.transport);
        let routes: String = self
            .routes
            .iter()
            .map(|r| format!("Route: {r}\r\n"))
            .collect();
        let length = body.len();
        format!(
            "{method} {uri} SIP/2.0\r\n\
             Via: SIP/2.0/{transport} {sent_by};rport;branch={branch}\r\n\
             Max-Forwards: 70\r\n\
             {routes}From: {from}\r\n\
             To: {to}\r\n\
             Call-ID: {call_id}\r\n\
             CSeq: {cseq} {method}\r\n\
             {headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// A response: the fields of RFC 3261 section 8.2.6.2 copied line by line, a tag added to To when it has none.
pub(crate) fn response(
    request: &Message<'_>,
    code: u16,
    tag: &str,
    headers: &str,
    body: &str,
) -> Vec<u8> {
    let mut text = format!("SIP/2.0 {code} {}\r\n", phrase(code)).into_bytes();
    for field in request.all_headers() {
        let copied = match field.name {
            Name::Via | Name::From | Name::CallId | Name::CSeq => true,
            Name::RecordRoute => code > 100 && code < 300,
            Name::To => {
                text.extend_from_slice(b"To: ");
                text.extend_from_slice(field.value);
                if code > 100 && !field.value.windows(5).any(|w| w == b";tag=") {
                    text.extend_from_slice(format!(";tag={tag}").as_bytes());
                }
                text.extend_from_slice(b"\r\n");
                false
            }
            _ => false,
        };
        if copied {
            text.extend_from_slice(&request.bytes()[field.field_span.range()]);
        }
    }
    text.extend_from_slice(
        format!("{headers}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes(),
    );
    text
}

pub(crate) fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "UDP",
        _ => "TCP",
    }
}

/// Text of what the grammar keeps to UTF-8; anything else reads as empty and then matches nothing.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn phrase(code: u16) -> &'static str {
    match code {
        100 => "Trying",
        180 => "Ringing",
        200 => "OK",
        481 => "Call/Transaction Does Not Exist",
        486 => "Busy Here",
        487 => "Request Terminated",
        491 => "Request Pending",
        603 => "Decline",
        _ => "Other",
    }
}
