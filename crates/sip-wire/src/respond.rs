use crate::{Header, Message, Method, Name, NameAddr, Value, Via};
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};

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
        let reason = if self.reason.is_empty() {
            reason_phrase(self.code)
        } else {
            self.reason
        };
        // The request's own size is a good guess: what is left out makes room for what is added.
        out.reserve(self.request.bytes().len() + headers.len() + body.len() + 64);
        out.extend_from_slice(b"SIP/2.0 ");
        write_number(out, u32::from(self.code));
        out.push(b' ');
        out.extend_from_slice(reason.as_bytes());
        out.extend_from_slice(b"\r\n");
        self.write_vias(out);
        if self.wants_record_route() {
            for header in self.request.headers(Name::RecordRoute) {
                write_header(out, &header);
            }
        }
        self.write_copy(Name::From, out);
        self.write_to(out);
        self.write_copy(Name::CallId, out);
        self.write_copy(Name::CSeq, out);
        if self.code == 100 {
            self.write_copy(Name::Timestamp, out);
        }
        out.extend_from_slice(headers);
        out.extend_from_slice(b"Content-Length: ");
        write_number(out, u32::try_from(body.len()).unwrap_or(u32::MAX));
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
    }

    fn wants_record_route(&self) -> bool {
        matches!(self.code, 101..300)
            && matches!(
                self.request.method(),
                Some(Method::Invite | Method::Subscribe)
            )
    }

    fn write_copy(&self, name: Name, out: &mut Vec<u8>) {
        if let Some(header) = self.request.header(name) {
            write_header(out, &header);
        }
    }

    fn write_to(&self, out: &mut Vec<u8>) {
        let Some(header) = self.request.header(Name::To) else {
            return;
        };
        out.extend_from_slice(b"To: ");
        out.extend_from_slice(header.value);
        let untagged = NameAddr::parse(header.value).is_ok_and(|to| !to.params.has("tag"));
        if untagged && !self.to_tag.is_empty() {
            out.extend_from_slice(b";tag=");
            out.extend_from_slice(self.to_tag);
        }
        out.extend_from_slice(b"\r\n");
    }

    fn write_vias(&self, out: &mut Vec<u8>) {
        let mut fields = self.request.headers(Name::Via);
        if let Some(source) = self.source
            && let Some(top) = self.request.values(Name::Via).next()
            && let Ok(via) = Via::parse(top.text, top.span.start)
        {
            // Fields before the top value are empty.
            fields.find(|field| field.field_span == top.header.field_span);
            write_top_via(out, &top, &via, source);
        }
        for header in fields {
            write_header(out, &header);
        }
    }
}

/// The field of the topmost Via, completed as RFC 3261 section 18.2.1 and RFC 3581 section 4 say. What the client wrote into
/// `received` is not kept.
fn write_top_via(out: &mut Vec<u8>, top: &Value<'_>, via: &Via<'_>, source: SocketAddr) {
    let ip = source.ip().to_canonical();
    let rport = via.wants_rport();
    let received = rport || via.host_ip() != Some(ip);
    out.extend_from_slice(b"Via: ");
    let params = via.params.text();
    out.extend_from_slice(&top.text[..top.text.len() - params.len()]);
    if !rport && !via.params.has("received") {
        out.extend_from_slice(params);
    } else {
        for param in via.params.iter() {
            let is = |name: &str| param.name.eq_ignore_ascii_case(name.as_bytes());
            if is("received") || rport && is("rport") {
                continue;
            }
            out.push(b';');
            out.extend_from_slice(param.name);
            if let Some(value) = param.value {
                out.push(b'=');
                out.extend_from_slice(value);
            }
        }
    }
    if received {
        out.extend_from_slice(b";received=");
        write_ip(out, ip);
    }
    if rport {
        out.extend_from_slice(b";rport=");
        write_number(out, u32::from(source.port()));
    }
    let value_end = top.header.value_span.start as usize + top.header.value.len();
    let rest = value_end - top.span.end as usize;
    out.extend_from_slice(&top.header.value[top.header.value.len() - rest..]);
    out.extend_from_slice(b"\r\n");
}

/// Appends an address as `Display` writes it, without its machinery for IPv4.
pub fn write_ip(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets().map(u32::from);
            write_number(out, a);
            for octet in [b, c, d] {
                out.push(b'.');
                write_number(out, octet);
            }
        }
        IpAddr::V6(ip) => {
            // Writing to a `Vec` does not fail.
            let _ = write!(out, "{ip}");
        }
    }
}

fn write_header(out: &mut Vec<u8>, header: &Header<'_>) {
    out.extend_from_slice(header.name.text().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(header.value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal.
pub fn write_number(out: &mut Vec<u8>, mut number: u32) {
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The usual reason phrase of a status code (RFC 3261 section 21 and later RFCs); a class name for unknown ones.
#[must_use]
pub const fn reason_phrase(code: u16) -> &'static str {
    match code {
        100 => "Trying",
        180 => "Ringing",
        181 => "Call Is Being Forwarded",
        182 => "Queued",
        183 => "Session Progress",
        199 => "Early Dialog Terminated",
        200 => "OK",
        202 => "Accepted",
        204 => "No Notification",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Moved Temporarily",
        305 => "Use Proxy",
        380 => "Alternative Service",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        410 => "Gone",
        412 => "Conditional Request Failed",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Unsupported URI Scheme",
        417 => "Unknown Resource-Priority",
        420 => "Bad Extension",
        421 => "Extension Required",
        422 => "Session Interval Too Small",
        423 => "Interval Too Brief",
        424 => "Bad Location Information",
        428 => "Use Identity Header",
        429 => "Provide Referrer Identity",
        430 => "Flow Failed",
        433 => "Anonymity Disallowed",
        436 => "Bad Identity Info",
        437 => "Unsupported Credential",
        438 => "Invalid Identity Header",
        439 => "First Hop Lacks Outbound Support",
        440 => "Max-Breadth Exceeded",
        469 => "Bad Info Package",
        470 => "Consent Needed",
        480 => "Temporarily Unavailable",
        481 => "Call/Transaction Does Not Exist",
        482 => "Loop Detected",
        483 => "Too Many Hops",
        484 => "Address Incomplete",
        485 => "Ambiguous",
        486 => "Busy Here",
        487 => "Request Terminated",
        488 => "Not Acceptable Here",
        489 => "Bad Event",
        491 => "Request Pending",
        493 => "Undecipherable",
        494 => "Security Agreement Required",
        500 => "Server Internal Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Server Time-out",
        505 => "Version Not Supported",
        513 => "Message Too Large",
        555 => "Push Notification Service Not Supported",
        580 => "Precondition Failure",
        600 => "Busy Everywhere",
        603 => "Decline",
        604 => "Does Not Exist Anywhere",
        606 => "Not Acceptable",
        607 => "Unwanted",
        608 => "Rejected",
        _ => match code / 100 {
            1 => "Progress",
            2 => "Success",
            3 => "Redirection",
            4 => "Request Failure",
            5 => "Server Failure",
            _ => "Global Failure",
        },
    }
}
