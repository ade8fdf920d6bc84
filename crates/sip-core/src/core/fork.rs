use super::Core;
use super::best::{Best, Outcome};
use super::forward::{Forwarding, Outgoing, Place};
use super::request::Request;
use super::route::{Hop, Target, Targets};
use crate::branch::Branch;
use crate::slab::Handle;
use crate::{Destination, Now, ResolveId, Sink};
use location::{Flow, Transport};
use sip_wire::{Framing, Index, Limits, Message};
use smallvec::SmallVec;

/// The response context of a proxied request (RFC 3261 section 16.7): lives in its server transaction until the final response.
pub(super) struct Fork {
    /// The request as it came, to write later branches and responses of our own from.
    pub(super) request: Box<[u8]>,
    pub(super) flow: Flow,
    pub(super) forwarding: Forwarding,
    pub(super) targets: Targets,
    /// The first target that was not tried yet.
    pub(super) next: usize,
    /// Max-Breadth of the request.
    pub(super) breadth: u32,
    /// Client transactions without a final response.
    pub(super) active: SmallVec<[Handle; 2]>,
    pub(super) best: Option<Best>,
    /// Challenges gathered from 401 and 407 (RFC 3261 section 16.7 item 7), whole header lines.
    pub(super) challenges: Vec<u8>,
    pub(super) is_cancelled: bool,
}

impl Core {
    /// Starts the branches of the next preference (RFC 3261 section 16.6), as many at once as Max-Breadth lets.
    pub(super) fn launch(
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
            let target = Target {
                breadth: Some(breadth),
                ..fork.targets[n].clone()
            };
            self.start_branch(now, server, fork, request, target, sink);
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
                self.send_branch(now, client, fork, request, &target, to, sink);
            }
            Hop::Name(name) => {
                sink.resolve(ResolveId(client.to_u64()), name);
                self.await_addresses(client, target);
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
        sink: &mut impl Sink,
    ) {
        let Some(mut message) =
            self.write_branch(&fork.forwarding, request, target, client, &to, sink)
        else {
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
            if let Some(larger) =
                self.write_branch(&fork.forwarding, request, target, client, &stream, sink)
            {
                self.fall_back(client, target, to);
                (to, message) = (stream, larger);
            }
        }
        self.start_client(now, client, request.method, to, message, sink);
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn write_branch(
        &mut self,
        forwarding: &Forwarding,
        request: &Request<'_>,
        target: &Target,
        client: Handle,
        to: &Destination,
        sink: &mut impl Sink,
    ) -> Option<Box<[u8]>> {
        let settings = self.settings.clone();
        let advertise = settings.advertise.as_deref();
        let transport = to.transport();
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
        let to = match *to {
            Destination::Flow(flow) => flow,
            Destination::Address { transport, peer } => Flow {
                transport,
                listener: u16::MAX,
                connection: 0,
                local: outbound.address,
                peer,
            },
        };
        let outgoing = Outgoing {
            request,
            forwarding,
            target,
            branch,
            to,
            is_our_realm: &|realm| self.ours.is_realm(realm, &self.shared.subscribers),
            outbound,
            inbound,
        };
        outgoing.write(&self.keyed, &mut self.edits, &mut self.lines, &mut out);
        let message = Some(out.as_slice().into());
        self.out = out;
        message
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
        sink: &mut impl Sink,
    ) {
        let Some(mut fork) = self.take_fork(server) else {
            self.clients.remove(client);
            return;
        };
        let stored = std::mem::take(&mut fork.request);
        let mut index = std::mem::take(&mut self.index_stored);
        match reread(&stored, &fork.flow, &mut index) {
            Some(request) => self.send_branch(now, client, &mut fork, &request, target, to, sink),
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
        let Some(mut fork) = self.take_fork(server) else {
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

    /// Takes the response context out of its transaction, so that both can be worked on; [`Self::put_back`] is the other half.
    fn take_fork(&mut self, server: Handle) -> Option<Box<Fork>> {
        self.servers.get_mut(server)?.fork.take()
    }

    /// Gives the response context back to its transaction, or goes on with it: next preference, final response.
    pub(super) fn put_back(
        &mut self,
        now: Now,
        server: Handle,
        mut fork: Box<Fork>,
        sink: &mut impl Sink,
    ) {
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

    /// A branch was answered 2xx: the others of an INVITE are cancelled, the context ends.
    pub(super) fn fork_succeeded(
        &mut self,
        now: Now,
        server: Handle,
        client: Handle,
        sink: &mut impl Sink,
    ) {
        let Some(mut fork) = self.take_fork(server) else {
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
        let Some(mut fork) = self.take_fork(server) else {
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
        let Some(mut fork) = self.take_fork(server) else {
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

pub(super) fn is_invite(request: &[u8]) -> bool {
    request.starts_with(b"INVITE ")
}

/// Indexes a stored message again; it kept to the limits when it came.
pub(super) fn reindex<'a>(stored: &'a [u8], index: &'a mut Index) -> Option<Message<'a>> {
    const NONE: Limits = Limits {
        message_bytes_max: usize::MAX,
        head_bytes_max: usize::MAX,
        header_count_max: usize::MAX,
        header_bytes_max: usize::MAX,
        via_count_max: usize::MAX,
    };
    // As a datagram: all of it, whether or not it has a Content-Length.
    index.parse(stored, Framing::Datagram, &NONE).ok()?;
    Some(index.message(stored))
}

/// Reads a stored request again; it was well formed when it came.
pub(super) fn reread<'a>(
    stored: &'a [u8],
    flow: &Flow,
    index: &'a mut Index,
) -> Option<Request<'a>> {
    let message = reindex(stored, index)?;
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
