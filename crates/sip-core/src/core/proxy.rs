use super::Core;
use super::fork::Fork;
use super::forward::Forwarding;
use super::request::Request;
use super::route::{Hop, Passage, Routed, Target, Targets};
use crate::branch::Branch;
use crate::ours::Host;
use crate::slab::Handle;
use crate::{Destination, Now, ResolveId, Sink};
use sip_wire::{Method, Name, Scheme};
use smallvec::SmallVec;

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
        let Some(is_ours) = self.may_pass(now, request, &routed, sink) else {
            return;
        };
        let forwarding = Forwarding::new(request, &routed, is_ours, loop_hash);
        match self.targets(now, request, &routed, sink) {
            Ok(targets) => self.open_fork(now, request, key, forwarding, targets, sink),
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
        // With our Via it would have more than we take in a response.
        let has_all_vias = request.message.via_count() >= self.settings.limits.via_count_max;
        if request.max_forwards() == Some(0) || has_all_vias {
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
        let to_tag = request.recipient_tag().unwrap_or_default();
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
        key: u128,
        forwarding: Forwarding,
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
        let mut fork = Box::new(Fork {
            request: request.message.bytes().into(),
            flow: request.flow,
            forwarding,
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

    /// ACK to a 2xx: goes on without a transaction (RFC 3261 section 16.11, 17.1.1.3).
    pub(super) fn forward_ack(&mut self, now: Now, request: &Request<'_>, sink: &mut impl Sink) {
        let routed = self.route(request);
        let to_us = routed.host != Host::Foreign && routed.next_route.is_none();
        let is_stranger = self.person(&request.from_uri, request) == Host::Foreign;
        let may_leave = routed.passage != Passage::Closed || !self.settings.auth && !is_stranger;
        if !(to_us || may_leave) || request.max_forwards() == Some(0) {
            return;
        }
        let Ok(targets) = self.targets(now, request, &routed, sink) else {
            return;
        };
        let forwarding = Forwarding::new(request, &routed, false, self.loop_hash(request));
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
        if let Some(message) = self.write_branch(forwarding, request, target, handle, to, sink) {
            self.counters.requests_sent += 1;
            sink.send(to, None, &message);
        }
    }
}

fn is_looped_top(request: &Request<'_>, loop_hash: u64) -> bool {
    Branch::parse(request.via.branch()).is_some_and(|branch| branch.loop_hash == loop_hash)
}

/// RFC 5393 section 5.3.3.
const BREADTH_DEFAULT: u32 = 60;
