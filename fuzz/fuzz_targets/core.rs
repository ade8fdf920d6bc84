//! The whole core by script: the input is a list of steps, each a message, an answer to something the core has sent, a jump in
//! time, a failure or a word of the resolver. No step makes it panic, its tables stay within their bounds, and when all
//! is over nothing is left in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use location::{Flow, Ha1, Location, Options, Subscribers, Ticket, TicketState, Transport, Wall};
use sip_core::{
    Core, Counters, Destination, Digest, Domains, Event, Mono, Now, Origin, ResolveId,
    ResolveRequest, Settings, Shared, Sink, Target,
};
use std::net::SocketAddr;
use std::sync::Arc;

const TRANSACTIONS_MAX: usize = 16;
const BRANCHES_MAX: usize = 4;
const STEPS_MAX: usize = 200;
/// Longer than every timer, one after the other, of a request that is tried at several places.
const REST_MS: u64 = 3_600_000;
const SERVER: &str = "192.0.2.1:5060";

fuzz_target!(|input: &[u8]| {
    let mut script = Script(input);
    let mut run = Run::new(script.byte());
    for _ in 0..STEPS_MAX {
        if script.0.is_empty() {
            break;
        }
        run.step(&mut script);
        run.deliver();
        run.check_bounds();
    }
    run.rest();
});

struct Run {
    cores: Vec<Core>,
    location: Arc<Location>,
    out: Out,
    now_ms: u64,
}

/// What the cores want done, the latest last.
#[derive(Default)]
struct Out {
    sent: Vec<(Flow, Vec<u8>)>,
    origins: Vec<Origin>,
    asked: Vec<(usize, ResolveId)>,
    /// The core that wants it.
    worker: usize,
    handed: Vec<(u8, Flow, Vec<u8>)>,
    waiting: Vec<(Ticket, Flow, Vec<u8>)>,
    closed: bool,
}

impl Run {
    fn new(options: u8) -> Self {
        let location = Arc::new(Location::new(Options {
            hash_key: [1, 2],
            waiting_bytes_max: 10_000,
            aor_count_max: 8,
        }));
        let subscribers = Subscribers::in_memory([3, 4]);
        let nobody = Ha1 {
            md5: [1; 16],
            sha256: [1; 32],
        };
        for user in ["a", "b", "c"] {
            subscribers.insert_in_memory(format!("{user}@x").as_bytes(), nobody);
        }
        let shared = Arc::new(Shared {
            location: Arc::clone(&location),
            subscribers: Arc::new(subscribers),
            digest: Digest::new([5; 16], 16, now_at(0).wall),
            token_key: [6; 16],
        });
        let settings = Arc::new(Settings {
            domains: Domains {
                primary: "x".into(),
                names: vec!["x".into()],
                aliases: vec!["192.0.2.1".into()],
                ports: vec![5060],
            },
            auth: options & 1 != 0,
            transactions_max: TRANSACTIONS_MAX,
            fork_branches_max: BRANCHES_MAX,
            ..Settings::default()
        });
        let core = |worker| {
            let (shared, settings) = (Arc::clone(&shared), Arc::clone(&settings));
            Core::new(worker, 2, shared, settings, 7, now_at(0))
        };
        Self {
            cores: vec![core(0), core(1)],
            location,
            out: Out::default(),
            now_ms: 0,
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let now = now_at(self.now_ms);
        let (what, which) = (script.byte(), script.byte());
        let worker = usize::from(which & 1);
        let (core, out) = (&mut self.cores[worker], &mut Out::default());
        std::mem::swap(out, &mut self.out);
        out.worker = worker;
        match what % 10 {
            0 => {
                self.now_ms += u64::from(script.byte()) * if which & 2 == 0 { 20 } else { 1000 };
                core.advance(now_at(self.now_ms), out);
            }
            1 => {
                let len = usize::from(script.byte()) << 4 | usize::from(which >> 4);
                core.receive(now, &flow(which), script.bytes(len), out);
            }
            2 | 3 => {
                let request = request(script.byte(), script.byte(), script.byte());
                core.receive(now, &flow(which), &request, out);
            }
            4 | 5 => {
                let code = u16::from(script.byte()) * 3 % 600 + 100;
                if let Some((from, message)) = out.recent(which)
                    && let Some(response) = response(&message, code)
                {
                    core.receive(now, &from, &response, out);
                }
            }
            6 => {
                if let Some((from, message)) = out.recent(which) {
                    core.receive(now, &from, &message, out);
                }
            }
            7 => {
                let origin = Origin(u64::from(which));
                let origin = *out.origins.get(usize::from(which >> 1)).unwrap_or(&origin);
                core.send_failed(now, origin, out);
            }
            8 => {
                let none = (worker, ResolveId(u64::from(which)));
                let (worker, id) = out.asked.pop().unwrap_or(none);
                let (udp, tcp) = (flow(2).peer, flow(5).peer);
                let targets = [(Transport::Udp, udp), (Transport::Tcp, tcp)];
                let targets = targets.map(|(transport, peer)| Target { transport, peer });
                let targets = &targets[..usize::from(script.byte() % 3)];
                out.worker = worker;
                self.cores[worker].resolved(now, id, targets, out);
            }
            _ if which & 0x80 != 0 => out.closed = which & 0x40 != 0,
            _ if which == 0x7f => core.shut_down(now, out),
            _ => write_journal(&self.location, which & 2 == 0),
        }
        std::mem::swap(out, &mut self.out);
    }

    /// Messages from one core to the other, and what waited for the disk.
    fn deliver(&mut self) {
        let now = now_at(self.now_ms);
        let mut out = std::mem::take(&mut self.out);
        // A message that is handed over goes to each worker once at most.
        for _ in 0..100 {
            let Some((worker, flow, message)) = out.handed.pop() else {
                break;
            };
            out.worker = usize::from(worker);
            self.cores[out.worker].receive_handed(now, &flow, &message, &mut out);
        }
        assert!(out.handed.is_empty(), "handed over in circles");
        for (ticket, to, message) in std::mem::take(&mut out.waiting) {
            match self.location.ticket_state(ticket) {
                TicketState::Durable => out.sent.push((to, message)),
                TicketState::Waiting => out.waiting.push((ticket, to, message)),
                TicketState::Failed => self.cores[0].durability_failed(&to, &message, &mut out),
            }
        }
        out.forget();
        self.out = out;
    }

    fn check_bounds(&self) {
        for core in &self.cores {
            let held = core.counters();
            assert!(held.server_transactions <= TRANSACTIONS_MAX as u64);
            // Each may have a CANCEL beside it.
            assert!(held.client_transactions <= 2 * TRANSACTIONS_MAX as u64);
        }
    }

    /// Time passes, and nothing else happens.
    fn rest(&mut self) {
        let end = now_at(self.now_ms + REST_MS);
        for worker in 0..self.cores.len() {
            let mut now = now_at(self.now_ms);
            for turn in 0.. {
                assert!(turn < 100_000, "it never comes to rest");
                // The answer always comes.
                for (worker, id) in std::mem::take(&mut self.out.asked) {
                    self.out.worker = worker;
                    self.cores[worker].resolved(now, id, &[], &mut self.out);
                }
                self.out.worker = worker;
                self.out.forget();
                let Some(next) = self.cores[worker].next_deadline() else {
                    break;
                };
                assert!(next <= end.mono, "a timer of more than an hour");
                let ms = (next.0 / 1000).max(now.mono.0 / 1000 + 1);
                now = now_at(ms);
                self.cores[worker].advance(now, &mut self.out);
            }
        }
        let mut held = Counters::default();
        self.cores
            .iter()
            .for_each(|core| held.add(&core.counters()));
        assert_eq!((held.server_transactions, held.client_transactions), (0, 0));
    }
}

impl Out {
    fn recent(&self, which: u8) -> Option<(Flow, Vec<u8>)> {
        let back = usize::from(which >> 1) % 8;
        self.sent.iter().rev().nth(back).cloned()
    }

    fn forget(&mut self) {
        let keep = |len: usize| ..len.saturating_sub(16);
        self.sent.drain(keep(self.sent.len()));
        self.origins.drain(keep(self.origins.len()));
    }
}

impl Sink for Out {
    fn send(&mut self, to: &Destination, origin: Option<Origin>, message: &[u8]) {
        let to = match *to {
            Destination::Flow(flow) => flow,
            Destination::Address { transport, peer } => Flow {
                transport,
                peer,
                ..flow(0)
            },
        };
        self.origins.extend(origin);
        self.sent.push((to, message.to_vec()));
    }

    fn send_when_durable(&mut self, ticket: Ticket, to: &Flow, message: &[u8]) {
        self.waiting.push((ticket, *to, message.to_vec()));
    }

    fn local_address(&mut self, to: &Destination) -> Option<SocketAddr> {
        let _ = to;
        SERVER.parse().ok()
    }

    fn is_open(&mut self, flow: &Flow) -> bool {
        !flow.transport.is_reliable() || !self.closed
    }

    fn resolve(&mut self, id: ResolveId, request: &ResolveRequest) {
        let _ = request;
        self.asked.push((self.worker, id));
    }

    fn hand_over(&mut self, worker: u8, flow: &Flow, message: &[u8]) {
        self.handed.push((worker, *flow, message.to_vec()));
    }

    fn event(&mut self, event: &Event<'_>) {
        let _ = event;
    }
}

/// The input, read from its front; zeros behind its end.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        front
    }
}

/// One of four peers, by UDP or TCP.
fn flow(which: u8) -> Flow {
    let transport = if which & 4 == 0 {
        Transport::Udp
    } else {
        Transport::Tcp
    };
    let host = which >> 1 & 1;
    Flow {
        transport,
        listener: 0,
        connection: u64::from(which & 4) << 54 & 1 << 56 | u64::from(which & 6),
        local: SERVER.parse().expect("an address"),
        peer: SocketAddr::from(([198, 51, 100, host + 1], 5060)),
    }
}

/// A request that is well formed, so that not every script has to find that out by itself.
fn request(what: u8, who: u8, dialog: u8) -> Vec<u8> {
    let methods = [
        "INVITE", "REGISTER", "ACK", "BYE", "CANCEL", "MESSAGE", "OPTIONS", "PRACK",
    ];
    let method = methods[usize::from(what) % methods.len()];
    let uris = [
        "sip:a@x",
        "sip:b@x",
        "sip:y@far",
        "sip:x",
        "sip:c@198.51.100.2:5060",
    ];
    let uri = uris[usize::from(who) % uris.len()];
    let to_tag = if what & 8 == 0 { "" } else { ";tag=t" };
    let extra = match what >> 4 {
        0 => "Route: <sip:192.0.2.1;lr>\r\n",
        1 => "Route: <sip:192.0.2.1;lr>,<sip:far;lr>\r\n",
        2 => "Contact: *\r\nExpires: 0\r\n",
        3 => "Contact: <sip:a@198.51.100.1>;q=0.5, <sip:a@10.0.0.1;transport=tcp>;expires=60\r\n",
        4 => "Max-Forwards: 0\r\n",
        5 => "Proxy-Require: foo\r\nSupported: path\r\n",
        _ => "Contact: <sip:c@198.51.100.2>\r\n",
    };
    let branch = dialog >> 2;
    let transport = if dialog & 1 == 0 { "UDP" } else { "TCP" };
    format!(
        "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/{transport} 198.51.100.1:5060;branch=z9hG4bK{branch};rport\r\n\
         {extra}From: <sip:a@x>;tag=f\r\nTo: <{uri}>{to_tag}\r\nCall-ID: {branch}\r\nCSeq: 1 {method}\r\n\
         Content-Length: 0\r\n\r\n"
    )
    .into_bytes()
}

/// An answer to a request that the core has sent: its own fields, a tag, a Contact and a challenge.
fn response(request: &[u8], code: u16) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(request).ok()?;
    let (start, fields) = text.split_once("\r\n")?;
    if start.starts_with("SIP/2.0") {
        return None;
    }
    let mut response = format!("SIP/2.0 {code} X\r\n");
    for line in fields.split("\r\n").take_while(|line| !line.is_empty()) {
        let name = line.split(':').next().unwrap_or_default();
        if ["Via", "v", "From", "To", "Call-ID", "CSeq", "Record-Route"].contains(&name) {
            response.push_str(line);
            response.push_str(if name == "To" && !line.contains("tag=") {
                ";tag=t\r\n"
            } else {
                "\r\n"
            });
        }
    }
    response.push_str(match code {
        401 | 407 => "Proxy-Authenticate: Digest realm=\"far\", nonce=\"1\"\r\n",
        300..=399 => "Contact: <sip:b@x>, <sip:z@far>;q=0.1\r\n",
        _ => "Contact: <sip:b@198.51.100.2>\r\n",
    });
    response.push_str("Content-Length: 0\r\n\r\n");
    Some(response.into_bytes())
}

fn write_journal(location: &Location, works: bool) {
    match location.take_batch() {
        Some(batch) if works => location.batch_written(batch),
        Some(batch) => location.batch_failed(batch),
        None => {}
    }
}

fn now_at(ms: u64) -> Now {
    Now {
        mono: Mono(ms * 1000),
        wall: Wall(1_800_000_000_000 + ms),
    }
}
