//! What operations need of a thread: flows, transactions, timers and counts. [`crate::run`] has it do a work.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use net::{ConnectionId, Source};

use crate::{
    cause::{Cause, Outcome},
    flows::Flows,
    io::{FlowId, Io, Transport},
    message::{self, Id, Put},
    monitor::Monitor,
    operation::{CANCEL, Lane, Now, Operation},
    pace::Pace,
    plan::Connections,
    random::Random,
    scenario::Scenario,
    statistics::{Statistics, ThisSecond},
    stop::Stop,
    timers::{Due, Timers},
    uas,
    users::Users,
};

/// What a driver is made of.
pub(crate) struct Setup {
    /// Where the server is. Every request goes there, as to an outbound proxy.
    pub(crate) target: SocketAddr,
    /// The users of this driver.
    pub(crate) users: Users,
    /// The connections of this driver.
    pub(crate) connections: Connections,
    /// Operations under way at most.
    pub(crate) outstanding_max: usize,
    /// How long one transaction may take.
    pub(crate) timeout: Duration,
    /// Which of the threads of the load it is for, and how many there are.
    pub(crate) number: usize,
    pub(crate) threads: usize,
    /// Ends a run early.
    pub(crate) stop: Stop,
    /// Tells how far it is.
    pub(crate) monitor: Arc<Monitor>,
}

/// One part of what a driver does.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) scenario: Box<dyn Scenario>,
    pub(crate) pace: Pace,
}

/// How much to do. It ends with whichever comes first.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Work {
    pub(crate) operations: Option<u64>,
    pub(crate) duration: Option<Duration>,
}

/// The operations of one thread, its flows and its clock.
pub(crate) struct Driver {
    pub(crate) io: Io,
    pub(crate) flows: Flows,
    pub(crate) target: SocketAddr,
    pub(crate) users: Users,
    /// What names this run in branches, tags and Call-IDs.
    pub(crate) tag: Vec<u8>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) statistics: Statistics,
    pub(crate) second: ThisSecond,
    pub(crate) stop: Stop,
    pub(crate) monitor: Arc<Monitor>,
    /// Which thread of the load this is, and of how many.
    pub(crate) number: usize,
    pub(crate) threads: usize,
    /// Operations under way, of each part.
    pub(crate) part_under_way: Vec<usize>,
    /// Of all parts, at most.
    pub(crate) outstanding_max: usize,
    pub(crate) timers: Timers,
    pub(crate) timeout_us: u64,
    /// When the server was last heard of.
    pub(crate) heard_us: u64,
    /// When the first request after that was sent; `u64::MAX`: none was.
    pub(crate) silent_since_us: u64,
    free: Vec<u32>,
    random: Random,
    /// What is being seen to now because it was due, and when that was.
    fired: Option<(Due, u64)>,
}

impl Driver {
    /// Without flows yet.
    ///
    /// # Errors
    /// Descriptors run out.
    pub(crate) fn new(setup: Setup) -> io::Result<Self> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = since.map_or(0, |d| d.as_nanos() as u64);
        let run = nanos ^ (u64::from(std::process::id()) << 40);
        Ok(Self {
            io: Io::new(setup.timeout)?,
            flows: Flows::new(setup.target, setup.connections),
            target: setup.target,
            users: setup.users,
            tag: format!("L{run:016x}{:04x}", setup.number).into_bytes(),
            operations: Vec::new(),
            statistics: Statistics::default(),
            second: ThisSecond::new(0),
            stop: setup.stop,
            monitor: setup.monitor,
            number: setup.number,
            threads: setup.threads,
            part_under_way: Vec::new(),
            outstanding_max: setup.outstanding_max,
            timers: Timers::default(),
            timeout_us: setup.timeout.as_micros() as u64,
            heard_us: 0,
            silent_since_us: u64::MAX,
            free: Vec::new(),
            fired: None,
            random: Random::new(run ^ ((setup.number as u64) << 48)),
        })
    }

    /// Opens the flows that are to be open before the first operation.
    ///
    /// # Errors
    /// A connection is refused, or not there in time, or descriptors or ports run out.
    pub(crate) fn open(&mut self, callees: bool) -> io::Result<()> {
        let timeout = Duration::from_micros(self.timeout_us);
        let monitor = &self.monitor;
        let mut watch = |open| monitor.has_opened(open);
        self.flows
            .open(&mut self.io, callees, timeout, &self.stop, &mut watch)
    }

    /// Takes a place for an operation, and counts it as under way.
    pub(crate) fn new_operation(&mut self, part: usize, stage: u16, due_us: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.operations.push(Operation::default());
            (self.operations.len() - 1) as u32
        });
        self.operations[slot as usize].renew(part as u8, stage, due_us);
        self.part_under_way[part] += 1;
        slot
    }

    /// Operations under way.
    pub(crate) fn under_way(&self) -> usize {
        self.operations.len() - self.free.len()
    }

    /// Chance.
    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Now, by this thread's clock: when the turn began.
    pub(crate) fn now_us(&self) -> u64 {
        self.io.now_us()
    }

    /// Takes a message in.
    pub(crate) fn take(&mut self, parts: &mut [Part], from: &Source, message: &[u8]) {
        self.heard_us = self.now_us();
        self.silent_since_us = u64::MAX;
        let via = message::field(message, message::VIA);
        let id = via.and_then(|via| Id::find(&self.tag, via));
        let code = message::code(message);
        // Of a stream only whole messages come.
        let whole = from.connection != ConnectionId::NONE || message::is_whole(message);
        if !whole || code.is_none() && !message::is_request(message) {
            return self.rubbish(id);
        }
        match (code, id) {
            (Some(code), Some(id)) => self.response(parts, id, code, message),
            // Our own request: it comes from an echo server, and is as good as an answer.
            (None, Some(id)) => self.response(parts, id, 200, message),
            (Some(_), None) => self.statistics.strays += 1,
            (None, None) => self.request(parts, from, message),
        }
    }

    /// A message can't be understood. When it names a transaction, that has no better answer to expect.
    fn rubbish(&mut self, id: Option<Id>) {
        self.statistics.rubbish += 1;
        if let Some(id) = id {
            self.fail(id, Cause::Rubbish);
        }
    }

    /// A datagram came to nobody (RFC 3261 section 18.4).
    pub(crate) fn undelivered(&mut self, message: &[u8]) {
        if let Some(id) = Id::find(&self.tag, message) {
            self.fail(id, Cause::Unreachable);
        }
    }

    /// A transaction has failed, and its operation with it.
    fn fail(&mut self, id: Id, cause: Cause) {
        let operation = self.operation(id);
        if operation.is_some_and(|o| o.waiting(id.step).is_some()) {
            self.end(id.slot, Outcome::Failed(cause));
        }
    }

    fn request(&mut self, parts: &mut [Part], from: &Source, message: &[u8]) {
        let call_id = message::field(message, message::CALL_ID).unwrap_or_default();
        let id = Id::find(&self.tag, call_id);
        let part = id.and_then(|id| self.operation(id).map(|o| usize::from(o.part)));
        match (id, part) {
            (Some(id), Some(part)) => parts[part].scenario.request(self, id, from, message),
            _ => uas::refuse(self, from, message),
        }
    }

    fn response(&mut self, parts: &mut [Part], id: Id, code: u16, message: &[u8]) {
        let now_us = self.now_us();
        let Some(operation) = self.operation(id) else {
            return; // of an operation that has ended
        };
        let id = operation.told_apart(id, message);
        let number = usize::from(operation.part);
        let scenario = &mut parts[number].scenario;
        let Some(transaction) = operation.waiting(id.step) else {
            if code >= 200 {
                scenario.answered_again(self, id, code, message);
            }
            return;
        };
        transaction.provisional = true;
        transaction.unanswered = code < 200;
        let took_us = now_us.saturating_sub(transaction.sent_us);
        self.statistics.parts[number].responses[usize::from(code)] += 1;
        if code < 200 {
            return scenario.provisional(self, id, code, message);
        }
        self.statistics.transaction_us.record(took_us);
        scenario.answered(self, id, code, message);
    }

    /// The operation that an identifier names, unless it has ended.
    pub(crate) fn operation(&mut self, id: Id) -> Option<&mut Operation> {
        let operation = self.operations.get_mut(id.slot as usize)?;
        (operation.busy && operation.generation == id.generation).then_some(operation)
    }

    /// The flow on which the operation's next transaction goes, by the lifetime of connections: opened if need be. It becomes the
    /// operation's `flow`. `None`: it can't be opened, and the operation has ended.
    pub(crate) fn next_flow(&mut self, slot: u32, user: usize) -> Option<FlowId> {
        let next = self
            .flows
            .next(&mut self.io, &mut self.operations, slot, user);
        match next {
            Ok(flow) => {
                self.operations[slot as usize].flow = flow;
                Some(flow)
            }
            Err(cause) => {
                self.end(slot, Outcome::Failed(cause));
                None
            }
        }
    }

    /// The flow that a callee is reached over, for an operation of the callee's. It becomes the operation's `flow`.
    pub(crate) fn callee_flow(&mut self, slot: u32, user: usize) -> FlowId {
        let flow = self.flows.callee(user);
        self.operations[slot as usize].flow = flow;
        if !self.io.is_udp(flow) && !self.operations[slot as usize].attached {
            self.flows.attach(&mut self.operations, slot, flow);
        }
        flow
    }

    /// Own address of a flow as a Via and a Contact have it.
    pub(crate) fn host(&self, flow: FlowId) -> &str {
        self.io.host(flow)
    }

    /// Appends Via and Max-Forwards.
    pub(crate) fn put_via(&self, transport: Transport, host: &str, id: Id, out: &mut Vec<u8>) {
        let transport: &[u8] = match transport {
            Transport::Udp => b"UDP ",
            Transport::Tcp => b"TCP ",
        };
        out.put(&[b"Via: SIP/2.0/", transport, host.as_bytes()]);
        out.put(&[b";rport;branch=z9hG4bK"]);
        id.put(&self.tag, out);
        out.put(&[b"\r\nMax-Forwards: 70\r\n"]);
    }

    /// Identifier of the operation's newest transaction.
    pub(crate) fn id(&self, slot: u32) -> Id {
        self.operations[slot as usize].id(slot)
    }

    /// Identifier of the operation's next transaction, which becomes the newest.
    pub(crate) fn next_id(&mut self, slot: u32) -> Id {
        self.operations[slot as usize].step += 1;
        self.id(slot)
    }

    /// Sends the `request` of a lane as the operation's newest transaction, and looks after it: sends it
    /// again over UDP (RFC 3261 sections 17.1.1.2 and 17.1.2.2), ends the operation when it has had its time.
    pub(crate) fn transact(&mut self, slot: u32, lane: Lane) {
        self.transact_as(slot, self.operations[slot as usize].step, lane);
    }

    /// Sends the `request` of the side lane, a CANCEL with the branch of the INVITE in the main lane.
    pub(crate) fn cancel(&mut self, slot: u32) {
        let step = self.operations[slot as usize].main.step | CANCEL;
        self.transact_as(slot, step, Lane::Side);
    }

    fn transact_as(&mut self, slot: u32, step: u32, lane: Lane) {
        let (now_us, timeout_us) = (self.now_us(), self.timeout_us);
        let operation = &mut self.operations[slot as usize];
        let flow = operation.flow;
        let datagrams = self.io.is_udp(flow);
        let transaction = operation.lane(lane);
        transaction.begin(step, flow, datagrams, now_us, timeout_us);
        self.io.send(flow, self.target, &transaction.request);
        self.silent_since_us = self.silent_since_us.min(now_us);
        self.look_later(slot);
    }

    /// Has the timers look at an operation when there is something to do about its transactions. A look that
    /// is to come anyway, if only for an operation that had the place before, is used: most operations end long before.
    fn look_later(&mut self, slot: u32) {
        let now_us = self.now_us();
        let operation = &mut self.operations[slot as usize];
        if let Some(at_us) = operation.next_us()
            && at_us < operation.look_us
        {
            operation.look_us = at_us;
            self.timers.look(now_us, at_us, slot);
        }
    }

    /// Has [`Scenario::due`] called after `wait_us`, unless the operation has ended by then.
    pub(crate) fn arm(&mut self, wait_us: u64, id: Id, due: Due) {
        let now_us = self.now_us();
        if matches!(due, Due::Answer | Due::Cancel) {
            self.operations[id.slot as usize].ring_until_us = now_us + wait_us;
        }
        // The waits between repetitions count from when each was due: this tool's lag does not add up.
        let late_us = match self.fired {
            Some((fired, at_us)) if fired == due => now_us - at_us,
            _ => 0,
        };
        self.timers
            .arm(now_us, wait_us.saturating_sub(late_us), id, due);
    }

    /// Records the operation's latency: from when it was due until now.
    pub(crate) fn record_latency(&mut self, slot: u32) {
        let operation = &self.operations[slot as usize];
        let latency_us = self.now_us().saturating_sub(operation.due_us);
        self.second.record(latency_us);
        let (part, stage) = (usize::from(operation.part), usize::from(operation.stage));
        self.statistics.parts[part].latency_us.record(latency_us);
        if let Some(step) = self.statistics.steps.get_mut(stage) {
            step.latency_us.record(latency_us);
        }
    }

    /// Ends an operation and counts it. Nothing happens when it has ended already.
    pub(crate) fn end(&mut self, slot: u32, outcome: Outcome) {
        let operation = &mut self.operations[slot as usize];
        if !operation.busy {
            return;
        }
        operation.busy = false;
        operation.main.unanswered = false;
        operation.side.unanswered = false;
        let number = usize::from(operation.part);
        self.part_under_way[number] -= 1;
        let part = &mut self.statistics.parts[number];
        match outcome {
            Outcome::Good => {
                part.succeeded += 1;
                if let Some(step) = self.statistics.steps.get_mut(usize::from(operation.stage)) {
                    step.succeeded += 1;
                }
            }
            Outcome::Failed(cause) => part.failures.count(cause),
        }
        if operation.attached {
            self.flows
                .leave(&mut self.io, &mut self.operations, slot, outcome);
        }
        self.free.push(slot);
    }

    /// Does what the timers say.
    pub(crate) fn expire(&mut self, parts: &mut [Part]) {
        while let Some((at_us, id, due)) = self.timers.expired(self.now_us()) {
            if due == Due::Request {
                self.look(at_us, id.slot);
            } else if let Some(operation) = self.operation(id) {
                let part = usize::from(operation.part);
                self.fired = Some((due, at_us));
                parts[part].scenario.due(self, id, due);
                self.fired = None;
            }
        }
    }

    /// Looks at an operation's transactions: sends a request again, or ends the operation when one has had its time.
    fn look(&mut self, at_us: u64, slot: u32) {
        let (now_us, timeout_us) = (self.now_us(), self.timeout_us);
        let operation = &mut self.operations[slot as usize];
        if operation.look_us != at_us {
            return; // an earlier one has taken its place
        }
        operation.look_us = u64::MAX;
        let ring_until_us = operation.ring_until_us;
        let mut timed_out = false;
        for transaction in [&mut operation.main, &mut operation.side] {
            match transaction.act(now_us, ring_until_us, timeout_us) {
                Now::Nothing => {}
                Now::SendAgain => {
                    self.io
                        .send(transaction.flow, self.target, &transaction.request);
                    self.statistics.retransmissions += 1;
                    let stage = usize::from(operation.stage);
                    if let Some(step) = self.statistics.steps.get_mut(stage) {
                        step.retransmissions += 1;
                    }
                }
                Now::TimedOut => timed_out = true,
            }
        }
        if timed_out {
            // A server that has said nothing at all for so long is not waited for with each operation anew.
            let silent_us = now_us.saturating_sub(self.silent_since_us);
            self.statistics.gave_up |= silent_us >= 2 * timeout_us;
            return self.end(slot, Outcome::Failed(Cause::Timeout));
        }
        self.look_later(slot);
    }

    /// A connection is open: what waited for that leaves now.
    pub(crate) fn opened(&mut self, flow: FlowId, setup_us: u64) {
        self.flows.has_opened(setup_us);
        let now_us = self.now_us();
        let mut next = self.flows.operation_on(flow);
        while let Some(operation) = next.and_then(|slot| self.operations.get_mut(slot as usize)) {
            for transaction in [&mut operation.main, &mut operation.side] {
                if transaction.unanswered && transaction.flow == flow {
                    transaction.sent_us = now_us;
                }
            }
            next = Some(operation.after);
        }
    }

    /// A connection is gone, and what was under way on it.
    pub(crate) fn lost(&mut self, flow: FlowId, cause: Cause) {
        self.statistics.rubbish += u64::from(cause == Cause::Rubbish);
        while let Some(slot) = self.flows.operation_on(flow) {
            self.end(slot, Outcome::Failed(cause));
        }
    }

    /// Ends what is under way.
    pub(crate) fn end_all(&mut self, cause: Cause) {
        for slot in 0..self.operations.len() as u32 {
            self.end(slot, Outcome::Failed(cause));
        }
    }
}
