//! What a worker counts for each stage of its work.

mod common;

use common::{LONG, Phone, Rig};
use edge::Options;
use net::{Stage, StageTimes};

/// A worker that measures.
fn rig() -> Rig {
    let net = net::Options {
        stage_times: true,
        ..net::Options::default()
    };
    let options = Options {
        net,
        ..Options::default()
    };
    Rig::with_options(options, false)
}

fn times(rig: &Rig) -> StageTimes {
    rig.post.status(LONG)[0].stages.expect("on")
}

/// How often each stage was entered since, but for the event loop's own, which depend on how events fall together.
fn calls_since(rig: &Rig, before: &StageTimes) -> Vec<(&'static str, u64)> {
    let now = times(rig);
    let pairs = now.each.iter().zip(&before.each);
    pairs
        .filter(|(now, _)| !matches!(now.stage, Stage::Wait | Stage::Other))
        .map(|(now, before)| (now.stage.name(), now.calls - before.calls))
        .collect()
}

/// Waits until the server has seen that a connection has ended.
fn see_closed(rig: &Rig) {
    let closed = |rig: &Rig| rig.post.status(LONG)[0].net.connections_closed;
    let mut looks = 0;
    while closed(rig) == 0 {
        looks += 1;
        assert!(looks < 100_000, "the connection has not been closed");
        std::thread::yield_now();
    }
}

#[test]
fn a_register_over_udp_is_read_and_written_once_and_goes_through_each_stage_once() {
    let rig = rig();
    let mut phone = rig.udp_phone();
    let before = times(&rig);
    rig.register(&mut phone, "alice");
    let expected = [
        ("read", 1),
        ("connections", 0),
        ("classify", 1),
        ("parse", 1),
        ("look_up", 1),
        ("decide", 1),
        ("write", 1),
    ];
    assert_eq!(calls_since(&rig, &before), expected);
}

#[test]
fn a_register_on_a_connection_that_is_there_takes_the_same_calls_as_over_udp() {
    let rig = rig();
    let mut phone = rig.tcp_phone();
    rig.register(&mut phone, "alice");
    let before = times(&rig);
    register_again(&rig, &mut phone);
    let expected = [
        ("read", 1),
        ("connections", 0),
        ("classify", 1),
        ("parse", 1),
        ("look_up", 1),
        ("decide", 1),
        ("write", 1),
    ];
    assert_eq!(calls_since(&rig, &before), expected);
}

/// Figure 20 of the paper: the SYN is seen by the accepting socket, and the FIN takes a read that finds nothing.
#[test]
fn a_connection_for_one_register_takes_a_second_read_and_the_calls_to_accept_and_close_it() {
    let rig = rig();
    let before = times(&rig);
    let mut phone = rig.tcp_phone();
    rig.register(&mut phone, "alice");
    drop(phone);
    see_closed(&rig);
    let expected = [
        ("read", 2),
        // Accepted, found that no other one waits, closed.
        ("connections", 3),
        ("classify", 1),
        ("parse", 1),
        ("look_up", 1),
        ("decide", 1),
        ("write", 1),
    ];
    assert_eq!(calls_since(&rig, &before), expected);
}

#[test]
fn a_message_in_two_pieces_is_read_and_classified_twice_and_parsed_once() {
    let rig = rig();
    let mut phone = rig.tcp_phone();
    let before = times(&rig);
    let options = phone.options(1);
    let (head, rest) = options.split_at(100);
    phone.send(head);
    let mut looks = 0;
    while rig.post.status(LONG)[0].net.held_bytes == 0 {
        looks += 1;
        assert!(looks < 100_000, "the first piece has not come");
        std::thread::yield_now();
    }
    phone.send(rest);
    phone.receive();
    let calls = calls_since(&rig, &before);
    for expected in [("read", 2), ("classify", 2), ("parse", 1), ("write", 1)] {
        assert!(calls.contains(&expected), "{expected:?} in {calls:?}");
    }
}

#[test]
fn system_calls_took_time_what_was_not_entered_took_none_and_the_wait_for_the_disk_is_apart() {
    let rig = rig();
    let mut phone = rig.udp_phone();
    let before = times(&rig);
    for _ in 0..50 {
        register_again(&rig, &mut phone);
    }
    let now = times(&rig);
    for (now, before) in now.each.iter().zip(&before.each) {
        let took = now.nanoseconds > before.nanoseconds;
        match now.stage {
            Stage::Wait | Stage::Read | Stage::Write => assert!(took, "{now:?}, {before:?}"),
            Stage::Connections => assert!(!took, "{now:?}, {before:?}"),
            _ => {}
        }
    }
    assert_eq!(rig.post.status(LONG)[0].disk_waits, 50);
}

#[test]
fn a_worker_that_was_not_asked_to_measure_has_no_stages() {
    let rig = Rig::new(1);
    rig.register(&mut rig.udp_phone(), "alice");
    assert_eq!(rig.post.status(LONG)[0].stages, None);
}

/// Registers with a Call-ID of its own, so that it is not taken for the same request.
fn register_again(rig: &Rig, phone: &mut Phone) {
    let waited = rig.post.status(LONG)[0].disk_waits;
    let request = phone.register("alice", 2);
    phone.send(&request.replace("Call-ID: ", &format!("Call-ID: {waited}")));
    let mut looks = 0;
    while rig.answers_waiting() == 0 {
        looks += 1;
        assert!(looks < 100_000, "the REGISTER has not come");
    }
    rig.commit();
    let answer = phone.receive();
    assert!(answer.starts_with("SIP/2.0 200 "), "{answer}");
}
