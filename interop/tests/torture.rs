//! The messages of RFC 4475 and RFC 5118, byte for byte, on a running server, by UDP and by TCP.
//!
//! The server is proxy and registrar for example.com, without users. So what is well-formed ends at one of its own
//! rules: who claims to be of example.com is challenged (401 to REGISTER, 407), a stranger finds no such user (404),
//! and must authenticate to be relayed elsewhere (407).

use interop::{Case, Message, Phone, Server, within};
use std::path::{Path, PathBuf};

use Answer::{Closed, Silence, Status};

/// What comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Status(u16),
    /// Nothing: a response that belongs to nothing is dropped.
    Silence,
    /// The message is never whole, so the connection is closed after `connections.half_message_s`.
    Closed,
}

/// File; by UDP; by TCP; why.
type Row = (&'static str, Answer, Answer, &'static str);

const RFC4475: [Row; 49] = [
    (
        "wsinv",
        Status(407),
        Status(407),
        "3.1.1.1: valid; from a local user",
    ),
    (
        "intmeth",
        Status(407),
        Status(407),
        "3.1.1.2: valid; from a local user",
    ),
    (
        "esc01",
        Status(407),
        Status(407),
        "3.1.1.3: valid; a stranger to elsewhere",
    ),
    ("escnull", Status(401), Status(401), "3.1.1.4: valid"),
    (
        "esc02",
        Status(407),
        Status(407),
        "3.1.1.5: valid, and not REGISTER; from a local user",
    ),
    (
        "lwsdisp",
        Status(407),
        Status(407),
        "3.1.1.6: valid; from a local user",
    ),
    (
        "longreq",
        Status(404),
        Status(404),
        "3.1.1.7: valid; a stranger to nobody",
    ),
    (
        "dblreq",
        Status(401),
        Status(401),
        "3.1.1.8: a REGISTER; octets behind it are no part of the datagram",
    ),
    (
        "semiuri",
        Status(404),
        Status(404),
        "3.1.1.9: valid; no such user",
    ),
    (
        "transports",
        Status(407),
        Status(407),
        "3.1.1.10: valid; from a local user",
    ),
    (
        "mpart01",
        Status(407),
        Status(407),
        "3.1.1.11: valid; from a local user",
    ),
    (
        "unreason",
        Silence,
        Silence,
        "3.1.1.12: a valid response, to nothing",
    ),
    (
        "noreason",
        Silence,
        Silence,
        "3.1.1.13: a valid response, to nothing",
    ),
    (
        "badinv01",
        Status(400),
        Status(400),
        "3.1.2.1: empty values",
    ),
    (
        "clerr",
        Status(400),
        Closed,
        "3.1.2.2: longer than its datagram; a stream could still bring the rest",
    ),
    (
        "ncl",
        Status(400),
        Status(400),
        "3.1.2.3: negative Content-Length",
    ),
    (
        "scalar02",
        Status(400),
        Status(400),
        "3.1.2.4: values that are too large",
    ),
    (
        "scalarlg",
        Silence,
        Silence,
        "3.1.2.5: the same in a response",
    ),
    (
        "quotbal",
        Status(400),
        Status(400),
        "3.1.2.6: an open quote",
    ),
    (
        "ltgtruri",
        Status(400),
        Status(400),
        "3.1.2.7: <> around the Request-URI",
    ),
    (
        "lwsruri",
        Status(400),
        Status(400),
        "3.1.2.8: white space in the Request-URI",
    ),
    (
        "lwsstart",
        Status(400),
        Status(400),
        "3.1.2.9: two spaces in the start line",
    ),
    (
        "trws",
        Status(400),
        Status(400),
        "3.1.2.10: spaces behind the start line",
    ),
    (
        "escruri",
        Status(400),
        Status(400),
        "3.1.2.11: headers in the Request-URI",
    ),
    (
        "baddate",
        Status(400),
        Status(400),
        "3.1.2.12: a date that is not GMT",
    ),
    (
        "regbadct",
        Status(400),
        Status(400),
        "3.1.2.13: ? in a Contact without <>",
    ),
    (
        "badaspec",
        Status(400),
        Status(400),
        "3.1.2.14: spaces within <>",
    ),
    (
        "baddn",
        Status(400),
        Closed,
        "3.1.2.15: the archive's copy has no empty line, so it never ends",
    ),
    ("badvers", Status(505), Status(505), "3.1.2.16: SIP/7.0"),
    (
        "mismatch01",
        Status(400),
        Status(400),
        "3.1.2.17: the method of CSeq is another",
    ),
    (
        "mismatch02",
        Status(400),
        Status(400),
        "3.1.2.18: the same with an unknown method",
    ),
    (
        "bigcode",
        Silence,
        Silence,
        "3.1.2.19: a response with an impossible status",
    ),
    (
        "badbranch",
        Status(404),
        Status(404),
        "3.2.1: valid in the manner of RFC 2543; no such user",
    ),
    (
        "insuf",
        Status(400),
        Status(400),
        "3.3.1: no From, To, Call-ID",
    ),
    ("unkscm", Status(416), Status(416), "3.3.2: unknown scheme"),
    (
        "novelsc",
        Status(416),
        Status(416),
        "3.3.3: a scheme that is not SIP's",
    ),
    (
        "unksm2",
        Status(404),
        Status(404),
        "3.3.4: To is no address-of-record of ours (RFC 3261 section 10.3 item 5)",
    ),
    (
        "bext01",
        Status(420),
        Status(420),
        "3.3.5: Proxy-Require of something unknown",
    ),
    (
        "invut",
        Status(404),
        Status(404),
        "3.3.6: the body is the callee's; no such user",
    ),
    (
        "regaut01",
        Status(401),
        Status(401),
        "3.3.7: an unknown scheme is no credentials",
    ),
    (
        "multi01",
        Status(400),
        Status(400),
        "3.3.8: fields twice that must be once",
    ),
    (
        "mcl01",
        Status(400),
        Status(400),
        "3.3.9: two Content-Lengths",
    ),
    (
        "bcast",
        Silence,
        Silence,
        "3.3.10: a response whose Via is not ours",
    ),
    ("zeromf", Status(483), Status(483), "3.3.11: Max-Forwards 0"),
    ("cparam01", Status(401), Status(401), "3.3.12: valid"),
    ("cparam02", Status(401), Status(401), "3.3.13: valid"),
    ("regescrt", Status(401), Status(401), "3.3.14: valid"),
    (
        "sdp01",
        Status(404),
        Status(404),
        "3.3.15: Accept is the callee's; no such user",
    ),
    (
        "inv2543",
        Status(404),
        Status(404),
        "3.4.1: valid in the manner of RFC 2543; no such user",
    ),
];

const RFC5118: [Row; 12] = [
    (
        "ipv6-good",
        Status(407),
        Status(407),
        "4.1: a REGISTER for elsewhere, by a local user",
    ),
    (
        "ipv6-bad",
        Status(400),
        Status(400),
        "4.2: IPv6 without brackets",
    ),
    (
        "port-ambiguous",
        Status(407),
        Status(407),
        "4.3: valid: all of it is the address",
    ),
    ("port-unambiguous", Status(407), Status(407), "4.4: valid"),
    (
        "via-received-param-with-delim",
        Status(407),
        Status(407),
        "4.5: valid; a BYE to elsewhere, by no dialog of ours",
    ),
    (
        "via-received-param-no-delim",
        Status(407),
        Status(407),
        "4.5: valid; from a local user",
    ),
    (
        "ipv6-in-sdp",
        Status(407),
        Status(407),
        "4.6: valid; from a local user",
    ),
    (
        "mult-ip-in-header",
        Status(407),
        Status(407),
        "4.7: valid; a BYE to elsewhere, by no dialog of ours",
    ),
    (
        "mult-ip-in-sdp",
        Status(407),
        Status(407),
        "4.8: valid; from a local user",
    ),
    (
        "ipv4-mapped-ipv6",
        Status(404),
        Status(404),
        "4.9: valid; no such user",
    ),
    (
        "ipv6-bug-abnf-3-colons",
        Status(407),
        Status(407),
        "4.10: tolerated; from a local user",
    ),
    (
        "ipv6-correct-abnf-2-colons",
        Status(407),
        Status(407),
        "4.10: valid; from a local user",
    ),
];

/// Ports that the messages' Vias name; answers to datagrams go there (RFC 3261 section 18.2.2). We send from the first.
const VIA_PORTS: [u16; 5] = [5060, 5061, 5050, 6050, 19823];

#[test]
fn every_torture_message_by_udp_gets_the_answer_of_its_rfc() {
    let case = Case::new("torture-udp");
    let mut server = start(&case);
    let mut phones: Vec<Phone> = VIA_PORTS
        .iter()
        .map(|port| Phone::udp(std::net::SocketAddr::new(case.host(9), *port)))
        .collect();
    let mut wrong = Vec::new();
    for (folder, (name, expected, _, why)) in rows() {
        phones[0].send(read(folder, name), server.address);
        let got = udp_answer(&mut phones, &server);
        if got != expected {
            wrong.push(format!("{name}: {got:?} instead of {expected:?}; {why}"));
        }
        server.is_healthy(name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_torture_message_by_tcp_gets_the_answer_of_its_rfc() {
    let case = Case::new("torture-tcp");
    let mut server = start(&case);
    let mut wrong = Vec::new();
    for (folder, (name, _, expected, why)) in rows() {
        let mut phone = Phone::tcp(server.address);
        phone.send(read(folder, name), server.address);
        let got = tcp_answer(&mut phone, &server, expected);
        if got != expected {
            wrong.push(format!("{name}: {got:?} instead of {expected:?}; {why}"));
        }
        server.is_healthy(name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_second_message_behind_dblreq_counts_on_a_stream() {
    let case = Case::new("torture-dblreq");
    let server = start(&case);
    let mut phone = Phone::tcp(server.address);
    phone.send(read("rfc4475", "dblreq"), server.address);
    let answers = [phone.receive("REGISTER's"), final_answer(&mut phone)];
    assert_eq!(answers.map(|answer| answer.status()), [401, 404]);
}

#[test]
fn bext01_is_told_what_is_not_supported() {
    let case = Case::new("torture-bext01");
    let server = start(&case);
    let mut phone = Phone::tcp(server.address);
    phone.send(read("rfc4475", "bext01"), server.address);
    let unsupported = phone
        .receive("420")
        .header("Unsupported")
        .unwrap_or_default();
    for tag in ["noProxiesSupportThis", "norDoAnyProxiesSupportThis"] {
        assert!(unsupported.contains(tag), "{unsupported}");
    }
    assert!(
        !unsupported.contains("nothingSupportsThis"),
        "Require is not the proxy's: {unsupported}"
    );
}

#[test]
fn every_file_stands_in_the_table() {
    for (folder, table) in [("rfc4475", &RFC4475[..]), ("rfc5118", &RFC5118[..])] {
        let files = std::fs::read_dir(directory().join(folder)).expect("the messages");
        let mut files: Vec<String> = files
            .filter_map(|file| Some(file.ok()?.path().file_stem()?.to_str()?.to_owned()))
            .collect();
        let mut named: Vec<String> = table.iter().map(|row| row.0.to_owned()).collect();
        files.sort();
        named.sort();
        assert_eq!(files, named);
    }
}

/// A proxy and registrar for example.com.
fn start(case: &Case) -> Server {
    let server = Server::start(case, &[], "[connections]\nhalf_message_s = 1\n");
    server.cli(&[
        "user",
        "add",
        "somebody@example.com",
        "--password",
        "unused",
    ]);
    server
}

/// What comes first, on any of the ports; an OPTIONS behind the message tells silence from slowness.
fn udp_answer(phones: &mut [Phone], server: &Server) -> Answer {
    let options = phones[0].options(server.address);
    let call_id = Message {
        text: options.clone(),
    }
    .header("Call-ID");
    phones[0].send(options, server.address);
    let mut first = None;
    within(10, "an answer", || {
        for phone in phones.iter_mut() {
            while let Some(message) = phone.receive_for(2) {
                if message.header("Call-ID") == call_id {
                    return Some(());
                }
                first = first.or((message.status() > 100).then_some(Status(message.status())));
                acknowledge(phone, &message, server);
            }
        }
        None
    });
    // The probe's answer may overtake on another port.
    for phone in phones.iter_mut() {
        while let Some(message) = phone.receive_for(2) {
            first = first.or((message.status() > 100).then_some(Status(message.status())));
            acknowledge(phone, &message, server);
        }
    }
    first.unwrap_or(Silence)
}

fn tcp_answer(phone: &mut Phone, server: &Server, expected: Answer) -> Answer {
    if expected == Closed {
        within(10, "the end of the connection", || {
            phone.is_closed().then_some(())
        });
        return Closed;
    }
    let options = phone.options(server.address);
    let call_id = Message {
        text: options.clone(),
    }
    .header("Call-ID");
    phone.send(options, server.address);
    let first = final_answer(phone);
    if first.header("Call-ID") == call_id {
        Silence
    } else {
        acknowledge(phone, &first, server);
        Status(first.status())
    }
}

fn final_answer(phone: &mut Phone) -> Message {
    loop {
        let message = phone.receive("a final answer");
        if message.status() >= 200 {
            return message;
        }
    }
}

/// ACK to an INVITE's answer, so that it is not sent again.
fn acknowledge(phone: &Phone, answer: &Message, server: &Server) {
    let field = |name: &str| answer.header(name).unwrap_or_default();
    let cseq = field("CSeq");
    if answer.status() >= 200 && cseq.ends_with("INVITE") {
        let ack = format!(
            "ACK sip:user@example.com SIP/2.0\r\nVia: {}\r\nFrom: {}\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: {}\r\n\
             Content-Length: 0\r\n\r\n",
            field("Via"),
            field("From"),
            field("To"),
            field("Call-ID"),
            cseq.replace("INVITE", "ACK"),
        );
        phone.send(ack, server.address);
    }
}

fn rows() -> impl Iterator<Item = (&'static str, Row)> {
    let first = RFC4475.iter().map(|row| ("rfc4475", *row));
    first.chain(RFC5118.iter().map(|row| ("rfc5118", *row)))
}

fn read(folder: &str, name: &str) -> Vec<u8> {
    let path = directory().join(folder).join(name).with_extension("dat");
    std::fs::read(path).expect("a torture message")
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/sip-wire/tests/torture")
}
