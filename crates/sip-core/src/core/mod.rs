//! One worker's SIP logic: [`Core`]. Each file adds one part of it.
//!
//! - `request`: what is read of a request once
//! - `server`, `client`: the tables of transactions
//! - `local`: requests for the server itself
//! - `access`: who may do what
//! - `route`: where a request goes
//! - `proxy`: requests to be proxied, and ACK
//! - `fork`: the response context of a proxied request; `best`: its final response
//! - `forward`: the bytes of a forwarded request, of CANCEL and of ACK

mod access;
mod best;
mod client;
mod fork;
mod forward;
mod local;
mod proxy;
mod request;
mod route;
mod server;

use crate::keyed::{Keyed, hex64};
use crate::ours::Ours;
use crate::slab::{Handle, Slab};
use crate::timer::Wheel;
use crate::{
    Counters, Destination, Digest, Event, Mono, Now, Origin, ResolveId, Settings, Sink, Stage,
    Target,
};
use client::ClientTransaction;
use location::{Flow, Location, Subscribers};
use request::{Reply, Request};
use server::{KeyMap, ServerTransaction};
use sip_wire::{Edits, Framing, Index, Message, Method, Name, ParseError, Response};
use smallvec::SmallVec;
use std::sync::Arc;

/// What the workers share.
pub struct Shared {
    /// Bindings.
    pub location: Arc<Location>,
    /// Subscribers.
    pub subscribers: Arc<Subscribers>,
    /// Digest.
    pub digest: Digest,
    /// Key of the tokens in Record-Route; kept across restarts, so that calls outlive one.
    pub token_key: [u8; 16],
}

/// The SIP logic of one worker.
///
/// Call [`receive`](Self::receive) for each message, [`advance`](Self::advance) when [`next_deadline`](Self::next_deadline) has come, and
/// the others for what their names say. Early and repeated calls are harmless. Nothing blocks; the effects are in the sink when the call returns.
pub struct Core {
    worker: u8,
    workers: u8,
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    ours: Ours,
    /// Key shared by all workers: tokens, loop hashes, tags of stateless answers.
    keyed: Keyed,
    /// This worker's random numbers.
    random: Keyed,
    wheel: Wheel<Timer>,
    servers: Slab<ServerTransaction>,
    server_by_key: KeyMap,
    clients: Slab<ClientTransaction>,
    counters: Counters,
    ending: bool,
    // Memory that is used again for each message.
    index: Index,
    index_stored: Index,
    edits: Edits,
    out: Vec<u8>,
    lines: Vec<u8>,
    due: Vec<Timer>,
}

/// What a wheel entry belongs to.
#[derive(Clone, Copy, Debug)]
enum Timer {
    Server(Handle),
    Client(Handle),
}

/// No deadline.
const NEVER: Mono = Mono(u64::MAX);

/// How a message came in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    /// From a socket.
    Fresh,
    /// From another worker; so many workers are still to be asked.
    Handed { left: u8 },
}

impl Core {
    /// `worker` is this one's number, `workers` how many there are; `seed` is for branches and tags, and is secret on a real server.
    #[must_use]
    pub fn new(
        worker: u8,
        workers: u8,
        shared: Arc<Shared>,
        settings: Arc<Settings>,
        seed: u64,
        now: Now,
    ) -> Self {
        let mut key = shared.token_key;
        for (byte, seed) in key
            .iter_mut()
            .zip(seed.to_le_bytes().into_iter().chain([worker]))
        {
            *byte ^= seed;
        }
        Self {
            worker,
            workers,
            ours: Ours::new(&settings),
            keyed: Keyed::new(shared.token_key),
            random: Keyed::new(key),
            shared,
            settings,
            wheel: Wheel::new(now.mono),
            servers: Slab::new(),
            server_by_key: KeyMap::default(),
            clients: Slab::new(),
            counters: Counters::default(),
            ending: false,
            index: Index::new(),
            index_stored: Index::new(),
            edits: Edits::new(),
            out: Vec::new(),
            lines: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Takes a new configuration.
    pub fn set_settings(&mut self, settings: Arc<Settings>) {
        self.ours = Ours::new(&settings);
        self.settings = settings;
    }

    /// A datagram, or one message cut out of a stream.
    pub fn receive(&mut self, now: Now, flow: &Flow, message: &[u8], sink: &mut impl Sink) {
        self.take_in(now, flow, message, Came::Fresh, sink);
    }

    /// A message that another worker handed over ([`Sink::hand_over`]).
    pub fn receive_handed(&mut self, now: Now, flow: &Flow, message: &[u8], sink: &mut impl Sink) {
        if let Some((&left, message)) = message.split_first() {
            self.take_in(now, flow, message, Came::Handed { left }, sink);
        }
    }

    /// A stream that can't be followed further: answers what can be answered. The caller closes.
    pub fn receive_broken(
        &mut self,
        flow: &Flow,
        bytes: &[u8],
        error: ParseError,
        sink: &mut impl Sink,
    ) {
        sink.stage(Stage::Parse);
        let mut index = std::mem::take(&mut self.index);
        let _ = index.parse(bytes, Framing::Stream, &self.settings.limits);
        self.refuse_malformed(flow, index.message(bytes), error, sink);
        self.index = index;
    }

    /// Time has passed.
    pub fn advance(&mut self, now: Now, sink: &mut impl Sink) {
        sink.stage(Stage::Decide);
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(now.mono, &mut due);
        for timer in due.drain(..) {
            match timer {
                Timer::Server(handle) => self.server_due(now, handle, sink),
                Timer::Client(handle) => self.client_due(now, handle, sink),
            }
        }
        self.due = due;
    }

    /// When to call [`Self::advance`] next; may be early.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Mono> {
        self.wheel.next_deadline()
    }

    /// A message could not be sent.
    pub fn send_failed(&mut self, now: Now, origin: Origin, sink: &mut impl Sink) {
        sink.stage(Stage::Decide);
        self.client_send_failed(now, Handle::from_u64(origin.0), sink);
    }

    /// The resolver's answer; empty: none found, or too late.
    pub fn resolved(&mut self, now: Now, id: ResolveId, targets: &[Target], sink: &mut impl Sink) {
        sink.stage(Stage::Decide);
        self.client_resolved(now, Handle::from_u64(id.0), targets, sink);
    }

    /// The server ends: INVITEs without a final response are answered 503 and their branches cancelled; new requests get 503.
    pub fn shut_down(&mut self, now: Now, sink: &mut impl Sink) {
        sink.stage(Stage::Decide);
        self.ending = true;
        for handle in self.servers.handles() {
            self.end_fork(now, handle, sink);
        }
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (server, client) = (self.servers.len() as u64, self.clients.len() as u64);
        Counters {
            server_transactions: server,
            client_transactions: client,
            ..self.counters
        }
    }

    fn take_in(&mut self, now: Now, flow: &Flow, bytes: &[u8], came: Came, sink: &mut impl Sink) {
        sink.stage(Stage::Parse);
        let mut index = std::mem::take(&mut self.index);
        let framing = if flow.transport.is_reliable() {
            Framing::Stream
        } else {
            Framing::Datagram
        };
        let parsed = index.parse(bytes, framing, &self.settings.limits);
        let message = index.message(bytes);
        match (parsed, message.method()) {
            (Err(error), _) => self.refuse_malformed(flow, message, error, sink),
            (Ok(()), None) => self.response(now, flow, message, came, sink),
            (Ok(()), Some(method)) => match Request::read(message, method, flow) {
                Ok(request) => self.request(now, &request, came, sink),
                Err(error) => self.refuse_malformed(flow, message, error, sink),
            },
        }
        self.index = index;
    }

    fn request(&mut self, now: Now, request: &Request<'_>, came: Came, sink: &mut impl Sink) {
        sink.stage(Stage::Decide);
        self.counters.requests_received += u64::from(came == Came::Fresh);
        match request.method {
            Method::Ack => self.ack(now, request, sink),
            Method::Cancel => self.cancel(now, request, came, sink),
            _ if self.is_for_server(request) => self.serve(now, request, sink),
            _ => {
                let key = self.server_key(request);
                match self.server_by_key.get(&key) {
                    Some(&handle) => self.repeated(now, handle, sink),
                    None => self.proxy(now, request, key, sink),
                }
            }
        }
    }

    /// Answers what can't be understood, when enough of it can (RFC 3261 section 16.3 item 1); ACKs and responses are dropped.
    fn refuse_malformed(
        &mut self,
        flow: &Flow,
        message: Message<'_>,
        error: ParseError,
        sink: &mut impl Sink,
    ) {
        sink.stage(Stage::Decide);
        self.counters.malformed += 1;
        let is_answerable = message.method().is_some_and(|method| method != Method::Ack);
        let code = error.answer().filter(|_| is_answerable).unwrap_or(0);
        sink.event(&Event::Malformed {
            flow,
            why: error.phrase(),
            status: code,
        });
        if code == 0 || message.header(Name::Via).is_none() {
            return;
        }
        // A Via that can't be read goes back as it is, to where it came from.
        let (reply, source) = match message.top_via() {
            Ok(via) => (Reply::new(flow, &via), Some(flow.peer)),
            Err(_) => (
                Reply {
                    flow: *flow,
                    via_port: flow.peer.port(),
                },
                None,
            ),
        };
        let tag = self.local_tag(message.call_id().unwrap_or_default(), b"malformed");
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        Response {
            request: message,
            code,
            reason: error.phrase(),
            source,
            to_tag: &tag,
        }
        .write(b"", b"", &mut out);
        self.send_reply(&reply, &out, sink);
        self.out = out;
    }

    /// Answers a request without keeping anything (RFC 3261 section 8.2.7). The tag is a keyed hash, so that the ACK to such
    /// an answer is known when it comes. `lines`: whole header lines.
    fn answer(
        &mut self,
        request: &Request<'_>,
        code: u16,
        reason: &str,
        lines: &[u8],
        sink: &mut impl Sink,
    ) {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.write_answer(request, code, reason, lines, &mut out);
        self.send_reply(&request.reply, &out, sink);
        self.out = out;
    }

    fn write_answer(
        &self,
        request: &Request<'_>,
        code: u16,
        reason: &str,
        lines: &[u8],
        out: &mut Vec<u8>,
    ) {
        let tag = self.local_tag(request.call_id, request.sender_tag());
        let to_tag: &[u8] = if code == 100 { b"" } else { &tag };
        let mut all = SmallVec::<[u8; 512]>::new();
        if code != 100 && !self.settings.server.is_empty() {
            for part in [b"Server: ", self.settings.server.as_bytes(), b"\r\n"] {
                all.extend_from_slice(part);
            }
        }
        all.extend_from_slice(lines);
        Response {
            request: request.message,
            code,
            reason,
            source: Some(request.flow.peer),
            to_tag,
        }
        .write(&all, b"", out);
    }

    /// Our To tag for a call: the same in every response of ours to it.
    fn local_tag(&self, call_id: &[u8], from_tag: &[u8]) -> [u8; 16] {
        hex64(self.keyed.hash(&[b"tag", call_id, from_tag]))
    }

    /// Sends a response: back on its connection while that is open, else by the Via (RFC 3261 section 18.2.2).
    fn send_reply(&mut self, reply: &Reply, message: &[u8], sink: &mut impl Sink) {
        self.counters.responses_sent += 1;
        let flow = &reply.flow;
        let to = if flow.transport.is_reliable() && !sink.is_open(flow) {
            Destination::Address {
                transport: flow.transport,
                peer: reply.via_address(),
            }
        } else {
            Destination::Flow(*flow)
        };
        sink.send(&to, None, message);
    }
}
