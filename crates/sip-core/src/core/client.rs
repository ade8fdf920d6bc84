use super::best::Outcome;
use super::fork::{reindex, reread};
use super::forward::{Forwarding, write_hop_by_hop};
use super::request::Request;
use super::route::Target;
use super::{Came, Core, NEVER, Timer};
use crate::branch::Branch;
use crate::slab::Handle;
use crate::transaction::{ClientEffect, ClientInput, InviteClient, NonInviteClient};
use crate::{Destination, Event, Mono, Now, Origin, Sink, Stage, Timers};
use location::{Flow, Transport};
use sip_wire::{Message, Method, Name};

/// One client transaction (RFC 3261 section 17.1): a branch of a forwarded request.
pub(super) struct ClientTransaction {
    machine: Machine,
    /// When the wheel brings it up next.
    armed: Mono,
    server: Handle,
    to: Destination,
    /// The request as sent, while it may be sent again, cancelled or acknowledged.
    request: Option<Box<[u8]>>,
    /// Timer C; after a CANCEL, when to stop waiting for its effect (RFC 3261 section 9.1).
    give_up: Mono,
    progress: Progress,
    /// What few branches have.
    rare: Option<Box<Rare>>,
}

enum Machine {
    /// Waits for addresses.
    Resolving,
    Invite(InviteClient),
    NonInvite(NonInviteClient),
}

/// How far an INVITE is, as far as CANCEL goes (RFC 3261 section 9.1).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// No provisional response yet: must not be cancelled.
    Silent,
    /// To be cancelled with the first provisional response.
    SilentUnwanted,
    Proceeding,
    Cancelled,
    Answered,
}

#[derive(Default)]
struct Rare {
    target: Option<Target>,
    /// Further addresses to try.
    others: Vec<Destination>,
    /// Header lines for a CANCEL that has to wait.
    cancel_lines: Vec<u8>,
    cancel: Option<Cancel>,
    ack: Option<(Box<[u8]>, Flow, Forwarding)>,
}

/// A CANCEL on its way.
struct Cancel {
    machine: NonInviteClient,
    message: Box<[u8]>,
}

impl Machine {
    fn handle(&mut self, now: Mono, input: ClientInput, timers: &Timers) -> ClientEffect {
        match self {
            Self::Resolving => ClientEffect::Nothing,
            Self::Invite(machine) => machine.handle(now, input, timers),
            Self::NonInvite(machine) => machine.handle(now, input, timers),
        }
    }

    fn next_deadline(&self) -> Option<Mono> {
        match self {
            Self::Resolving => None,
            Self::Invite(machine) => machine.next_deadline(),
            Self::NonInvite(machine) => machine.next_deadline(),
        }
    }

    fn is_terminated(&self) -> bool {
        match self {
            Self::Resolving => false,
            Self::Invite(machine) => machine.is_terminated(),
            Self::NonInvite(machine) => machine.is_terminated(),
        }
    }
}

impl ClientTransaction {
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn cancel(&mut self) -> Option<&mut Cancel> {
        self.rare.as_mut()?.cancel.as_mut()
    }

    fn next_deadline(&self) -> Mono {
        let cancel = self
            .rare
            .as_ref()
            .and_then(|rare| rare.cancel.as_ref())
            .and_then(|cancel| cancel.machine.next_deadline());
        self.machine
            .next_deadline()
            .unwrap_or(NEVER)
            .min(cancel.unwrap_or(NEVER))
            .min(self.give_up)
    }
}

impl Core {
    pub(super) fn open_client(
        &mut self,
        server: Handle,
        method: Method,
        sink: &mut impl Sink,
    ) -> Option<Handle> {
        if self.clients.len() >= self.settings.transactions_max {
            sink.event(&Event::TableFull {
                table: "client transactions",
            });
            return None;
        }
        let nowhere = Destination::Address {
            transport: Transport::Udp,
            peer: ([0, 0, 0, 0], 0).into(),
        };
        let progress = if method == Method::Invite {
            Progress::Silent
        } else {
            Progress::Answered
        };
        let client = ClientTransaction {
            machine: Machine::Resolving,
            armed: NEVER,
            server,
            to: nowhere,
            request: None,
            give_up: NEVER,
            progress,
            rare: None,
        };
        Some(self.clients.insert(self.random.draw() as u32, client))
    }

    /// The transaction waits for the resolver.
    pub(super) fn await_addresses(&mut self, handle: Handle, target: Target) {
        if let Some(client) = self.clients.get_mut(handle) {
            client.rare().target = Some(target);
        }
    }

    pub(super) fn await_addresses_for_ack(
        &mut self,
        handle: Handle,
        request: &Request<'_>,
        forwarding: Forwarding,
        target: Target,
    ) {
        if let Some(client) = self.clients.get_mut(handle) {
            let rare = client.rare();
            rare.target = Some(target);
            rare.ack = Some((request.message.bytes().into(), request.flow, forwarding));
        }
    }

    /// Another destination, should the first fail.
    pub(super) fn fall_back(&mut self, handle: Handle, target: &Target, to: Destination) {
        if let Some(client) = self.clients.get_mut(handle) {
            let rare = client.rare();
            rare.target = Some(Target {
                may_use_tcp: false,
                ..target.clone()
            });
            rare.others.insert(0, to);
        }
    }

    /// Sends the request and starts its machine.
    pub(super) fn start_client(
        &mut self,
        now: Now,
        handle: Handle,
        method: Method,
        to: Destination,
        message: Box<[u8]>,
        sink: &mut impl Sink,
    ) {
        let timers = self.settings.timers;
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        let reliable = to.transport().is_reliable();
        client.machine = match method {
            Method::Invite => Machine::Invite(InviteClient::new(now.mono, reliable, &timers)),
            _ => Machine::NonInvite(NonInviteClient::new(now.mono, reliable, &timers)),
        };
        if method == Method::Invite {
            client.give_up = now.mono.after_ms(timers.c_ms);
        }
        client.to = to;
        self.counters.requests_sent += 1;
        sink.send(&to, Some(Origin(handle.to_u64())), &message);
        // A non-INVITE over a reliable transport is never sent again, unless to another address: from the stored original then.
        client.request = (method == Method::Invite || !reliable).then_some(message);
        self.settle_client(handle);
    }

    /// The resolver has answered.
    pub(super) fn client_resolved(
        &mut self,
        now: Now,
        handle: Handle,
        targets: &[crate::Target],
        sink: &mut impl Sink,
    ) {
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        if !matches!(client.machine, Machine::Resolving) {
            return;
        }
        let server = client.server;
        let Some(rare) = client.rare.as_mut() else {
            return;
        };
        let mut addresses = targets.iter().map(|target| Destination::Address {
            transport: target.transport,
            peer: target.peer,
        });
        let Some(first) = addresses.next() else {
            self.clients.remove(handle);
            return self.branch_ended(
                now,
                server,
                handle,
                Outcome::Local(503, "Next Hop Not Found"),
                sink,
            );
        };
        rare.others = addresses.collect();
        let Some(target) = rare.target.clone() else {
            return;
        };
        match rare.ack.take() {
            Some((message, flow, forwarding)) => {
                self.clients.remove(handle);
                let mut index = std::mem::take(&mut self.index_stored);
                if let Some(request) = reread(&message, &flow, &mut index) {
                    self.send_ack(&request, &forwarding, &target, &first, sink);
                }
                self.index_stored = index;
            }
            None => self.send_stored(now, server, handle, &target, first, sink),
        }
    }

    /// A response (RFC 3261 section 16.7): to its transaction, perhaps another worker's. One without is dropped (RFC 6026 section 7.3).
    pub(super) fn response(
        &mut self,
        now: Now,
        flow: &Flow,
        message: Message<'_>,
        came: Came,
        sink: &mut impl Sink,
    ) {
        self.counters.responses_received += u64::from(came == Came::Fresh);
        let (Ok(essentials), Some(code)) = (message.essentials(), message.code()) else {
            self.counters.malformed += 1;
            return sink.event(&Event::Malformed {
                flow,
                why: "malformed response",
                status: 0,
            });
        };
        sink.stage(Stage::Decide);
        let Some(branch) = Branch::parse(essentials.via.branch()) else {
            return;
        };
        if branch.worker != self.worker {
            if came == Came::Fresh && branch.worker < self.workers {
                self.hand_over(branch.worker, 0, message, flow, sink);
            }
            return;
        }
        let Some(client) = self.clients.get_mut(branch.handle) else {
            return;
        };
        let is_invite = matches!(client.machine, Machine::Invite(_));
        let input = match code {
            ..200 => ClientInput::Provisional,
            200..300 => ClientInput::Success,
            _ => ClientInput::Failure,
        };
        if is_invite && essentials.cseq.method == Method::Cancel {
            if let Some(cancel) = client.cancel() {
                cancel
                    .machine
                    .handle(now.mono, input, &self.settings.timers);
            }
            return self.settle_client(branch.handle);
        }
        if is_invite == (essentials.cseq.method == Method::Invite) {
            self.client_input(now, branch.handle, input, Some((code, message)), sink);
        }
    }

    /// The only place that drives a client machine.
    fn client_input(
        &mut self,
        now: Now,
        handle: Handle,
        input: ClientInput,
        response: Option<(u16, Message<'_>)>,
        sink: &mut impl Sink,
    ) {
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        let effect = client
            .machine
            .handle(now.mono, input, &self.settings.timers);
        match (effect, response) {
            (ClientEffect::Resend, _) => {
                if let Some(message) = &client.request {
                    self.counters.retransmissions_sent += 1;
                    self.counters.requests_sent += 1;
                    sink.send(&client.to, None, message);
                }
            }
            (ClientEffect::Pass, Some((code @ ..200, message))) => {
                self.provisional(now, handle, code, &message, sink)
            }
            (ClientEffect::Pass, Some((code @ 200..300, message))) => {
                self.success(now, handle, code, &message, sink)
            }
            (ClientEffect::PassAndAck | ClientEffect::Pass, Some((code, message))) => {
                if effect == ClientEffect::PassAndAck {
                    self.acknowledge(handle, &message, sink);
                }
                self.failure(now, handle, Outcome::Response(code, message), sink);
            }
            (ClientEffect::Ack, Some((_, message))) => self.acknowledge(handle, &message, sink),
            (ClientEffect::TimedOut, _) => {
                self.counters.timeouts += 1;
                self.failure(now, handle, Outcome::Local(408, ""), sink);
            }
            (ClientEffect::TransportFailed, _) => self.failure(
                now,
                handle,
                Outcome::Local(503, "Next Hop Not Reachable"),
                sink,
            ),
            _ => {}
        }
        self.settle_client(handle);
    }

    fn provisional(
        &mut self,
        now: Now,
        handle: Handle,
        code: u16,
        message: &Message<'_>,
        sink: &mut impl Sink,
    ) {
        let timer_c_ms = self.settings.timers.c_ms;
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        let server = client.server;
        // RFC 4320 section 4.2: nothing but 100 and finals to what is not an INVITE.
        let is_invite = matches!(client.machine, Machine::Invite(_));
        // RFC 3261 section 16.7 item 2: every 101 to 199 shows life.
        if code > 100 && matches!(client.progress, Progress::Silent | Progress::Proceeding) {
            client.give_up = now.mono.after_ms(timer_c_ms);
        }
        match client.progress {
            Progress::Silent => client.progress = Progress::Proceeding,
            Progress::SilentUnwanted => {
                let lines = std::mem::take(&mut client.rare().cancel_lines);
                client.progress = Progress::Proceeding;
                self.cancel_client(now, handle, &lines, sink);
            }
            Progress::Proceeding | Progress::Cancelled | Progress::Answered => {}
        }
        let is_open = self
            .servers
            .get(server)
            .is_some_and(|server| server.fork.is_some());
        if code > 100 && is_invite && is_open {
            self.pass_response(now, server, code, message, sink);
        }
    }

    fn success(
        &mut self,
        now: Now,
        handle: Handle,
        code: u16,
        message: &Message<'_>,
        sink: &mut impl Sink,
    ) {
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        let server = client.server;
        client.give_up = NEVER;
        client.progress = Progress::Answered;
        client.request = None;
        client.rare = None;
        let is_invite = matches!(client.machine, Machine::Invite(_));
        let is_open = self
            .servers
            .get(server)
            .is_some_and(|server| server.fork.is_some());
        // Every 2xx to INVITE goes on, the late ones of other branches too.
        if is_invite || is_open {
            self.pass_response(now, server, code, message, sink);
        }
        self.fork_succeeded(now, server, handle, sink);
    }

    /// A branch has failed: the next address is tried, otherwise the response context decides.
    fn failure(&mut self, now: Now, handle: Handle, outcome: Outcome<'_>, sink: &mut impl Sink) {
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        client.give_up = NEVER;
        let server = client.server;
        let was_cancelled = matches!(
            client.progress,
            Progress::Cancelled | Progress::SilentUnwanted
        );
        match client.machine {
            Machine::Invite(_) => client.progress = Progress::Answered,
            _ => client.request = None,
        }
        let may_retry = matches!(
            outcome,
            Outcome::Local(408 | 503, _) | Outcome::Response(503, _)
        ) && !was_cancelled;
        if may_retry
            && let Some(rare) = client.rare.as_mut()
            && !rare.others.is_empty()
            && let Some(target) = rare.target.clone()
        {
            let (to, others) = (rare.others.remove(0), std::mem::take(&mut rare.others));
            return self.retry(now, server, handle, target, to, others, sink);
        }
        self.branch_ended(now, server, handle, outcome, sink);
    }

    /// The same branch to another address is a new client transaction (RFC 3263 section 4.3).
    #[allow(clippy::too_many_arguments)]
    fn retry(
        &mut self,
        now: Now,
        server: Handle,
        failed: Handle,
        target: Target,
        to: Destination,
        others: Vec<Destination>,
        sink: &mut impl Sink,
    ) {
        let is_invite = self
            .clients
            .get(failed)
            .is_some_and(|client| matches!(client.machine, Machine::Invite(_)));
        let method = if is_invite {
            Method::Invite
        } else {
            Method::Other
        };
        let Some(next) = self.open_client(server, method, sink) else {
            return self.branch_ended(
                now,
                server,
                failed,
                Outcome::Local(503, "Too Many Transactions"),
                sink,
            );
        };
        if let Some(client) = self.clients.get_mut(next) {
            let rare = client.rare();
            (rare.target, rare.others) = (Some(target.clone()), others);
        }
        self.replace_branch(server, failed, next);
        self.send_stored(now, server, next, &target, to, sink);
    }

    /// Cancels an INVITE branch; `false`: it ends at once, since nothing was sent yet.
    pub(super) fn cancel_client(
        &mut self,
        now: Now,
        handle: Handle,
        lines: &[u8],
        sink: &mut impl Sink,
    ) -> bool {
        let Some(client) = self.clients.get_mut(handle) else {
            return false;
        };
        if matches!(client.machine, Machine::Resolving) {
            self.clients.remove(handle);
            return false;
        }
        match client.progress {
            Progress::Silent => {
                client.progress = Progress::SilentUnwanted;
                client.rare().cancel_lines = lines.to_vec();
            }
            Progress::Proceeding => {
                client.progress = Progress::Cancelled;
                client.give_up = now.mono.after_ms(self.settings.timers.t1_64_ms());
                self.send_cancel(now, handle, lines, sink);
            }
            Progress::SilentUnwanted | Progress::Cancelled | Progress::Answered => {}
        }
        true
    }

    fn send_cancel(&mut self, now: Now, handle: Handle, lines: &[u8], sink: &mut impl Sink) {
        let mut index = std::mem::take(&mut self.index_stored);
        let timers = self.settings.timers;
        if let Some(client) = self.clients.get_mut(handle)
            && let Some(sent) = &client.request
            && let Some(sent) = reindex(sent, &mut index)
        {
            let mut message = Vec::with_capacity(512);
            let to = sent.header(Name::To).map_or(&b""[..], |to| to.value);
            write_hop_by_hop("CANCEL", &sent, to, lines, &mut message);
            let reliable = client.to.transport().is_reliable();
            self.counters.requests_sent += 1;
            sink.send(&client.to, None, &message);
            let machine = NonInviteClient::new(now.mono, reliable, &timers);
            client.rare().cancel = Some(Cancel {
                machine,
                message: message.into(),
            });
        }
        self.index_stored = index;
        self.settle_client(handle);
    }

    /// ACK to a 300 to 699 (RFC 3261 section 17.1.1.3).
    fn acknowledge(&mut self, handle: Handle, response: &Message<'_>, sink: &mut impl Sink) {
        let mut index = std::mem::take(&mut self.index_stored);
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        if let Some(client) = self.clients.get(handle)
            && let Some(sent) = &client.request
            && let Some(sent) = reindex(sent, &mut index)
        {
            let to = response.header(Name::To).map_or(&b""[..], |to| to.value);
            write_hop_by_hop("ACK", &sent, to, b"", &mut out);
            self.counters.requests_sent += 1;
            sink.send(&client.to, None, &out);
        }
        (self.index_stored, self.out) = (index, out);
    }

    pub(super) fn client_send_failed(&mut self, now: Now, handle: Handle, sink: &mut impl Sink) {
        self.client_input(now, handle, ClientInput::TransportFailed, None, sink);
    }

    /// Frees the transaction when it is over, otherwise sees to its next deadline.
    fn settle_client(&mut self, handle: Handle) {
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        if client.machine.is_terminated() {
            self.clients.remove(handle);
            return;
        }
        let deadline = client.next_deadline();
        if deadline < client.armed {
            client.armed = deadline;
            self.wheel.arm(deadline, Timer::Client(handle));
        }
    }

    /// The wheel has brought a transaction up, perhaps early.
    pub(super) fn client_due(&mut self, now: Now, handle: Handle, sink: &mut impl Sink) {
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        if now.mono < client.armed {
            return;
        }
        client.armed = NEVER;
        if client
            .machine
            .next_deadline()
            .is_some_and(|deadline| deadline <= now.mono)
        {
            self.client_input(now, handle, ClientInput::Deadline, None, sink);
        }
        self.cancel_due(now, handle, sink);
        self.give_up_due(now, handle, sink);
        self.settle_client(handle);
    }

    fn cancel_due(&mut self, now: Now, handle: Handle, sink: &mut impl Sink) {
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        let to = client.to;
        let timers = &self.settings.timers;
        if let Some(cancel) = client.cancel()
            && cancel
                .machine
                .next_deadline()
                .is_some_and(|deadline| deadline <= now.mono)
            && cancel
                .machine
                .handle(now.mono, ClientInput::Deadline, timers)
                == ClientEffect::Resend
        {
            self.counters.retransmissions_sent += 1;
            self.counters.requests_sent += 1;
            sink.send(&to, None, &cancel.message);
        }
    }

    /// Timer C (RFC 3261 section 16.8): a branch that rang for too long is cancelled, and one that does not even heed that is over.
    fn give_up_due(&mut self, now: Now, handle: Handle, sink: &mut impl Sink) {
        let Some(client) = self.clients.get_mut(handle) else {
            return;
        };
        if client.give_up > now.mono {
            return;
        }
        client.give_up = NEVER;
        let server = client.server;
        if client.progress == Progress::Proceeding {
            self.cancel_client(now, handle, b"", sink);
            return;
        }
        self.clients.remove(handle);
        self.branch_ended(now, server, handle, Outcome::Local(408, ""), sink);
    }
}
