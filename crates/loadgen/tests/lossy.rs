//! Calls and requests through a proxy that keeps no state and loses datagrams: every operation succeeds all the same, and each is counted once.

mod proxy;

use clap::Parser;
use loadgen::{
    Summary,
    load::{Load, LoadArgs},
};
use proxy::{Proxy, Ways};

fn load(proxy: &Proxy, scenario: &str, count: u64) -> Summary {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }
    let (name, options) = scenario.split_once(' ').unwrap_or((scenario, ""));
    // So few at a time that no socket's buffer overflows: nothing else is lost.
    let words = format!(
        "load {name} {} --users 100 --outstanding 25 {options}",
        proxy.address
    );
    let line = Line::try_parse_from(words.split_whitespace()).expect("is understood");
    let mut load = Load::new(&line.load).expect("callees register");
    load.operations(count).expect("runs")
}

/// Every operation succeeds, with so many final responses of each kind.
fn check(ways: Ways, scenario: &str, finals: &[(u16, u64)]) {
    const COUNT: u64 = 50;
    let proxy = Proxy::start(ways);
    let summary = load(&proxy, scenario, COUNT);
    assert_eq!(summary.operations, COUNT, "{scenario}: {summary}");
    assert_eq!(summary.succeeded, COUNT, "{scenario}: {summary}");
    let counted = summary.responses.iter().map(|r| (r.code, r.count));
    let counted: Vec<_> = counted.filter(|(code, _)| *code >= 200).collect();
    let expected: Vec<_> = finals.iter().map(|(code, n)| (*code, n * COUNT)).collect();
    assert_eq!(counted, expected, "{scenario}: {summary}");
    let lost = ways.loses_every > 0;
    assert!(
        summary.retransmissions > 0 || !lost,
        "{scenario}: {summary}"
    );
}

const SCENARIOS: [(&str, &[(u16, u64)]); 8] = [
    ("call", &[(200, 2)]),
    ("call --prack", &[(200, 3)]),
    ("call --prack --update --reinvite", &[(200, 5)]),
    (
        "call --prack --update --reinvite --ring 5ms --talk 20ms",
        &[(200, 5)],
    ),
    ("call --cancel 100", &[(200, 1), (487, 1)]),
    (
        "call --cancel 100 --prack --ring 10ms",
        &[(200, 2), (487, 1)],
    ),
    ("call --busy 100", &[(486, 1)]),
    ("message --body 10", &[(200, 1)]),
];

#[test]
fn without_losses_every_call_goes_as_it_is_meant_to() {
    for (scenario, finals) in SCENARIOS {
        check(Ways::default(), scenario, finals);
    }
}

#[test]
fn with_losses_every_call_goes_as_it_is_meant_to() {
    let ways = Ways {
        loses_every: 7,
        ..Ways::default()
    };
    // They wait for timers most of the time.
    std::thread::scope(|scope| {
        for (scenario, finals) in SCENARIOS {
            scope.spawn(move || check(ways, scenario, finals));
        }
    });
}

#[test]
fn challenges_are_answered_in_spite_of_losses() {
    for loses_every in [0, 7] {
        let ways = Ways {
            loses_every,
            challenges: true,
            ..Ways::default()
        };
        let all = "call --prack --update --reinvite";
        check(ways, all, &[(200, 5), (407, 1)]);
        check(ways, "call --cancel 100", &[(200, 1), (407, 1), (487, 1)]);
        check(ways, "message", &[(200, 1), (407, 1)]);
    }
}

#[test]
fn a_strict_router_is_the_request_uri_of_all_requests_in_the_dialog() {
    for loses_every in [0, 7] {
        let ways = Ways {
            loses_every,
            strict: true,
            ..Ways::default()
        };
        let all = "call --prack --update --reinvite";
        check(ways, all, &[(200, 5)]);
        check(ways, "call --cancel 100 --prack", &[(200, 2), (487, 1)]);
    }
}

#[test]
fn refusals_that_were_not_meant_are_failures() {
    let proxy = Proxy::start(Ways {
        challenges: true,
        ..Ways::default()
    });
    let summary = load(&proxy, "call --digest none", 10);
    assert_eq!(
        (summary.operations, summary.succeeded),
        (10, 0),
        "{summary}"
    );
    assert_eq!(summary.failures.credentials, 10, "{summary}");
}
