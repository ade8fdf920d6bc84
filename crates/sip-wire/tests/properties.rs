//! What holds for every input.

use proptest::collection::vec;
use proptest::prelude::*;
use sip_wire::{
    Edits, Frame, Framer, Framing, Index, Limits, Message, Name, ParseError, Response, Span, Uri,
};

const SEED: &[u8] = b"INVITE sip:bob@biloxi.com;x=y SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK7 , SIP/2.0/TCP g\r\n\
    To: \"B, \\\"o\" <sip:b%6Fb@[::1]:5070;lr>\r\nf: Alice\r\n <sip:a@b?c=d>;tag=1\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\n\
    Authorization: Digest username=\"bob\", nc=1\r\nContact: *\r\nMax-Forwards: 70\r\nl: 3\r\n\r\nabc";

/// The seed with some bytes replaced, removed or repeated, mostly by characters that mean something.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        proptest::sample::select(&b" \t\r\n;,:<>\"\\@=%?/[]*0aS"[..]),
        any::<u8>()
    ];
    vec((any::<prop::sample::Index>(), 0..4u8, byte), 0..12).prop_map(|changes| {
        let mut bytes = SEED.to_vec();
        for (at, kind, byte) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at + 1),
            }
        }
        bytes
    })
}

fn parsed<T>(
    bytes: &[u8],
    framing: Framing,
    read: impl FnOnce(Message<'_>, Result<(), ParseError>) -> T,
) -> T {
    let mut index = Index::new();
    let result = index.parse(bytes, framing, &Limits::default());
    read(index.message(bytes), result)
}

/// Frames of `stream` when its first bytes arrive in pieces of these lengths, the rest at once.
fn frames(stream: &[u8], pieces: &[usize], limits: &Limits) -> Vec<Frame> {
    let mut framer = Framer::default();
    let mut frames = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for piece in pieces.iter().copied().chain([stream.len()]) {
        end = (end + piece).min(stream.len());
        loop {
            let frame = framer.next(&stream[begin..end], limits);
            match frame {
                Frame::Incomplete => break,
                Frame::Blank { len, .. } | Frame::Message { len } => begin += len,
                Frame::Broken(_) => {
                    frames.push(frame);
                    return merged(&frames);
                }
            }
            frames.push(frame);
        }
    }
    merged(&frames)
}

/// Pings are reported with the CRLF that completes them, whole or not: counts blanks by what they are in all.
fn merged(frames: &[Frame]) -> Vec<Frame> {
    let mut out: Vec<Frame> = Vec::new();
    for &frame in frames {
        match (out.last_mut(), frame) {
            (
                Some(Frame::Blank { len, ping: false }),
                Frame::Blank {
                    len: more,
                    ping: true,
                },
            ) if *len == 2 && more == 2 => {
                out.pop();
                out.push(Frame::Blank { len: 4, ping: true });
            }
            _ => out.push(frame),
        }
    }
    out
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        3 => Just(SEED.to_vec()),
        2 => mutated(),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r\n\r\n".to_vec()),
        1 => Just(b"OPTIONS sip:a SIP/2.0\r\nContent-Length:\r\n 2\r\n\r\nxy".to_vec()),
        1 => Just(b"OPTIONS sip:a SIP/2.0\nl:0\n\n".to_vec()),
        1 => vec(any::<u8>(), 0..40),
    ];
    vec(part, 0..6).prop_map(|parts| parts.concat())
}

fn uri_text() -> impl Strategy<Value = String> {
    let user = "([a-cA-C;+]|%6[1-3]|%3[bB]|%2B){0,4}";
    let host = prop_oneof![
        "[ab]\\.C",
        Just("[2001:DB8::1]".into()),
        Just("[2001:db8:0::1]".into())
    ];
    let params = "(;(transport|lr|x|user|%78)(=[aA])?){0,3}";
    let headers = "(\\?[ab]=[12](&[ab]=[12])?)?";
    let scheme = proptest::sample::select(vec!["sip", "SIP", "sips"]);
    (scheme, user, host, "(:5060)?", params, headers).prop_map(
        |(scheme, user, host, port, params, headers)| {
            let at = if user.is_empty() { "" } else { "@" };
            format!("{scheme}:{user}{at}{host}{port}{params}{headers}")
        },
    )
}

fn aor(uri: &Uri<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    uri.write_aor(&mut out);
    out
}

proptest! {
    #[test]
    fn parsing_never_panics_and_spans_stay_inside(bytes in mutated()) {
        for framing in [Framing::Datagram, Framing::Stream] {
            parsed(&bytes, framing, |m, result| {
                let _ = (m.check(), m.uri().map(|uri| aor(&uri)));
                for header in m.all_headers() {
                    assert_eq!(&m.bytes()[header.value_span.range()], header.value);
                    assert!(m.bytes()[header.field_span.range()].starts_with(header.name_text));
                    for value in m.values(header.name) {
                        assert_eq!(&m.bytes()[value.span.range()], value.text);
                    }
                }
                if result.is_ok() {
                    assert!(m.head_start() <= m.head_end());
                    assert!(m.head_end() as usize + m.body().len() < m.bytes().len());
                }
            });
        }
    }

    #[test]
    fn what_is_written_to_a_good_request_can_be_read_again(bytes in mutated()) {
        parsed(&bytes, Framing::Datagram, |m, result| {
            if result.and_then(|()| m.check()).is_err() {
                return;
            }
            let mut out = Vec::new();
            Response {
                request: m,
                code: 200,
                reason: "",
                source: Some(([192, 0, 2, 1], 9).into()),
                to_tag: b"t",
            }
            .write(b"", b"body", &mut out);
            parsed(&out, Framing::Datagram, |r, result| {
                assert_eq!(result.and_then(|()| r.check()), Ok(()), "{}", String::from_utf8_lossy(&out));
                assert_eq!(r.body(), b"body");
                assert_eq!(r.call_id(), m.call_id());
                assert_eq!(r.cseq(), m.cseq());
                assert_eq!(r.via_count(), m.via_count());
                assert_eq!(r.top_via().unwrap().received(), Some([192, 0, 2, 1].into()));
                assert!(r.to().unwrap().tag().is_some());
            });
        });
    }

    #[test]
    fn any_split_of_a_stream_gives_the_same_frames(stream in stream(), pieces in vec(0..60usize, 0..20)) {
        let limits = Limits::default();
        prop_assert_eq!(frames(&stream, &pieces, &limits), frames(&stream, &[], &limits));
        let one_by_one = vec![1; stream.len()];
        prop_assert_eq!(frames(&stream, &one_by_one, &limits), frames(&stream, &[], &limits));
    }

    #[test]
    fn small_limits_hold_for_any_split(stream in stream(), pieces in vec(0..60usize, 0..20), max in 1..400usize) {
        let limits = Limits { head_bytes_max: max, message_bytes_max: max, ..Limits::default() };
        let whole = frames(&stream, &[], &limits);
        prop_assert_eq!(&frames(&stream, &pieces, &limits), &whole);
        let small = |frame: &Frame| !matches!(frame, Frame::Message { len } if *len > max);
        prop_assert!(whole.iter().all(small));
    }

    #[test]
    fn a_framed_message_is_the_message_that_is_indexed(stream in stream()) {
        if let Frame::Message { len } = Framer::default().next(&stream, &Limits::default()) {
            parsed(&stream[..len], Framing::Stream, |m, result| {
                if result.is_ok() {
                    assert_eq!(m.bytes(), &stream[..len]);
                }
            });
        }
    }

    #[test]
    fn edits_are_a_splice(cuts in vec((0..40u32, 0..6u32, "[x-z]{0,5}"), 0..6)) {
        // Spans in order and apart from each other, then the edits in reverse: order does not matter.
        let mut at = 0;
        let mut spans = Vec::new();
        for (skip, len, text) in cuts {
            let start = at + skip;
            spans.push((Span { start, end: start + len }, text));
            at = start + len + 1;
        }
        spans.retain(|(span, _)| span.end as usize <= SEED.len());
        let mut naive = SEED.to_vec();
        let mut edits = Edits::new();
        for (span, text) in spans.iter().rev() {
            naive.splice(span.range(), text.bytes());
            edits.replace(*span, text.as_bytes());
        }
        let written = parsed(SEED, Framing::Datagram, |m, _| {
            let mut out = Vec::new();
            edits.write(&m, &mut out);
            out
        });
        prop_assert_eq!(written, naive);
    }

    #[test]
    fn equality_of_uris_is_reflexive_and_symmetric(a in uri_text(), b in uri_text()) {
        let (a, b) = (Uri::parse(a.as_bytes()).unwrap(), Uri::parse(b.as_bytes()).unwrap());
        prop_assert!(a.equals(&a));
        prop_assert_eq!(a.equals(&b), b.equals(&a));
        // Equal URIs of one scheme never name different addresses-of-record.
        if a.equals(&b) {
            prop_assert_eq!(aor(&a), aor(&b));
        }
    }

    #[test]
    fn the_address_of_record_does_not_depend_on_its_spelling(user in "[a-zA-Z0-9.!~*'()&=+$,;?/-]{1,12}", escaped in any::<u16>()) {
        let other: String = user
            .chars()
            .enumerate()
            .map(|(i, c)| match escaped >> (i % 16) & 3 {
                0 => format!("%{:02x}", c as u8),
                1 => format!("%{:02X}", c as u8),
                _ => c.to_string(),
            })
            .collect();
        let (a, b) = (format!("sip:{user}@example.com"), format!("sips:{other}:pw@EXAMPLE.com:5061;x"));
        let (a, b) = (Uri::parse(a.as_bytes()).unwrap(), Uri::parse(b.as_bytes()).unwrap());
        prop_assert_eq!(aor(&a), aor(&b));
    }

    #[test]
    fn an_address_of_record_is_a_fixed_point(text in uri_text()) {
        let once = aor(&Uri::parse(text.as_bytes()).unwrap());
        let again = [&b"sip:"[..], &once].concat();
        prop_assert_eq!(aor(&Uri::parse(&again).unwrap()), once);
    }

    #[test]
    fn a_reused_index_holds_nothing_of_the_message_before(first in mutated(), second in mutated()) {
        let limits = Limits::default();
        let mut reused = Index::new();
        let _ = reused.parse(&first, Framing::Datagram, &limits);
        let result = reused.parse(&second, Framing::Datagram, &limits);
        parsed(&second, Framing::Datagram, |fresh, fresh_result| {
            assert_eq!(result, fresh_result);
            let reused = reused.message(&second);
            assert_eq!(format!("{:?}", reused.start()), format!("{:?}", fresh.start()));
            assert_eq!(reused.bytes(), fresh.bytes());
            let all = |m: &Message<'_>| m.all_headers().map(|h| format!("{h:?}")).collect::<Vec<_>>();
            assert_eq!(all(&reused), all(&fresh));
            assert_eq!(reused.headers(Name::Via).count(), fresh.headers(Name::Via).count());
        });
    }
}
