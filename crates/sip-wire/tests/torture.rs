//! The torture messages of RFC 4475 and RFC 5118, each as one datagram: what the parser says, and why.
//!
//! `Ok` is about the syntax only: what a proxy or a registrar then answers (416, 420, 483) is theirs to test.

#![allow(clippy::disallowed_methods, reason = "a test reads its messages")]

use sip_wire::{
    Frame, Framer, Framing, Index, Limits, Message, Method, Name, NameAddr, ParseError, Scheme,
    StartLine, Uri, ViaTransport,
};
use std::path::{Path, PathBuf};

use ParseError::*;

type Verdict = Result<(), ParseError>;

/// File, verdict, the RFC's reason.
const RFC4475: [(&str, Verdict, &str); 49] = [
    // Section 3.1.1, valid messages.
    (
        "wsinv",
        Ok(()),
        "3.1.1.1: white space and folds wherever the grammar allows them",
    ),
    (
        "intmeth",
        Ok(()),
        "3.1.1.2: the widest set of characters in every element",
    ),
    (
        "esc01",
        Ok(()),
        "3.1.1.3: escapes in URIs, some looking like delimiters",
    ),
    (
        "escnull",
        Ok(()),
        "3.1.1.4: escaped nulls do not end a user part",
    ),
    (
        "esc02",
        Ok(()),
        "3.1.1.5: % is no escape in a method, header name or display name",
    ),
    ("lwsdisp", Ok(()), "3.1.1.6: no white space before <"),
    ("longreq", Ok(()), "3.1.1.7: long values and 34 Vias"),
    (
        "dblreq",
        Ok(()),
        "3.1.1.8: octets behind Content-Length in a datagram are dropped",
    ),
    ("semiuri", Ok(()), "3.1.1.9: semicolons in the user part"),
    (
        "transports",
        Ok(()),
        "3.1.1.10: unknown transports in lower Vias",
    ),
    ("mpart01", Ok(()), "3.1.1.11: a binary multipart body"),
    (
        "unreason",
        Ok(()),
        "3.1.1.12: UTF-8 and punctuation in the reason phrase",
    ),
    ("noreason", Ok(()), "3.1.1.13: an empty reason phrase"),
    // Section 3.1.2, invalid messages.
    (
        "badinv01",
        Err(Malformed(Name::Via)),
        "3.1.2.1: empty parameters and values",
    ),
    (
        "clerr",
        Err(BodyShorterThanContentLength),
        "3.1.2.2: Content-Length larger than the datagram",
    ),
    (
        "ncl",
        Err(Malformed(Name::ContentLength)),
        "3.1.2.3: negative Content-Length",
    ),
    (
        "scalar02",
        Err(Malformed(Name::CSeq)),
        "3.1.2.4: CSeq beyond 2^31",
    ),
    (
        "scalarlg",
        Err(Malformed(Name::CSeq)),
        "3.1.2.5: a response with such a CSeq is dropped",
    ),
    (
        "quotbal",
        Err(Malformed(Name::To)),
        "3.1.2.6: the quote never closes",
    ),
    (
        "ltgtruri",
        Err(RequestUri),
        "3.1.2.7: <> around the Request-URI",
    ),
    (
        "lwsruri",
        Err(RequestUri),
        "3.1.2.8: white space inside the Request-URI",
    ),
    (
        "lwsstart",
        Err(RequestUri),
        "3.1.2.9: two spaces between the elements of the start line",
    ),
    (
        "trws",
        Err(StartLine),
        "3.1.2.10: spaces at the end of the start line",
    ),
    (
        "escruri",
        Err(RequestUri),
        "3.1.2.11: headers in the Request-URI",
    ),
    (
        "baddate",
        Err(Malformed(Name::Date)),
        "3.1.2.12: a time zone that is not GMT",
    ),
    (
        "regbadct",
        Err(Malformed(Name::Contact)),
        "3.1.2.13: ? in a URI without <>",
    ),
    (
        "badaspec",
        Err(Malformed(Name::To)),
        "3.1.2.14: spaces within <>",
    ),
    (
        "baddn",
        Err(HeadUnfinished),
        "3.1.2.15: the archive's message lacks its empty line; see the display name below",
    ),
    ("badvers", Err(Version), "3.1.2.16: SIP/7.0"),
    (
        "mismatch01",
        Err(MethodMismatch),
        "3.1.2.17: OPTIONS with the CSeq of an INVITE",
    ),
    (
        "mismatch02",
        Err(MethodMismatch),
        "3.1.2.18: the same with an unknown method",
    ),
    (
        "bigcode",
        Err(StartLine),
        "3.1.2.19: a status code of ten digits is dropped",
    ),
    // Section 3.2, transaction layer.
    (
        "badbranch",
        Ok(()),
        "3.2.1: the branch is the cookie alone: transaction matching falls back",
    ),
    // Section 3.3, application layer.
    (
        "insuf",
        Err(Missing(Name::From)),
        "3.3.1: no Call-ID, From, or To",
    ),
    ("unkscm", Ok(()), "3.3.2: 416 by the proxy"),
    ("novelsc", Ok(()), "3.3.3: 416 by the proxy"),
    ("unksm2", Ok(()), "3.3.4: the registrar refuses the To"),
    ("bext01", Ok(()), "3.3.5: 420 by the proxy"),
    ("invut", Ok(()), "3.3.6: 415 is for the callee"),
    (
        "regaut01",
        Ok(()),
        "3.3.7: unknown authorization schemes are passed over",
    ),
    (
        "multi01",
        Err(Repeated(Name::From)),
        "3.3.8: two values of CSeq, Call-ID, From, To, Max-Forwards",
    ),
    (
        "mcl01",
        Err(Repeated(Name::ContentLength)),
        "3.3.9: two Content-Lengths",
    ),
    (
        "bcast",
        Ok(()),
        "3.3.10: the second Via is not ours: dropped by the proxy",
    ),
    ("zeromf", Ok(()), "3.3.11: 483 by the proxy"),
    (
        "cparam01",
        Ok(()),
        "3.3.12: without <> the parameter is Contact's",
    ),
    ("cparam02", Ok(()), "3.3.13: with <> it is the URI's"),
    ("regescrt", Ok(()), "3.3.14: an escaped Route in a Contact"),
    ("sdp01", Ok(()), "3.3.15: 406 is for the callee"),
    // Section 3.4.
    (
        "inv2543",
        Ok(()),
        "3.4.1: RFC 2543 without branch, Max-Forwards, From tag and Content-Length",
    ),
];

const RFC5118: [(&str, Verdict, &str); 12] = [
    ("ipv6-good", Ok(()), "4.1: an IPv6 reference"),
    (
        "ipv6-bad",
        Err(RequestUri),
        "4.2: an IPv6 address without brackets",
    ),
    (
        "port-ambiguous",
        Ok(()),
        "4.3: the port inside the brackets is part of the address",
    ),
    (
        "port-unambiguous",
        Ok(()),
        "4.4: the port behind the brackets",
    ),
    (
        "via-received-param-with-delim",
        Ok(()),
        "4.5: received in brackets",
    ),
    (
        "via-received-param-no-delim",
        Ok(()),
        "4.5: received without brackets",
    ),
    ("ipv6-in-sdp", Ok(()), "4.6: IPv6 in the body"),
    (
        "mult-ip-in-header",
        Ok(()),
        "4.7: IPv4 and IPv6 in one list of Vias",
    ),
    ("mult-ip-in-sdp", Ok(()), "4.8: both in the body"),
    ("ipv4-mapped-ipv6", Ok(()), "4.9: IPv4-mapped addresses"),
    (
        "ipv6-bug-abnf-3-colons",
        Ok(()),
        "4.10: the three colons of RFC 3261's grammar are tolerated",
    ),
    (
        "ipv6-correct-abnf-2-colons",
        Ok(()),
        "4.10: and the correct two",
    ),
];

#[test]
fn every_message_gets_the_verdict_of_its_rfc() {
    let tables = [("rfc4475", &RFC4475[..]), ("rfc5118", &RFC5118[..])];
    for (rfc, name, expected, why) in tables
        .into_iter()
        .flat_map(|(rfc, table)| table.iter().map(move |&(name, v, why)| (rfc, name, v, why)))
    {
        read(rfc, name, |message, result| {
            let verdict = result.and_then(|()| message.check());
            assert_eq!(verdict, expected, "{rfc}/{name}: {why}");
        });
    }
}

#[test]
fn every_refusal_has_the_status_of_its_rfc() {
    for (name, verdict, why) in RFC4475.iter().chain(&RFC5118) {
        let Err(error) = verdict else { continue };
        let status = if *name == "badvers" { 505 } else { 400 };
        assert_eq!(error.answer(), Some(status), "{name}: {why}");
        assert!(!error.phrase().is_empty());
    }
}

#[test]
fn every_file_stands_in_a_table() {
    for (rfc, table) in [("rfc4475", &RFC4475[..]), ("rfc5118", &RFC5118[..])] {
        let mut files: Vec<String> = std::fs::read_dir(directory(rfc))
            .unwrap()
            .map(|file| {
                let path = file.unwrap().path();
                path.file_stem().unwrap().to_str().unwrap().to_owned()
            })
            .collect();
        let mut named: Vec<_> = table.iter().map(|(name, ..)| (*name).to_owned()).collect();
        files.sort();
        named.sort();
        assert_eq!(files, named);
    }
}

#[test]
fn refused_requests_can_still_be_answered() {
    // All five header fields that a response copies are read in spite of the fault.
    for name in [
        "lwsstart", "trws", "lwsruri", "ltgtruri", "badvers", "clerr", "ncl", "baddn", "escruri",
    ] {
        read("rfc4475", name, |m, _| {
            assert!(m.is_request(), "{name}");
            assert!(
                m.top_via().is_ok() && m.from().is_ok() && m.to().is_ok(),
                "{name}"
            );
            assert!(m.call_id().is_ok() && m.cseq().is_ok(), "{name}");
        });
    }
    for name in ["bigcode", "scalarlg"] {
        read("rfc4475", name, |m, _| assert!(!m.is_request(), "{name}"));
    }
}

#[test]
fn on_a_stream_a_wrong_content_length_waits_or_breaks_it() {
    let limits = Limits::default();
    let next = |name| Framer::default().next(&bytes("rfc4475", name), &limits);
    assert_eq!(next("clerr"), Frame::Incomplete);
    assert_eq!(next("ncl"), Frame::Broken(Malformed(Name::ContentLength)));
    assert_eq!(next("mcl01"), Frame::Broken(Repeated(Name::ContentLength)));
    assert!(matches!(next("wsinv"), Frame::Message { .. }));
}

#[test]
fn wsinv_white_space_is_ignored_everywhere() {
    accepted("rfc4475", "wsinv", |m| {
        assert_eq!(m.uri().unwrap().user, Some(&b"vivekg"[..]));
        assert!(m.uri().unwrap().params.has("unknownparam"));
        assert_eq!(m.to().unwrap().uri, b"sip:vivekg@chair-dnrc.example.com");
        assert_eq!(m.to().unwrap().tag(), Some(&b"1918181833n"[..]));
        assert_eq!(m.from().unwrap().display, br#""J Rosenberg \\\"""#);
        assert_eq!(m.from().unwrap().tag(), Some(&b"98asjd8"[..]));
        assert_eq!(m.max_forwards(), Ok(Some(68)));
        assert_eq!(m.call_id(), Ok(&b"wsinv.ndaksdj@192.0.2.1"[..]));
        let cseq = m.cseq().unwrap();
        assert_eq!((cseq.number, cseq.method), (9, Method::Invite));
        let vias: Vec<_> = m.vias().map(Result::unwrap).collect();
        let hosts: Vec<_> = vias
            .iter()
            .map(|via| (via.transport, text(via.host), text(via.branch())))
            .collect();
        assert_eq!(
            hosts,
            [
                (ViaTransport::Udp, "192.0.2.2", "390skdjuw"),
                (ViaTransport::Tcp, "spindle.example.com", "z9hG4bK9ikj8"),
                (ViaTransport::Udp, "192.168.255.111", "z9hG4bK30239"),
            ]
        );
        assert_eq!(m.header(Name::Subject).unwrap().value, b"");
        assert_eq!(
            text(m.other("NewFangledHeader").unwrap().value),
            "newfangled value\r\n continued newfangled value"
        );
        assert_eq!(
            text(m.other("UnknownHeaderWithUnusualValue").unwrap().value),
            ";;,,;;,;"
        );
        let contact = NameAddr::parse(m.header(Name::Contact).unwrap().value).unwrap();
        assert_eq!(contact.display, br#""Quoted string \"\"""#);
        assert_eq!(contact.params.value("newparam"), Some(&b"newvalue"[..]));
        assert_eq!(contact.params.value("q"), Some(&b"0.33"[..]));
        assert_eq!(contact.params.param("secondparam").unwrap().value, None);
        let route = NameAddr::parse(m.header(Name::Route).unwrap().value).unwrap();
        assert_eq!(
            route.uri().unwrap().params.value("unknownwith"),
            Some(&b"value"[..])
        );
        assert_eq!(m.body().len(), 150);
    });
}

#[test]
fn intmeth_takes_the_widest_set_of_characters() {
    accepted("rfc4475", "intmeth", |m| {
        assert_eq!(m.method(), Some(Method::Other));
        assert_eq!(
            text(m.method_text()),
            "!interesting-Method0123456789_*+`.%indeed'~"
        );
        let uri = m.uri().unwrap();
        assert_eq!(
            text(uri.user.unwrap()),
            "1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*"
        );
        assert_eq!(
            text(uri.password.unwrap()),
            "&it+has=1,weird!*pas$wo~d_too.(doesn't-it)"
        );
        assert_eq!(uri.host, b"example.com");
        assert_eq!(m.top_via().unwrap().branch(), b"z9hG4bK-.!%66*_+`'~");
        assert!(m.to().unwrap().display.contains(&0));
        let from = m.from().unwrap();
        assert_eq!(text(from.display), "token1~` token2'+_ token3*%!.-");
        assert_eq!(
            text(from.params.unquoted("fromParam''~+*_!.-%").unwrap()),
            "работающий"
        );
        assert_eq!(text(from.tag().unwrap()), "_token~1'+`*%!-.");
        assert_eq!(
            text(m.call_id().unwrap()),
            r#"intmeth.word%ZK-!.*_+'@word`~)(><:\/"][?}{"#
        );
        assert_eq!(m.max_forwards(), Ok(Some(255)));
        assert!(m.other("extensionHeader-!.%*+_`'~").is_some());
    });
}

#[test]
fn esc01_escapes_are_not_delimiters() {
    accepted("rfc4475", "esc01", |m| {
        let uri = m.uri().unwrap();
        assert_eq!(
            (uri.scheme, uri.user),
            (Scheme::Sip, Some(&b"sips%3Auser%40example.com"[..]))
        );
        assert_eq!(uri.host, b"example.net");
        assert_eq!(aor(&uri), "sips%3Auser%40example.com@example.net");
        assert_eq!(aor(&m.to().unwrap().uri().unwrap()), "user@example.com");
        assert_eq!(
            aor(&m.from().unwrap().uri().unwrap()),
            "I%20have%20spaces@example.net"
        );
        let contact = NameAddr::parse(m.header(Name::Contact).unwrap().value).unwrap();
        let plain = Uri::parse(b"sip:caller@host5.example.net;lr;name=value%2541").unwrap();
        assert!(contact.uri().unwrap().equals(&plain));
    });
}

#[test]
fn escnull_escaped_nulls_stay_escaped_and_distinct() {
    accepted("rfc4475", "escnull", |m| {
        assert_eq!(
            aor(&m.to().unwrap().uri().unwrap()),
            "null-%00-null@example.com"
        );
        let contacts: Vec<_> = m
            .values(Name::Contact)
            .map(|value| NameAddr::parse(value.text).unwrap().uri().unwrap())
            .collect();
        assert_eq!(contacts.len(), 2);
        assert!(!contacts[0].equals(&contacts[1]));
        assert_eq!(aor(&contacts[1]), "%00%00@host5.example.com");
    });
}

#[test]
fn esc02_percent_is_no_escape_outside_uris() {
    accepted("rfc4475", "esc02", |m| {
        assert_eq!(m.method(), Some(Method::Other));
        assert_eq!(m.method_text(), b"RE%47IST%45R");
        assert_eq!(m.headers(Name::Contact).count(), 2);
        assert!(m.other("C%6Fntact").is_some());
        assert_eq!(m.to().unwrap().display, b"\"%Z%45\"");
        assert_eq!(m.top_via().unwrap().branch(), b"z9hG4bK209%fzsnel234");
    });
}

#[test]
fn lwsdisp_and_baddn_display_names_are_read() {
    accepted("rfc4475", "lwsdisp", |m| {
        assert_eq!(m.from().unwrap().display, b"caller");
        assert_eq!(m.from().unwrap().tag(), Some(&b"323"[..]));
    });
    let mut whole = bytes("rfc4475", "baddn");
    whole.extend_from_slice(b"\r\n");
    parsed(&whole, |m, result| {
        assert_eq!(result.and_then(|()| m.check()), Ok(()));
        assert_eq!(m.from().unwrap().display, b"Bell, Alexander");
    });
}

#[test]
fn longreq_long_values_are_read_whole() {
    accepted("rfc4475", "longreq", |m| {
        assert_eq!(m.via_count(), 34);
        let branch = m.vias().last().unwrap().unwrap().branch();
        assert!(branch.starts_with(b"verylong") && branch.ends_with(b"longbranchvalue"));
        assert_eq!(m.to().unwrap().uri().unwrap().port, Some(6000));
        assert!(m.from().unwrap().tag().unwrap().starts_with(b"12982982982"));
        assert_eq!(m.body().len(), 150);
    });
}

#[test]
fn dblreq_is_the_first_request_only() {
    let limits = Limits::default();
    let all = bytes("rfc4475", "dblreq");
    accepted("rfc4475", "dblreq", |m| {
        assert_eq!(m.method(), Some(Method::Register));
        assert_eq!(m.body(), b"");
        assert!(m.bytes().len() < all.len());
        assert_eq!(
            Framer::default().next(&all, &limits),
            Frame::Message {
                len: m.bytes().len()
            }
        );
    });
}

#[test]
fn semiuri_parameters_of_the_user_stay_with_the_user() {
    accepted("rfc4475", "semiuri", |m| {
        let uri = m.uri().unwrap();
        assert_eq!(uri.user, Some(&b"user;par=u%40example.net"[..]));
        assert_eq!(
            (uri.host, uri.params.text()),
            (&b"example.com"[..], &b""[..])
        );
        assert_eq!(m.values(Name::Accept).count(), 6);
        assert!(m.has_token(Name::Accept, "message/sipfrag"));
    });
}

#[test]
fn transports_unknown_ones_are_tolerated() {
    accepted("rfc4475", "transports", |m| {
        let all: Vec<_> = m.vias().map(|via| via.unwrap().transport).collect();
        use ViaTransport::*;
        assert_eq!(all, [Udp, Sctp, Tls, Other, Tcp]);
    });
}

#[test]
fn mpart01_the_binary_body_is_untouched() {
    accepted("rfc4475", "mpart01", |m| {
        assert_eq!(m.body().len(), 553);
        assert!(m.body().contains(&0));
        assert!(m.top_via().unwrap().wants_rport());
        assert!(m.body().ends_with(b"--7a9cbec02ceef655--\r\n"));
    });
}

#[test]
fn unreason_and_noreason_reason_phrases_are_kept() {
    accepted("rfc4475", "unreason", |m| {
        let StartLine::Response { code, reason } = m.start() else {
            panic!("a response");
        };
        assert_eq!(code, 200);
        assert_eq!(
            text(reason),
            "= 2**3 * 5**2 но сто девяносто девять - простое"
        );
    });
    accepted("rfc4475", "noreason", |m| {
        assert!(matches!(
            m.start(),
            StartLine::Response {
                code: 100,
                reason: b""
            }
        ));
    });
}

#[test]
fn cparam_brackets_decide_whose_parameter_it_is() {
    let of = |name| {
        let mut found = (false, false);
        accepted("rfc4475", name, |m| {
            let contact = NameAddr::parse(m.header(Name::Contact).unwrap().value).unwrap();
            found = (
                contact.params.has("unknownparam"),
                contact.uri().unwrap().params.has("unknownparam"),
            );
        });
        found
    };
    assert_eq!(of("cparam01"), (true, false));
    assert_eq!(of("cparam02"), (false, true));
}

#[test]
fn rfc5118_addresses_are_found_where_they_stand() {
    let host = |name: &str| {
        let mut found = None;
        accepted("rfc5118", name, |m| {
            let uri = m.uri().unwrap();
            found = Some((uri.host_ip().unwrap().to_string(), uri.port));
        });
        found.unwrap()
    };
    assert_eq!(host("ipv6-good"), ("2001:db8::10".into(), None));
    assert_eq!(host("port-ambiguous"), ("2001:db8::10:5070".into(), None));
    assert_eq!(
        host("port-unambiguous"),
        ("2001:db8::10".into(), Some(5070))
    );
    assert_eq!(host("ipv6-in-sdp"), ("2001:db8::10".into(), None));
    assert_eq!(host("mult-ip-in-sdp"), ("2001:db8::10".into(), None));
    assert_eq!(
        host("ipv6-bug-abnf-3-colons"),
        ("2001:db8::c000:201".into(), None)
    );
    assert_eq!(
        host("ipv6-correct-abnf-2-colons"),
        ("2001:db8::c000:201".into(), None)
    );
    for name in [
        "via-received-param-with-delim",
        "via-received-param-no-delim",
    ] {
        accepted("rfc5118", name, |m| {
            let received = m.top_via().unwrap().received();
            assert_eq!(received, Some("2001:db8::9:255".parse().unwrap()), "{name}");
        });
    }
    accepted("rfc5118", "mult-ip-in-header", |m| {
        let hosts: Vec<_> = m.vias().map(|via| text(via.unwrap().host)).collect();
        assert_eq!(hosts, ["[2001:db8::9:1]", "192.0.2.1", "[2001:db8::9:255]"]);
        assert_eq!(m.top_via().unwrap().port, Some(6050));
    });
    accepted("rfc5118", "ipv4-mapped-ipv6", |m| {
        let via = m.top_via().unwrap();
        assert_eq!(via.host_ip(), Some("::ffff:192.0.2.10".parse().unwrap()));
        assert_eq!(via.port, Some(19823));
        assert_eq!(m.body().len(), 245);
    });
}

fn directory(rfc: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/torture")
        .join(rfc)
}

fn bytes(rfc: &str, name: &str) -> Vec<u8> {
    let path = directory(rfc).join(name).with_extension("dat");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn parsed(bytes: &[u8], check: impl FnOnce(Message<'_>, Verdict)) {
    let mut index = Index::new();
    let result = index.parse(bytes, Framing::Datagram, &Limits::default());
    check(index.message(bytes), result);
}

fn read(rfc: &str, name: &str, check: impl FnOnce(Message<'_>, Verdict)) {
    parsed(&bytes(rfc, name), check);
}

fn accepted(rfc: &str, name: &str, check: impl FnOnce(Message<'_>)) {
    read(rfc, name, |message, result| {
        assert_eq!(result.and_then(|()| message.check()), Ok(()), "{name}");
        check(message);
    });
}

fn aor(uri: &Uri<'_>) -> String {
    let mut out = Vec::new();
    uri.write_aor(&mut out);
    String::from_utf8(out).unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
