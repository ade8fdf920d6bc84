//! Whatever arrives: it is parsed, checked, read by every accessor, edited and answered without a panic, and what is
//! written for a request that passed the check can be read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sip_wire::{
    Credentials, Edits, Framing, Index, Limits, Message, Method, Name, NameAddr, Params, Response,
    StartLine, Uri, Via,
};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    // What is written for a message that just keeps to the limits is a little more.
    let roomy = Limits {
        message_bytes_max: limits.message_bytes_max + 1024,
        head_bytes_max: limits.head_bytes_max + 1024,
        header_count_max: limits.header_count_max + 2,
        header_bytes_max: limits.header_bytes_max + 256,
        via_count_max: limits.via_count_max + 1,
    };
    let mut index = Index::new();
    for framing in [Framing::Datagram, Framing::Stream] {
        let parsed = index.parse(bytes, framing, &limits);
        let message = index.message(bytes);
        let checked = parsed.and_then(|()| message.check());
        read(&message);
        let forwarded = forward(&message);
        let answer = respond(&message);
        if let Err(error) = checked {
            assert!(!error.phrase().is_empty());
            continue;
        }
        let mut again = Index::new();
        again
            .parse(&forwarded, framing, &roomy)
            .expect("a forwarded message parses");
        let copy = again.message(&forwarded);
        copy.check().expect("a forwarded message is well formed");
        assert_eq!(copy.body(), message.body());
        assert_eq!(copy.header_count(), message.header_count() + 1);
        if message.is_request() {
            again
                .parse(&answer, framing, &roomy)
                .expect("an answer parses");
            let copy = again.message(&answer);
            copy.check().expect("an answer is well formed");
            assert_eq!(copy.via_count(), message.via_count());
            assert_eq!(copy.call_id(), message.call_id());
            assert_eq!(copy.cseq(), message.cseq());
        }
    }
    // The decoders of parts, on the whole of it.
    uri(bytes);
    name_addr(bytes);
    params(&Params::new(bytes));
    let _ = Via::parse(bytes, 7);
    let _ = Credentials::parse(bytes);
    let _ = Name::of(bytes);
    let _ = Method::of(bytes);
});

fn read(message: &Message<'_>) {
    match message.start() {
        StartLine::Request { uri: text, .. } => {
            assert_eq!(text, &message.bytes()[message.request_uri().1.range()]);
            uri(text);
        }
        StartLine::Response { code, .. } => assert_eq!(Some(code), message.code()),
    }
    assert!(message.head_start() <= message.head_end());
    for header in message.all_headers() {
        assert_eq!(&message.bytes()[header.value_span.range()], header.value);
        let first = message.header(header.name).expect("it was just seen");
        if first.field_span != header.field_span {
            continue;
        }
        for value in message.values(header.name) {
            assert_eq!(&message.bytes()[value.span.range()], value.text);
            assert!(!value.text.is_empty());
            name_addr(value.text);
        }
        let _ = message.number(header.name);
        let _ = message.has_token(header.name, "path");
        if let Ok(name) = std::str::from_utf8(header.name_text) {
            assert!(header.name != Name::Other || message.other(name).is_some());
        }
    }
    for via in message.vias().flatten() {
        let _ = (via.branch(), via.wants_rport(), via.received(), via.rport());
        params(&via.params);
    }
    let _ = (
        message.top_via(),
        message.from(),
        message.to(),
        message.call_id(),
    );
    let _ = (
        message.cseq(),
        message.max_forwards(),
        message.method_text(),
    );
    message.credentials(Name::Authorization).for_each(drop);
}

fn uri(text: &[u8]) {
    let Ok(uri) = Uri::parse(text) else { return };
    assert!(uri.equals(&uri));
    let mut aor = b"sip:".to_vec();
    uri.write_aor(&mut aor);
    if !uri.host.is_empty() {
        let again = Uri::parse(&aor).expect("an address-of-record is a URI");
        let mut twice = b"sip:".to_vec();
        again.write_aor(&mut twice);
        assert_eq!(aor, twice);
    }
    params(&uri.params);
    let _ = uri.host_ip();
}

fn name_addr(text: &[u8]) {
    if let Ok(addr) = NameAddr::parse(text) {
        assert_eq!(&text[addr.uri_span.range()], addr.uri);
        let _ = addr.tag();
        params(&addr.params);
        uri(addr.uri);
    }
}

fn params(params: &Params<'_>) {
    for param in params.iter().take(8) {
        if let Ok(name) = std::str::from_utf8(param.name) {
            assert!(params.has(name));
            let _ = (params.value(name), params.unquoted(name));
        }
    }
}

/// What a proxy does to any message.
fn forward(message: &Message<'_>) -> Vec<u8> {
    let mut edits = Edits::new();
    edits.insert(
        message.head_start(),
        &[b"Via: SIP/2.0/UDP 192.0.2.1;branch=", b"z9hG4bK1", b"\r\n"],
    );
    if let Some(header) = message.header(Name::MaxForwards) {
        edits.replace(header.value_span, b"7");
    }
    if message.is_request() {
        edits.replace(message.request_uri().1, b"sip:bob@192.0.2.4");
    }
    let mut out = Vec::new();
    edits.write(message, &mut out);
    out
}

fn respond(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Response {
        request: *message,
        code: 200,
        reason: "",
        source: Some(([192, 0, 2, 9], 5062).into()),
        to_tag: b"t",
    }
    .write(b"Server: x\r\n", b"body", &mut out);
    out
}
