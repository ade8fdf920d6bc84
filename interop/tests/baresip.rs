//! Two baresips register with digest and talk to each other.

use interop::Transport::{Tcp, Udp};
use interop::{Baresip, Case, Server, Transport};

const ALICE_HZ: u32 = 440;
const BOB_HZ: u32 = 880;

/// Alice calls bob, both hear the other's tone, and then one of them hangs up.
fn call(name: &str, from: Transport, to: Transport, ends: fn(&mut Baresip, &mut Baresip)) {
    let case = Case::new(name);
    let _server = Server::start(&case, &["alice", "bob"], "workers = 2\n");
    let mut alice = Baresip::start(&case, 2, from, "alice", ALICE_HZ, false);
    let mut bob = Baresip::start(&case, 3, to, "bob", BOB_HZ, true);
    alice.dials("bob");
    alice.sees("CALL_ESTABLISHED");
    bob.sees("CALL_ESTABLISHED");
    hears(&alice, BOB_HZ);
    hears(&bob, ALICE_HZ);
    ends(&mut alice, &mut bob);
    alice.sees("CALL_CLOSED");
    bob.sees("CALL_CLOSED");
}

fn hears(phone: &Baresip, tone_hz: u32) {
    let heard = phone.hears();
    assert!(
        heard.abs_diff(tone_hz) < 40,
        "{heard} Hz instead of {tone_hz} Hz"
    );
}

#[test]
fn a_phone_on_udp_calls_one_on_tcp_and_hangs_up() {
    call("udp-tcp", Udp, Tcp, |alice, _| alice.hangs_up());
}

#[test]
fn a_phone_on_tcp_calls_one_on_udp_which_hangs_up() {
    call("tcp-udp", Tcp, Udp, |_, bob| bob.hangs_up());
}

#[test]
fn two_phones_on_tcp_hold_and_resume() {
    call("tcp-tcp", Tcp, Tcp, |alice, _| {
        alice.holds(true);
        alice.sees("CALL_REMOTE_SDP");
        alice.holds(false);
        alice.sees("CALL_REMOTE_SDP");
        alice.hangs_up();
    });
}

#[test]
fn the_caller_gives_up_while_it_rings() {
    let case = Case::new("gives-up");
    let _server = Server::start(&case, &["alice", "bob"], "");
    let mut alice = Baresip::start(&case, 2, Udp, "alice", ALICE_HZ, false);
    let mut bob = Baresip::start(&case, 3, Tcp, "bob", BOB_HZ, false);
    alice.dials("bob");
    bob.sees("CALL_INCOMING");
    alice.sees("CALL_RINGING");
    alice.hangs_up();
    bob.sees("CALL_CLOSED");
}
