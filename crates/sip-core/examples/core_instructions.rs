//! Runs one case of the core so many times, for counting instructions from outside: `core_instructions CASE COUNT`.

#![allow(clippy::disallowed_methods, reason = "a program takes its arguments")]

use location::{Flow, Location, Options, Subscribers, Ticket, Transport, Wall};
use sip_core::{
    Core, Destination, Digest, Domains, Event, Mono, Now, Origin, ResolveId, ResolveRequest,
    Settings, Shared, Sink,
};
use std::net::SocketAddr;
use std::sync::Arc;

/// Keeps the last two messages, as the network would.
#[derive(Default)]
struct Wire {
    sent: usize,
    last: Vec<u8>,
}

impl Sink for Wire {
    fn send(&mut self, _to: &Destination, _origin: Option<Origin>, message: &[u8]) {
        self.sent += 1;
        self.last.clear();
        self.last.extend_from_slice(message);
    }

    fn send_when_durable(&mut self, _ticket: Ticket, _to: &Flow, message: &[u8]) {
        self.sent += 1;
        self.last.clear();
        self.last.extend_from_slice(message);
    }

    fn local_address(&mut self, _to: &Destination) -> Option<SocketAddr> {
        Some(SERVER)
    }

    fn is_open(&mut self, _flow: &Flow) -> bool {
        true
    }

    fn resolve(&mut self, _id: ResolveId, _request: &ResolveRequest) {}
    fn hand_over(&mut self, _worker: u8, _flow: &Flow, _message: &[u8]) {}
    fn event(&mut self, _event: &Event<'_>) {}
}

const SERVER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
    5060,
);

struct World {
    core: Core,
    wire: Wire,
    now: Now,
    location: Arc<Location>,
    alice: Flow,
    bob: Flow,
}

impl World {
    fn new() -> Self {
        let now = Now {
            mono: Mono(1_000_000),
            wall: Wall(1_700_000_000_000),
        };
        let location = Arc::new(Location::new(Options {
            hash_key: [1, 2],
            waiting_bytes_max: 1 << 24,
            aor_count_max: 1_000_000,
        }));
        let subscribers = Arc::new(Subscribers::in_memory([1, 2]));
        let digest = Digest::new([3; 16], 1024, now.wall);
        let shared = Arc::new(Shared {
            location: location.clone(),
            subscribers,
            digest,
            token_key: [4; 16],
        });
        let domains = Domains {
            primary: "example.com".into(),
            names: vec!["example.com".into()],
            aliases: vec![],
            ports: vec![5060],
        };
        let settings = Arc::new(Settings {
            auth: false,
            domains,
            ..Settings::default()
        });
        let core = Core::new(0, 1, shared, settings, 5, now);
        let flow = |last, port| Flow {
            transport: Transport::Udp,
            listener: 0,
            connection: 0,
            local: SERVER,
            peer: SocketAddr::from(([198, 51, 100, last], port)),
        };
        Self {
            core,
            wire: Wire::default(),
            now,
            location,
            alice: flow(1, 5061),
            bob: flow(2, 5062),
        }
    }

    /// From `flow`; 100 us later than the one before.
    fn receive(&mut self, flow: Flow, message: &[u8]) {
        self.now.mono.0 += 100;
        self.core.advance(self.now, &mut self.wire);
        self.core.receive(self.now, &flow, message, &mut self.wire);
    }

    fn commit(&mut self) {
        if let Some(batch) = self.location.take_batch() {
            self.location.batch_written(batch);
        }
    }

    fn options(&mut self, n: usize) {
        let message = format!(
            "OPTIONS sip:192.0.2.1:5060 SIP/2.0\r\nVia: SIP/2.0/UDP 198.51.100.1:5061;branch=z9hG4bK-{n};rport\r\nMax-Forwards: 70\r\n\
             From: <sip:alice@a.test>;tag={n}\r\nTo: <sip:192.0.2.1>\r\nCall-ID: {n}@198.51.100.1\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
        );
        self.receive(self.alice, message.as_bytes());
    }

    fn register(&mut self, n: usize) {
        let (user, cseq) = (n % 1000, n / 1000 + 1);
        let message = format!(
            "REGISTER sip:example.com SIP/2.0\r\nVia: SIP/2.0/UDP 198.51.100.2:5062;branch=z9hG4bK-{n};rport\r\nMax-Forwards: 70\r\n\
             From: <sip:user{user}@example.com>;tag={n}\r\nTo: <sip:user{user}@example.com>\r\nCall-ID: reg{user}@198.51.100.1\r\nCSeq: {cseq} REGISTER\r\n\
             Contact: <sip:user{user}@198.51.100.2:5062>\r\nExpires: 3600\r\nUser-Agent: bench\r\nContent-Length: 0\r\n\r\n"
        );
        self.receive(self.bob, message.as_bytes());
        if n.is_multiple_of(64) {
            self.commit();
        }
    }

    /// Six messages in, seven out: INVITE-100-180-200-ACK-BYE-200.
    fn call(&mut self, n: usize) {
        let sdp = "v=0\r\no=a 1 1 IN IP4 198.51.100.1\r\ns=-\r\nc=IN IP4 198.51.100.1\r\nt=0 0\r\nm=audio 6000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n";
        let head = |method: &str, uri: &str, n: usize, to_tag: &str, cseq: u32, rest: &str| {
            format!(
                "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP 198.51.100.1:5061;branch=z9hG4bK-{method}-{n}\r\nMax-Forwards: 70\r\n\
                 From: <sip:alice@a.test>;tag=a{n}\r\nTo: <sip:user1@example.com>{to_tag}\r\nCall-ID: {n}@198.51.100.1\r\nCSeq: {cseq} {method}\r\n\
                 Contact: <sip:alice@198.51.100.1:5061>\r\n{rest}"
            )
        };
        let body = format!(
            "Content-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{sdp}",
            sdp.len()
        );
        self.receive(
            self.alice,
            head("INVITE", "sip:user1@example.com", n, "", 1, &body).as_bytes(),
        );
        let invite = String::from_utf8_lossy(&self.wire.last).into_owned();
        let lines = |name: &str| {
            invite
                .split("\r\n")
                .filter(|line| line.starts_with(name))
                .map(|line| format!("{line}\r\n"))
                .collect::<String>()
        };
        let (vias, record) = (lines("Via"), lines("Record-Route"));
        let route = record.replace("Record-Route", "Route");
        let answer = |status: &str, body: &str| {
            format!(
                "SIP/2.0 {status}\r\n{vias}{record}From: <sip:alice@a.test>;tag=a{n}\r\nTo: <sip:user1@example.com>;tag=b\r\nCall-ID: {n}@198.51.100.1\r\n\
                 CSeq: 1 INVITE\r\nContact: <sip:user1@198.51.100.2:5062>\r\n{body}"
            )
        };
        self.receive(
            self.bob,
            answer("180 Ringing", "Content-Length: 0\r\n\r\n").as_bytes(),
        );
        self.receive(self.bob, answer("200 OK", &body).as_bytes());
        let rest = format!("{route}Content-Length: 0\r\n\r\n");
        self.receive(
            self.alice,
            head("ACK", "sip:user1@198.51.100.2:5062", n, ";tag=b", 1, &rest).as_bytes(),
        );
        self.receive(
            self.alice,
            head("BYE", "sip:user1@198.51.100.2:5062", n, ";tag=b", 2, &rest).as_bytes(),
        );
        let bye = String::from_utf8_lossy(&self.wire.last).into_owned();
        let vias = bye
            .split("\r\n")
            .filter(|line| line.starts_with("Via"))
            .map(|line| format!("{line}\r\n"))
            .collect::<String>();
        let ok = format!(
            "SIP/2.0 200 OK\r\n{vias}From: <sip:alice@a.test>;tag=a{n}\r\nTo: <sip:user1@example.com>;tag=b\r\nCall-ID: {n}@198.51.100.1\r\nCSeq: 2 BYE\r\nContent-Length: 0\r\n\r\n"
        );
        self.receive(self.bob, ok.as_bytes());
    }
}

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_default();
    let count: usize = arguments
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(10_000);
    if case == "list" {
        println!("options\nregister\ncall");
        return std::process::ExitCode::SUCCESS;
    }
    let mut world = World::new();
    (0..1000).for_each(|n| world.register(n));
    world.commit();
    let before = world.wire.sent;
    let (run, messages): (fn(&mut World, usize), usize) = match case.as_str() {
        "options" => (World::options, 1),
        "register" => (World::register, 1),
        "call" => (World::call, 7),
        _ => {
            eprintln!(
                "usage: core_instructions CASE COUNT; `core_instructions list` names the cases"
            );
            return std::process::ExitCode::FAILURE;
        }
    };
    (1000..1000 + count).for_each(|n| run(&mut world, n));
    assert_eq!(
        world.wire.sent - before,
        count * messages,
        "every message was answered or passed on"
    );
    let counters = world.core.counters();
    println!(
        "{case}: {count} times; transactions held: {} server, {} client",
        counters.server_transactions, counters.client_transactions
    );
    std::process::ExitCode::SUCCESS
}
