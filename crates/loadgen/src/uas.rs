//! What the tools answer to requests, and the pieces of requests that all have.

use net::Source;

use crate::{
    driver::Driver,
    io::Transport,
    message::{self, Put},
};

/// Appends what a response copies from its request (RFC 3261 section 8.2.6.2): Via, From, To with a
/// tag, Call-ID, CSeq, and Record-Route (section 12.1.1).
pub(crate) fn copy_head(request: &[u8], tag: &[u8], out: &mut Vec<u8>) {
    for (name, value, line) in message::fields(request) {
        let copied = [
            message::VIA,
            message::FROM,
            message::CALL_ID,
            message::CSEQ,
            message::RECORD_ROUTE,
        ];
        if copied.iter().any(|c| c.is(name)) {
            out.put(&[line]);
        } else if message::TO.is(name) {
            out.put(&[b"To: ", value]);
            if message::parameter(value, "tag").is_none() {
                out.put(&[b";tag=", tag]);
            }
            out.put(&[b"\r\n"]);
        }
    }
}

/// Answers a request. The same request gets the same answer again.
pub(crate) fn reply(
    driver: &mut Driver,
    from: &Source,
    request: &[u8],
    status: &[u8],
    fields: &[u8],
) {
    let mut response = Vec::with_capacity(512);
    response.put(&[b"SIP/2.0 ", status, b"\r\n"]);
    copy_head(request, &driver.tag, &mut response);
    response.put(&[fields, b"Content-Length: 0\r\n\r\n"]);
    driver.io.reply(from, &response);
}

/// Answers a request that belongs to nothing here any more: OPTIONS, BYE and MESSAGE with 200,
/// others with 481.
pub(crate) fn refuse(driver: &mut Driver, from: &Source, message: &[u8]) {
    let status: &[u8] = match message::method(message) {
        b"ACK" | b"" => return,
        b"OPTIONS" | b"BYE" | b"MESSAGE" => b"200 OK",
        _ => b"481 Call/Transaction Does Not Exist",
    };
    reply(driver, from, message, status, b"");
}

/// End of a Contact line behind its host and port.
pub(crate) fn contact_end(transport: Transport) -> &'static [u8] {
    match transport {
        Transport::Udp => b">\r\n",
        Transport::Tcp => b";transport=tcp>\r\n",
    }
}
