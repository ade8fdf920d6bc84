//! `sipolis load` beside SIPp, and against Kamailio.

use interop::Transport::{self, Tcp, Udp};
use interop::{Case, DOMAIN, Kamailio, Load, PASSWORD, Relay, Server, Sipp};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Operations a second at which SIPp keeps up, and how many of them.
const RATE: u32 = 500;
const COUNT: u32 = 2000;
/// Users of `sipolis load`.
const USERS: u32 = 200;
/// How far the figures of the two may be from each other.
const TOLERANCE: f64 = 0.05;

/// What the server has counted.
type Counters = BTreeMap<String, u64>;

fn counters(server: &Server) -> Counters {
    let status: serde_json::Value =
        serde_json::from_str(&server.cli(&["status", "--json"])).expect("JSON");
    let counters = status["counters"].as_object().expect("counters");
    let number = |value: &serde_json::Value| value.as_u64().expect("a count");
    let counter = |(name, value): (&String, &serde_json::Value)| (name.clone(), number(value));
    counters.iter().map(counter).collect()
}

/// What went up by how much in the meantime.
fn counted(server: &Server, before: &Counters) -> Counters {
    const COMPARED: [&str; 8] = [
        "requests_received",
        "requests_sent",
        "responses_received",
        "responses_sent",
        "challenges",
        "registrations_accepted",
        "calls_answered",
        "calls_failed",
    ];
    let now = counters(server);
    let risen = COMPARED.map(|name| (name.to_owned(), now[name] - before[name]));
    risen.into_iter().collect()
}

fn agrees(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.max(b)
}

/// What the server counts of SIPp, and the rate that SIPp had.
fn of_sipp(case: &Case, server: &Server, transport: Transport, script: &str) -> (Counters, f64) {
    let bob = Sipp::new(case, 2, transport, "bob");
    let is_call = script.contains("INVITE");
    let bob = is_call.then(|| bob.answers("< INVITE | > 180 | > 200 | < ACK | < BYE | > 200"));
    let before = counters(server);
    let alice = Sipp::new(case, 3, transport, "alice").calls("bob", COUNT);
    let alice = alice.rate(RATE).with_statistics();
    alice.plays(script);
    let counted = counted(server, &before);
    if let Some(bob) = bob {
        bob.ends();
    }
    (counted, alice.rate_achieved())
}

/// The same of `sipolis load`.
fn of_load(case: &Case, server: &Server, transport: Transport, scenario: &str) -> (Counters, f64) {
    let words = format!(
        "{scenario} --rate {RATE} --count {COUNT} --users {USERS} --domain {DOMAIN} --password {PASSWORD}"
    );
    let load = Load::prepare(case, (transport, server.address), &words);
    let before = counters(server);
    let figures = load.runs();
    let rate = figures["operations_per_second"].as_f64().expect("a rate");
    assert_eq!(figures["succeeded"], COUNT, "{figures:#}");
    (counted(server, &before), rate)
}

/// Tries until the machine let both have their rates: what else it does must not decide.
const TRIES: usize = 3;

/// Both do the same to the same server, which has to count the same; and at the same rate.
fn check(transport: Transport, scenario: &str, script: &str) {
    let what = format!("{scenario} over {transport:?}");
    let mut had = Vec::new();
    for _ in 0..TRIES {
        let (sipp, load) = rates(transport, scenario, script);
        if agrees(sipp, load) {
            return;
        }
        had.push((sipp, load));
    }
    panic!("{what}: a second of SIPp, of sipolis load: {had:?}");
}

/// The rates of SIPp and of `sipolis load`, after the server has counted the same of both.
fn rates(transport: Transport, scenario: &str, script: &str) -> (f64, f64) {
    let case = Case::new("agreement");
    let mut users = vec![String::from("alice"), String::from("bob")];
    users.extend((0..USERS).map(|number| format!("user{number:05}")));
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let server = Server::start(&case, &users, "workers = 1\n");
    let (sipp, sipp_rate) = of_sipp(&case, &server, transport, script);
    let (load, load_rate) = of_load(&case, &server, transport, scenario);
    for (name, of_sipp) in &sipp {
        let of_load = load[name];
        assert!(
            agrees(*of_sipp as f64, of_load as f64),
            "{scenario} over {transport:?}: {name}: {of_sipp} of SIPp, {of_load} of sipolis load"
        );
    }
    (sipp_rate, load_rate)
}

const REGISTER: &str = "> REGISTER | < 401! | > REGISTER+ | < 200";
const CALL: &str =
    "> INVITE | < 407! | > ACK | > INVITE+ | < 100? | < 180? | < 200 | > ACK | > BYE | < 200";

#[test]
fn registrations_over_udp_are_as_many_as_those_of_sipp() {
    check(Udp, "register", REGISTER);
}

#[test]
fn registrations_over_tcp_are_as_many_as_those_of_sipp() {
    check(Tcp, "register --connections 1", REGISTER);
}

#[test]
fn calls_over_udp_are_as_many_as_those_of_sipp() {
    check(Udp, "call", CALL);
}

#[test]
fn calls_over_tcp_are_as_many_as_those_of_sipp() {
    check(Tcp, "call --connections 1", CALL);
}

/// What any server is asked for.
const SCENARIOS: [&str; 9] = [
    "register",
    "register --first",
    "register --digest reuse",
    "options",
    "notify",
    "message --body 100",
    "call",
    "call --prack --update --reinvite",
    "call --ring 10ms --talk exp:10ms --cancel 50 --busy 50",
];

/// Every operation succeeds.
fn drives(case: &Case, to: (Transport, SocketAddr), scenario: &str, domain: &str) {
    let words = format!("{scenario} --users 100 --count 100 --domain {domain}");
    let figures = Load::prepare(case, to, &words).runs();
    let said = format!("{scenario} over {:?}: {figures:#}", to.0);
    assert_eq!(figures["operations"], 100, "{said}");
    assert_eq!(figures["succeeded"], 100, "{said}");
}

#[test]
fn kamailio_is_driven_without_failures() {
    for digest in [false, true] {
        for transport in [Udp, Tcp] {
            let case = Case::new("kamailio");
            let Some(kamailio) = Kamailio::start(&case, digest) else {
                let test = "kamailio_is_driven_without_failures";
                return interop::skip(test, "Kamailio is not installed: apt-get install kamailio");
            };
            for scenario in SCENARIOS {
                let to = (transport, kamailio.address);
                drives(&case, to, scenario, "example.com");
            }
        }
    }
}

/// A server with the users that [`drives`] has.
fn our_server(case: &Case, config: &str) -> Server {
    let users: Vec<String> = (0..100).map(|number| format!("user{number:05}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    Server::start(case, &users, config)
}

#[test]
fn our_server_is_driven_without_failures_whatever_the_lifetime_of_connections() {
    let lifetimes = [
        (Udp, "--connections 1"),
        (Udp, "--callee-transport tcp"),
        (Tcp, "--lifetime persistent"),
        (Tcp, "--lifetime persistent-open"),
        (Tcp, "--lifetime 3"),
        (Tcp, "--lifetime dialog"),
        (Tcp, "--lifetime transaction"),
    ];
    for config in ["workers = 2\n", "workers = 1\nauth = false\n"] {
        for (transport, options) in lifetimes {
            let case = Case::new("lifetimes");
            let server = our_server(&case, config);
            for scenario in SCENARIOS {
                let words = format!("{scenario} --password {PASSWORD} {options}");
                drives(&case, (transport, server.address), &words, DOMAIN);
            }
        }
    }
}

#[test]
fn calls_through_our_server_succeed_though_datagrams_are_lost() {
    let case = Case::new("lossy");
    let server = our_server(&case, "workers = 2\n");
    let relay = Relay::start(case.address(2), server.address, 9);
    for scenario in [
        "register",
        "message",
        "call --prack --update --reinvite",
        "call --prack --ring 10ms --cancel 50 --busy 50",
    ] {
        let before = relay.lost();
        let words = format!("{scenario} --password {PASSWORD} --outstanding 25");
        drives(&case, (Udp, relay.address), &words, DOMAIN);
        assert!(relay.lost() > before, "{scenario}: nothing was lost");
    }
}
