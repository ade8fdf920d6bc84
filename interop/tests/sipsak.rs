//! sipsak asks, registers and unregisters.

use interop::{Case, DOMAIN, PASSWORD, Peer, Phone, Server};
use std::process::Command;

/// Runs sipsak with these arguments; whether it was content, and what it said.
fn sipsak(case: &Case, args: &[&str]) -> (bool, String) {
    let mut command = Command::new("sipsak");
    command.args([
        "-p",
        &case.address(1).to_string(),
        "-k",
        &case.host(7).to_string(),
    ]);
    let mut peer = Peer::start(command.args(args), case.path("sipsak.log"));
    let ended = peer.ends(30);
    (
        ended.success(),
        format!("sipsak {args:?}: {ended}\n{}", peer.said()),
    )
}

fn check(case: &Case, args: &[&str]) {
    let (content, said) = sipsak(case, args);
    assert!(content, "{said}");
}

/// The arguments of a registration by sipsak.
fn usrloc<'a>(aor: &'a str, password: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["-U", "-i", "-u", "alice", "-a", password, "-s", aor];
    args.extend(more);
    args
}

#[test]
fn options_are_answered_by_udp_and_tcp() {
    let case = Case::new("sipsak-options");
    let _server = Server::start(&case, &["alice"], "");
    for transport in ["udp", "tcp"] {
        check(&case, &["-E", transport, "-s", &format!("sip:{DOMAIN}")]);
    }
}

#[test]
fn contacts_are_bound_listed_and_removed() {
    let case = Case::new("sipsak-usrloc");
    let server = Server::start(&case, &["alice"], "");
    let aor = format!("sip:alice@{DOMAIN}");
    let mut phone = Phone::udp(case.address(8));
    let mut bound = || phone.bindings("alice", server.address);

    check(
        &case,
        &usrloc(
            &aor,
            PASSWORD,
            &["-x", "600", "-C", "sip:alice@127.0.0.1:23070"],
        ),
    );
    check(
        &case,
        &usrloc(
            &aor,
            PASSWORD,
            &["-x", "600", "-C", "sip:alice@127.0.0.1:23071"],
        ),
    );
    let both = bound();
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(
        both.iter()
            .any(|contact| contact.contains("sip:alice@127.0.0.1:23070")),
        "{both:?}"
    );

    check(
        &case,
        &usrloc(
            &aor,
            PASSWORD,
            &["-x", "0", "-C", "sip:alice@127.0.0.1:23070"],
        ),
    );
    let one = bound();
    assert_eq!(one.len(), 1, "{one:?}");
    assert!(one[0].contains("sip:alice@127.0.0.1:23071"), "{one:?}");

    check(&case, &usrloc(&aor, PASSWORD, &["-x", "0", "-C", "*"]));
    assert_eq!(bound(), Vec::<String>::new());
}

#[test]
fn a_wrong_password_binds_nothing() {
    let case = Case::new("sipsak-password");
    let server = Server::start(&case, &["alice"], "");
    let aor = format!("sip:alice@{DOMAIN}");
    let (content, said) = sipsak(&case, &usrloc(&aor, "guessed", &["-x", "600"]));
    assert!(!content, "{said}");
    let mut phone = Phone::udp(case.address(8));
    assert_eq!(
        phone.bindings("alice", server.address),
        Vec::<String>::new()
    );
}

#[test]
fn the_way_to_a_user_is_traced_by_max_forwards() {
    let case = Case::new("sipsak-trace");
    let _server = Server::start(&case, &["alice"], "");
    let (_, said) = sipsak(&case, &["-T", "-s", &format!("sip:nobody@{DOMAIN}")]);
    let (hop, end) = (said.find("483 "), said.find("404 "));
    assert!(
        hop.is_some() && hop < end,
        "483 by the server at Max-Forwards 0, then 404: {said}"
    );
}
