//! SIPp's calls through the server.

use interop::Transport::{Tcp, Udp};
use interop::{Case, Server, Sipp};

/// A call of an authenticated caller that is answered, and ends by the caller's BYE.
const CALL: &str =
    "> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180? | < 200 | > ACK | > BYE | < 200";
/// The other side of it.
const ANSWER: &str = "< INVITE | > 180 | > 200 | < ACK | < BYE | > 200";

#[test]
fn built_in_uac_calls_built_in_uas() {
    for workers in [1, 2] {
        for (caller, callee) in [(Udp, Udp), (Tcp, Tcp), (Tcp, Udp), (Udp, Tcp)] {
            let case = Case::new("built-in");
            let _server = Server::start(&case, &["service"], &format!("workers = {workers}\n"));
            let uas = Sipp::new(&case, 2, callee, "service");
            let uas = uas.answers("uas");
            Sipp::new(&case, 3, caller, "sipp")
                .calls("service", 200)
                .rate(200)
                .plays("uac");
            assert_eq!(
                uas.received("INVITE "),
                200,
                "{caller:?} to {callee:?}, {workers} workers"
            );
            uas.ends();
        }
    }
}

/// Plays one call scenario with every pair of transports, on one worker and on two.
fn check(name: &str, caller: &str, callee: &str) {
    for (workers, pairs) in [
        (1, [(Udp, Tcp), (Tcp, Udp)]),
        (2, [(Udp, Udp), (Tcp, Tcp)]),
        (2, [(Tcp, Udp), (Udp, Tcp)]),
    ] {
        for (from, to) in pairs {
            let case = Case::new(name);
            let _server =
                Server::start(&case, &["alice", "bob"], &format!("workers = {workers}\n"));
            let bob = Sipp::new(&case, 2, to, "bob");
            let bob = bob.answers(callee);
            Sipp::new(&case, 3, from, "alice")
                .calls("bob", 20)
                .plays(caller);
            bob.ends();
        }
    }
}

#[test]
fn a_call_with_digest_is_answered_and_ended_by_the_caller() {
    check("digest", CALL, ANSWER);
}

#[test]
fn the_callee_ends_the_call() {
    let caller =
        "> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180? | < 200 | > ACK | < BYE | > 200";
    check(
        "callee-bye",
        caller,
        "< INVITE | > 180 | > 200 | < ACK | > BYE | < 200",
    );
}

#[test]
fn cancel_reaches_the_ringing_callee() {
    let caller =
        "> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180 | > CANCEL | < 200 | < 487 | > ACK";
    check(
        "cancel",
        caller,
        "< INVITE | > 180 | < CANCEL | > 200 | > 487 INVITE | < ACK",
    );
}

#[test]
fn busy_and_decline_come_back() {
    for status in ["486", "603"] {
        let caller =
            format!("> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180? | < {status} | > ACK");
        check(
            status,
            &caller,
            &format!("< INVITE | > 180 | > {status} | < ACK"),
        );
    }
}

#[test]
fn re_invite_and_info_go_through_in_the_dialog() {
    let caller = "> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180? | < 200 | > ACK | wait 50 | > INVITE | < 100? | < 200 \
                  | > ACK | > INFO | < 200 | > BYE | < 200";
    let callee = "< INVITE | > 180 | > 200 | < ACK | < INVITE | > 200 | < ACK | < INFO | > 200 | < BYE | > 200";
    check("re-invite", caller, callee);
}

#[test]
fn early_media_with_prack_and_update() {
    let caller = "> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 183 | > PRACK | < 200 | > UPDATE | < 200 | < 200 \
                  | > ACK | > BYE | < 200";
    let callee = "< INVITE | > 183 | < PRACK | > 200 | < UPDATE | > 200 | > 200 INVITE | < ACK | < BYE | > 200";
    check("prack", caller, callee);
}

#[test]
fn message_and_an_unknown_method_are_proxied() {
    for method in ["MESSAGE", "FROBNICATE"] {
        let caller = format!("> {method} | < 407! | > {method}+ | < 200");
        check(method, &caller, &format!("< {method} | > 200"));
    }
}

/// What the caller sees of a call that fails with this status.
fn fails(status: u16) -> String {
    format!("> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180? | < {status} | > ACK")
}

#[test]
fn a_parallel_fork_is_won_by_one_and_cancelled_for_the_other() {
    for (first, second) in [(Udp, Udp), (Tcp, Udp), (Tcp, Tcp)] {
        let case = Case::new("fork");
        let _server = Server::start(&case, &["alice", "bob"], "workers = 2\n");
        let answers = Sipp::new(&case, 2, first, "bob");
        let rings = Sipp::new(&case, 3, second, "bob");
        let answers =
            answers.answers("< INVITE | > 180 | wait 200 | > 200 | < ACK | < BYE | > 200");
        let rings = rings.answers("< INVITE | > 180 | < CANCEL | > 200 | > 487 INVITE | < ACK");
        let caller = "> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180? | < 180? | < 200 | > ACK | > BYE | < 200";
        Sipp::new(&case, 4, Udp, "alice")
            .calls("bob", 20)
            .plays(caller);
        assert_eq!(
            (rings.received("INVITE "), rings.received("CANCEL ")),
            (20, 20)
        );
        rings.ends();
        answers.ends();
    }
}

#[test]
fn a_serial_fork_tries_the_higher_q_first() {
    let case = Case::new("serial");
    let _server = Server::start(&case, &["alice", "bob"], "workers = 2\n");
    let first = Sipp::new(&case, 2, Udp, "bob").contact_params(";q=0.9");
    let second = Sipp::new(&case, 3, Tcp, "bob").contact_params(";q=0.1");
    let first = first.answers("< INVITE | > 180 | > 486 | < ACK");
    let second = second.answers(ANSWER);
    let caller = "> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180? | < 180? | < 200 | > ACK | > BYE | < 200";
    Sipp::new(&case, 4, Udp, "alice")
        .calls("bob", 20)
        .plays(caller);
    assert_eq!(
        (first.received("INVITE "), second.received("INVITE ")),
        (20, 20)
    );
    first.ends();
    second.ends();
}

#[test]
fn the_best_of_two_refusals_comes_back() {
    let case = Case::new("best");
    let _server = Server::start(&case, &["alice", "bob"], "");
    let busy = Sipp::new(&case, 2, Udp, "bob");
    let declines = Sipp::new(&case, 3, Udp, "bob");
    let busy = busy.answers("< INVITE | > 180 | > 486 | < ACK");
    let declines = declines.answers("< INVITE | > 180 | wait 200 | > 603 | < ACK");
    let caller = "> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180? | < 180? | < 603 | > ACK";
    Sipp::new(&case, 4, Udp, "alice")
        .calls("bob", 20)
        .plays(caller);
    busy.ends();
    declines.ends();
}

#[test]
fn a_redirect_comes_back_to_the_caller_with_its_contact() {
    for (from, to) in [(Udp, Udp), (Tcp, Udp), (Udp, Tcp)] {
        let case = Case::new("redirect");
        let _server = Server::start(&case, &["alice", "bob"], "");
        let bob = Sipp::new(&case, 2, to, "bob").redirect_to("carol");
        let bob = bob.answers("< INVITE | > 302 | < ACK");
        Sipp::new(&case, 3, from, "alice")
            .calls("bob", 20)
            .plays(&fails(302));
        bob.ends();
    }
}

#[test]
fn nobody_there_is_404_and_nobody_registered_is_480() {
    let case = Case::new("absent");
    let _server = Server::start(&case, &["alice", "bob"], "");
    for (callee, status) in [("nobody", 404), ("bob", 480)] {
        for transport in [Udp, Tcp] {
            Sipp::new(&case, 3, transport, "alice")
                .calls(callee, 20)
                .plays(&fails(status));
        }
    }
}

#[test]
fn a_phone_that_is_gone_ends_the_call_with_408() {
    let case = Case::new("gone");
    let _server = Server::start(&case, &["alice", "bob"], "[timers]\nt1_ms = 50\n");
    let bob = Sipp::new(&case, 2, Udp, "bob");
    drop(bob.answers(ANSWER));
    Sipp::new(&case, 3, Udp, "alice")
        .calls("bob", 20)
        .plays(&fails(408));
}

#[test]
fn a_wrong_password_is_challenged_again() {
    let case = Case::new("password");
    let _server = Server::start(&case, &["alice", "bob"], "");
    let caller = "> INVITE | < 407! | > ACK | > INVITE+ | < 407! | > ACK";
    let register = "> REGISTER | < 401! | > REGISTER+ | < 401!";
    for transport in [Udp, Tcp] {
        let alice = || Sipp::new(&case, 3, transport, "alice").password("guessed");
        alice().calls("bob", 20).plays(caller);
        alice().calls("bob", 20).plays(register);
    }
}
