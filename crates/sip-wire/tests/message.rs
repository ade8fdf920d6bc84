//! One message of each kind, parsed, read, edited and answered.

use sip_wire::{
    Edits, Frame, Framer, Framing, Index, Limits, Message, Method, Name, ParseError, Response,
    Span, StartLine,
};

const INVITE: &str = "INVITE sip:bob@biloxi.com SIP/2.0\r\n\
    Via: SIP/2.0/UDP pc33.atlanta.com;branch=z9hG4bK776asdhds;rport , SIP/2.0/TCP b.example.com\r\n\
    v: SIP/2.0/TCP a.example.com\r\n\
    Record-Route: <sip:p1;lr>\r\n\
    Max-Forwards: 70\r\n\
    TO : Bob <sip:bob@biloxi.com>\r\n\
    f: Alice\r\n <sip:alice@atlanta.com>;tag=1928301774\r\n\
    Call-ID: a84b4c76e66710\r\n\
    CSeq: 314159 INVITE\r\n\
    Supported: 100rel,\r\n\ttimer\r\n\
    k:path\r\n\
    u: presence\r\n\
    X-Empty:\r\n\
    Authorization: Basic xyz\r\n\
    Authorization: Digest username=\"bob\", realm=\"biloxi.com\"\r\n\
    Expires: 99999999999\r\n\
    Content-Length: 4\r\n\
    \r\n\
    v=0\n";

fn with<T>(
    text: &[u8],
    framing: Framing,
    read: impl FnOnce(Message<'_>, Result<(), ParseError>) -> T,
) -> T {
    let mut index = Index::new();
    let result = index.parse(text, framing, &Limits::default());
    read(index.message(text), result)
}

fn invite<T>(read: impl FnOnce(Message<'_>) -> T) -> T {
    with(INVITE.as_bytes(), Framing::Datagram, |message, result| {
        assert_eq!(result, Ok(()));
        assert_eq!(message.check(), Ok(()));
        read(message)
    })
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn every_part_of_an_invite_is_found() {
    invite(|m| {
        assert!(matches!(
            m.start(),
            StartLine::Request {
                method: Method::Invite,
                method_text: b"INVITE",
                uri: b"sip:bob@biloxi.com"
            }
        ));
        assert_eq!(m.method(), Some(Method::Invite));
        assert_eq!(m.code(), None);
        assert_eq!(m.uri().unwrap().host, b"biloxi.com");
        assert_eq!(m.top_via().unwrap().branch(), b"z9hG4bK776asdhds");
        assert_eq!(m.via_count(), 3);
        assert_eq!(m.values(Name::Via).count(), 3);
        assert_eq!(m.vias().last().unwrap().unwrap().host, b"a.example.com");
        assert_eq!(m.from().unwrap().tag(), Some(&b"1928301774"[..]));
        assert_eq!(m.from().unwrap().display, b"Alice");
        assert_eq!(m.to().unwrap().tag(), None);
        assert_eq!(m.call_id(), Ok(&b"a84b4c76e66710"[..]));
        assert_eq!(m.cseq().unwrap().number, 314_159);
        assert_eq!(m.max_forwards(), Ok(Some(70)));
        assert_eq!(m.number(Name::Expires), Ok(Some(u32::MAX)));
        assert_eq!(m.number(Name::MinExpires), Ok(None));
        assert!(m.has_token(Name::Supported, "TIMER") && m.has_token(Name::Supported, "path"));
        assert!(!m.has_token(Name::Require, "path"));
        assert_eq!(text(m.other("Allow-Events").unwrap().value), "presence");
        assert_eq!(text(m.other("x-empty").unwrap().value), "");
        assert!(m.other("X-Absent").is_none());
        assert_eq!(
            m.credentials(Name::Authorization).next().unwrap().username,
            b"bob"
        );
        assert_eq!(m.headers(Name::Authorization).count(), 2);
        assert_eq!(m.all_headers().count(), 16);
        assert_eq!(m.body(), b"v=0\n");
    });
}

#[test]
fn spans_point_into_the_message() {
    invite(|m| {
        for header in m.all_headers() {
            assert_eq!(&m.bytes()[header.value_span.range()], header.value);
            let field = &m.bytes()[header.field_span.range()];
            assert!(field.starts_with(header.name_text) && field.ends_with(b"\r\n"));
        }
        for value in m.values(Name::Via) {
            assert_eq!(&m.bytes()[value.span.range()], value.text);
        }
        assert!(m.bytes()[m.head_end() as usize..].starts_with(b"\r\n"));
        assert!(m.bytes()[m.head_start() as usize..].starts_with(b"Via"));
    });
}

#[test]
fn values_know_whether_they_are_alone_in_their_field() {
    invite(|m| {
        let ends: Vec<_> = m.values(Name::Via).map(|v| (v.first, v.last)).collect();
        assert_eq!(ends, [(true, false), (false, true), (true, true)]);
    });
}

#[test]
fn forwarding_changes_only_what_it_names() {
    invite(|m| {
        let mut edits = Edits::new();
        let top = m.header(Name::Via).unwrap().field_span.start;
        edits.replace(m.header(Name::MaxForwards).unwrap().value_span, b"69");
        edits.replace(m.request_uri().1, b"sip:bob@192.0.2.4");
        edits.insert(top, &[b"Via: ", b"new", b"\r\n"]);
        edits.insert(top, &[b"X: second\r\n"]);
        edits.remove(m.header(Name::RecordRoute).unwrap().field_span);
        let mut out = Vec::new();
        edits.write(&m, &mut out);
        let expected = INVITE
            .replacen("bob@biloxi.com", "bob@192.0.2.4", 1)
            .replacen("Via: ", "Via: new\r\nX: second\r\nVia: ", 1)
            .replacen("Record-Route: <sip:p1;lr>\r\n", "", 1)
            .replacen(": 70", ": 69", 1);
        assert_eq!(text(&out), expected);
        edits.clear();
        out.clear();
        edits.write(&m, &mut out);
        assert_eq!(text(&out), INVITE);
    });
}

#[test]
fn overlapping_edits_do_not_panic_or_repeat_bytes() {
    with(
        b"OPTIONS sip:a SIP/2.0\r\n\r\n",
        Framing::Datagram,
        |m, _| {
            let mut edits = Edits::new();
            edits.replace(Span { start: 0, end: 13 }, b"A");
            edits.replace(Span { start: 8, end: 13 }, b"B");
            edits.replace(
                Span {
                    start: 9000,
                    end: 9999,
                },
                b"C",
            );
            let mut out = Vec::new();
            edits.write(&m, &mut out);
            assert_eq!(text(&out), "AB SIP/2.0\r\n\r\nC");
        },
    );
}

#[test]
fn a_response_copies_what_the_rfc_names() {
    invite(|request| {
        let mut out = Vec::new();
        Response {
            request,
            code: 180,
            reason: "",
            source: Some("[::ffff:192.0.2.1]:5062".parse().unwrap()),
            to_tag: b"99",
        }
        .write(b"Server: x\r\n", b"", &mut out);
        assert_eq!(
            text(&out),
            "SIP/2.0 180 Ringing\r\n\
             Via: SIP/2.0/UDP pc33.atlanta.com;branch=z9hG4bK776asdhds;received=192.0.2.1;rport=5062 , SIP/2.0/TCP b.example.com\r\n\
             Via: SIP/2.0/TCP a.example.com\r\n\
             Record-Route: <sip:p1;lr>\r\n\
             From: Alice\r\n <sip:alice@atlanta.com>;tag=1928301774\r\n\
             To: Bob <sip:bob@biloxi.com>;tag=99\r\n\
             Call-ID: a84b4c76e66710\r\n\
             CSeq: 314159 INVITE\r\n\
             Server: x\r\n\
             Content-Length: 0\r\n\r\n"
        );
    });
}

#[test]
fn a_response_to_a_broken_request_holds_what_could_be_read() {
    let request = b"INVITE  sip:b SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;received=9.9.9.9\r\nnonsense\r\nTo: sip:b;tag=1\r\n";
    with(request, Framing::Datagram, |m, result| {
        assert_eq!(result, Err(ParseError::RequestUri));
        let mut out = Vec::new();
        Response {
            request: m,
            code: 400,
            reason: "Malformed",
            source: Some("192.0.2.1:5060".parse().unwrap()),
            to_tag: b"99",
        }
        .write(b"", b"why", &mut out);
        assert_eq!(
            text(&out),
            "SIP/2.0 400 Malformed\r\nVia: SIP/2.0/UDP 192.0.2.1\r\nTo: sip:b;tag=1\r\nContent-Length: 3\r\n\r\nwhy"
        );
    });
}

#[test]
fn a_datagram_is_cut_at_content_length_and_may_not_be_shorter() {
    let head = "OPTIONS sip:a SIP/2.0\r\nl: 3\r\n\r\n";
    with(
        format!("\r\n\r\n{head}abcdef").as_bytes(),
        Framing::Datagram,
        |m, result| {
            assert_eq!(result, Ok(()));
            assert_eq!(m.body(), b"abc");
            assert!(m.bytes().starts_with(b"OPTIONS"));
        },
    );
    with(
        format!("{head}ab").as_bytes(),
        Framing::Datagram,
        |_, result| {
            assert_eq!(result, Err(ParseError::BodyShorterThanContentLength));
        },
    );
    with(
        b"OPTIONS sip:a SIP/2.0\r\n\r\nabc",
        Framing::Datagram,
        |m, _| assert_eq!(m.body(), b"abc"),
    );
    with(
        b"OPTIONS sip:a SIP/2.0\r\n\r\nabc",
        Framing::Stream,
        |m, _| assert_eq!(m.body(), b""),
    );
}

#[test]
fn what_is_not_sip_is_discarded_without_an_answer() {
    for noise in [
        &b""[..],
        b"\r\n\r\n",
        b"\0\0\0\0",
        b"\0\x01\0\0\x21\x12\xa4\x42",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01",
    ] {
        with(noise, Framing::Datagram, |m, result| {
            assert_eq!(result, Err(ParseError::NotSip), "{noise:?}");
            assert_eq!(ParseError::NotSip.answer(), None);
            assert_eq!(m.all_headers().count(), 0);
        });
    }
}

#[test]
fn frames_are_cut_by_content_length() {
    let limits = Limits::default();
    let one = "OPTIONS sip:a SIP/2.0\r\nContent-Length\t: \r\n 3\r\n\r\nabc";
    let stream = format!("\r\n\r\n{one}\r\n{one}\r\n\r\n");
    let mut framer = Framer::default();
    let mut bytes = stream.as_bytes();
    let mut frames = Vec::new();
    loop {
        let frame = framer.next(bytes, &limits);
        frames.push(frame);
        let (Frame::Blank { len, .. } | Frame::Message { len }) = frame else {
            break;
        };
        bytes = &bytes[len..];
    }
    let message = Frame::Message { len: one.len() };
    assert_eq!(
        frames,
        [
            Frame::Blank { len: 4, ping: true },
            message,
            Frame::Blank {
                len: 2,
                ping: false
            },
            message,
            Frame::Blank { len: 4, ping: true },
            Frame::Incomplete,
        ]
    );
}
