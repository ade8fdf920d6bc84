//! The bytes of what is sent on: edits of the received request (RFC 3261 section 16.6), CANCEL and ACK of our own.

use super::request::Request;
use super::route::{Routed, Target};
use crate::branch::Branch;
use crate::keyed::Keyed;
use crate::token::{Side, Token};
use location::{Flow, Transport};
use sip_wire::{Edits, Header, Message, Name, Span, Value, write_ip, write_number};
use smallvec::SmallVec;
use std::net::SocketAddr;

/// What all branches of a request have in common.
#[derive(Clone, Copy)]
pub(super) struct Forwarding {
    pub(super) own_routes: u8,
    pub(super) is_strict: bool,
    /// The next Route is a strict router: it becomes the Request-URI.
    pub(super) to_strict: bool,
    pub(super) record_route: bool,
    /// The caller's side of the dialog.
    caller: Side,
    pub(super) loop_hash: u64,
}

impl Forwarding {
    pub(super) fn new(
        request: &Request<'_>,
        routed: &Routed<'_>,
        is_ours: bool,
        loop_hash: u64,
    ) -> Self {
        let record_route = request.forms_dialog();
        Self {
            own_routes: routed.own_routes,
            is_strict: routed.is_strict,
            to_strict: routed
                .next_route
                .is_some_and(|route| route.uri().is_ok_and(|uri| !uri.params.has("lr"))),
            record_route,
            caller: Side {
                is_ours,
                flow: if record_route {
                    caller_flow(request)
                } else {
                    None
                },
            },
            loop_hash,
        }
    }
}

/// The caller's flow, where its Contact does not say where it is.
fn caller_flow(request: &Request<'_>) -> Option<Flow> {
    let flow = request.flow;
    let is_plain = || {
        let value = request.message.values(Name::Contact).next()?;
        let uri = sip_wire::NameAddr::parse(value.text).ok()?.uri().ok()?;
        Some(SocketAddr::new(uri.host_ip()?, uri.port.unwrap_or(5060)) == flow.peer)
    };
    (flow.transport.is_reliable() || is_plain() != Some(true)).then_some(flow)
}

/// One of our addresses, as others are to write it.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) transport: Transport,
    pub(super) address: SocketAddr,
    /// The host to name instead of the address.
    pub(super) advertise: Option<&'a str>,
}

impl Place<'_> {
    fn write_host(&self, out: &mut Vec<u8>) {
        match (self.advertise, self.address) {
            (Some(host), _) => out.extend_from_slice(host.as_bytes()),
            (None, SocketAddr::V4(_)) => write_ip(out, self.address.ip()),
            (None, SocketAddr::V6(_)) => {
                out.push(b'[');
                write_ip(out, self.address.ip());
                out.push(b']');
            }
        }
        out.push(b':');
        write_number(out, u32::from(self.address.port()));
    }

    fn write_record_route(&self, token: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"Record-Route: <sip:");
        out.extend_from_slice(token);
        out.push(b'@');
        self.write_host(out);
        if self.transport != Transport::Udp {
            out.extend_from_slice(b";transport=");
            out.extend_from_slice(
                transport_name(self.transport)
                    .to_ascii_lowercase()
                    .as_bytes(),
            );
        }
        out.extend_from_slice(b";lr>\r\n");
    }
}

/// As a Via writes it.
pub(super) const fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "UDP",
        Transport::Tcp => "TCP",
        Transport::Tls => "TLS",
        Transport::Ws => "WS",
        Transport::Wss => "WSS",
        Transport::Sctp => "SCTP",
    }
}

/// One branch to write.
pub(super) struct Outgoing<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) forwarding: &'a Forwarding,
    pub(super) target: &'a Target,
    pub(super) branch: Branch,
    /// The flow it leaves by; without a connection, one to be opened.
    pub(super) to: Flow,
    /// Which credentials are for us, and go no further (RFC 3261 section 22.3).
    pub(super) is_our_realm: &'a dyn Fn(&[u8]) -> bool,
    /// Our address on the side it leaves by, and on the side it came by.
    pub(super) outbound: Place<'a>,
    pub(super) inbound: Place<'a>,
}

impl Outgoing<'_> {
    /// Appends the message to `out`; `lines` is scratch memory.
    pub(super) fn write(
        &self,
        keyed: &Keyed,
        edits: &mut Edits,
        lines: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let message = &self.request.message;
        edits.clear();
        lines.clear();
        self.write_via(lines);
        self.write_record_routes(keyed, lines);
        if !self.target.path.is_empty() {
            put_line("Route", &self.target.path, lines);
        }
        self.edit_counts(edits, lines);
        if self.outbound.transport.is_reliable() && message.header(Name::ContentLength).is_none() {
            put_line(
                "Content-Length",
                message.body().len().to_string().as_bytes(),
                lines,
            );
        }
        edits.replace(at(message.head_start()), lines);
        self.edit_top_via(edits, lines);
        self.edit_routes(edits, lines);
        for header in message.headers(Name::ProxyAuthorization) {
            let credentials = sip_wire::Credentials::parse(header.value);
            if credentials.is_some_and(|credentials| (self.is_our_realm)(credentials.realm)) {
                edits.replace(header.field_span, b"");
            }
        }
        edits.write(message, out);
    }

    fn write_via(&self, lines: &mut Vec<u8>) {
        lines.extend_from_slice(b"Via: SIP/2.0/");
        lines.extend_from_slice(transport_name(self.outbound.transport).as_bytes());
        lines.push(b' ');
        self.outbound.write_host(lines);
        lines.extend_from_slice(b";branch=");
        self.branch.write(lines);
        lines.extend_from_slice(b"\r\n");
    }

    /// One entry, or one for each side where the two sides differ (RFC 5658), the outbound one on top.
    fn write_record_routes(&self, keyed: &Keyed, lines: &mut Vec<u8>) {
        if !self.forwarding.record_route {
            return;
        }
        let mut caller = self.forwarding.caller;
        let mut callee = Side {
            is_ours: self.target.is_ours,
            flow: self.target.flow,
        };
        // Where the other side is a stranger, our side's flow is what a stranger's request may go to, and what ours are known by.
        if caller.is_ours && !callee.is_ours {
            caller.flow = Some(self.request.flow);
        } else if callee.is_ours && !caller.is_ours {
            callee.flow = Some(self.to);
        }
        let mut token = Vec::with_capacity(160);
        Token::new(keyed, self.request.sender_tag(), caller, callee).write(
            keyed,
            self.request.call_id,
            &mut token,
        );
        self.outbound.write_record_route(&token, lines);
        if (self.outbound.transport, self.outbound.address)
            != (self.inbound.transport, self.inbound.address)
        {
            self.inbound.write_record_route(&token, lines);
        }
    }

    /// Max-Forwards and Max-Breadth (RFC 5393 section 5.3.3).
    fn edit_counts(&self, edits: &mut Edits, lines: &mut Vec<u8>) {
        let message = &self.request.message;
        let left = self
            .request
            .max_forwards()
            .map_or(70, |n| n.saturating_sub(1));
        let counts = [
            (Name::MaxForwards, Some(u32::from(left))),
            (Name::MaxBreadth, self.target.breadth),
        ];
        for (name, count) in counts {
            let Some(count) = count else { continue };
            match message.header(name) {
                Some(header) => {
                    let mut text = Vec::with_capacity(10);
                    write_number(&mut text, count);
                    edits.replace(header.value_span, &text);
                }
                None => {
                    lines.extend_from_slice(name.text().as_bytes());
                    lines.extend_from_slice(b": ");
                    write_number(lines, count);
                    lines.extend_from_slice(b"\r\n");
                }
            }
        }
    }

    /// Where the request came from, into its Via (RFC 3261 section 18.2.1, RFC 3581 section 4).
    fn edit_top_via(&self, edits: &mut Edits, text: &mut Vec<u8>) {
        let (via, peer) = (&self.request.via, self.request.flow.peer);
        text.clear();
        let is_needed = via.wants_rport() || via.host_ip() != Some(peer.ip().to_canonical());
        if let Some(received) = via.params.param("received").filter(|_| is_needed) {
            edits.replace(self.param_span(&received), b"");
        }
        if via.wants_rport() {
            if let Some(rport) = via.params.param("rport") {
                text.extend_from_slice(b"rport=");
                write_number(text, u32::from(peer.port()));
                text.extend_from_slice(b";received=");
                write_ip(text, peer.ip());
                let start = offset_in(self.request.message.bytes(), rport.name);
                edits.replace(
                    Span {
                        start,
                        end: start + rport.name.len() as u32,
                    },
                    text,
                );
            }
        } else if is_needed {
            text.extend_from_slice(b";received=");
            write_ip(text, peer.ip());
            edits.replace(at(via.span.end), text);
        }
    }

    /// A parameter and the semicolon before it.
    fn param_span(&self, param: &sip_wire::Param<'_>) -> Span {
        let bytes = self.request.message.bytes();
        let name = offset_in(bytes, param.name);
        let last = param.value.unwrap_or(param.name);
        let semicolon = bytes[..name as usize].iter().rposition(|&c| c == b';');
        Span {
            start: semicolon.map_or(name, |at| at as u32),
            end: offset_in(bytes, last) + last.len() as u32,
        }
    }

    /// The Request-URI and the Route header fields.
    fn edit_routes(&self, edits: &mut Edits, lines: &mut Vec<u8>) {
        let message = &self.request.message;
        let (uri, uri_span) = message.request_uri();
        let new_uri = if self.target.uri.is_empty() {
            uri
        } else {
            &*self.target.uri
        };
        let values: SmallVec<[Value<'_>; 4]> = if self.forwarding.own_routes == 0
            && !self.forwarding.is_strict
            && !self.forwarding.to_strict
        {
            SmallVec::new()
        } else {
            message.values(Name::Route).collect()
        };
        let mut keep = usize::from(self.forwarding.own_routes)
            ..values.len() - usize::from(self.forwarding.is_strict && !values.is_empty());
        if self.forwarding.to_strict
            && let Some(Ok(next)) = values
                .get(keep.start)
                .map(|value| sip_wire::NameAddr::parse(value.text))
        {
            keep.start += 1;
            lines.clear();
            lines.extend_from_slice(b"Route: <");
            lines.extend_from_slice(new_uri);
            lines.extend_from_slice(b">\r\n");
            edits.replace(at(message.head_end()), lines);
            edits.replace(uri_span, next.uri);
        } else if !self.target.uri.is_empty() {
            edits.replace(uri_span, new_uri);
        }
        remove_values(&values, keep, edits);
    }
}

/// Removes all values but `keep` from their header fields.
fn remove_values(values: &[Value<'_>], keep: std::ops::Range<usize>, edits: &mut Edits) {
    let mut i = 0;
    while i < values.len() {
        let field = values[i].header.field_span;
        let end = values[i..]
            .iter()
            .position(|value| value.header.field_span != field)
            .map_or(values.len(), |n| i + n);
        let kept = keep.start.clamp(i, end)..keep.end.clamp(i, end);
        if kept.is_empty() {
            edits.replace(field, b"");
        } else {
            if kept.start > i {
                edits.replace(
                    Span {
                        start: values[i].span.start,
                        end: values[kept.start].span.start,
                    },
                    b"",
                );
            }
            if kept.end < end {
                edits.replace(
                    Span {
                        start: values[kept.end - 1].span.end,
                        end: values[end - 1].span.end,
                    },
                    b"",
                );
            }
        }
        i = end;
    }
}

/// CANCEL or ACK for a request that we sent (RFC 3261 sections 9.1, 17.1.1.3): same Via, Request-URI, Route. `to` is the To value, `lines` are
/// further header lines.
pub(super) fn write_hop_by_hop(
    method: &str,
    sent: &Message<'_>,
    to: &[u8],
    lines: &[u8],
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(sent.request_uri().0);
    out.extend_from_slice(b" SIP/2.0\r\n");
    let mut field = |header: Option<Header<'_>>| {
        if let Some(header) = header {
            out.extend_from_slice(&sent.bytes()[header.field_span.range()]);
        }
    };
    field(sent.header(Name::Via));
    sent.headers(Name::Route)
        .for_each(|route| field(Some(route)));
    field(sent.header(Name::From));
    field(sent.header(Name::CallId));
    put_line("To", to, out);
    let number = sent.cseq().map_or(0, |cseq| cseq.number);
    out.extend_from_slice(b"CSeq: ");
    write_number(out, number);
    out.push(b' ');
    out.extend_from_slice(method.as_bytes());
    out.extend_from_slice(b"\r\nMax-Forwards: 70\r\n");
    out.extend_from_slice(lines);
    out.extend_from_slice(b"Content-Length: 0\r\n\r\n");
}

fn put_line(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

const fn at(offset: u32) -> Span {
    Span {
        start: offset,
        end: offset,
    }
}

/// Where a part of a message begins in it.
fn offset_in(whole: &[u8], part: &[u8]) -> u32 {
    (part.as_ptr() as usize - whole.as_ptr() as usize) as u32
}
