//! What real phones do (docs/phones.md), as far as one core shows it.

mod support;

use location::Transport;
use support::{Bench, Sent, request, response};

const ALICE: &str = "198.51.100.1:5060";
const BOB: &str = "198.51.100.2:5060";
const DESK: &str = "198.51.100.2:5060";
const MOBILE: &str = "198.51.100.3:5060";
const FROM: &str = "<sip:alice@example.com>;tag=a";
const TO: &str = "<sip:bob@example.com>";
const TO_TAGGED: &str = "<sip:bob@example.com>;tag=b";

fn invite(extra: &str) -> String {
    let lines = format!("Contact: <sip:alice@{ALICE}>\n{extra}");
    request(
        "INVITE",
        "sip:bob@example.com",
        FROM,
        TO,
        ALICE,
        "inv1",
        "1",
        &lines,
    )
}

fn cancel() -> String {
    request(
        "CANCEL",
        "sip:bob@example.com",
        FROM,
        TO,
        ALICE,
        "inv1",
        "1",
        "",
    )
}

/// bob is registered and rings.
fn ring(bench: &mut Bench) -> Sent {
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    bench.expect(BOB, "INVITE")
}

/// bob has answered; the route set.
fn answered(bench: &mut Bench) -> String {
    let got = ring(bench);
    bench.udp(
        BOB,
        &response(&got, "200 OK", "b", &format!("Contact: <sip:bob@{BOB}>\n")),
    );
    bench.expect(ALICE, "SIP/2.0 200");
    format!("Route: {}\n", got.header("Record-Route").unwrap())
}

#[test]
fn without_rport_the_answer_goes_to_the_port_of_the_via() {
    let mut bench = Bench::open();
    let message = request(
        "OPTIONS",
        "sip:192.0.2.1",
        FROM,
        "<sip:192.0.2.1>",
        "198.51.100.1:5070",
        "o1",
        "1",
        "",
    );
    bench.udp("198.51.100.1:41000", &message);
    bench.expect("198.51.100.1:5070", "SIP/2.0 200");
    bench.udp(
        "198.51.100.1:41000",
        &message.replace("branch=", "rport;branch="),
    );
    bench.expect("198.51.100.1:41000", "SIP/2.0 200");
}

#[test]
fn an_old_phone_is_called_where_its_contact_says_and_a_symmetric_one_where_it_sends_from() {
    let mut bench = Bench::open();
    let contact = format!("<sip:bob@{BOB}>");
    bench.udp(
        "198.51.100.2:33333",
        &request(
            "REGISTER",
            "sip:example.com",
            TO,
            TO,
            BOB,
            "r1",
            "1",
            &format!("Contact: {contact}\n"),
        )
        .replace(&format!("From: {TO}"), &format!("From: {TO};tag=r")),
    );
    bench.commit();
    bench.expect(BOB, "SIP/2.0 200");
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    bench.expect(BOB, "INVITE");
    bench.udp(
        "198.51.100.2:33333",
        &request(
            "REGISTER",
            "sip:example.com",
            TO,
            TO,
            BOB,
            "r2;rport",
            "2",
            &format!("Contact: {contact}\n"),
        )
        .replace(&format!("From: {TO}"), &format!("From: {TO};tag=r")),
    );
    bench.commit();
    bench.expect("198.51.100.2:33333", "SIP/2.0 200");
    bench.udp(ALICE, &invite("").replace("inv1", "inv2"));
    bench.expect(ALICE, "SIP/2.0 100");
    bench.expect("198.51.100.2:33333", "INVITE");
}

#[test]
fn a_via_with_an_invalid_name_is_answered_on_the_connection() {
    let mut bench = Bench::open();
    let message = request(
        "OPTIONS",
        "sip:192.0.2.1",
        FROM,
        "<sip:192.0.2.1>",
        "df7jal23ls0d.invalid",
        "o1",
        "1",
        "",
    );
    bench.tcp(
        "198.51.100.1:41000",
        7,
        &message.replace("SIP/2.0/UDP", "SIP/2.0/TCP"),
    );
    let answer = bench.expect("198.51.100.1:41000", "SIP/2.0 200");
    assert_eq!((answer.transport, answer.connection), (Transport::Tcp, 7));
    assert!(
        bench.sink.questions.is_empty(),
        "nobody asks the DNS for it"
    );
}

#[test]
fn a_request_without_max_forwards_gets_70() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench.udp(ALICE, &invite("").replace("Max-Forwards: 70\n", ""));
    bench.expect(ALICE, "SIP/2.0 100");
    assert_eq!(
        bench.expect(BOB, "INVITE").header("Max-Forwards"),
        Some("70")
    );
}

#[test]
fn sips_is_not_available_without_tls() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench.udp(ALICE, &invite("").replace("INVITE sip:", "INVITE sips:"));
    bench.expect(ALICE, "SIP/2.0 480 SIPS");
}

#[test]
fn cancel_after_the_answer_is_200_and_does_nothing() {
    let mut bench = Bench::open();
    answered(&mut bench);
    bench.udp(ALICE, &cancel());
    bench.expect(ALICE, "SIP/2.0 200");
    bench.expect_nothing();
}

#[test]
fn all_our_answers_to_a_call_have_the_same_to_tag() {
    let mut bench = Bench::open();
    ring(&mut bench);
    bench.udp(ALICE, &cancel());
    let to_cancel = bench.expect(ALICE, "SIP/2.0 200");
    bench.pass_ms(33_000);
    let ended = bench
        .sink
        .sent
        .iter()
        .find(|sent| sent.start().starts_with("SIP/2.0 487"))
        .expect("487")
        .clone();
    assert!(to_cancel.header("To").unwrap().contains(";tag="));
    assert_eq!(to_cancel.header("To"), ended.header("To"));
}

#[test]
fn busy_is_a_better_answer_than_silence() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{DESK}>"), DESK);
    bench.register("bob", &format!("<sip:bob@{MOBILE}>"), MOBILE);
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    let at_desk = bench.expect(DESK, "INVITE");
    bench.expect(MOBILE, "INVITE");
    bench.udp(DESK, &response(&at_desk, "486 Busy Here", "d", ""));
    bench.pass_ms(33_000);
    let last = bench
        .sink
        .sent
        .iter()
        .find(|sent| sent.to == ALICE.parse().unwrap())
        .expect("an answer");
    assert_eq!(last.start(), "SIP/2.0 486 Busy Here");
}

#[test]
fn a_new_contact_in_a_re_invite_is_where_requests_go() {
    let mut bench = Bench::open();
    let route = answered(&mut bench);
    let moved = "198.51.100.55:5070";
    let lines = format!(
        "{route}Contact: <sip:alice@{moved}>\nSession-Expires: 1800;refresher=uac\nMin-SE: 90\n"
    );
    bench.udp(
        ALICE,
        &request(
            "INVITE",
            &format!("sip:bob@{BOB}"),
            FROM,
            TO_TAGGED,
            ALICE,
            "re1",
            "2",
            &lines,
        ),
    );
    bench.expect(ALICE, "SIP/2.0 100");
    let again = bench.expect(BOB, "INVITE");
    assert_eq!(again.header("Session-Expires"), Some("1800;refresher=uac"));
    bench.udp(BOB, &response(&again, "491 Request Pending", "b", ""));
    bench.expect(BOB, "ACK");
    bench.expect(ALICE, "SIP/2.0 491");
    bench.udp(
        BOB,
        &request(
            "BYE",
            &format!("sip:alice@{moved}"),
            TO_TAGGED,
            FROM,
            BOB,
            "bye",
            "1",
            &route,
        ),
    );
    bench.expect(moved, "BYE");
}

#[test]
fn an_ack_carries_its_body_and_a_repeated_200_gets_one_again() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    let ok = response(&got, "200 OK", "b", "");
    let route = format!("Route: {}\n", got.header("Record-Route").unwrap());
    let ack = request(
        "ACK",
        &format!("sip:bob@{BOB}"),
        FROM,
        TO_TAGGED,
        ALICE,
        "ack",
        "1",
        &route,
    );
    let ack = ack.replace(
        "Content-Length: 0\n\n",
        "Content-Type: application/sdp\nContent-Length: 5\n\nv=0\r\n",
    );
    for _ in 0..2 {
        bench.udp(BOB, &ok);
        bench.expect(ALICE, "SIP/2.0 200");
        bench.udp(ALICE, &ack);
        let passed = bench.expect(BOB, "ACK");
        assert!(passed.text.ends_with("\r\n\r\nv=0\r\n"), "{}", passed.text);
    }
}

#[test]
fn bodies_of_any_bytes_pass_unchanged() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    let message = request(
        "MESSAGE",
        "sip:bob@example.com",
        FROM,
        TO,
        ALICE,
        "body",
        "1",
        "Content-Type: application/x-odd\n",
    );
    bench.udp(
        ALICE,
        &message.replace(
            "Content-Length: 0\n\n",
            "Content-Length: 6\n\na\0b\u{1}\u{7f}z",
        ),
    );
    let got = bench.expect(BOB, "MESSAGE");
    assert!(
        got.text
            .ends_with("Content-Length: 6\r\n\r\na\0b\u{1}\u{7f}z"),
        "{:?}",
        got.text
    );
}

#[test]
fn a_bye_may_come_in_an_early_dialog_and_from_both_sides_at_once() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    bench.udp(BOB, &response(&got, "180 Ringing", "b", ""));
    bench.expect(ALICE, "SIP/2.0 180");
    let route = format!("Route: {}\n", got.header("Record-Route").unwrap());
    bench.udp(
        ALICE,
        &request(
            "BYE",
            &format!("sip:bob@{BOB}"),
            FROM,
            TO_TAGGED,
            ALICE,
            "bye1",
            "2",
            &route,
        ),
    );
    let to_bob = bench.expect(BOB, "BYE");
    bench.udp(
        BOB,
        &request(
            "BYE",
            &format!("sip:alice@{ALICE}"),
            TO_TAGGED,
            FROM,
            BOB,
            "bye2",
            "1",
            &route,
        ),
    );
    let to_alice = bench.expect(ALICE, "BYE");
    bench.udp(BOB, &response(&to_bob, "200 OK", "", ""));
    bench.expect(ALICE, "SIP/2.0 200");
    bench.udp(
        ALICE,
        &response(&to_alice, "481 Call/Transaction Does Not Exist", "", ""),
    );
    bench.expect(BOB, "SIP/2.0 481");
}

#[test]
fn a_call_that_comes_back_for_somebody_else_is_a_spiral_and_goes_on() {
    let mut bench = Bench::open();
    let carol = "198.51.100.4:5060";
    bench.register("carol", &format!("<sip:carol@{carol}>"), carol);
    let got = ring(&mut bench);
    // bob's phone forwards by sending it back to us with another Request-URI.
    let back = got
        .text
        .replacen(&format!("sip:bob@{BOB}"), "sip:carol@example.com", 1);
    bench.udp(
        BOB,
        &back.replacen(
            "Via: ",
            &format!("Via: SIP/2.0/UDP {BOB};branch=z9hG4bKfwd\nVia: "),
            1,
        ),
    );
    bench.expect(BOB, "SIP/2.0 100");
    let at_carol = bench.expect(carol, &format!("INVITE sip:carol@{carol}"));
    assert_eq!(at_carol.headers("Via").count(), 4);
}

#[test]
fn transfers_pass_unchanged() {
    let mut bench = Bench::open();
    let route = answered(&mut bench);
    let refer_to = "<sip:carol@example.com?Replaces=12345%40host%3Bto-tag%3D1%3Bfrom-tag%3D2>";
    let lines = format!("{route}Refer-To: {refer_to}\nReferred-By: <sip:alice@example.com>\n");
    bench.udp(
        ALICE,
        &request(
            "REFER",
            &format!("sip:bob@{BOB}"),
            FROM,
            TO_TAGGED,
            ALICE,
            "ref",
            "2",
            &lines,
        ),
    );
    let refer = bench.expect(BOB, "REFER");
    assert_eq!(
        (refer.header("Refer-To"), refer.header("Referred-By")),
        (Some(refer_to), Some("<sip:alice@example.com>"))
    );
    bench.udp(BOB, &response(&refer, "202 Accepted", "", ""));
    bench.expect(ALICE, "SIP/2.0 202");
    let lines = format!("{route}Event: refer\nSubscription-State: active\n");
    bench.udp(
        BOB,
        &request(
            "NOTIFY",
            &format!("sip:alice@{ALICE}"),
            TO_TAGGED,
            FROM,
            BOB,
            "not",
            "1",
            &lines,
        ),
    );
    let notify = bench.expect(ALICE, "NOTIFY");
    assert_eq!(notify.header("Event"), Some("refer"));
}

#[test]
fn options_to_a_user_is_answered_by_the_phone() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench.udp(
        ALICE,
        &request(
            "OPTIONS",
            "sip:bob@example.com",
            FROM,
            TO,
            ALICE,
            "opt",
            "1",
            "",
        ),
    );
    let got = bench.expect(BOB, "OPTIONS");
    bench.udp(BOB, &response(&got, "200 OK", "b", "Allow: INVITE\n"));
    assert_eq!(
        bench.expect(ALICE, "SIP/2.0 200").header("Allow"),
        Some("INVITE")
    );
}

#[test]
fn a_subscription_to_ones_own_events_is_refused_at_once() {
    let mut bench = Bench::open();
    bench.register("alice", &format!("<sip:alice@{ALICE}>"), ALICE);
    for (method, event) in [
        ("SUBSCRIBE", "message-summary"),
        ("SUBSCRIBE", "ua-profile"),
        ("PUBLISH", "presence"),
    ] {
        let lines = format!("Event: {event}\n");
        bench.udp(
            ALICE,
            &request(
                method,
                "sip:alice@example.com",
                FROM,
                "<sip:alice@example.com>",
                ALICE,
                event,
                "1",
                &lines,
            ),
        );
        bench.expect(ALICE, "SIP/2.0 489");
    }
    bench.expect_nothing();
}

#[test]
fn an_anonymous_caller_may_show_the_credentials_of_a_local_user() {
    let mut bench = Bench::strict();
    let realm = "example.com";
    bench.subscribers.insert_in_memory(
        b"alice@example.com",
        sip_core::ha1("alice", realm, "secret"),
    );
    let anonymous = "\"Anonymous\" <sip:anonymous@anonymous.invalid>;tag=a";
    let abroad = "sip:carol@203.0.113.50";
    let message = |branch: &str, extra: &str| {
        request(
            "MESSAGE",
            abroad,
            anonymous,
            &format!("<{abroad}>"),
            ALICE,
            branch,
            "1",
            extra,
        )
    };
    bench.udp(ALICE, &message("m1", ""));
    let challenge = bench.expect(ALICE, "SIP/2.0 407");
    let line = challenge.header("Proxy-Authenticate").unwrap();
    let nonce = line
        .split("nonce=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let response = support::digest_response("alice", realm, "secret", "MESSAGE", abroad, nonce);
    let lines = format!(
        "Proxy-Authorization: Digest username=\"alice\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{abroad}\", response=\"{response}\", algorithm=MD5, qop=auth, nc=00000001, cnonce=\"c\"\n"
    );
    bench.udp(ALICE, &message("m2", &lines));
    let passed = bench.expect("203.0.113.50:5060", "MESSAGE");
    assert_eq!(passed.header("Proxy-Authorization"), None);
}

#[test]
fn star_codes_and_numbers_that_nobody_has_are_404() {
    let mut bench = Bench::open();
    for (n, user) in ["*97", "%2397", "#1", "911"].into_iter().enumerate() {
        let uri = format!("sip:{user}@example.com");
        bench.udp(
            ALICE,
            &request(
                "INVITE",
                &uri,
                FROM,
                &format!("<{uri}>"),
                ALICE,
                &format!("s{n}"),
                "1",
                "",
            ),
        );
        bench.expect(ALICE, "SIP/2.0 404");
    }
    bench.udp(
        ALICE,
        &request(
            "INVITE",
            "urn:service:sos",
            FROM,
            "<urn:service:sos>",
            ALICE,
            "sos",
            "1",
            "",
        ),
    );
    bench.expect(ALICE, "SIP/2.0 416");
}

#[test]
fn breadth_is_shared_among_branches_and_refused_when_used_up() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{DESK}>"), DESK);
    bench.register("bob", &format!("<sip:bob@{MOBILE}>"), MOBILE);
    bench.udp(ALICE, &invite("Max-Breadth: 5\n"));
    bench.expect(ALICE, "SIP/2.0 100");
    assert_eq!(
        bench.expect(DESK, "INVITE").header("Max-Breadth"),
        Some("2")
    );
    assert_eq!(
        bench.expect(MOBILE, "INVITE").header("Max-Breadth"),
        Some("2")
    );
    // One at a time when there is only one.
    bench.udp(ALICE, &invite("Max-Breadth: 1\n").replace("inv1", "inv2"));
    bench.expect(ALICE, "SIP/2.0 100");
    let first = bench.expect(DESK, "INVITE");
    bench.expect_nothing();
    bench.udp(DESK, &response(&first, "486 Busy Here", "d", ""));
    bench.expect(DESK, "ACK");
    bench.expect(MOBILE, "INVITE");
    bench.udp(ALICE, &invite("Max-Breadth: 0\n").replace("inv1", "inv3"));
    bench.expect(ALICE, "SIP/2.0 440");
}

#[test]
fn a_phone_that_lost_its_connection_in_a_call_is_reached_over_the_new_one() {
    let mut bench = Bench::open();
    let register = |n: u32| {
        format!(
            "REGISTER sip:example.com SIP/2.0\nVia: SIP/2.0/TCP 10.0.0.2;branch=z9hG4bKr{n}\nMax-Forwards: 70\nFrom: {TO};tag=r\nTo: {TO}\nCall-ID: r\n\
             CSeq: {n} REGISTER\nContact: <sip:bob@10.0.0.2;transport=tcp>\nContent-Length: 0\n\n"
        )
    };
    let (before, after) = ("198.51.100.2:40001", "198.51.100.2:40002");
    bench.tcp(before, 71, &register(1));
    bench.commit();
    bench.expect(before, "SIP/2.0 200");
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    let got = bench.expect(before, "INVITE");
    bench.tcp(
        before,
        71,
        &response(
            &got,
            "200 OK",
            "b",
            "Contact: <sip:bob@10.0.0.2;transport=tcp>\n",
        ),
    );
    bench.expect(ALICE, "SIP/2.0 200");
    bench.sink.closed.insert(71);
    let mut routes: Vec<_> = got.headers("Record-Route").collect();
    routes.reverse();
    let route = format!("Route: {}\n", routes.join(", "));
    let bye = |branch: &str, cseq: &str| {
        request(
            "BYE",
            "sip:bob@10.0.0.2;transport=tcp",
            FROM,
            TO_TAGGED,
            ALICE,
            branch,
            cseq,
            &route,
        )
    };
    bench.udp(ALICE, &bye("gone", "2"));
    bench.expect(ALICE, "SIP/2.0 480");
    bench.tcp(after, 72, &register(2));
    bench.commit();
    bench.expect(after, "SIP/2.0 200");
    bench.udp(ALICE, &bye("back", "3"));
    assert_eq!(bench.expect(after, "BYE").connection, 72);
}
