//! One core on hand-made time, and what it sends.
#![allow(dead_code, unreachable_pub, clippy::too_many_arguments)]

use location::{Flow, Location, Options, Subscribers, Ticket, TicketState, Transport, Wall};
use sip_core::{
    Core, Counters, Destination, Digest, Domains, Event, Mono, Now, Origin, ResolveId,
    ResolveRequest, Settings, Shared, Sink, Target,
};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// Our own address in the tests.
pub const SERVER: &str = "192.0.2.1:5060";

/// A message that left.
#[derive(Clone, Debug)]
pub struct Sent {
    pub transport: Transport,
    pub to: SocketAddr,
    pub connection: u64,
    pub origin: Option<Origin>,
    pub text: String,
}

impl Sent {
    /// Value of the first header field of that name.
    pub fn header<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.headers(name).next()
    }

    /// Values of all header fields of that name.
    pub fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let head = self.text.split("\r\n\r\n").next().unwrap_or_default();
        head.lines().skip(1).filter_map(move |line| {
            let (n, value) = line.split_once(':')?;
            n.trim().eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// First line.
    pub fn start(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// Whole block of Via lines, as they have to come back in a response.
    pub fn vias(&self) -> String {
        self.headers("Via")
            .map(|via| format!("Via: {via}\n"))
            .collect()
    }
}

/// Records.
#[derive(Default)]
pub struct Recorder {
    pub sent: VecDeque<Sent>,
    pub durable: VecDeque<(Ticket, Sent)>,
    pub questions: Vec<(ResolveId, ResolveRequest)>,
    pub handed: Vec<(u8, Flow, Vec<u8>)>,
    pub closed: BTreeSet<u64>,
    pub events: Vec<String>,
}

impl Sink for Recorder {
    fn send(&mut self, to: &Destination, origin: Option<Origin>, message: &[u8]) {
        let (transport, to, connection) = match to {
            Destination::Flow(flow) => (flow.transport, flow.peer, flow.connection),
            Destination::Address { transport, peer } => (*transport, *peer, 0),
        };
        self.sent.push_back(Sent {
            transport,
            to,
            connection,
            origin,
            text: String::from_utf8_lossy(message).into_owned(),
        });
    }

    fn send_when_durable(&mut self, ticket: Ticket, to: &Flow, message: &[u8]) {
        let text = String::from_utf8_lossy(message).into_owned();
        self.durable.push_back((
            ticket,
            Sent {
                transport: to.transport,
                to: to.peer,
                connection: to.connection,
                origin: None,
                text,
            },
        ));
    }

    fn local_address(&mut self, _to: &Destination) -> Option<SocketAddr> {
        SERVER.parse().ok()
    }

    fn is_open(&mut self, flow: &Flow) -> bool {
        !self.closed.contains(&flow.connection)
    }

    fn resolve(&mut self, id: ResolveId, request: &ResolveRequest) {
        self.questions.push((id, request.clone()));
    }

    fn hand_over(&mut self, worker: u8, flow: &Flow, message: &[u8]) {
        self.handed.push((worker, *flow, message.to_vec()));
    }

    fn event(&mut self, event: &Event<'_>) {
        self.events.push(format!("{event:?}"));
    }
}

/// A core and its surroundings.
pub struct Bench {
    pub core: Core,
    pub now: Now,
    pub sink: Recorder,
    pub location: Arc<Location>,
    pub subscribers: Arc<Subscribers>,
    pub settings: Settings,
}

impl Bench {
    /// Serves example.com, without digest.
    pub fn open() -> Self {
        Self::new(Settings {
            auth: false,
            ..Self::settings()
        })
    }

    /// Serves example.com; digest on.
    pub fn strict() -> Self {
        Self::new(Self::settings())
    }

    pub fn settings() -> Settings {
        Settings {
            domains: Domains {
                primary: "example.com".into(),
                names: vec!["example.com".into()],
                aliases: vec!["192.0.2.1".into()],
                ports: vec![5060],
            },
            expires_jitter_percent: 0,
            ..Settings::default()
        }
    }

    pub fn new(settings: Settings) -> Self {
        let now = Now {
            mono: Mono(1_000_000),
            wall: Wall(1_700_000_000_000),
        };
        let location = Arc::new(Location::new(Options {
            hash_key: [1, 2],
            waiting_bytes_max: 1 << 20,
            aor_count_max: 1000,
        }));
        let subscribers = Arc::new(Subscribers::in_memory([1, 2]));
        let shared = Arc::new(Shared {
            location: location.clone(),
            subscribers: subscribers.clone(),
            digest: Digest::new([3; 16], 1024, now.wall),
            token_key: [4; 16],
        });
        let core = Core::new(0, 2, shared, Arc::new(settings.clone()), 5, now);
        Self {
            core,
            now,
            sink: Recorder::default(),
            location,
            subscribers,
            settings,
        }
    }

    /// A datagram from `peer`.
    pub fn udp(&mut self, peer: &str, message: &str) {
        let flow = Flow {
            transport: Transport::Udp,
            listener: 0,
            connection: 0,
            local: SERVER.parse().unwrap(),
            peer: peer.parse().unwrap(),
        };
        self.core
            .receive(self.now, &flow, wire(message).as_bytes(), &mut self.sink);
    }

    /// A message over a connection.
    pub fn tcp(&mut self, peer: &str, connection: u64, message: &str) {
        let flow = Flow {
            transport: Transport::Tcp,
            listener: 1,
            connection,
            local: SERVER.parse().unwrap(),
            peer: peer.parse().unwrap(),
        };
        self.core
            .receive(self.now, &flow, wire(message).as_bytes(), &mut self.sink);
    }

    /// Lets time pass in steps of at most 10 ms.
    pub fn pass_ms(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(10) {
            self.now.mono.0 += 10_000;
            self.now.wall.0 += 10;
            self.core.advance(self.now, &mut self.sink);
        }
    }

    /// What was sent next; panics when nothing was.
    #[track_caller]
    pub fn sent(&mut self) -> Sent {
        self.sink.sent.pop_front().expect("something was sent")
    }

    /// The next message that was sent starts so.
    #[track_caller]
    pub fn expect(&mut self, to: &str, start: &str) -> Sent {
        let sent = self.sent();
        assert!(
            sent.start().starts_with(start),
            "expected {start:?}, got\n{}",
            sent.text
        );
        assert_eq!(sent.to, to.parse().unwrap(), "{}", sent.text);
        sent
    }

    /// Nothing more was sent.
    #[track_caller]
    pub fn expect_nothing(&mut self) {
        assert!(
            self.sink.sent.is_empty(),
            "unexpected: {:#?}",
            self.sink.sent
        );
    }

    /// Writes the journal: what waited for it is sent.
    pub fn commit(&mut self) {
        while let Some(batch) = self.location.take_batch() {
            self.location.batch_written(batch);
        }
        while let Some((ticket, sent)) = self.sink.durable.pop_front() {
            assert_eq!(self.location.ticket_state(ticket), TicketState::Durable);
            self.sink.sent.push_back(sent);
        }
    }

    /// Registers a contact over UDP.
    #[track_caller]
    pub fn register(&mut self, user: &str, contact: &str, peer: &str) {
        let n = self.now.mono.0;
        self.udp(
            peer,
            &format!(
                "REGISTER sip:example.com SIP/2.0\nVia: SIP/2.0/UDP {peer};branch=z9hG4bKr{user}{n}{}\nMax-Forwards: 70\nFrom: <sip:{user}@example.com>;tag=r\n\
                 To: <sip:{user}@example.com>\nCall-ID: reg-{user}-{peer}\nCSeq: 1 REGISTER\nContact: {contact}\nContent-Length: 0\n\n",
                contact.len()
            ),
        );
        self.commit();
        self.expect(peer, "SIP/2.0 200");
    }

    pub fn counters(&self) -> Counters {
        self.core.counters()
    }

    /// Answers the resolver's last question.
    pub fn resolve(&mut self, targets: &[(Transport, &str)]) -> ResolveRequest {
        let (id, request) = self.sink.questions.pop().expect("a question");
        let targets: Vec<_> = targets
            .iter()
            .map(|(transport, peer)| Target {
                transport: *transport,
                peer: peer.parse().unwrap(),
            })
            .collect();
        self.core.resolved(self.now, id, &targets, &mut self.sink);
        request
    }
}

/// Lines to CRLF.
pub fn wire(message: &str) -> String {
    message.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[allow(clippy::too_many_arguments)]
/// A request of a dialog between alice and bob: `extra` are whole lines.
pub fn request(
    method: &str,
    uri: &str,
    from: &str,
    to: &str,
    via: &str,
    branch: &str,
    cseq: &str,
    extra: &str,
) -> String {
    format!(
        "{method} {uri} SIP/2.0\nVia: SIP/2.0/UDP {via};branch=z9hG4bK{branch}\nMax-Forwards: 70\nFrom: {from}\nTo: {to}\nCall-ID: call-1\n\
         CSeq: {cseq} {method}\n{extra}Content-Length: 0\n\n"
    )
}

/// The response of a phone to what it got.
pub fn response(received: &Sent, status: &str, to_tag: &str, extra: &str) -> String {
    let to = received.header("To").unwrap();
    let to = if to.contains(";tag=") || to_tag.is_empty() {
        to.to_owned()
    } else {
        format!("{to};tag={to_tag}")
    };
    let routes: String = received
        .headers("Record-Route")
        .map(|route| format!("Record-Route: {route}\n"))
        .collect();
    format!(
        "SIP/2.0 {status}\n{}{routes}From: {}\nTo: {to}\nCall-ID: {}\nCSeq: {}\n{extra}Content-Length: 0\n\n",
        received.vias(),
        received.header("From").unwrap(),
        received.header("Call-ID").unwrap(),
        received.header("CSeq").unwrap()
    )
}

/// The MD5 response of a phone with `qop=auth`, nonce-count 1 and cnonce `c` (RFC 7616 section 3.4.1).
pub fn digest_response(
    user: &str,
    realm: &str,
    password: &str,
    method: &str,
    uri: &str,
    nonce: &str,
) -> String {
    use md5::{Digest as _, Md5};
    let hex = |text: String| {
        Md5::digest(text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let (a1, a2) = (
        hex(format!("{user}:{realm}:{password}")),
        hex(format!("{method}:{uri}")),
    );
    hex(format!("{a1}:{nonce}:00000001:c:auth:{a2}"))
}
