use super::*;
use crate::{Domains, Mono};
use location::{Options, Transport};
use sip_wire::{Framing, Index, Limits};

const AOR: &[u8] = b"alice@example.com";
/// Sat, 13 Nov 2010 23:29:00 GMT.
const START: Wall = Wall(1_289_690_940_000);
const DATE: &str = "Date: Sat, 13 Nov 2010 23:29:00 GMT\r\nSupported: path\r\n";

/// A registrar with its store and its clock.
struct Bench {
    location: Location,
    settings: Settings,
    flow: Flow,
    now: Wall,
    random: u64,
}

impl Bench {
    fn new() -> Self {
        let domains = Domains {
            primary: "example.com".into(),
            names: vec!["example.com".into()],
            aliases: vec!["203.0.113.1".into(), "sip.example.com".into()],
            ports: vec![5060],
        };
        Self {
            location: store(1000),
            settings: Settings {
                domains,
                expires_jitter_percent: 0,
                ..Settings::default()
            },
            flow: flow(Transport::Udp, "203.0.113.1:5060", "192.0.2.1:5060"),
            now: START,
            random: 0,
        }
    }

    /// Sends a REGISTER with these header lines (`|` between them) and gives the answer's.
    fn send(&self, call_id: &str, cseq: u32, lines: &str) -> Result<String, (u16, String)> {
        let mut text = format!(
            "REGISTER sip:example.com SIP/2.0\r\n\
             Via: SIP/2.0/UDP 192.0.2.1:5060;rport;branch=z9hG4bK{cseq}\r\n\
             From: <sip:alice@example.com>;tag=1\r\nTo: <sip:alice@example.com>\r\n\
             Call-ID: {call_id}\r\nCSeq: {cseq} REGISTER\r\n"
        );
        for line in lines.split('|').filter(|line| !line.is_empty()) {
            text.push_str(line);
            text.push_str("\r\n");
        }
        text.push_str("Content-Length: 0\r\n\r\n");
        let mut index = Index::new();
        index
            .parse(text.as_bytes(), Framing::Datagram, &Limits::default())
            .expect("a message");
        let mut headers = Vec::new();
        let result = register(
            &index.message(text.as_bytes()),
            &self.flow,
            AOR,
            Now {
                mono: Mono(0),
                wall: self.now,
            },
            &self.location,
            &self.settings,
            self.random,
            &mut headers,
        );
        let headers = String::from_utf8(headers).expect("text");
        match result {
            Ok(_) => Ok(headers),
            Err(refusal) => Err((refusal.code, format!("{}|{headers}", refusal.reason))),
        }
    }

    /// The Contact lines of the answer, `|` between them.
    fn contacts(&self, call_id: &str, cseq: u32, lines: &str) -> String {
        let headers = self.send(call_id, cseq, lines).expect("200");
        let contacts: Vec<&str> = headers
            .lines()
            .filter_map(|line| line.strip_prefix("Contact: "))
            .collect();
        contacts.join("|")
    }

    fn refused(&self, call_id: &str, cseq: u32, lines: &str) -> (u16, String) {
        self.send(call_id, cseq, lines).expect_err("refused")
    }

    /// What is registered, `|` between the bindings.
    fn list(&self) -> String {
        self.contacts("query", 1, "")
    }

    fn bindings<R>(&self, read: impl FnOnce(&[Binding]) -> R) -> R {
        self.location.read(AOR, self.now, read)
    }
}

fn store(aor_count_max: usize) -> Location {
    Location::new(Options {
        hash_key: [1, 2],
        waiting_bytes_max: 1 << 20,
        aor_count_max,
    })
}

fn flow(transport: Transport, local: &str, peer: &str) -> Flow {
    Flow {
        transport,
        listener: 0,
        connection: 0,
        local: local.parse().expect("an address"),
        peer: peer.parse().expect("an address"),
    }
}

#[test]
fn a_new_registration_is_answered_with_its_contact_and_date() {
    // RFC 3665 section 2.1
    let bench = Bench::new();
    let answer = bench.send(
        "1j9FpLxk3uxtm8tn",
        2,
        "Contact: <sip:alice@192.0.2.1:5060>;expires=3600",
    );
    let expected = format!("Contact: <sip:alice@192.0.2.1:5060>;expires=3600\r\n{DATE}");
    assert_eq!(answer, Ok(expected));
}

#[test]
fn a_second_contact_is_added_and_both_are_listed() {
    // RFC 3665 section 2.2
    let mut bench = Bench::new();
    bench.contacts("a", 1, "Contact: <sip:alice@192.0.2.1>|Expires: 3600");
    bench.now = START.after_s(100);
    let both = bench.contacts("a", 2, "Contact: Alice <sip:alice@192.0.2.2>");
    assert_eq!(
        both,
        "<sip:alice@192.0.2.1>;expires=3500|<sip:alice@192.0.2.2>;expires=3600"
    );
}

#[test]
fn a_request_without_contact_lists_the_bindings_and_changes_nothing() {
    // RFC 3665 section 2.3
    let bench = Bench::new();
    bench.contacts("a", 1, "Contact: <sip:alice@192.0.2.1>");
    for cseq in [1, 2] {
        assert_eq!(
            bench.contacts("a", cseq, "Expires: 60"),
            "<sip:alice@192.0.2.1>;expires=3600"
        );
    }
}

#[test]
fn removing_a_contact_leaves_the_others_and_may_be_repeated() {
    // RFC 3665 section 2.4
    let bench = Bench::new();
    let two = "Contact: <sip:alice@192.0.2.1>, <sip:alice@192.0.2.2>";
    bench.contacts("a", 1, two);
    let remove = "Contact: <sip:alice@192.0.2.1>;expires=0";
    let left = "<sip:alice@192.0.2.2>;expires=3600";
    assert_eq!(bench.contacts("a", 2, remove), left);
    assert_eq!(bench.contacts("a", 2, remove), left);
    assert_eq!(bench.contacts("a", 3, remove), left);
    let last = "Contact: <sip:alice@192.0.2.2>|Expires: 0";
    assert_eq!(bench.contacts("a", 4, last), "");
    assert_eq!(bench.contacts("a", 5, last), "");
}

#[test]
fn a_star_removes_all_and_may_be_repeated() {
    let bench = Bench::new();
    bench.contacts("a", 1, "Contact: <sip:alice@192.0.2.1>");
    bench.contacts("b", 7, "Contact: <sip:alice@192.0.2.2>");
    assert_eq!(bench.contacts("a", 2, "Contact: *|Expires: 0"), "");
    assert_eq!(bench.contacts("a", 2, "Contact: *|Expires: 0"), "");
}

#[test]
fn a_star_with_an_expiry_or_with_another_contact_is_refused_and_removes_nothing() {
    let bench = Bench::new();
    bench.contacts("a", 1, "Contact: <sip:alice@192.0.2.1>");
    for (lines, reason) in [
        ("Contact: *", "Contact * Needs Expires: 0|"),
        ("Contact: *|Expires: 60", "Contact * Needs Expires: 0|"),
        (
            "Contact: *, <sip:alice@192.0.2.2>|Expires: 0",
            "Contact * Must Be The Only Contact|",
        ),
        (
            "Contact: <sip:alice@192.0.2.2>;expires=60|Contact: *|Expires: 0",
            "Contact * Must Be The Only Contact|",
        ),
    ] {
        assert_eq!(bench.refused("a", 2, lines), (400, reason.into()));
    }
    assert_eq!(bench.list(), "<sip:alice@192.0.2.1>;expires=3600");
}

#[test]
fn a_star_that_is_out_of_order_with_any_binding_removes_none() {
    let bench = Bench::new();
    bench.contacts("b", 1, "Contact: <sip:alice@192.0.2.2>");
    bench.contacts("a", 5, "Contact: <sip:alice@192.0.2.1>");
    for cseq in [4, 5] {
        let refused = bench.refused("a", cseq, "Contact: *|Expires: 0");
        assert_eq!(refused, (400, "CSeq Not Higher Than Before|".into()));
    }
    assert_eq!(bench.bindings(<[Binding]>::len), 2);
}

#[test]
fn the_contact_comes_back_byte_for_byte() {
    let bench = Bench::new();
    for (i, contact) in [
        "<sip:Alice%20x@192.0.2.1:5060;Transport=TCP;ob;X=y>;+sip.instance=\"<urn:uuid:0C67>\";reg-id=1;q=0.70;Methods=\"INVITE, BYE\";audio",
        "<sips:a;phone-context=+49@[2001:db8::1]:5071;lr>;+org.linphone.specs=\"groupchat/1.2,lime\"",
        "<sip:192.0.2.44>",
    ]
    .into_iter()
    .enumerate()
    {
        bench.contacts("x", 1 + 2 * i as u32, "Contact: *|Expires: 0");
        let line = format!("Contact: \"Alice, the first\" {contact};expires=600");
        assert_eq!(
            bench.contacts("x", 2 + 2 * i as u32, &line),
            format!("{contact};expires=600")
        );
    }
}

#[test]
fn a_contact_without_brackets_has_its_parameters_in_the_header() {
    let bench = Bench::new();
    assert_eq!(
        bench.contacts("a", 1, "m: sip:alice@192.0.2.1;expires=60;q=0.5"),
        "<sip:alice@192.0.2.1>;q=0.5;expires=60"
    );
    assert_eq!(bench.bindings(|list| list[0].parts().q), 500);
}

#[test]
fn expiry_is_taken_from_the_contact_then_the_header_then_the_default() {
    for (lines, granted) in [
        ("Contact: <sip:a@192.0.2.1>;expires=120|Expires: 240", 120),
        ("Contact: <sip:a@192.0.2.1>|Expires: 240", 240),
        ("Contact: <sip:a@192.0.2.1>", 3600),
        ("Contact: <sip:a@192.0.2.1>;EXPIRES=\"120\"", 120),
        ("Contact: <sip:a@192.0.2.1>;expires=soon", 3600),
        ("Contact: <sip:a@192.0.2.1>|Expires: 99999999999", 7200),
        ("Contact: <sip:a@192.0.2.1>;expires=4294967295", 7200),
    ] {
        let expected = format!("<sip:a@192.0.2.1>;expires={granted}");
        assert_eq!(Bench::new().contacts("a", 1, lines), expected, "{lines}");
    }
}

#[test]
fn an_expiry_that_is_too_short_is_refused_with_the_shortest_one() {
    let bench = Bench::new();
    let two = "Contact: <sip:a@192.0.2.1>, <sip:b@192.0.2.1>;expires=59";
    let refused = (423, "Interval Too Brief|Min-Expires: 60\r\n".into());
    assert_eq!(bench.refused("a", 1, two), refused);
    assert_eq!(bench.list(), "", "all or nothing");
}

#[test]
fn a_minimum_of_more_than_an_hour_is_not_held_against_a_phone_that_asks_for_an_hour() {
    let mut bench = Bench::new();
    bench.settings.expires_min_s = 7000;
    let contact = "Contact: <sip:a@192.0.2.1>;expires=3600";
    assert_eq!(bench.contacts("a", 1, contact), contact[9..]);
    let contact = "Contact: <sip:a@192.0.2.1>;expires=3599";
    assert_eq!(bench.refused("a", 2, contact).0, 423);
}

#[test]
fn jitter_shortens_long_expiries_within_its_share_and_leaves_short_ones() {
    let mut bench = Bench::new();
    bench.settings.expires_jitter_percent = 10;
    let mut seen = std::collections::BTreeSet::new();
    for random in 0..1000 {
        let long = granted_s(3600, &bench.settings, random * 7919).expect("granted");
        assert!((3240..=3600).contains(&long), "{long}");
        seen.insert(long);
        let short = granted_s(62, &bench.settings, random).expect("granted");
        assert!((60..=62).contains(&short), "{short}");
        assert_eq!(granted_s(60, &bench.settings, random), Ok(60));
    }
    assert!(seen.len() > 300, "spread over {} values", seen.len());
    bench.settings.expires_min_s = 30;
    assert_eq!(granted_s(60, &bench.settings, 3), Ok(60));
    assert_eq!(granted_s(40, &bench.settings, 3), Ok(40));
}

#[test]
fn a_refresh_moves_the_expiry_and_the_flow() {
    let mut bench = Bench::new();
    bench.contacts("a", 1, "Contact: <sip:alice@192.0.2.1>;expires=600");
    bench.now = START.after_s(300);
    bench.flow.peer.set_port(6000);
    let refreshed = bench.contacts("a", 2, "Contact: <sip:alice@192.0.2.1>;expires=600");
    assert_eq!(refreshed, "<sip:alice@192.0.2.1>;expires=600");
    bench.bindings(|list| {
        assert_eq!(list[0].parts().flow.peer.port(), 6000);
        assert_eq!(list[0].parts().cseq, 2);
        assert!(list[0].parts().behind_nat, "it no longer comes from there");
    });
}

#[test]
fn the_same_request_again_is_answered_and_changes_nothing() {
    let mut bench = Bench::new();
    bench.contacts("a", 7, "Contact: <sip:alice@192.0.2.1>;expires=600");
    bench.now = START.after_s(10);
    let ticket_before = bench.bindings(|list| list[0].parts().expires);
    let again = bench.contacts("a", 7, "Contact: <sip:alice@192.0.2.1>;expires=600");
    assert_eq!(again, "<sip:alice@192.0.2.1>;expires=590");
    assert_eq!(
        bench.bindings(|list| list[0].parts().expires),
        ticket_before
    );
}

#[test]
fn an_older_request_is_refused_and_changes_nothing() {
    let bench = Bench::new();
    bench.contacts("a", 7, "Contact: <sip:alice@192.0.2.1>");
    let older = "Contact: <sip:alice@192.0.2.9>, <sip:alice@192.0.2.1>;expires=0";
    let refused = (400, "CSeq Not Higher Than Before|".into());
    assert_eq!(bench.refused("a", 6, older), refused);
    assert_eq!(bench.list(), "<sip:alice@192.0.2.1>;expires=3600");
}

#[test]
fn a_phone_that_was_restarted_begins_again_with_a_new_call_id() {
    let bench = Bench::new();
    bench.contacts("before", 700, "Contact: <sip:alice@192.0.2.1>");
    let again = bench.contacts("after", 1, "Contact: <sip:alice@192.0.2.1>");
    assert_eq!(again, "<sip:alice@192.0.2.1>;expires=3600");
    assert_eq!(bench.bindings(|list| list[0].parts().cseq), 1);
}

#[test]
fn contacts_are_compared_as_uris() {
    // RFC 3261 section 19.1.4
    let bench = Bench::new();
    bench.contacts("a", 1, "Contact: <sip:%61lice@AtLanta.CoM;Transport=tcp>");
    let equal = "Contact: <sip:alice@atlanta.com;transport=TCP>;expires=60";
    assert_eq!(
        bench.contacts("a", 2, equal),
        "<sip:alice@atlanta.com;transport=TCP>;expires=60"
    );
    let other = "Contact: <sip:alice@atlanta.com;transport=udp>;expires=60";
    bench.contacts("a", 3, other);
    assert_eq!(bench.bindings(<[Binding]>::len), 2);
}

#[test]
fn a_phone_that_moved_replaces_its_binding() {
    let bench = Bench::new();
    let phone = ";+sip.instance=\"<urn:uuid:1>\"";
    bench.contacts("x", 1, "Contact: <sip:alice@192.0.2.50>");
    bench.contacts("a", 1, &format!("Contact: <sip:alice@192.0.2.1>{phone}"));
    let moved = bench.contacts("b", 1, &format!("Contact: <sip:alice@192.0.2.50>{phone}"));
    assert_eq!(
        moved,
        format!("<sip:alice@192.0.2.50>{phone};expires=3600"),
        "neither its old address nor the binding that had the new one is left"
    );
    let other = "Contact: <sip:alice@192.0.2.3>;+sip.instance=\"<urn:uuid:2>\"";
    bench.contacts("c", 1, other);
    assert_eq!(bench.bindings(<[Binding]>::len), 2);
}

#[test]
fn two_phones_with_one_private_address_behind_two_nats_are_two_bindings() {
    let mut bench = Bench::new();
    let phone = |id| format!("Contact: <sip:alice@10.0.0.2>;+sip.instance=\"<urn:uuid:{id}>\"");
    bench.contacts("a", 1, &phone(1));
    bench.flow.peer = "198.51.100.7:1024".parse().expect("an address");
    bench.contacts("b", 1, &phone(2));
    assert_eq!(bench.bindings(<[Binding]>::len), 2);
    bench.contacts("b", 2, &phone(2));
    assert_eq!(bench.bindings(<[Binding]>::len), 2);
    bench.contacts("c", 1, &phone(3));
    assert_eq!(
        bench.bindings(<[Binding]>::len),
        2,
        "in one network an address has one owner"
    );
}

#[test]
fn two_flows_of_a_phone_are_told_apart_by_reg_id() {
    let bench = Bench::new();
    let phone = |ip: &str, id: u32| {
        format!("Contact: <sip:alice@{ip}>;+sip.instance=\"<urn:uuid:1>\";reg-id={id}")
    };
    bench.contacts("a", 1, &phone("192.0.2.1", 1));
    bench.contacts("b", 1, &phone("192.0.2.2", 2));
    bench.contacts("c", 1, &phone("192.0.2.3", 1));
    let hosts = bench.bindings(|list| {
        list.iter()
            .map(|b| String::from_utf8_lossy(b.parts().contact).into_owned())
            .collect::<Vec<_>>()
    });
    assert_eq!(hosts, ["sip:alice@192.0.2.3", "sip:alice@192.0.2.2"]);
}

#[test]
fn more_bindings_than_allowed_are_refused_but_refreshes_are_not() {
    let mut bench = Bench::new();
    bench.settings.bindings_per_aor_max = 2;
    let two = "Contact: <sip:a@192.0.2.1>, <sip:b@192.0.2.1>";
    bench.contacts("a", 1, two);
    let third = "Contact: <sip:c@192.0.2.1>";
    let refused = (403, "Too Many Bindings For This User|".into());
    assert_eq!(bench.refused("a", 2, third), refused);
    bench.contacts("a", 3, two);
    let swap = "Contact: <sip:a@192.0.2.1>;expires=0, <sip:c@192.0.2.1>";
    assert_eq!(
        bench.contacts("a", 4, swap),
        "<sip:b@192.0.2.1>;expires=3600|<sip:c@192.0.2.1>;expires=3600"
    );
    bench.settings.bindings_per_aor_max = 1;
    bench.contacts("a", 5, "Contact: <sip:b@192.0.2.1>");
}

#[test]
fn more_contacts_in_a_request_than_allowed_are_refused() {
    let mut bench = Bench::new();
    bench.settings.contacts_per_register_max = 2;
    let three = "Contact: <sip:a@192.0.2.1>, <sip:b@192.0.2.1>|Contact: <sip:c@192.0.2.1>";
    let refused = (403, "Too Many Contacts In One REGISTER|".into());
    assert_eq!(bench.refused("a", 1, three), refused);
    assert_eq!(bench.list(), "");
}

#[test]
fn contacts_that_can_not_be_reached_are_refused_with_the_reason() {
    let bench = Bench::new();
    let long = format!("<sip:{}@192.0.2.1>", "a".repeat(3000));
    for (contact, code, reason) in [
        ("<tel:+4930123456>", 400, "Contact Must Be A SIP URI|"),
        ("<mailto:a@example.com>", 400, "Contact Must Be A SIP URI|"),
        ("<sip:a@192.0.2.1", 400, "Malformed Contact|"),
        ("<sip:>", 400, "Malformed URI In Contact|"),
        ("<sip:a@192.0.2.1>;q=2", 400, "Malformed q In Contact|"),
        (
            "<sip:a@192.0.2.1>;reg-id=x",
            400,
            "Malformed reg-id In Contact|",
        ),
        ("<sip:a@Example.com>", 400, "Contact Points At This Server|"),
        (
            "<sip:a@sip.example.com:5060;transport=tcp>",
            400,
            "Contact Points At This Server|",
        ),
        ("<sip:a@203.0.113.1>", 400, "Contact Points At This Server|"),
        (&long, 513, "Contact Too Long|"),
    ] {
        let refused = bench.refused("a", 1, &format!("Contact: {contact}"));
        assert_eq!(refused, (code, reason.into()), "{contact}");
    }
    assert_eq!(bench.list(), "");
}

#[test]
fn our_host_with_another_port_and_our_private_address_are_other_peoples() {
    let mut bench = Bench::new();
    bench.contacts("a", 1, "Contact: <sip:a@203.0.113.1:5070>");
    bench.contacts("b", 1, "Contact: <sip:a@example.com:5070>");
    bench.flow.local = "10.0.0.1:5060".parse().expect("an address");
    bench.contacts("c", 1, "Contact: <sip:a@10.0.0.1>");
    assert_eq!(bench.bindings(<[Binding]>::len), 3);
}

#[test]
fn a_contact_is_behind_nat_unless_it_says_where_the_request_came_from() {
    for (transport, peer, contact, behind_nat) in [
        (Transport::Udp, "192.0.2.1:5060", "sip:a@192.0.2.1", false),
        (Transport::Udp, "192.0.2.1:5061", "sips:a@192.0.2.1", false),
        (
            Transport::Udp,
            "192.0.2.1:5070",
            "sip:a@192.0.2.1:5070",
            false,
        ),
        (
            Transport::Udp,
            "[2001:db8::1]:5060",
            "sip:a@[2001:DB8:0::1]",
            false,
        ),
        (
            Transport::Udp,
            "[::ffff:192.0.2.1]:5060",
            "sip:a@192.0.2.1",
            false,
        ),
        (Transport::Udp, "192.0.2.1:40000", "sip:a@192.0.2.1", true),
        (Transport::Udp, "192.0.2.7:5060", "sip:a@192.0.2.1", true),
        (
            Transport::Udp,
            "192.0.2.1:5060",
            "sip:a@phone.invalid",
            true,
        ),
        (Transport::Tcp, "192.0.2.1:5060", "sip:a@192.0.2.1", true),
    ] {
        let mut bench = Bench::new();
        bench.flow = flow(transport, "203.0.113.1:5060", peer);
        bench.contacts("a", 1, &format!("Contact: <{contact}>"));
        let found = bench.bindings(|list| list[0].parts().behind_nat);
        assert_eq!(found, behind_nat, "{transport:?} {peer} {contact}");
    }
}

#[test]
fn path_is_stored_in_order_and_echoed() {
    // RFC 3327 section 5.3
    let bench = Bench::new();
    let lines = "Contact: <sip:a@192.0.2.1>|Path: <sip:p1.example.net;lr>, <sip:p2.example.net;lr>|Path: <sip:p3.example.net;lr>";
    let answer = bench.send("a", 1, lines).expect("200");
    let path = "<sip:p1.example.net;lr>, <sip:p2.example.net;lr>, <sip:p3.example.net;lr>";
    assert!(
        answer.contains(&format!("\r\nPath: {path}\r\n")),
        "{answer}"
    );
    let stored = bench.bindings(|list| list[0].parts().path.to_vec());
    assert_eq!(String::from_utf8(stored), Ok(path.into()));
    let refused = bench.refused("a", 2, "Contact: <sip:a@192.0.2.1>|Path: <nothing");
    assert_eq!(refused, (400, "Malformed Path|".into()));
}

#[test]
fn extensions_that_we_do_not_have_are_named_in_a_420() {
    let bench = Bench::new();
    let lines = "Require: path, outbound|Require: gruu|Contact: <sip:a@192.0.2.1>";
    let unsupported = "Unsupported: outbound\r\nUnsupported: gruu\r\n";
    let refused = (420, format!("Bad Extension|{unsupported}"));
    assert_eq!(bench.refused("a", 1, lines), refused);
    assert_eq!(bench.list(), "");
    bench.contacts("a", 2, "Require: Path|Contact: <sip:a@192.0.2.1>");
}

#[test]
fn a_store_that_is_full_refuses_with_a_time_to_come_back() {
    let mut bench = Bench::new();
    bench.location = store(0);
    bench.random = 3;
    let refused = bench.refused("a", 1, "Contact: <sip:a@192.0.2.1>");
    let expected = "Too Many Registered Users|Retry-After: 13\r\n";
    assert_eq!(refused, (503, expected.into()));
}

#[test]
fn a_query_waits_for_the_change_that_it_shows() {
    let bench = Bench::new();
    bench.contacts("a", 1, "Contact: <sip:a@192.0.2.1>");
    let ticket = bench
        .location
        .update(AOR, bench.now, |_| ())
        .expect("taken")
        .1;
    assert_eq!(
        bench.location.ticket_state(ticket),
        location::TicketState::Waiting
    );
}

#[test]
fn user_agent_is_kept_to_its_first_64_bytes() {
    let bench = Bench::new();
    let agent = format!("User-Agent: {}", "x".repeat(100));
    bench.contacts("a", 1, &format!("Contact: <sip:a@192.0.2.1>|{agent}"));
    assert_eq!(bench.bindings(|list| list[0].parts().user_agent.len()), 64);
}

#[test]
fn folded_lines_are_kept_as_one() {
    let bench = Bench::new();
    let lines = "Contact: <sip:a@192.0.2.1>\r\n ;x=\"a\r\n b\"\r\n\t;q=0.5|Path: <sip:p>\r\n ;lr";
    let answer = bench.send("a", 1, lines).expect("200");
    let contact = "Contact: <sip:a@192.0.2.1>;x=\"a   b\";q=0.5;expires=3600\r\n";
    assert_eq!(answer, format!("{contact}Path: <sip:p>   ;lr\r\n{DATE}"));
}

proptest::proptest! {
    #[test]
    fn whatever_a_contact_says_the_answer_is_whole_lines(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "<sip:a@192.0.2.1>", "sip:b@h", "<", ">", ";", "=", "\"", ",", "*", "\r\n ", "\t", "\u{1}",
                "expires", "q", "0.5", "60", "+sip.instance", "reg-id", "<urn:uuid:1>", "sips:c@[::1]:5", "\\", "é", "x",
            ]),
            0..12,
        ),
    ) {
        let bench = Bench::new();
        let value = pieces.concat();
        let lines = format!("Contact: {value}|Path: {value}|Require: {value}");
        for lines in [lines.as_str(), &lines[..lines.find("|Path").unwrap_or(0)]] {
            let (allowed, answer) = match bench.send("a", 1, lines) {
                Ok(answer) => (["Contact: <", "Path: ", "Date: ", "Supported: "], answer),
                Err((_, refusal)) => (
                    ["Min-Expires: ", "Unsupported: ", "Retry-After: ", "Retry-After: "],
                    refusal.split_once('|').expect("a reason").1.into(),
                ),
            };
            for line in answer.split_terminator("\r\n") {
                proptest::prop_assert!(allowed.iter().any(|name| line.starts_with(name)), "{line:?}");
                proptest::prop_assert!(!line.contains(|c: char| c.is_ascii_control()), "{line:?}");
            }
        }
    }
}
