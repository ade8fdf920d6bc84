use super::fork::Fork;
use super::request::{Reply, Request};
use super::{Came, Core, NEVER, Timer};
use crate::branch::MAGIC;
use crate::slab::Handle;
use crate::transaction::{InviteServer, NonInviteServer, ServerEffect, ServerInput};
use crate::{Event, Mono, Now, Sink, Timers};
use hashbrown::HashMap;
use sip_wire::Method;
use std::hash::{BuildHasherDefault, Hasher};

/// One server transaction (RFC 3261 section 17.2): its machine, and what the machine's effects need.
pub(super) struct ServerTransaction {
    machine: Machine,
    key: u128,
    /// When the wheel brings this transaction up next.
    armed: Mono,
    pub(super) reply: Reply,
    /// The last response, while it may have to be sent again.
    last: Option<Box<[u8]>>,
    /// The response context, until the final response.
    pub(super) fork: Option<Box<Fork>>,
}

enum Machine {
    Invite(InviteServer),
    NonInvite(NonInviteServer),
}

impl Machine {
    fn handle(&mut self, now: Mono, input: ServerInput, timers: &Timers) -> ServerEffect {
        match self {
            Self::Invite(machine) => machine.handle(now, input, timers),
            Self::NonInvite(machine) => machine.handle(now, input, timers),
        }
    }

    fn next_deadline(&self) -> Option<Mono> {
        match self {
            Self::Invite(machine) => machine.next_deadline(),
            Self::NonInvite(machine) => machine.next_deadline(),
        }
    }

    fn is_terminated(&self) -> bool {
        match self {
            Self::Invite(machine) => machine.is_terminated(),
            Self::NonInvite(machine) => machine.is_terminated(),
        }
    }
}

/// Transactions by the keyed hash of what names them; the hash needs no hashing again.
pub(super) type KeyMap = HashMap<u128, Handle, BuildHasherDefault<Truncate>>;

/// Takes the low half of a key that is a keyed hash already.
#[derive(Default)]
pub(super) struct Truncate(u64);

impl Hasher for Truncate {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, n: u128) {
        self.0 = n as u64;
    }
}

impl Core {
    /// What a request's transaction is found by (RFC 3261 section 17.2.3): ACK and CANCEL get the key of their INVITE.
    pub(super) fn server_key(&self, request: &Request<'_>) -> u128 {
        let method: &[u8] = match request.method {
            Method::Ack | Method::Cancel => b"INVITE",
            _ => request.message.method_text(),
        };
        let via = &request.via;
        let branch = via.branch();
        let port = via.port.unwrap_or(0).to_be_bytes();
        if branch.len() > MAGIC.len() && branch.starts_with(MAGIC) {
            return self.keyed.hash128(&[branch, via.host, &port, method]);
        }
        let number = request.cseq.number.to_be_bytes();
        self.keyed.hash128(&[
            b"RFC 2543",
            request.uri.text,
            request.sender_tag(),
            request.call_id,
            &number,
            via.host,
            &port,
            branch,
            method,
        ])
    }

    /// Makes the server transaction of a request; `None` when there are too many.
    pub(super) fn open_server(
        &mut self,
        now: Now,
        request: &Request<'_>,
        key: u128,
        sink: &mut impl Sink,
    ) -> Option<Handle> {
        if self.servers.len() >= self.settings.transactions_max {
            sink.event(&Event::TableFull {
                table: "server transactions",
            });
            return None;
        }
        let reliable = request.flow.transport.is_reliable();
        let timers = &self.settings.timers;
        let machine = if request.method == Method::Invite {
            Machine::Invite(InviteServer::new(now.mono, reliable, timers))
        } else {
            Machine::NonInvite(NonInviteServer::new(now.mono, reliable, timers))
        };
        let transaction = ServerTransaction {
            machine,
            key,
            armed: NEVER,
            reply: request.reply,
            last: None,
            fork: None,
        };
        let handle = self.servers.insert(self.random.draw() as u32, transaction);
        self.server_by_key.insert(key, handle);
        Some(handle)
    }

    /// The request came again.
    pub(super) fn repeated(&mut self, now: Now, handle: Handle, sink: &mut impl Sink) {
        self.counters.retransmissions_received += 1;
        self.server_input(now, handle, ServerInput::Request, None, sink);
    }

    /// Sends a response through its transaction.
    pub(super) fn respond(
        &mut self,
        now: Now,
        handle: Handle,
        code: u16,
        message: &[u8],
        sink: &mut impl Sink,
    ) {
        let input = match code {
            ..200 => ServerInput::Provisional,
            200..300 => ServerInput::Success,
            _ => ServerInput::Failure,
        };
        self.server_input(now, handle, input, Some(message), sink);
    }

    /// The only place that drives a server machine. Returns whether an ACK is to be passed on.
    fn server_input(
        &mut self,
        now: Now,
        handle: Handle,
        input: ServerInput,
        message: Option<&[u8]>,
        sink: &mut impl Sink,
    ) -> bool {
        let Some(transaction) = self.servers.get_mut(handle) else {
            return false;
        };
        let effect = transaction
            .machine
            .handle(now.mono, input, &self.settings.timers);
        let reply = transaction.reply;
        match effect {
            ServerEffect::Send => {
                let Some(message) = message else { return false };
                // Over a reliable transport nothing is repeated, and a 2xx to INVITE is repeated by the callee, not by us.
                let is_invite = matches!(transaction.machine, Machine::Invite(_));
                let is_repeatable = !is_invite || input != ServerInput::Success;
                let is_kept = is_repeatable && !reply.flow.transport.is_reliable();
                transaction.last = is_kept.then(|| message.into());
                self.send_reply(&reply, message, sink);
            }
            ServerEffect::Resend => {
                if let Some(last) = transaction.last.take() {
                    self.counters.retransmissions_sent += 1;
                    self.send_reply(&reply, &last, sink);
                    if let Some(transaction) = self.servers.get_mut(handle) {
                        transaction.last = Some(last);
                    }
                }
            }
            ServerEffect::TimedOut => self.counters.timeouts += 1,
            ServerEffect::Nothing | ServerEffect::PassAck => {}
        }
        self.settle_server(handle);
        effect == ServerEffect::PassAck
    }

    /// Frees the transaction when it is over, otherwise sees to its next deadline.
    fn settle_server(&mut self, handle: Handle) {
        let Some(transaction) = self.servers.get_mut(handle) else {
            return;
        };
        if transaction.machine.is_terminated() {
            self.close_server(handle);
        } else if let Some(deadline) = transaction.machine.next_deadline()
            && deadline < transaction.armed
        {
            transaction.armed = deadline;
            self.wheel.arm(deadline, Timer::Server(handle));
        }
    }

    /// Frees a transaction.
    pub(super) fn close_server(&mut self, handle: Handle) {
        if let Some(transaction) = self.servers.remove(handle) {
            self.server_by_key.remove(&transaction.key);
        }
    }

    /// The wheel has brought a transaction up, perhaps early.
    pub(super) fn server_due(&mut self, now: Now, handle: Handle, sink: &mut impl Sink) {
        let Some(transaction) = self.servers.get_mut(handle) else {
            return;
        };
        if now.mono < transaction.armed {
            return;
        }
        transaction.armed = NEVER;
        match transaction.machine.next_deadline() {
            Some(deadline) if deadline <= now.mono => {
                self.server_input(now, handle, ServerInput::Deadline, None, sink);
            }
            _ => self.settle_server(handle),
        }
    }

    /// ACK: ends a transaction that we answered 300 to 699, or goes on to who answered 2xx. Never answered, never challenged.
    pub(super) fn ack(&mut self, now: Now, request: &Request<'_>, sink: &mut impl Sink) {
        if let Some(&handle) = self.server_by_key.get(&self.server_key(request)) {
            if !self.server_input(now, handle, ServerInput::Ack, None, sink) {
                return;
            }
        } else if request.recipient_tag()
            == Some(&self.local_tag(request.call_id, request.sender_tag()))
        {
            return; // To an answer that we gave without a transaction.
        }
        self.forward_ack(now, request, sink);
    }

    /// CANCEL (RFC 3261 section 16.10). The INVITE may be another worker's when it came by another connection: they are asked in turn.
    pub(super) fn cancel(
        &mut self,
        now: Now,
        request: &Request<'_>,
        came: Came,
        sink: &mut impl Sink,
    ) {
        if let Some(&handle) = self.server_by_key.get(&self.server_key(request)) {
            self.answer(request, 200, "", b"", sink);
            let reason = request
                .message
                .header(sip_wire::Name::Reason)
                .map(|header| header.value);
            self.cancel_fork(now, handle, reason, sink);
            return;
        }
        let left = match came {
            Came::Fresh => self.workers - 1,
            Came::Handed { left } => left,
        };
        if left == 0 {
            self.answer(request, 481, "", b"", sink);
            return;
        }
        self.hand_over(
            (self.worker + 1) % self.workers,
            left - 1,
            request.message,
            &request.flow,
            sink,
        );
    }

    /// Gives a message to another worker, with the number of workers still to be asked after that one.
    pub(super) fn hand_over(
        &mut self,
        worker: u8,
        left: u8,
        message: sip_wire::Message<'_>,
        flow: &location::Flow,
        sink: &mut impl Sink,
    ) {
        self.out.clear();
        self.out.push(left);
        self.out.extend_from_slice(message.bytes());
        sink.hand_over(worker, flow, &self.out);
    }
}
