//! Each limit, at it and one over it.

use sip_wire::{Frame, Framer, Framing, Index, Limits, Name, ParseError};

fn request(headers: &str) -> Vec<u8> {
    format!("OPTIONS sip:a@b SIP/2.0\r\nCall-ID: first\r\n{headers}To: <sip:last@b>\r\n\r\n")
        .into_bytes()
}

fn parse(bytes: &[u8], limits: &Limits) -> Result<(), ParseError> {
    Index::new().parse(bytes, Framing::Datagram, limits)
}

#[test]
fn seventy_one_vias_pass_and_seventy_two_do_not() {
    let limits = Limits::default();
    let via = "Via: SIP/2.0/UDP h;branch=z9hG4bK1\r\n";
    assert_eq!(parse(&request(&via.repeat(70)), &limits), Ok(()));
    assert_eq!(parse(&request(&via.repeat(71)), &limits), Ok(()));
    let error = parse(&request(&via.repeat(72)), &limits).unwrap_err();
    assert_eq!(
        (error, error.answer()),
        (ParseError::TooManyVias, Some(400))
    );
}

#[test]
fn vias_in_one_field_count_one_by_one() {
    let limits = Limits {
        header_bytes_max: 64 * 1024,
        ..Limits::default()
    };
    let list = |count: usize| format!("v: {}\r\n", vec!["SIP/2.0/UDP h;x=\",\""; count].join(", "));
    assert_eq!(parse(&request(&list(71)), &limits), Ok(()));
    assert_eq!(
        parse(&request(&list(72)), &limits),
        Err(ParseError::TooManyVias)
    );
}

#[test]
fn a_via_field_without_a_value_counts_for_nothing() {
    let bytes = request("Via:  \r\nv: ,\r\nVia: SIP/2.0/UDP h\r\n");
    let mut index = Index::new();
    let parsed = index.parse(&bytes, Framing::Datagram, &Limits::default());
    assert_eq!(parsed, Ok(()));
    assert_eq!(index.message(&bytes).via_count(), 1);
}

#[test]
fn a_request_with_too_many_vias_still_holds_them_for_the_answer() {
    let bytes = request(&"Via: SIP/2.0/UDP h\r\n".repeat(100));
    let mut index = Index::new();
    assert!(
        index
            .parse(&bytes, Framing::Datagram, &Limits::default())
            .is_err()
    );
    let message = index.message(&bytes);
    assert_eq!(message.headers(Name::Via).count(), 100);
    assert_eq!(message.to().unwrap().uri, b"sip:last@b");
}

#[test]
fn a_header_field_may_be_as_long_as_the_limit() {
    let limits = Limits::default();
    let field = |len: usize| format!("X: {}\r\n", "a".repeat(len - 5));
    assert_eq!(
        parse(&request(&field(limits.header_bytes_max)), &limits),
        Ok(())
    );
    let folded = format!("X: {}\r\n b\r\n", "a".repeat(limits.header_bytes_max - 9));
    assert_eq!(parse(&request(&folded), &limits), Ok(()));
    for too_long in [
        field(limits.header_bytes_max + 1),
        format!("{folded} c\r\n"),
    ] {
        let error = parse(&request(&too_long), &limits).unwrap_err();
        assert_eq!(
            (error, error.answer()),
            (ParseError::HeaderTooLong, Some(513))
        );
    }
}

#[test]
fn header_fields_are_counted() {
    let limits = Limits {
        header_count_max: 10,
        ..Limits::default()
    };
    assert_eq!(parse(&request(&"X: y\r\n".repeat(8)), &limits), Ok(()));
    let error = parse(&request(&"X: y\r\n".repeat(9)), &limits).unwrap_err();
    assert_eq!(
        (error, error.answer()),
        (ParseError::TooManyHeaders, Some(513))
    );
}

#[test]
fn an_unlimited_count_of_header_fields_does_not_wrap() {
    let limits = Limits {
        header_count_max: usize::MAX,
        head_bytes_max: usize::MAX,
        ..Limits::default()
    };
    assert_eq!(
        parse(&request(&"a:\r\n".repeat(70_000)), &limits),
        Err(ParseError::TooManyHeaders)
    );
}

#[test]
fn the_head_is_limited_and_the_body_of_a_datagram_is_not() {
    let mut bytes = request(&"X: y\r\n".repeat(10));
    let limits = Limits {
        head_bytes_max: bytes.len(),
        ..Limits::default()
    };
    bytes.extend_from_slice(&[b'x'; 1000]);
    assert_eq!(parse(&bytes, &limits), Ok(()));
    let limits = Limits {
        head_bytes_max: limits.head_bytes_max - 1,
        ..limits
    };
    let error = parse(&bytes, &limits).unwrap_err();
    assert_eq!((error, error.answer()), (ParseError::TooLarge, Some(513)));
}

#[test]
fn a_stream_breaks_at_its_limits_and_not_before() {
    let message = b"OPTIONS sip:a SIP/2.0\r\nContent-Length: 5\r\n\r\n12345";
    let head = message.len() - 5;
    let next = |head_bytes_max, message_bytes_max, len| {
        let limits = Limits {
            head_bytes_max,
            message_bytes_max,
            ..Limits::default()
        };
        Framer::default().next(&message[..len], &limits)
    };
    let whole = Frame::Message { len: message.len() };
    let broken = Frame::Broken(ParseError::TooLarge);
    assert_eq!(next(head, message.len(), message.len()), whole);
    assert_eq!(next(head, message.len() - 1, message.len()), broken);
    assert_eq!(next(head - 1, message.len(), message.len()), broken);
    assert_eq!(next(head, message.len(), head - 1), Frame::Incomplete);
    assert_eq!(next(head - 1, message.len(), head - 1), broken);
    // A length that is a lie is refused as soon as it is read.
    let lie = b"OPTIONS sip:a SIP/2.0\r\nContent-Length: 99999999999999999999\r\n\r\n";
    assert_eq!(Framer::default().next(lie, &Limits::default()), broken);
}

#[test]
fn a_stream_that_is_not_sip_breaks_at_once() {
    let limits = Limits::default();
    let broken = Frame::Broken(ParseError::NotSip);
    for noise in [
        &b"\x16\x03\x01"[..],
        b"\0",
        b"\rX",
        b"GET / HTTP/1.1\r\nx",
        b"v=0\r\no=x",
    ] {
        assert_eq!(Framer::default().next(noise, &limits), broken, "{noise:?}");
    }
}

#[test]
fn a_message_byte_by_byte_is_scanned_once() {
    // Work is proportional to the bytes: a head at the limit, a byte at a time, and no byte looked at twice for
    // long. 80 Ki calls that each scanned from the start would touch three thousand million bytes.
    let limits = Limits::default();
    let mut bytes = b"OPTIONS sip:a SIP/2.0\r\n".to_vec();
    while bytes.len() < limits.head_bytes_max - 4 {
        bytes.extend_from_slice(b"a:\r\n ");
    }
    let mut framer = Framer::default();
    for len in 0..=bytes.len() {
        assert_eq!(framer.next(&bytes[..len], &limits), Frame::Incomplete);
    }
    bytes.extend_from_slice(b"\r\n\r\n\r\n\r\n");
    assert_eq!(
        framer.next(&bytes, &limits),
        Frame::Broken(ParseError::TooLarge)
    );
}
