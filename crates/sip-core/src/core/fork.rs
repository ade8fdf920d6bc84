use super::Core;
use super::forward::{Forwarding, Outgoing, Place};
use super::request::Request;
use super::route::{Hop, Routed, Target, Targets};
use crate::branch::Branch;
use crate::ours::Host;
use crate::slab::Handle;
use crate::{Destination, Now, ResolveId, Sink};
use location::{Flow, Transport};
use sip_wire::{Framing, Index, Message, Method, Name, Scheme};
use smallvec::SmallVec;

/// The response context of a proxied request (RFC 3261 section 16.7): lives in its server transaction until the final response.
pub(super) struct Fork {
    /// The request as it came, to write later branches and responses of our own from.
    request: Box<[u8]>,
    flow: Flow,
    forwarding: Forwarding,
    targets: Targets,
    /// The first target that was not tried yet.
    next: usize,
    /// Max-Breadth of the request.
    breadth: u32,
    /// Client transactions without a final response.
    active: SmallVec<[Handle; 2]>,
    best: Option<Best>,
    /// Challenges gathered from 401 and 407 (RFC 3261 section 16.7 item 7), whole header lines.
    challenges: Vec<u8>,
    is_cancelled: bool,
}

struct Best {
    code: u16,
    /// As received; `None`: ours to write, with this reason.
    message: Option<Box<[u8]>>,
    reason: &'static str,
}

/// How a branch ended.
#[derive(Clone, Copy)]
pub(super) enum Outcome<'a> {
    Response(u16, Message<'a>),
    /// Without a response: as if it were this one.
    Local(u16, &'static str),
}

/// RFC 5393 section 5.3.3.
const BREADTH_DEFAULT: u32 = 60;
/// Bytes of challenges gathered from all branches.
const CHALLENGES_LEN_MAX: usize = 4096;

impl Core {
    /// A request that is not for the server itself (RFC 3261 section 16).
    pub(super) fn proxy(
        &mut self,
        now: Now,
        request: &Request<'_>,
        key: u128,
        sink: &mut impl Sink,
    ) {
        if self.ending && !request.has_to_tag() {
            return self.answer(
                request,
                503,
                "Server Is Shutting Down",
                b"Retry-After: 5\r\n",
                sink,
            );
        }
        let routed = self.route(request);
        if routed.next_route.is_none() && routed.host != Host::Foreign && routed.uri.user.is_none()
        {
            return self.serve(now, request, sink);
        }
        let loop_hash = self.loop_hash(request);
        if let Err((code, reason)) = self.check_proxied(request, &routed, loop_hash) {
            return self.answer(request, code, reason, b"", sink);
        }
        if request.message.header(Name::ProxyRequire).is_some() {
            return self.refuse_extensions(request, Name::ProxyRequire, sink);
        }
        if !self.may_pass(now, request, &routed, sink) {
            return;
        }
        match self.targets(now, request, &routed, sink) {
            Ok(targets) => self.open_fork(now, request, &routed, key, loop_hash, targets, sink),
            Err((code, reason)) => self.answer(request, code, reason, b"", sink),
        }
    }

    /// RFC 3261 section 16.3 items 2 to 4.
    fn check_proxied(
        &self,
        request: &Request<'_>,
        routed: &Routed<'_>,
        loop_hash: u64,
    ) -> Result<(), (u16, &'static str)> {
        match routed.uri.scheme {
            Scheme::Sip | Scheme::Tel => {}
            Scheme::Sips => return Err((480, "SIPS Not Available Here")),
            Scheme::Other => return Err((416, "")),
        }
        if request.max_forwards() == Some(0) {
            return Err((483, ""));
        }
        let is_looped = |via: sip_wire::Value<'_>| {
            let via = sip_wire::Via::parse(via.text, via.span.start).ok()?;
            Some(Branch::parse(via.branch())?.loop_hash == loop_hash)
        };
        if request
            .message
            .values(Name::Via)
            .skip(1)
            .any(|via| is_looped(via) == Some(true))
            || is_looped_top(request, loop_hash)
        {
            return Err((482, ""));
        }
        Ok(())
    }

    /// What decides where a request goes: the same again means a loop (RFC 3261 section 16.6 item 8).
    fn loop_hash(&self, request: &Request<'_>) -> u64 {
        let route = request.first_route().unwrap_or_default();
        let number = request.cseq.number.to_be_bytes();
        let to_tag = request.to.tag().unwrap_or_default();
        self.keyed.hash(&[
            request.uri.text,
            request.sender_tag(),
            to_tag,
            request.call_id,
            &number,
            request.message.method_text(),
            route,
        ])
    }

    #[allow(clippy::too_many_arguments)]
    fn open_fork(
        &mut self,
        now: Now,
        request: &Request<'_>,
        routed: &Routed<'_>,
        key: u128,
        loop_hash: u64,
        targets: Targets,
        sink: &mut impl Sink,
    ) {
        let breadth = request
            .message
            .number(Name::MaxBreadth)
            .ok()
            .flatten()
            .unwrap_or(BREADTH_DEFAULT);
        if breadth == 0 {
            return self.answer(request, 440, "", b"", sink);
        }
        let Some(server) = self.open_server(now, request, key, sink) else {
            return self.answer(
                request,
                503,
                "Too Many Transactions",
                b"Retry-After: 2\r\n",
                sink,
            );
        };
        if request.method == Method::Invite {
            let mut out = std::mem::take(&mut self.out);
            out.clear();
            self.write_answer(request, 100, "", b"", &mut out);
            self.respond(now, server, 100, &out, sink);
            self.out = out;
        }
        let strip_credentials = self.settings.auth && routed.token.is_none();
        let mut fork = Box::new(Fork {
            request: request.message.bytes().into(),
            flow: request.flow,
            forwarding: Forwarding::new(request, routed, strip_credentials, loop_hash),
            targets,
            next: 0,
            breadth,
            active: SmallVec::new(),
            best: None,
            challenges: Vec::new(),
            is_cancelled: false,
        });
        self.launch(now, server, &mut fork, request, sink);
        self.put_back(now, server, fork, sink);
    }

    /// Starts the branches of the next preference (RFC 3261 section 16.6), as many at once as Max-Breadth lets.
    fn launch(
        &mut self,
        now: Now,
        server: Handle,
        fork: &mut Fork,
        request: &Request<'_>,
        sink: &mut impl Sink,
    ) {
        let rest = &fork.targets[fork.next..];
        let Some(first) = rest.first() else { return };
        let count = rest
            .iter()
            .take_while(|target| target.q == first.q)
            .take(fork.breadth as usize)
            .count();
        let breadth = fork.breadth / count as u32;
        for n in fork.next..fork.next + count {
            fork.next += 1;
            let target = fork.targets[n].clone();
            self.start_branch(now, server, fork, request, target, breadth, sink);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn start_branch(
        &mut self,
        now: Now,
        server: Handle,
        fork: &mut Fork,
        request: &Request<'_>,
        target: Target,
        breadth: u32,
        sink: &mut impl Sink,
    ) {
        let Some(client) = self.open_client(server, request.method, sink) else {
            fork.consider(Outcome::Local(503, "Too Many Transactions"));
            return;
        };
        fork.active.push(client);
        match &target.hop {
            Hop::Direct(to) => {
                let to = *to;
                self.send_branch(now, client, fork, request, &target, to, breadth, sink);
            }
            Hop::Name(name) => {
                sink.resolve(ResolveId(client.to_u64()), name);
                self.await_addresses(client, target, breadth);
            }
        }
    }

    /// Writes a branch's request and hands it to its client transaction.
    #[allow(clippy::too_many_arguments)]
    fn send_branch(
        &mut self,
        now: Now,
        client: Handle,
        fork: &mut Fork,
        request: &Request<'_>,
        target: &Target,
        to: Destination,
        breadth: u32,
        sink: &mut impl Sink,
    ) {
        let Some(mut message) = self.write_branch(
            &fork.forwarding,
            request,
            target,
            client,
            &to,
            Some(breadth),
            sink,
        ) else {
            return self.drop_branch(fork, client, Outcome::Local(503, "No Way To The Next Hop"));
        };
        let mut to = to;
        // RFC 3261 section 18.1.1: TCP first when it is large, the datagram if nobody listens there.
        if message.len() > self.settings.udp_bytes_max
            && target.may_use_tcp
            && let Some(peer) = datagram_peer(&to)
        {
            let stream = Destination::Address {
                transport: Transport::Tcp,
                peer,
            };
            if let Some(larger) = self.write_branch(
                &fork.forwarding,
                request,
                target,
                client,
                &stream,
                Some(breadth),
                sink,
            ) {
                self.fall_back(client, target, to, breadth);
                (to, message) = (stream, larger);
            }
        }
        self.start_client(now, client, request.method, to, message, sink);
    }

    #[allow(clippy::too_many_arguments)]
    fn write_branch(
        &mut self,
        forwarding: &Forwarding,
        request: &Request<'_>,
        target: &Target,
        client: Handle,
        to: &Destination,
        breadth: Option<u32>,
        sink: &mut impl Sink,
    ) -> Option<Box<[u8]>> {
        let settings = self.settings.clone();
        let advertise = settings.advertise.as_deref();
        let transport = match to {
            Destination::Flow(flow) => flow.transport,
            Destination::Address { transport, .. } => *transport,
        };
        let outbound = Place {
            transport,
            address: sink.local_address(to)?,
            advertise,
        };
        let inbound = match forwarding.record_route {
            true => Place {
                transport: request.flow.transport,
                address: sink.local_address(&Destination::Flow(request.flow))?,
                advertise,
            },
            false => outbound,
        };
        let branch = Branch {
            worker: self.worker,
            handle: client,
            loop_hash: forwarding.loop_hash,
        };
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let outgoing = Outgoing {
            request,
            forwarding,
            target,
            branch,
            outbound,
            inbound,
            breadth,
        };
        outgoing.write(&self.keyed, &mut self.edits, &mut self.lines, &mut out);
        let message = Some(out.as_slice().into());
        self.out = out;
        message
    }

    /// ACK to a 2xx: goes on without a transaction (RFC 3261 section 16.11, 17.1.1.3).
    pub(super) fn forward_ack(&mut self, now: Now, request: &Request<'_>, sink: &mut impl Sink) {
        let routed = self.route(request);
        let to_us = routed.host != Host::Foreign && routed.next_route.is_none();
        if routed.token.is_none() && !to_us && self.settings.auth
            || request.max_forwards() == Some(0)
        {
            return;
        }
        let Ok(targets) = self.targets(now, request, &routed, sink) else {
            return;
        };
        let forwarding = Forwarding::new(
            request,
            &routed,
            self.settings.auth,
            self.loop_hash(request),
        );
        for target in targets {
            match &target.hop {
                Hop::Direct(to) => self.send_ack(request, &forwarding, &target, to, sink),
                Hop::Name(name) => {
                    let Some(client) =
                        self.open_client(Handle::from_u64(u64::MAX), Method::Ack, sink)
                    else {
                        return;
                    };
                    sink.resolve(ResolveId(client.to_u64()), name);
                    self.await_addresses_for_ack(client, request, forwarding, target.clone());
                }
            }
        }
    }

    pub(super) fn send_ack(
        &mut self,
        request: &Request<'_>,
        forwarding: &Forwarding,
        target: &Target,
        to: &Destination,
        sink: &mut impl Sink,
    ) {
        let handle = Handle::from_u64(self.random.draw());
        if let Some(message) =
            self.write_branch(forwarding, request, target, handle, to, None, sink)
        {
            self.counters.requests_sent += 1;
            sink.send(to, None, &message);
        }
    }

    /// Addresses are known, or the next one is to be tried: sends the branch from the stored request.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn send_stored(
        &mut self,
        now: Now,
        server: Handle,
        client: Handle,
        target: &Target,
        to: Destination,
        breadth: u32,
        sink: &mut impl Sink,
    ) {
        let Some(mut fork) = self
            .servers
            .get_mut(server)
            .and_then(|server| server.fork.take())
        else {
            self.clients.remove(client);
            return;
        };
        let stored = std::mem::take(&mut fork.request);
        let mut index = std::mem::take(&mut self.index_stored);
        match reread(&stored, &fork.flow, &mut index) {
            Some(request) => {
                self.send_branch(now, client, &mut fork, &request, target, to, breadth, sink)
            }
            None => self.drop_branch(&mut fork, client, Outcome::Local(500, "")),
        }
        self.index_stored = index;
        fork.request = stored;
        self.put_back(now, server, fork, sink);
    }

    /// A branch has ended; `client` is freed by the caller or stays to absorb repetitions.
    pub(super) fn branch_ended(
        &mut self,
        now: Now,
        server: Handle,
        client: Handle,
        outcome: Outcome<'_>,
        sink: &mut impl Sink,
    ) {
        let Some(mut fork) = self
            .servers
            .get_mut(server)
            .and_then(|server| server.fork.take())
        else {
            return;
        };
        fork.active.retain(|active| *active != client);
        fork.consider(outcome);
        if fork.best_code() >= 600 && !fork.is_cancelled {
            fork.next = fork.targets.len();
            self.cancel_branches(now, &mut fork, None, sink);
        }
        self.put_back(now, server, fork, sink);
    }

    /// A branch goes on as another client transaction.
    pub(super) fn replace_branch(&mut self, server: Handle, old: Handle, new: Handle) {
        if let Some(fork) = self
            .servers
            .get_mut(server)
            .and_then(|server| server.fork.as_mut())
        {
            fork.active.retain(|active| *active != old);
            fork.active.push(new);
        }
    }

    fn drop_branch(&mut self, fork: &mut Fork, client: Handle, outcome: Outcome<'_>) {
        fork.active.retain(|active| *active != client);
        self.clients.remove(client);
        fork.consider(outcome);
    }

    /// Gives the response context back to its transaction, or goes on with it: next preference, final response.
    fn put_back(&mut self, now: Now, server: Handle, mut fork: Box<Fork>, sink: &mut impl Sink) {
        while fork.active.is_empty()
            && fork.next < fork.targets.len()
            && !fork.is_cancelled
            && fork.best_code() < 600
        {
            let stored = std::mem::take(&mut fork.request);
            let mut index = std::mem::take(&mut self.index_stored);
            match reread(&stored, &fork.flow, &mut index) {
                Some(request) => self.launch(now, server, &mut fork, &request, sink),
                None => fork.next = fork.targets.len(),
            }
            self.index_stored = index;
            fork.request = stored;
        }
        if fork.active.is_empty() {
            self.finish(now, server, &fork, sink);
        } else if let Some(transaction) = self.servers.get_mut(server) {
            transaction.fork = Some(fork);
        }
    }

    /// Sends the best response (RFC 3261 section 16.7 items 6 and 7).
    fn finish(&mut self, now: Now, server: Handle, fork: &Fork, sink: &mut impl Sink) {
        let mut index = std::mem::take(&mut self.index_stored);
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let code = self.write_final(fork, &mut index, &mut out);
        self.index_stored = index;
        match code {
            Some(code) => {
                self.counters.calls_failed += u64::from(is_invite(&fork.request));
                self.respond(now, server, code, &out, sink);
            }
            // RFC 4320 section 4.2: a late 408 to anything but INVITE does harm.
            None => self.close_server(server),
        }
        self.out = out;
    }

    fn write_final(&mut self, fork: &Fork, index: &mut Index, out: &mut Vec<u8>) -> Option<u16> {
        let best = fork.best.as_ref();
        let code = best.map_or(408, |best| best.code);
        if let Some(received) = best.and_then(|best| best.message.as_deref())
            && code != 503
            && index
                .parse(received, Framing::Stream, &self.settings.limits)
                .is_ok()
        {
            let message = index.message(received);
            self.edit_response(
                &message,
                if matches!(code, 401 | 407) {
                    &fork.challenges
                } else {
                    b""
                },
                out,
            );
            return Some(code);
        }
        let request = reread(&fork.request, &fork.flow, index)?;
        let (code, reason) = match code {
            _ if fork.is_cancelled => (487, ""),
            408 if request.method != Method::Invite => return None,
            // RFC 3261 section 16.7 item 6: our 503 would speak for this server.
            503 => (500, best.map_or("", |best| best.reason)),
            code => (code, best.map_or("", |best| best.reason)),
        };
        self.write_answer(&request, code, reason, b"", out);
        Some(code)
    }

    /// A response to be passed upstream: without our Via, with further header lines.
    pub(super) fn edit_response(&mut self, message: &Message<'_>, lines: &[u8], out: &mut Vec<u8>) {
        self.edits.clear();
        let mut vias = message.values(Name::Via);
        if let Some(first) = vias.next() {
            let span = match vias.next() {
                Some(second) if !first.last => sip_wire::Span {
                    start: first.span.start,
                    end: second.span.start,
                },
                _ => first.header.field_span,
            };
            self.edits.replace(span, b"");
        }
        if !lines.is_empty() {
            self.edits.replace(
                sip_wire::Span {
                    start: message.head_end(),
                    end: message.head_end(),
                },
                lines,
            );
        }
        self.edits.write(message, out);
    }

    /// Passes a 1xx or 2xx upstream at once (RFC 3261 section 16.7 item 5).
    pub(super) fn pass_response(
        &mut self,
        now: Now,
        server: Handle,
        code: u16,
        message: &Message<'_>,
        sink: &mut impl Sink,
    ) {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.edit_response(message, b"", &mut out);
        self.respond(now, server, code, &out, sink);
        self.out = out;
    }

    /// A branch was answered 2xx: the others of an INVITE are cancelled, the context ends.
    pub(super) fn fork_succeeded(
        &mut self,
        now: Now,
        server: Handle,
        client: Handle,
        sink: &mut impl Sink,
    ) {
        let Some(mut fork) = self
            .servers
            .get_mut(server)
            .and_then(|server| server.fork.take())
        else {
            return;
        };
        fork.active.retain(|active| *active != client);
        self.counters.calls_answered += u64::from(is_invite(&fork.request));
        self.cancel_branches(
            now,
            &mut fork,
            Some(b"SIP;cause=200;text=\"Call completed elsewhere\""),
            sink,
        );
    }

    /// The caller has cancelled.
    pub(super) fn cancel_fork(
        &mut self,
        now: Now,
        server: Handle,
        reason: Option<&[u8]>,
        sink: &mut impl Sink,
    ) {
        let Some(mut fork) = self
            .servers
            .get_mut(server)
            .and_then(|server| server.fork.take())
        else {
            return;
        };
        if !fork.is_cancelled {
            fork.is_cancelled = true;
            self.cancel_branches(now, &mut fork, reason, sink);
        }
        self.put_back(now, server, fork, sink);
    }

    /// The server shuts down: an INVITE without a final response gets a 503 now, its branches are cancelled.
    pub(super) fn end_fork(&mut self, now: Now, server: Handle, sink: &mut impl Sink) {
        let Some(mut fork) = self
            .servers
            .get_mut(server)
            .and_then(|server| server.fork.take())
        else {
            return;
        };
        self.cancel_branches(now, &mut fork, None, sink);
        let mut index = std::mem::take(&mut self.index_stored);
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        if let Some(request) = reread(&fork.request, &fork.flow, &mut index) {
            self.write_answer(
                &request,
                503,
                "Server Is Shutting Down",
                b"Retry-After: 5\r\n",
                &mut out,
            );
            self.respond(now, server, 503, &out, sink);
        }
        (self.index_stored, self.out) = (index, out);
    }

    /// Cancels what is active; branches that only wait for an address end at once.
    fn cancel_branches(
        &mut self,
        now: Now,
        fork: &mut Fork,
        reason: Option<&[u8]>,
        sink: &mut impl Sink,
    ) {
        let mut lines = Vec::new();
        if let Some(reason) = reason {
            lines.extend_from_slice(b"Reason: ");
            lines.extend_from_slice(reason);
            lines.extend_from_slice(b"\r\n");
        }
        let is_invite = is_invite(&fork.request);
        let active = std::mem::take(&mut fork.active);
        for client in active {
            if !is_invite || self.cancel_client(now, client, &lines, sink) {
                fork.active.push(client);
            }
        }
    }
}

impl Fork {
    fn best_code(&self) -> u16 {
        self.best.as_ref().map_or(0, |best| best.code)
    }

    /// Keeps the better response (RFC 3261 section 16.7 item 6) and gathers challenges.
    fn consider(&mut self, outcome: Outcome<'_>) {
        let (code, reason) = match outcome {
            Outcome::Response(code, message) => {
                if matches!(code, 401 | 407) {
                    self.gather_challenges(&message);
                }
                (code, "")
            }
            Outcome::Local(code, reason) => (code, reason),
        };
        if self
            .best
            .as_ref()
            .is_some_and(|best| rank(best.code) <= rank(code))
        {
            return;
        }
        let message = match outcome {
            Outcome::Response(_, message) => Some(message.bytes().into()),
            Outcome::Local(..) => None,
        };
        self.best = Some(Best {
            code,
            message,
            reason,
        });
    }

    /// The first challenged branch's header fields leave with its response; those of the others are added.
    fn gather_challenges(&mut self, message: &Message<'_>) {
        if self
            .best
            .as_ref()
            .is_none_or(|best| !matches!(best.code, 401 | 407))
        {
            return;
        }
        for name in [Name::WwwAuthenticate, Name::ProxyAuthenticate] {
            for header in message.headers(name) {
                let field = &message.bytes()[header.field_span.range()];
                if self.challenges.len() + field.len() <= CHALLENGES_LEN_MAX {
                    self.challenges.extend_from_slice(field);
                }
            }
        }
    }
}

/// Smaller is better: 6xx first, then the lowest class, and in it what the caller can do most about; 408 last of the 4xx.
fn rank(code: u16) -> u32 {
    match code {
        600.. => u32::from(code) - 600,
        401 | 407 => 4000,
        415 | 420 | 484 => 4001,
        408 => 4900,
        503 => 5900,
        _ => u32::from(code) * 10,
    }
}

fn is_invite(request: &[u8]) -> bool {
    request.starts_with(b"INVITE ")
}

/// Indexes a stored request again; it was well formed when it came.
pub(super) fn reread<'a>(
    stored: &'a [u8],
    flow: &Flow,
    index: &'a mut Index,
) -> Option<Request<'a>> {
    let limits = sip_wire::Limits {
        message_bytes_max: usize::MAX,
        head_bytes_max: usize::MAX,
        ..sip_wire::Limits::default()
    };
    index.parse(stored, Framing::Stream, &limits).ok()?;
    let message = index.message(stored);
    Request::read(message, message.method()?, flow).ok()
}

fn datagram_peer(to: &Destination) -> Option<std::net::SocketAddr> {
    match to {
        Destination::Flow(flow) if flow.transport == Transport::Udp => Some(flow.peer),
        Destination::Address {
            transport: Transport::Udp,
            peer,
        } => Some(*peer),
        _ => None,
    }
}

fn is_looped_top(request: &Request<'_>, loop_hash: u64) -> bool {
    Branch::parse(request.via.branch()).is_some_and(|branch| branch.loop_hash == loop_hash)
}
