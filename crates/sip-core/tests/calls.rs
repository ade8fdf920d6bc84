//! Calls through the proxy, message by message (RFC 3665 section 3, RFC 3261 section 16).

mod support;

use support::{Bench, Sent, request, response};

const ALICE: &str = "198.51.100.1:5060";
const BOB: &str = "198.51.100.2:5060";

fn invite(extra: &str) -> String {
    let contact = format!("Contact: <sip:alice@{ALICE}>\n{extra}");
    request(
        "INVITE",
        "sip:bob@example.com",
        "<sip:alice@a.test>;tag=a",
        "<sip:bob@example.com>",
        ALICE,
        "inv1",
        "1",
        &contact,
    )
}

/// Registers bob, and a local user calls him: what bob got.
fn ring_locally(bench: &mut Bench) -> Sent {
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench.udp(
        ALICE,
        &invite("").replace("alice@a.test", "alice@example.com"),
    );
    bench.expect(ALICE, "SIP/2.0 100");
    bench.expect(BOB, "INVITE")
}

/// Registers bob, and a stranger calls him: what bob got.
fn ring(bench: &mut Bench) -> Sent {
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    bench.expect(BOB, &format!("INVITE sip:bob@{BOB} SIP/2.0"))
}

#[test]
fn a_call_is_set_up_and_ended() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    assert_eq!(got.header("Max-Forwards"), Some("69"));
    assert_eq!(got.headers("Via").count(), 2);
    let route = got.header("Record-Route").unwrap().to_owned();
    assert!(route.ends_with("@192.0.2.1:5060;lr>"), "{route}");

    bench.udp(BOB, &response(&got, "180 Ringing", "b", ""));
    assert_eq!(bench.expect(ALICE, "SIP/2.0 180").headers("Via").count(), 1);
    bench.udp(
        BOB,
        &response(&got, "200 OK", "b", &format!("Contact: <sip:bob@{BOB}>\n")),
    );
    bench.expect(ALICE, "SIP/2.0 200");

    let routes = format!("Route: {route}\n");
    let bob_uri = format!("sip:bob@{BOB}");
    bench.udp(
        ALICE,
        &request(
            "ACK",
            &bob_uri,
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>;tag=b",
            ALICE,
            "ack1",
            "1",
            &routes,
        ),
    );
    let ack = bench.expect(BOB, &format!("ACK {bob_uri} SIP/2.0"));
    assert_eq!(ack.header("Route"), None);

    let alice_uri = format!("sip:alice@{ALICE}");
    bench.udp(
        BOB,
        &request(
            "BYE",
            &alice_uri,
            "<sip:bob@example.com>;tag=b",
            "<sip:alice@a.test>;tag=a",
            BOB,
            "bye1",
            "7",
            &routes,
        ),
    );
    let bye = bench.expect(ALICE, &format!("BYE {alice_uri} SIP/2.0"));
    bench.udp(ALICE, &response(&bye, "200 OK", "", ""));
    bench.expect(BOB, "SIP/2.0 200");
    bench.expect_nothing();

    bench.pass_ms(40_000);
    bench.expect_nothing();
    let counters = bench.counters();
    assert_eq!(
        (counters.server_transactions, counters.client_transactions),
        (0, 0)
    );
    assert_eq!(counters.calls_answered, 1);
}

#[test]
fn a_repeated_invite_gets_the_last_provisional_again_and_goes_no_further() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    bench.udp(BOB, &response(&got, "180 Ringing", "b", ""));
    bench.expect(ALICE, "SIP/2.0 180");
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 180");
    bench.expect_nothing();
}

#[test]
fn an_invite_that_nobody_answers_is_repeated_and_ends_with_408() {
    let mut bench = Bench::open();
    ring(&mut bench);
    bench.pass_ms(31_900);
    let count = bench
        .sink
        .sent
        .iter()
        .filter(|sent| sent.start().starts_with("INVITE"))
        .count();
    assert_eq!(count, 6, "timer A: 0.5, 1.5, 3.5, 7.5, 15.5, 31.5 s");
    bench.sink.sent.clear();
    bench.pass_ms(200);
    bench.expect(ALICE, "SIP/2.0 408");
}

#[test]
fn busy_is_acknowledged_and_passed_on() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    bench.udp(BOB, &response(&got, "486 Busy Here", "b", ""));
    let ack = bench.expect(BOB, &format!("ACK sip:bob@{BOB} SIP/2.0"));
    assert_eq!(ack.header("Via"), got.header("Via"));
    assert_eq!(ack.header("To"), Some("<sip:bob@example.com>;tag=b"));
    bench.expect(ALICE, "SIP/2.0 486");
    bench.udp(
        ALICE,
        &request(
            "ACK",
            "sip:bob@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>;tag=b",
            ALICE,
            "inv1",
            "1",
            "",
        ),
    );
    bench.expect_nothing();
    bench.pass_ms(40_000);
    bench.expect_nothing();
    assert_eq!(bench.counters().server_transactions, 0);
}

#[test]
fn cancel_reaches_the_phone_and_487_comes_back() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    bench.udp(BOB, &response(&got, "180 Ringing", "b", ""));
    bench.expect(ALICE, "SIP/2.0 180");
    bench.udp(
        ALICE,
        &request(
            "CANCEL",
            "sip:bob@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>",
            ALICE,
            "inv1",
            "1",
            "",
        ),
    );
    bench.expect(ALICE, "SIP/2.0 200");
    let cancel = bench.expect(BOB, &format!("CANCEL sip:bob@{BOB} SIP/2.0"));
    assert_eq!(cancel.header("Via"), got.header("Via"));
    assert_eq!(cancel.header("CSeq"), Some("1 CANCEL"));
    bench.udp(BOB, &response(&cancel, "200 OK", "b", ""));
    bench.udp(BOB, &response(&got, "487 Request Terminated", "b", ""));
    bench.expect(BOB, "ACK");
    bench.expect(ALICE, "SIP/2.0 487");
    bench.expect_nothing();
}

#[test]
fn a_cancel_before_any_provisional_waits_for_one() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    bench.udp(
        ALICE,
        &request(
            "CANCEL",
            "sip:bob@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>",
            ALICE,
            "inv1",
            "1",
            "",
        ),
    );
    bench.expect(ALICE, "SIP/2.0 200");
    bench.expect_nothing();
    bench.udp(BOB, &response(&got, "100 Trying", "", ""));
    bench.expect(BOB, "CANCEL");
}

#[test]
fn a_cancel_of_nothing_asks_the_other_worker_and_then_gets_481() {
    let mut bench = Bench::open();
    bench.udp(
        ALICE,
        &request(
            "CANCEL",
            "sip:bob@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>",
            ALICE,
            "x",
            "1",
            "",
        ),
    );
    bench.expect_nothing();
    let (worker, flow, message) = bench.sink.handed.pop().unwrap();
    assert_eq!(worker, 1);
    bench
        .core
        .receive_handed(bench.now, &flow, &message, &mut bench.sink);
    bench.expect(ALICE, "SIP/2.0 481");
}

#[test]
fn the_first_answer_of_a_fork_wins_and_the_others_are_told_why() {
    let mut bench = Bench::open();
    let (desk, mobile) = ("198.51.100.2:5060", "198.51.100.3:5060");
    bench.register("bob", &format!("<sip:bob@{desk}>"), desk);
    bench.register("bob", &format!("<sip:bob@{mobile}>"), mobile);
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    let at_desk = bench.expect(desk, "INVITE");
    let at_mobile = bench.expect(mobile, "INVITE");
    for got in [&at_desk, &at_mobile] {
        bench.udp(&got.to.to_string(), &response(got, "180 Ringing", "x", ""));
        bench.expect(ALICE, "SIP/2.0 180");
    }
    bench.udp(mobile, &response(&at_mobile, "200 OK", "m", ""));
    bench.expect(ALICE, "SIP/2.0 200");
    let cancel = bench.expect(desk, "CANCEL");
    assert_eq!(
        cancel.header("Reason"),
        Some("SIP;cause=200;text=\"Call completed elsewhere\"")
    );
    bench.udp(desk, &response(&at_desk, "487 Request Terminated", "d", ""));
    bench.expect(desk, "ACK");
    bench.expect_nothing();
    // The race: a second 200 goes to the caller as well.
    bench.udp(mobile, &response(&at_mobile, "200 OK", "m", ""));
    bench.expect(ALICE, "SIP/2.0 200");
}

#[test]
fn lower_preference_is_tried_after_the_higher_has_failed() {
    let mut bench = Bench::open();
    let (desk, mobile) = ("198.51.100.2:5060", "198.51.100.3:5060");
    bench.register("bob", &format!("<sip:bob@{mobile}>;q=0.3"), mobile);
    bench.register("bob", &format!("<sip:bob@{desk}>;q=0.9"), desk);
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    let at_desk = bench.expect(desk, "INVITE");
    bench.expect_nothing();
    bench.udp(desk, &response(&at_desk, "486 Busy Here", "d", ""));
    bench.expect(desk, "ACK");
    let at_mobile = bench.expect(mobile, "INVITE");
    bench.udp(
        mobile,
        &response(&at_mobile, "480 Temporarily Unavailable", "m", ""),
    );
    bench.expect(mobile, "ACK");
    bench.expect(ALICE, "SIP/2.0 480");
}

#[test]
fn six_hundred_ends_a_fork() {
    let mut bench = Bench::open();
    let (desk, mobile) = ("198.51.100.2:5060", "198.51.100.3:5060");
    bench.register("bob", &format!("<sip:bob@{desk}>"), desk);
    bench.register("bob", &format!("<sip:bob@{mobile}>"), mobile);
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    let at_desk = bench.expect(desk, "INVITE");
    let at_mobile = bench.expect(mobile, "INVITE");
    bench.udp(mobile, &response(&at_mobile, "180 Ringing", "m", ""));
    bench.expect(ALICE, "SIP/2.0 180");
    bench.udp(desk, &response(&at_desk, "603 Decline", "d", ""));
    bench.expect(desk, "ACK");
    bench.expect(mobile, "CANCEL");
    bench.expect_nothing();
    bench.udp(
        mobile,
        &response(&at_mobile, "487 Request Terminated", "m", ""),
    );
    bench.expect(mobile, "ACK");
    bench.expect(ALICE, "SIP/2.0 603");
}

#[test]
fn challenges_of_all_branches_are_gathered() {
    let mut bench = Bench::open();
    let (desk, mobile) = ("198.51.100.2:5060", "198.51.100.3:5060");
    bench.register("bob", &format!("<sip:bob@{desk}>"), desk);
    bench.register("bob", &format!("<sip:bob@{mobile}>"), mobile);
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    let at_desk = bench.expect(desk, "INVITE");
    let at_mobile = bench.expect(mobile, "INVITE");
    bench.udp(
        desk,
        &response(
            &at_desk,
            "401 Unauthorized",
            "d",
            "WWW-Authenticate: Digest realm=\"desk\", nonce=\"1\"\n",
        ),
    );
    bench.expect(desk, "ACK");
    bench.udp(
        mobile,
        &response(
            &at_mobile,
            "407 Proxy Authentication Required",
            "m",
            "Proxy-Authenticate: Digest realm=\"mobile\", nonce=\"2\"\n",
        ),
    );
    bench.expect(mobile, "ACK");
    let answer = bench.expect(ALICE, "SIP/2.0 401");
    assert_eq!(
        answer.header("WWW-Authenticate"),
        Some("Digest realm=\"desk\", nonce=\"1\"")
    );
    assert_eq!(
        answer.header("Proxy-Authenticate"),
        Some("Digest realm=\"mobile\", nonce=\"2\"")
    );
}

#[test]
fn a_phone_that_rings_for_three_minutes_is_cancelled() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    bench.udp(BOB, &response(&got, "180 Ringing", "b", ""));
    bench.expect(ALICE, "SIP/2.0 180");
    bench.pass_ms(180_900);
    bench.expect_nothing();
    bench.pass_ms(200);
    bench.expect(BOB, "CANCEL");
    bench.udp(BOB, &response(&got, "487 Request Terminated", "b", ""));
    bench.expect(BOB, "ACK");
    bench.expect(ALICE, "SIP/2.0 487");
}

#[test]
fn a_phone_that_ignores_cancel_does_not_hold_the_caller() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    bench.udp(BOB, &response(&got, "180 Ringing", "b", ""));
    bench.expect(ALICE, "SIP/2.0 180");
    bench.udp(
        ALICE,
        &request(
            "CANCEL",
            "sip:bob@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>",
            ALICE,
            "inv1",
            "1",
            "",
        ),
    );
    bench.expect(ALICE, "SIP/2.0 200");
    bench.pass_ms(32_100);
    let answer = bench
        .sink
        .sent
        .iter()
        .find(|sent| sent.start().starts_with("SIP/2.0 487"))
        .cloned()
        .expect("487");
    assert_eq!(answer.to, ALICE.parse().unwrap());
}

#[test]
fn nobody_home_is_480_and_nobody_known_404() {
    let mut bench = Bench::open();
    bench.subscribers.insert_in_memory(
        b"bob@example.com",
        location::Ha1 {
            md5: [1; 16],
            sha256: [1; 32],
        },
    );
    bench.udp(ALICE, &invite(""));
    let answer = bench.expect(ALICE, "SIP/2.0 480");
    // The ACK to an answer that left no transaction is absorbed.
    let to = answer.header("To").unwrap();
    bench.udp(
        ALICE,
        &request(
            "ACK",
            "sip:bob@example.com",
            "<sip:alice@a.test>;tag=a",
            to,
            ALICE,
            "inv1",
            "1",
            "",
        ),
    );
    bench.expect_nothing();
    bench.udp(
        ALICE,
        &request(
            "MESSAGE",
            "sip:eve@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:eve@example.com>",
            ALICE,
            "m1",
            "1",
            "",
        ),
    );
    bench.expect(ALICE, "SIP/2.0 404");
    assert_eq!(bench.counters().server_transactions, 0);
}

#[test]
fn a_request_that_comes_back_unchanged_is_a_loop() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    // Somebody sends it back to us, to where it came to first.
    let back = got
        .text
        .replacen(&format!("sip:bob@{BOB}"), "sip:bob@example.com", 1);
    bench.udp(
        BOB,
        &back.replacen(
            "Via: ",
            &format!("Via: SIP/2.0/UDP {BOB};branch=z9hG4bKback\nVia: "),
            1,
        ),
    );
    bench.expect(BOB, "SIP/2.0 482");
}

#[test]
fn max_forwards_ends_at_zero() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench.udp(
        ALICE,
        &invite("").replace("Max-Forwards: 70", "Max-Forwards: 0"),
    );
    bench.expect(ALICE, "SIP/2.0 483");
}

#[test]
fn a_caller_behind_a_nat_is_reached_over_its_flow() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    let nat = "203.0.113.9:41234";
    let invite = invite("").replace(
        &format!("Contact: <sip:alice@{ALICE}>"),
        "Contact: <sip:alice@10.0.0.5>",
    );
    bench.udp(nat, &invite.replace("branch=", "rport;branch="));
    let trying = bench.expect(nat, "SIP/2.0 100");
    let via = trying.header("Via").unwrap();
    assert!(
        via.contains("rport=41234") && via.contains("received=203.0.113.9"),
        "{via}"
    );
    let got = bench.expect(BOB, "INVITE");
    let route = format!("Route: {}\n", got.header("Record-Route").unwrap());
    bench.udp(BOB, &response(&got, "200 OK", "b", ""));
    bench.expect(nat, "SIP/2.0 200");
    bench.udp(
        BOB,
        &request(
            "BYE",
            "sip:alice@10.0.0.5",
            "<sip:bob@example.com>;tag=b",
            "<sip:alice@a.test>;tag=a",
            BOB,
            "bye",
            "2",
            &route,
        ),
    );
    bench.expect(nat, "BYE sip:alice@10.0.0.5");
}

#[test]
fn a_callee_on_tcp_gets_everything_over_its_connection() {
    let mut bench = Bench::open();
    let peer = "198.51.100.2:40001";
    bench.tcp(
        peer,
        77,
        "REGISTER sip:example.com SIP/2.0\nVia: SIP/2.0/TCP 10.0.0.2;branch=z9hG4bKr\nMax-Forwards: 70\nFrom: <sip:bob@example.com>;tag=r\nTo: <sip:bob@example.com>\nCall-ID: r\nCSeq: 1 REGISTER\nContact: <sip:bob@10.0.0.2;transport=tcp>\nContent-Length: 0\n\n",
    );
    bench.commit();
    bench.expect(peer, "SIP/2.0 200");
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    let got = bench.expect(peer, "INVITE sip:bob@10.0.0.2;transport=tcp");
    assert_eq!(got.connection, 77);
    assert!(
        got.header("Via")
            .unwrap()
            .starts_with("SIP/2.0/TCP 192.0.2.1:5060;")
    );
    let routes: Vec<_> = got.headers("Record-Route").map(str::to_owned).collect();
    assert_eq!(routes.len(), 2, "one for each side");
    assert!(routes[0].contains("transport=tcp") && !routes[1].contains("transport"));
    bench.tcp(
        peer,
        77,
        &response(
            &got,
            "200 OK",
            "b",
            "Contact: <sip:bob@10.0.0.2;transport=tcp>\n",
        ),
    );
    bench.expect(ALICE, "SIP/2.0 200");
    // The caller's route set is the reverse.
    let route = format!("Route: {}, {}\n", routes[1], routes[0]);
    bench.udp(
        ALICE,
        &request(
            "BYE",
            "sip:bob@10.0.0.2;transport=tcp",
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>;tag=b",
            ALICE,
            "bye",
            "2",
            &route,
        ),
    );
    let bye = bench.expect(peer, "BYE");
    assert_eq!((bye.connection, bye.header("Route")), (77, None));
}

#[test]
fn a_route_without_our_token_makes_no_relay() {
    let mut bench = Bench::strict();
    let stranger = "203.0.113.66:5060";
    for to_tag in ["", ";tag=x"] {
        let to = format!("<sip:victim@198.51.100.77>{to_tag}");
        let branch = format!("open{}", to_tag.len());
        bench.udp(
            stranger,
            &request(
                "INVITE",
                "sip:victim@198.51.100.77",
                "<sip:mallory@evil.test>;tag=a",
                &to,
                stranger,
                &branch,
                "1",
                "Route: <sip:192.0.2.1;lr>\n",
            ),
        );
        bench.expect(stranger, "SIP/2.0 407");
        bench.expect_nothing();
    }
}

#[test]
fn a_local_user_is_challenged_and_a_stranger_may_call_local_users() {
    let mut bench = Bench::strict();
    bench.subscribers.insert_in_memory(
        b"bob@example.com",
        location::Ha1 {
            md5: [1; 16],
            sha256: [1; 32],
        },
    );
    bench.udp(
        ALICE,
        &request(
            "INVITE",
            "sip:bob@example.com",
            "<sip:alice@example.com>;tag=a",
            "<sip:bob@example.com>",
            ALICE,
            "i1",
            "1",
            "",
        ),
    );
    let challenge = bench.expect(ALICE, "SIP/2.0 407");
    assert!(
        challenge
            .header("Proxy-Authenticate")
            .unwrap()
            .contains("realm=\"example.com\"")
    );
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 480");
}

#[test]
fn a_response_for_another_worker_is_handed_over() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    let mine = response(&got, "180 Ringing", "b", "");
    let other = mine.replacen("z9hG4bKs00", "z9hG4bKs01", 1);
    bench.udp(BOB, &other);
    bench.expect_nothing();
    assert_eq!(bench.sink.handed.pop().unwrap().0, 1);
    bench.udp(BOB, &mine);
    bench.expect(ALICE, "SIP/2.0 180");
}

#[test]
fn a_large_request_tries_tcp_first_and_falls_back_to_the_datagram() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    let padding = format!("X-Padding: {}\n", "x".repeat(1300));
    bench.udp(ALICE, &invite(&padding));
    bench.expect(ALICE, "SIP/2.0 100");
    let first = bench.expect(BOB, "INVITE");
    assert_eq!(first.transport, location::Transport::Tcp);
    bench
        .core
        .send_failed(bench.now, first.origin.unwrap(), &mut bench.sink);
    let second = bench.expect(BOB, "INVITE");
    assert_eq!(second.transport, location::Transport::Udp);
    assert_ne!(first.header("Via"), second.header("Via"));
    bench.udp(BOB, &response(&second, "200 OK", "b", ""));
    bench.expect(ALICE, "SIP/2.0 200");
    bench.expect_nothing();
}

#[test]
fn names_are_resolved_and_the_next_address_is_tried() {
    let mut bench = Bench::open();
    let invite = request(
        "INVITE",
        "sip:carol@other.test",
        "<sip:alice@example.com>;tag=a",
        "<sip:carol@other.test>",
        ALICE,
        "i1",
        "1",
        "",
    );
    bench.udp(ALICE, &invite);
    bench.expect(ALICE, "SIP/2.0 100");
    bench.expect_nothing();
    let udp = location::Transport::Udp;
    let asked = bench.resolve(&[(udp, "203.0.113.1:5060"), (udp, "203.0.113.2:5060")]);
    assert_eq!(asked.host, "other.test");
    let first = bench.expect("203.0.113.1:5060", "INVITE");
    bench.udp(
        "203.0.113.1:5060",
        &response(&first, "503 Service Unavailable", "x", ""),
    );
    bench.expect("203.0.113.1:5060", "ACK");
    let second = bench.expect("203.0.113.2:5060", "INVITE");
    bench.udp("203.0.113.2:5060", &response(&second, "200 OK", "y", ""));
    bench.expect(ALICE, "SIP/2.0 200");
}

#[test]
fn a_name_that_is_not_found_is_a_500() {
    let mut bench = Bench::open();
    bench.udp(
        ALICE,
        &request(
            "INVITE",
            "sip:carol@other.test",
            "<sip:alice@example.com>;tag=a",
            "<sip:carol@other.test>",
            ALICE,
            "i1",
            "1",
            "",
        ),
    );
    bench.expect(ALICE, "SIP/2.0 100");
    bench.resolve(&[]);
    bench.expect(ALICE, "SIP/2.0 500 Next Hop Not Found");
}

#[test]
fn shutting_down_answers_calls_in_setup_and_refuses_new_ones() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    bench.udp(BOB, &response(&got, "180 Ringing", "b", ""));
    bench.expect(ALICE, "SIP/2.0 180");
    bench.core.shut_down(bench.now, &mut bench.sink);
    bench.expect(BOB, "CANCEL");
    bench.expect(ALICE, "SIP/2.0 503");
    bench.udp(ALICE, &invite("").replace("inv1", "inv2"));
    bench.expect(ALICE, "SIP/2.0 503");
}

#[test]
fn a_non_invite_that_nobody_answers_gets_no_late_408() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench.udp(
        ALICE,
        &request(
            "MESSAGE",
            "sip:bob@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>",
            ALICE,
            "m1",
            "1",
            "",
        ),
    );
    bench.expect(BOB, "MESSAGE");
    bench.pass_ms(40_000);
    assert!(
        bench
            .sink
            .sent
            .iter()
            .all(|sent| sent.start().starts_with("MESSAGE")),
        "RFC 4320"
    );
    assert_eq!(bench.counters().server_transactions, 0);
    assert_eq!(bench.counters().client_transactions, 0);
}

#[test]
fn the_server_answers_for_itself() {
    let mut bench = Bench::open();
    let mut ask = |method: &str, extra: &str, status: &str| {
        let message = request(
            method,
            "sip:192.0.2.1:5060",
            "<sip:a@a.test>;tag=a",
            "<sip:192.0.2.1>",
            ALICE,
            &format!("{method}1"),
            "1",
            extra,
        );
        bench.udp(ALICE, &message);
        bench.expect(ALICE, status)
    };
    assert!(
        ask("OPTIONS", "", "SIP/2.0 200")
            .header("Allow")
            .unwrap()
            .contains("INVITE")
    );
    ask("NOTIFY", "Event: keep-alive\n", "SIP/2.0 200");
    ask("SUBSCRIBE", "Event: presence\n", "SIP/2.0 489");
    ask("PUBLISH", "Event: presence\n", "SIP/2.0 489");
    ask("INVITE", "", "SIP/2.0 404");
    ask("WIGGLE", "", "SIP/2.0 501");
    assert_eq!(
        ask("OPTIONS", "Require: teleport\n", "SIP/2.0 420").header("Unsupported"),
        Some("teleport")
    );
}

#[test]
fn a_telephone_number_is_a_user_of_the_primary_domain() {
    let mut bench = Bench::open();
    bench.register("+4930123", &format!("<sip:x@{BOB}>"), BOB);
    let message = |number: &str, branch: &str| {
        request(
            "MESSAGE",
            &format!("tel:{number}"),
            "<sip:alice@a.test>;tag=a",
            "<tel:+4930123>",
            ALICE,
            branch,
            "1",
            "",
        )
    };
    bench.udp(ALICE, &message("+4930123", "t1"));
    bench.expect(BOB, "MESSAGE sip:x@");
    bench.udp(ALICE, &message("+4930999", "t2"));
    bench.expect(ALICE, "SIP/2.0 404");
}

#[test]
fn strict_routers_before_and_behind_us_are_understood() {
    let mut bench = Bench::open();
    let got = ring_locally(&mut bench);
    bench.udp(BOB, &response(&got, "200 OK", "b", ""));
    bench.expect(ALICE, "SIP/2.0 200");
    let ours = got
        .header("Record-Route")
        .unwrap()
        .trim_matches(['<', '>'])
        .to_owned();
    // A strict router before us has put our URI into the request line, and the contact last.
    let routes = format!("Route: <sip:bob@{BOB}>\n");
    bench.udp(
        ALICE,
        &request(
            "BYE",
            &ours,
            "<sip:alice@example.com>;tag=a",
            "<sip:bob@example.com>;tag=b",
            ALICE,
            "b1",
            "2",
            &routes,
        ),
    );
    let bye = bench.expect(BOB, &format!("BYE sip:bob@{BOB} SIP/2.0"));
    assert_eq!(bye.header("Route"), None);
    // One behind us gets the request line, and the contact at the end of the Route.
    let routes = format!("Route: <{ours}>, <sip:203.0.113.7>\n");
    bench.udp(
        ALICE,
        &request(
            "INFO",
            &format!("sip:bob@{BOB}"),
            "<sip:alice@example.com>;tag=a",
            "<sip:bob@example.com>;tag=b",
            ALICE,
            "b2",
            "3",
            &routes,
        ),
    );
    let info = bench.expect("203.0.113.7:5060", "INFO sip:203.0.113.7 SIP/2.0");
    assert_eq!(
        info.headers("Route").collect::<Vec<_>>(),
        [format!("<sip:bob@{BOB}>")]
    );
}

#[test]
fn a_loose_route_beyond_us_is_followed() {
    let mut bench = Bench::open();
    let got = ring_locally(&mut bench);
    bench.udp(BOB, &response(&got, "200 OK", "b", ""));
    bench.expect(ALICE, "SIP/2.0 200");
    let ours = got.header("Record-Route").unwrap().to_owned();
    let routes =
        format!("Route: {ours}\nRoute: <sip:203.0.113.7:5070;lr=on>,<sip:203.0.113.8;lr>\n");
    bench.udp(
        ALICE,
        &request(
            "INFO",
            &format!("sip:bob@{BOB}"),
            "<sip:alice@example.com>;tag=a",
            "<sip:bob@example.com>;tag=b",
            ALICE,
            "b2",
            "3",
            &routes,
        ),
    );
    let info = bench.expect("203.0.113.7:5070", &format!("INFO sip:bob@{BOB} SIP/2.0"));
    assert_eq!(
        info.headers("Route").collect::<Vec<_>>(),
        ["<sip:203.0.113.7:5070;lr=on>,<sip:203.0.113.8;lr>"]
    );
}

#[test]
fn a_binding_with_a_path_is_reached_through_it() {
    let mut bench = Bench::open();
    let path = "\"Edge, east\" <sip:a,b@203.0.113.7:5070;lr>, <sip:203.0.113.8;lr>";
    let edge = "203.0.113.7:5070";
    bench.udp(
        edge,
        &format!(
            "REGISTER sip:example.com SIP/2.0\nVia: SIP/2.0/UDP {edge};branch=z9hG4bKp\nMax-Forwards: 70\nFrom: <sip:bob@example.com>;tag=r\nTo: <sip:bob@example.com>\n\
             Call-ID: r\nCSeq: 1 REGISTER\nSupported: path\nPath: {path}\nContact: <sip:bob@10.0.0.2>\nContent-Length: 0\n\n"
        ),
    );
    bench.commit();
    bench.expect(edge, "SIP/2.0 200");
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    let got = bench.expect(edge, "INVITE sip:bob@10.0.0.2 SIP/2.0");
    assert_eq!(got.header("Route"), Some(path));
}

/// What a stranger gets to see of a call with a local user must not open the way to anybody else.
#[test]
fn a_stranger_in_a_call_can_reach_only_the_other_side() {
    let mut bench = Bench::strict();
    bench.subscribers.insert_in_memory(
        b"bob@example.com",
        location::Ha1 {
            md5: [1; 16],
            sha256: [1; 32],
        },
    );
    let settings = sip_core::Settings {
        auth: false,
        ..bench.settings.clone()
    };
    bench.core.set_settings(std::sync::Arc::new(settings));
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench
        .core
        .set_settings(std::sync::Arc::new(bench.settings.clone()));
    bench.udp(ALICE, &invite(""));
    bench.expect(ALICE, "SIP/2.0 100");
    let got = bench.expect(BOB, "INVITE");
    bench.udp(BOB, &response(&got, "200 OK", "b", ""));
    let answer = bench.expect(ALICE, "SIP/2.0 200");
    let route = format!("Route: {}\n", answer.header("Record-Route").unwrap());
    let (alice, bob) = ("<sip:alice@a.test>;tag=a", "<sip:bob@example.com>;tag=b");
    let victim = "sip:victim@203.0.113.99";

    // As herself: whatever she writes, it goes to bob.
    bench.udp(
        ALICE,
        &request("INFO", victim, alice, bob, ALICE, "v1", "2", &route),
    );
    bench.expect(BOB, &format!("INFO {victim}"));
    let further = format!("{route}Route: <{victim};lr>\n");
    bench.udp(
        ALICE,
        &request("INFO", victim, alice, bob, ALICE, "v2", "3", &further),
    );
    bench.expect(BOB, &format!("INFO {victim}"));
    // As bob, or as nobody: challenged.
    bench.udp(
        ALICE,
        &request("INFO", victim, bob, alice, ALICE, "v3", "4", &route),
    );
    bench.expect(ALICE, "SIP/2.0 407");
    bench.udp(
        ALICE,
        &request(
            "INFO",
            victim,
            "<sip:x@y.test>;tag=zz",
            alice,
            ALICE,
            "v4",
            "5",
            &route,
        ),
    );
    bench.expect(ALICE, "SIP/2.0 407");
    bench.udp(
        ALICE,
        &request("ACK", victim, bob, alice, ALICE, "v5", "6", &route),
    );
    bench.expect_nothing();
    // Bob himself goes where her contact is.
    let contact = "sip:alice@198.51.100.77";
    bench.udp(
        BOB,
        &request("BYE", contact, bob, alice, BOB, "v6", "1", &route),
    );
    bench.expect("198.51.100.77:5060", "BYE");
}

#[test]
fn only_credentials_for_us_are_taken_off() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    let line = |realm: &str| {
        format!(
            "Proxy-Authorization: Digest username=\"a\", realm=\"{realm}\", nonce=\"n\", uri=\"sip:b\", response=\"r\"\n"
        )
    };
    bench.udp(ALICE, &invite(&(line("example.com") + &line("other.test"))));
    bench.expect(ALICE, "SIP/2.0 100");
    let got = bench.expect(BOB, "INVITE");
    let left: Vec<_> = got.headers("Proxy-Authorization").collect();
    assert!(
        left.len() == 1 && left[0].contains("other.test"),
        "{left:?}"
    );
}

#[test]
fn what_a_client_writes_into_received_is_replaced() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    let nat = "203.0.113.9:41234";
    bench.udp(
        nat,
        &invite("").replace("branch=", "received=1.2.3.4 ;rport;branch="),
    );
    bench.expect(nat, "SIP/2.0 100");
    let got = bench.expect(BOB, "INVITE");
    let via = got.headers("Via").nth(1).unwrap();
    assert!(
        via.contains("received=203.0.113.9") && !via.contains("1.2.3.4"),
        "{via}"
    );
}

#[test]
fn ringing_restarts_timer_c() {
    let mut bench = Bench::open();
    let got = ring(&mut bench);
    bench.pass_ms(10_000);
    bench.udp(BOB, &response(&got, "180 Ringing", "b", ""));
    bench.pass_ms(175_000);
    bench
        .sink
        .sent
        .retain(|sent| !sent.start().starts_with("INVITE"));
    bench.expect(ALICE, "SIP/2.0 180");
    bench.expect_nothing();
    bench.pass_ms(7_000);
    bench.expect(BOB, "CANCEL");
}

#[test]
fn what_is_no_invite_passes_with_its_final_response_only() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    bench.udp(
        ALICE,
        &request(
            "MESSAGE",
            "sip:bob@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>",
            ALICE,
            "m1",
            "1",
            "",
        ),
    );
    let got = bench.expect(BOB, "MESSAGE");
    bench.udp(BOB, &response(&got, "180 Ringing", "b", ""));
    bench.udp(BOB, &response(&got, "408 Request Timeout", "b", ""));
    bench.expect_nothing();
    assert_eq!(bench.counters().server_transactions, 0);
}

#[test]
fn our_own_answers_name_the_server() {
    let mut bench = Bench::open();
    bench.udp(
        ALICE,
        &request(
            "MESSAGE",
            "sip:eve@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:eve@example.com>",
            ALICE,
            "m1",
            "1",
            "",
        ),
    );
    assert_eq!(
        bench.expect(ALICE, "SIP/2.0 404").header("Server"),
        Some("sipolis")
    );
}

#[test]
fn a_request_has_room_left_for_our_via() {
    let mut bench = Bench::open();
    bench.register("bob", &format!("<sip:bob@{BOB}>"), BOB);
    let hops = |count: usize, branch: &str| {
        let more = "Via: SIP/2.0/UDP 203.0.113.1;branch=z9hG4bKh\n".repeat(count - 1);
        request(
            "MESSAGE",
            "sip:bob@example.com",
            "<sip:alice@a.test>;tag=a",
            "<sip:bob@example.com>",
            ALICE,
            branch,
            "1",
            &more,
        )
    };
    let most = bench.settings.limits.via_count_max - 1;
    bench.udp(ALICE, &hops(most, "m1"));
    let got = bench.expect(BOB, "MESSAGE");
    bench.udp(BOB, &response(&got, "200 OK", "b", ""));
    bench.expect(ALICE, "SIP/2.0 200");
    bench.udp(ALICE, &hops(most + 1, "m2"));
    bench.expect(ALICE, "SIP/2.0 483");
}
