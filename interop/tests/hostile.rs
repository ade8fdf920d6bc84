//! Peers that mean harm, or are broken: each gets the stated answer or a closed connection within a bounded time, and
//! another phone does not notice.

use interop::{Case, DOMAIN, Phone, Server, Transport, within};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// A server whose patience is a second.
const IMPATIENT: &str = "[connections]\nfirst_message_s = 1\nhalf_message_s = 1\npushed_back_s = 1\npushed_back_bytes_max = 65536\n[limits]\nmessage_bytes_max = 65536\nhead_bytes_max = 65536\n";

/// A server, and a phone that keeps a connection to it.
struct City {
    case: Case,
    server: Server,
    witness: Phone,
}

impl City {
    fn new(name: &str) -> Self {
        let case = Case::new(name);
        let server = Server::start(&case, &["alice"], IMPATIENT);
        let mut witness = Phone::tcp(server.address);
        let done = witness.register_with_digest("alice", "witness", 1, server.address);
        assert_eq!(done.status(), 200, "{}", done.text);
        Self {
            case,
            server,
            witness,
        }
    }

    /// The other phone is answered on its old connection, and new ones are taken.
    fn is_unharmed(&mut self, by: &str) {
        let options = self.witness.options(self.server.address);
        let answer = self.witness.ask(&options, self.server.address);
        assert_eq!(
            answer.map(|answer| answer.status()),
            Some(200),
            "the witness, after {by}"
        );
        self.server.is_healthy(by);
    }

    /// The phone's connection is closed within the time; before, a final answer with this status comes, unless 0.
    fn closes(&mut self, phone: &mut Phone, status: u16, by: &str) {
        let mut got = 0;
        within(10, &format!("the end of the connection of {by}"), || {
            while let Some(message) = phone.receive_for(5) {
                got = message.status();
            }
            phone.is_closed().then_some(())
        });
        assert_eq!(got, status, "{by}");
        self.is_unharmed(by);
    }
}

#[test]
fn a_message_in_single_bytes_is_answered() {
    let mut city = City::new("bytes");
    let mut phone = Phone::tcp(city.server.address);
    for byte in phone.options(city.server.address).bytes() {
        assert!(phone.send([byte], city.server.address));
    }
    assert_eq!(phone.receive("200 to OPTIONS").status(), 200);
    city.is_unharmed("single bytes");
}

#[test]
fn who_never_ends_a_message_is_closed() {
    let mut city = City::new("endless");
    let address = city.server.address;
    let options = Phone::tcp(address).options(address);
    let begun = options.trim_end().to_owned() + "\r\n";
    let long_body = options.replace("Content-Length: 0", "Content-Length: 500") + "short";
    for (by, bytes) in [
        ("a start line alone", "OPTIONS sip:x SIP/2.0\r\n"),
        ("half a word", "OPT"),
        ("a head without its end", &begun),
        ("a body that is longer than it comes", &long_body),
    ] {
        let mut phone = Phone::tcp(address);
        phone.send(bytes, address);
        city.closes(&mut phone, 0, by);
    }
}

#[test]
fn who_sends_a_byte_now_and_then_is_closed_in_the_same_time() {
    let mut city = City::new("drip");
    let address = city.server.address;
    let mut phone = Phone::tcp(address);
    let options = phone.options(address);
    let mut bytes = options.bytes().cycle();
    // Each byte is a sign of life, but the message must still be whole in time.
    within(10, "the end of the dripping connection", || {
        let sent = bytes
            .next()
            .is_some_and(|byte| phone.send([byte | 0x20], address));
        (!sent || phone.is_closed()).then_some(())
    });
    city.is_unharmed("a dripping peer");
}

#[test]
fn who_says_nothing_is_closed() {
    let mut city = City::new("silent");
    let mut phone = Phone::tcp(city.server.address);
    city.closes(&mut phone, 0, "a silent peer");
}

#[test]
fn binary_and_other_protocols_are_closed_without_a_word() {
    let mut city = City::new("binary");
    let address = city.server.address;
    let noise: Vec<u8> = (0..20_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for (by, bytes) in [
        ("noise", &noise[..]),
        ("zeroes", &[0; 10_000][..]),
        (
            "a TLS hello",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        ),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    ] {
        let mut phone = Phone::tcp(address);
        phone.send(bytes, address);
        city.closes(&mut phone, 0, by);
    }
}

#[test]
fn a_lie_about_the_length_is_refused_and_the_connection_closed() {
    let mut city = City::new("length");
    let address = city.server.address;
    for (length, status) in [
        ("-1", 400),
        ("1x", 400),
        ("99999999999999999999", 513),
        ("200000", 513),
    ] {
        let mut phone = Phone::tcp(address);
        let options = phone.options(address);
        phone.send(
            options.replace("Content-Length: 0", &format!("Content-Length: {length}")),
            address,
        );
        city.closes(&mut phone, status, &format!("Content-Length: {length}"));
    }
    // Too short: the message is served, and what is left over is no message.
    let mut phone = Phone::tcp(address);
    let options = phone.options(address) + "left over\r\n\r\n";
    phone.send(options, address);
    city.closes(&mut phone, 200, "a Content-Length that is too short");
}

/// OPTIONS that is over a limit in one way.
fn oversized(options: &str) -> [(&'static str, String, u16); 4] {
    let with = |lines: String| options.replacen("Max-Forwards", &(lines + "Max-Forwards"), 1);
    let via = "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKx\r\n";
    [
        ("300 header fields", with("X-More: 1\r\n".repeat(300)), 513),
        (
            "a header field of 9,000 bytes",
            with(format!("X-Long: {}\r\n", "x".repeat(9_000))),
            513,
        ),
        ("80 Vias", with(via.repeat(80)), 400),
        (
            "a head of 90,000 bytes",
            with(format!("X-Long: {}\r\n", "x".repeat(600)).repeat(150)),
            513,
        ),
    ]
}

#[test]
fn messages_over_the_limits_are_refused() {
    let mut city = City::new("limits");
    let address = city.server.address;
    for transport in [Transport::Udp, Transport::Tcp] {
        let any = city.case.address(5);
        let sizes = {
            let phone = Phone::new(transport, any, address);
            oversized(&phone.options(address))
        };
        for (by, message, status) in sizes {
            if transport == Transport::Udp && message.len() > 65_000 {
                continue; // no datagram is that long
            }
            let mut phone = Phone::new(transport, any, address);
            // The Via names the phone that made the message; answers come back by rport, or on the connection.
            phone.send(&message, address);
            assert_eq!(phone.receive(by).status(), status, "{by} by {transport:?}");
            city.is_unharmed(by);
        }
    }
}

#[test]
fn a_register_with_too_many_contacts_is_refused() {
    let mut city = City::new("contacts");
    let address = city.server.address;
    let mut phone = Phone::udp(city.case.address(5));
    let contacts: String = (0..40)
        .map(|n| format!("Contact: <sip:alice@192.0.2.1:{}>\r\n", 5000 + n))
        .collect();
    let request = phone.register_raw("alice", "many", 1, &contacts);
    let challenge = phone.ask(&request, address).expect("a challenge");
    let credentials = challenge.credentials(
        "REGISTER",
        &format!("sip:{DOMAIN}"),
        "alice",
        interop::PASSWORD,
    );
    let request = phone.register_raw("alice", "many", 2, &(contacts + &credentials));
    assert_eq!(
        phone.ask(&request, address).map(|answer| answer.status()),
        Some(403)
    );
    assert_eq!(
        phone.bindings("alice", address).len(),
        1,
        "the witness alone is bound"
    );
    city.is_unharmed("40 contacts");
}

#[test]
fn who_does_not_read_is_closed() {
    let mut city = City::new("unread");
    let address = city.server.address;
    let phone = Phone::tcp(address);
    let options = phone.options(address).repeat(50);
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream
        .set_write_timeout(Some(Duration::from_millis(100)))
        .expect("a timeout");
    // The answers fill the kernel's buffers, then the server's bound; then it closes, and writing fails.
    within(60, "the end of the connection that is not read", || {
        let kind = stream.write(options.as_bytes()).err()?.kind();
        let full = matches!(
            kind,
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        );
        (!full).then_some(())
    });
    city.is_unharmed("a peer that does not read");
}

#[test]
fn keep_alives_are_answered_on_a_stream_and_passed_over_in_datagrams() {
    let mut city = City::new("keep-alive");
    let address = city.server.address;
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(b"\r\n\r\n").expect("a ping");
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    let mut pong = [0; 2];
    std::io::Read::read_exact(&mut stream, &mut pong).expect("a pong (RFC 5626 section 3.5.1)");
    assert_eq!(&pong, b"\r\n");

    let mut phone = Phone::udp(city.case.address(5));
    for datagram in [&b"\r\n\r\n"[..], b"\r\n", b"\0", b"\0\0\0\0", b""] {
        phone.send(datagram, address);
    }
    let options = phone.options(address);
    phone.send(options, address);
    assert_eq!(
        phone.receive("200 to OPTIONS").status(),
        200,
        "nothing comes before the answer to OPTIONS"
    );
    city.is_unharmed("keep-alives");
}

#[test]
fn a_thousand_connections_that_say_nothing_are_all_closed() {
    let mut city = City::new("crowd");
    let address = city.server.address;
    let mut crowd: Vec<Phone> = (0..1000).map(|_| Phone::tcp(address)).collect();
    city.is_unharmed("a crowd");
    within(20, "the end of all silent connections", || {
        crowd.retain_mut(|phone| !phone.is_closed());
        crowd.is_empty().then_some(())
    });
    city.is_unharmed("a crowd that is gone");
}

#[test]
fn a_flood_of_malformed_messages_is_logged_at_a_limited_rate() {
    let mut city = City::new("flood");
    let address = city.server.address;
    let mut phone = Phone::udp(city.case.address(5));
    let before = city.server.peer().said().lines().count();
    let start = std::time::Instant::now();
    let bad = phone
        .options(address)
        .replace("CSeq: 1 OPTIONS", "CSeq: one OPTIONS");
    for _ in 0..50 {
        for _ in 0..40 {
            phone.send(&bad, address);
        }
        assert_eq!(phone.receive("400").status(), 400);
        while phone.receive_for(1).is_some() {}
    }
    city.is_unharmed("a flood");
    let lines = city.server.peer().said().lines().count() - before;
    // Ten a second of one kind, one more for how many there were, and the second that has begun.
    let bound = 12 * (start.elapsed().as_secs() as usize + 2);
    assert!(
        (1..=bound).contains(&lines),
        "{lines} lines in {:?}",
        start.elapsed()
    );
}
