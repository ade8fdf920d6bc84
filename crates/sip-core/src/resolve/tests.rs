use super::*;
use Transport::{Sctp, Tcp, Tls, Udp};

/// A zone in a line each: `NAME naptr ORDER PREF FLAGS SERVICE REPLACEMENT`, `NAME srv PRIORITY WEIGHT PORT TARGET`, `NAME a ADDRESS`,
/// `NAME TYPE fails`.
fn lookup(zone: &str, query: &Query) -> Answer {
    let (name, kind) = match query {
        Query::Naptr(name) => (name, "naptr"),
        Query::Srv(name) => (name, "srv"),
        Query::Addresses(name) => (name, "a"),
    };
    let lines: Vec<Vec<&str>> = zone
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|f| f.len() > 2 && f[0] == name && f[1] == kind)
        .map(|f| f[2..].to_vec())
        .collect();
    if lines.iter().any(|f| f[0] == "fails") {
        return Answer::Failed;
    }
    let number = |text: &str| text.parse().expect("a number");
    match query {
        Query::Naptr(_) => Answer::Naptr(
            lines
                .iter()
                .map(|f| {
                    let text = |i: usize| String::from(f[i]);
                    (number(f[0]), number(f[1]), text(2), text(3), text(4))
                })
                .collect(),
        ),
        Query::Srv(_) => Answer::Srv(
            lines
                .iter()
                .map(|f| (number(f[0]), number(f[1]), number(f[2]), f[3].into()))
                .collect(),
        ),
        Query::Addresses(_) => Answer::Addresses(
            lines
                .iter()
                .map(|f| f[0].parse().expect("an address"))
                .collect(),
        ),
    }
}

/// Follows a plan to its end: the questions asked, and the targets.
fn follow(mut plan: Plan, zone: &str) -> (Vec<Query>, Vec<Target>) {
    let mut asked = Vec::new();
    loop {
        assert_eq!(plan.step(), plan.step());
        match plan.step() {
            Step::Done(targets) => return (asked, targets),
            Step::Ask(query) => {
                plan.answer(lookup(zone, &query));
                asked.push(query);
                assert!(asked.len() <= QUERIES_MAX, "endless: {asked:?}");
            }
        }
    }
}

/// `uri`: `[sips:]HOST[:PORT][;transport=T]`, or `via:` for a response.
fn request(uri: &str) -> ResolveRequest {
    let (address, transport) = uri.split_once(";transport=").unwrap_or((uri, ""));
    let (scheme, address) = address.split_once("::").unwrap_or(("sip", address));
    let (host, port) = address.split_once(':').unwrap_or((address, ""));
    ResolveRequest {
        host: host.into(),
        port: port.parse().ok(),
        transport: match transport {
            "udp" => Some(Udp),
            "tcp" => Some(Tcp),
            "tls" => Some(Tls),
            _ => None,
        },
        secure: scheme == "sips",
        response: scheme == "via",
    }
}

fn show(query: &Query) -> String {
    match query {
        Query::Naptr(name) => format!("naptr {name}"),
        Query::Srv(name) => format!("srv {name}"),
        Query::Addresses(name) => format!("a {name}"),
    }
}

fn check_with(available: &[Transport], uri: &str, zone: &str, asked: &[&str], found: &[&str]) {
    let plan = Plan::new(request(uri), available, 7);
    let (queries, targets) = follow(plan, zone);
    let queries: Vec<String> = queries.iter().map(show).collect();
    assert_eq!(queries, asked, "questions for {uri}");
    let targets: Vec<String> = targets
        .iter()
        .map(|t| format!("{:?} {}", t.transport, t.peer).to_lowercase())
        .collect();
    assert_eq!(targets, found, "targets for {uri}");
}

fn check(uri: &str, zone: &str, asked: &[&str], found: &[&str]) {
    check_with(&[Udp, Tcp], uri, zone, asked, found);
}

const EXAMPLE: &str = "
    example.com naptr 50 50 s SIPS+D2T _sips._tcp.example.com
    example.com naptr 90 50 s SIP+D2T _sip._tcp.example.com
    example.com naptr 100 50 s SIP+D2U _sip._udp.example.com
    _sip._tcp.example.com srv 0 1 5060 server1.example.com
    _sip._tcp.example.com srv 1 2 5070 server2.example.com
    server1.example.com a 192.0.2.1
    server1.example.com a 2001:db8::1
    server2.example.com a 192.0.2.2
";

#[test]
fn the_example_of_rfc_3263_section_4_1_finds_tcp_and_both_servers_in_order() {
    check(
        "example.com",
        EXAMPLE,
        &[
            "naptr example.com",
            "srv _sip._tcp.example.com",
            "a server1.example.com",
            "a server2.example.com",
        ],
        &[
            "tcp 192.0.2.1:5060",
            "tcp [2001:db8::1]:5060",
            "tcp 192.0.2.2:5070",
        ],
    );
}

#[test]
fn an_explicit_port_leads_to_addresses_at_once() {
    let zone = "example.com a 192.0.2.9";
    let asked = &["a example.com"];
    check("example.com:5080", zone, asked, &["udp 192.0.2.9:5080"]);
    let tcp = "example.com:5080;transport=tcp";
    check(tcp, zone, asked, &["tcp 192.0.2.9:5080"]);
    check(
        "sips::example.com:5081",
        zone,
        asked,
        &["tls 192.0.2.9:5081"],
    );
}

#[test]
fn an_explicit_transport_leads_to_its_srv_records() {
    let zone = "
        _sip._udp.example.com srv 0 0 5062 a.example.com
        a.example.com a 192.0.2.3";
    check(
        "example.com;transport=udp",
        zone,
        &["srv _sip._udp.example.com", "a a.example.com"],
        &["udp 192.0.2.3:5062"],
    );
}

#[test]
fn without_srv_records_the_host_itself_is_tried_at_the_default_port() {
    let zone = "example.com a 192.0.2.9";
    check(
        "example.com;transport=tcp",
        zone,
        &["srv _sip._tcp.example.com", "a example.com"],
        &["tcp 192.0.2.9:5060"],
    );
    check(
        "sips::example.com;transport=tcp",
        zone,
        &["srv _sips._tcp.example.com", "a example.com"],
        &["tls 192.0.2.9:5061"],
    );
}

#[test]
fn without_naptr_the_srv_records_of_each_of_our_transports_are_asked_for() {
    let zone = "
        _sip._tcp.example.com srv 0 0 5060 a.example.com
        a.example.com a 192.0.2.3";
    check(
        "example.com",
        zone,
        &[
            "naptr example.com",
            "srv _sip._udp.example.com",
            "srv _sip._tcp.example.com",
            "a a.example.com",
        ],
        &["tcp 192.0.2.3:5060"],
    );
}

#[test]
fn with_neither_naptr_nor_srv_a_sip_uri_goes_by_udp_and_a_sips_uri_by_tls() {
    let zone = "example.com a 192.0.2.9";
    check(
        "example.com",
        zone,
        &[
            "naptr example.com",
            "srv _sip._udp.example.com",
            "srv _sip._tcp.example.com",
            "a example.com",
        ],
        &["udp 192.0.2.9:5060"],
    );
    check_with(
        &[Udp, Tcp, Tls],
        "sips::example.com",
        zone,
        &[
            "naptr example.com",
            "srv _sips._tcp.example.com",
            "a example.com",
        ],
        &["tls 192.0.2.9:5061"],
    );
}

#[test]
fn naptr_entries_that_we_can_not_use_are_passed_over() {
    let zone = "
        example.com naptr 1 1 s SIP+D2S _sip._sctp.example.com
        example.com naptr 2 1 u SIP+D2U ignored
        example.com naptr 3 1 s E2U+sip ignored
        example.com naptr 4 2 S sip+d2t _sip._tcp.later.example.com
        example.com naptr 4 1 s SIP+D2U _sip._udp.first.example.com
        _sip._udp.first.example.com srv 0 0 5060 a.example.com
        a.example.com a 192.0.2.3";
    check(
        "example.com",
        zone,
        &[
            "naptr example.com",
            "srv _sip._udp.first.example.com",
            "a a.example.com",
        ],
        &["udp 192.0.2.3:5060"],
    );
}

#[test]
fn sips_takes_no_service_that_is_not_secure() {
    check_with(
        &[Tcp, Udp, Tls, Sctp],
        "sips::example.com",
        &format!("{EXAMPLE}\n_sips._tcp.example.com srv 0 0 5061 server2.example.com"),
        &[
            "naptr example.com",
            "srv _sips._tcp.example.com",
            "a server2.example.com",
        ],
        &["tls 192.0.2.2:5061"],
    );
}

#[test]
fn a_question_that_fails_leads_to_the_next_possibility() {
    let zone = "
        example.com naptr fails
        _sip._udp.example.com srv fails
        _sip._tcp.example.com srv 0 0 5060 a.example.com
        _sip._tcp.example.com srv 1 0 5060 b.example.com
        a.example.com a fails
        b.example.com a 192.0.2.4";
    check(
        "example.com",
        zone,
        &[
            "naptr example.com",
            "srv _sip._udp.example.com",
            "srv _sip._tcp.example.com",
            "a a.example.com",
            "a b.example.com",
        ],
        &["tcp 192.0.2.4:5060"],
    );
}

#[test]
fn servers_without_an_address_lead_to_the_next_service() {
    let zone = "
        example.com naptr 1 1 s SIP+D2T _sip._tcp.example.com
        example.com naptr 2 1 s SIP+D2U _sip._udp.example.com
        _sip._tcp.example.com srv 0 0 5060 gone.example.com
        _sip._udp.example.com srv 0 0 5060 a.example.com
        a.example.com a 192.0.2.3";
    check(
        "example.com",
        zone,
        &[
            "naptr example.com",
            "srv _sip._tcp.example.com",
            "a gone.example.com",
            "srv _sip._udp.example.com",
            "a a.example.com",
        ],
        &["udp 192.0.2.3:5060"],
    );
}

#[test]
fn a_domain_that_says_it_has_no_sip_is_not_tried_at_its_address() {
    let zone = "
        _sip._udp.example.com srv 0 0 0 .
        example.com a 192.0.2.9";
    check(
        "example.com;transport=udp",
        zone,
        &["srv _sip._udp.example.com"],
        &[],
    );
}

#[test]
fn a_name_that_does_not_exist_has_no_targets() {
    check(
        "example.com",
        "",
        &[
            "naptr example.com",
            "srv _sip._udp.example.com",
            "srv _sip._tcp.example.com",
            "a example.com",
        ],
        &[],
    );
}

#[test]
fn a_response_is_sent_by_section_5_without_naptr() {
    let zone = "
        example.com naptr 1 1 s SIP+D2T _sip._tcp.example.com
        example.com a 192.0.2.9";
    check(
        "via::example.com;transport=tcp",
        zone,
        &["srv _sip._tcp.example.com", "a example.com"],
        &["tcp 192.0.2.9:5060"],
    );
    check(
        "via::example.com:5066;transport=udp",
        zone,
        &["a example.com"],
        &["udp 192.0.2.9:5066"],
    );
}

#[test]
fn a_server_named_twice_is_one_target() {
    let zone = "
        _sip._udp.example.com srv 0 0 5060 a.example.com
        _sip._udp.example.com srv 1 0 5060 a.example.com
        a.example.com a 192.0.2.3
        a.example.com a 192.0.2.3";
    check(
        "example.com;transport=udp",
        zone,
        &[
            "srv _sip._udp.example.com",
            "a a.example.com",
            "a a.example.com",
        ],
        &["udp 192.0.2.3:5060"],
    );
}

#[test]
fn a_dns_that_never_ends_is_asked_only_so_often() {
    use std::fmt::Write as _;
    let mut zone = String::new();
    for i in 0..1000 {
        let _ = writeln!(zone, "_sip._udp.example.com srv 0 1 5060 h{i}.example.com");
        let _ = writeln!(zone, "full.example.com a 10.0.{}.{}", i / 250, i % 250);
    }
    let plan = Plan::new(request("example.com;transport=udp"), &[Udp], 1);
    let (asked, targets) = follow(plan, &zone);
    assert_eq!(asked.len(), QUERIES_MAX);
    assert!(targets.is_empty());
    let plan = Plan::new(request("full.example.com:5060"), &[Udp], 1);
    assert_eq!(follow(plan, &zone).1.len(), TARGETS_MAX);
}

#[test]
fn an_answer_of_the_wrong_kind_or_unasked_for_harms_nothing() {
    let mut plan = Plan::new(request("example.com:5060"), &[Udp], 1);
    plan.answer(Answer::Srv(vec![(0, 0, 1, "x".into())]));
    assert_eq!(plan.step(), Step::Done(vec![]));
    plan.answer(Answer::Addresses(vec![[192, 0, 2, 1].into()]));
    assert_eq!(plan.step(), Step::Done(vec![]));
}

#[test]
fn srv_records_of_one_priority_are_drawn_by_their_weights() {
    let records: Vec<(u16, u16, u16, String)> = [(1, 60), (1, 30), (1, 10), (1, 0), (0, 1), (2, 9)]
        .into_iter()
        .enumerate()
        .map(|(i, (priority, weight))| (priority, weight, i as u16, String::new()))
        .collect();
    let mut second = [0_u32; 6];
    for seed in 0..10_000 {
        let order = in_srv_order(records.clone(), &mut Random(seed));
        let priorities: Vec<u16> = order.iter().map(|record| record.0).collect();
        assert_eq!(priorities, [0, 1, 1, 1, 1, 2]);
        second[usize::from(order[1].2)] += 1;
    }
    assert!((5_700..6_300).contains(&second[0]), "{second:?}");
    assert!((2_700..3_300).contains(&second[1]), "{second:?}");
    assert!((800..1_200).contains(&second[2]), "{second:?}");
    assert!((0..20).contains(&second[3]), "{second:?}");
}

#[test]
fn the_same_number_gives_the_same_order() {
    let records: Vec<(u16, u16, u16, String)> = (0..8).map(|i| (0, i, i, String::new())).collect();
    let once = in_srv_order(records.clone(), &mut Random(3));
    assert_eq!(once, in_srv_order(records, &mut Random(3)));
}
