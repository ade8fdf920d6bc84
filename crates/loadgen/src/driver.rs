//! Runs operations against a server, in one thread: so many at a time, or so many a second.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use net::Source;

use crate::{
    cause::{Cause, Outcome},
    cpu::CpuTime,
    flows::Flows,
    io::{FlowId, Inbox, Io, Transport},
    message::{self, Id, Put},
    operation::{Lane, Operation},
    pace::{Pace, Schedule},
    plan::Connections,
    random::Random,
    scenario::Scenario,
    statistics::Statistics,
    timers::{Due, T2_US, Timers},
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
    /// Tells drivers of one run apart.
    pub(crate) number: u16,
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
    free: Vec<u32>,
    /// Operations under way, of each part.
    part_under_way: Vec<usize>,
    outstanding_max: usize,
    random: Random,
    timers: Timers,
    timeout_us: u64,
    epoch: Instant,
    now_us: u64,
    heard_us: u64,
}

/// A part while it runs.
struct Running {
    schedule: Option<Schedule>,
    outstanding_max: usize,
}

impl Driver {
    /// Without flows yet.
    pub(crate) fn new(setup: Setup) -> io::Result<Self> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = since.map_or(0, |d| d.as_nanos() as u64);
        let run = nanos ^ (u64::from(std::process::id()) << 40);
        Ok(Self {
            io: Io::new()?,
            flows: Flows::new(setup.target, setup.connections),
            target: setup.target,
            users: setup.users,
            tag: format!("L{run:016x}{:04x}", setup.number).into_bytes(),
            operations: Vec::new(),
            statistics: Statistics::default(),
            free: Vec::new(),
            part_under_way: Vec::new(),
            outstanding_max: setup.outstanding_max,
            random: Random::new(run ^ (u64::from(setup.number) << 48)),
            timers: Timers::default(),
            timeout_us: setup.timeout.as_micros() as u64,
            epoch: Instant::now(),
            now_us: 0,
            heard_us: 0,
        })
    }

    /// Opens the flows that are to be open before the first operation.
    ///
    /// # Errors
    /// A connection is refused, or not there in time, or descriptors run out.
    pub(crate) fn open(&mut self, callees: bool) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_micros(self.timeout_us);
        self.flows.open(&mut self.io, callees, deadline)
    }

    /// Does the work and returns what came of it. Operations still under way at the end are waited
    /// for, each at most the time that a transaction has.
    ///
    /// # Errors
    /// The poller fails.
    pub(crate) fn run(&mut self, parts: &mut [Part], work: Work) -> io::Result<Statistics> {
        self.statistics = Statistics::new(parts.iter().map(|p| p.name.clone()));
        self.read_clock();
        self.heard_us = self.now_us;
        let begun_us = self.now_us;
        self.part_under_way = vec![0; parts.len()];
        let mut running: Vec<Running> = parts
            .iter()
            .map(|part| self.running(part, begun_us, work))
            .collect();
        let cpu = CpuTime::of_this_thread();
        let mut inbox = Inbox::default();
        let mut finishes = false;
        loop {
            let next_us = self.begin_due(parts, &mut running, work, begun_us);
            let is_over = next_us.is_none();
            if is_over && self.under_way() == 0 {
                break;
            }
            if is_over && !std::mem::replace(&mut finishes, true) {
                parts.iter_mut().for_each(|p| p.scenario.finish(self));
            }
            self.io.turn(self.poll_timeout(next_us), &mut inbox)?;
            self.read_clock();
            for (message, from) in inbox.messages() {
                self.take(parts, from, message);
            }
            for flow in &inbox.lost {
                self.lost(*flow);
            }
            self.expire(parts);
        }
        let mut statistics = std::mem::take(&mut self.statistics);
        statistics.elapsed = Duration::from_micros(self.now_us - begun_us);
        statistics.driver = CpuTime::of_this_thread().since(cpu);
        self.timers.clear();
        Ok(statistics)
    }

    /// Begins what is to begin now. Returns when the next one is to; `None` when there is no more.
    fn begin_due(
        &mut self,
        parts: &mut [Part],
        running: &mut [Running],
        work: Work,
        begun_us: u64,
    ) -> Option<u64> {
        let mut next_us = None;
        for (number, (part, state)) in parts.iter_mut().zip(running).enumerate() {
            while !self.is_over(work, begun_us) {
                let due_us = state.due_us(self.now_us, self.part_under_way[number]);
                if due_us == Schedule::NEVER && state.schedule.is_some() {
                    break;
                }
                if due_us > self.now_us {
                    next_us = Some(next_us.map_or(due_us, |next: u64| next.min(due_us)));
                    break;
                }
                self.begin(part, number as u8, state, due_us);
            }
        }
        next_us
    }

    fn running(&mut self, part: &Part, begun_us: u64, work: Work) -> Running {
        let (rate, poisson) = match &part.pace {
            Pace::Outstanding(outstanding) => {
                return Running {
                    schedule: None,
                    outstanding_max: *outstanding,
                };
            }
            Pace::Open { rate, poisson } => (rate.clone(), *poisson),
        };
        let random = poisson.then(|| Random::new(self.random.bits()));
        let length = work.duration.unwrap_or_else(|| {
            let seconds = work.operations.unwrap_or(0) as f64 / rate.mean();
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
        });
        Running {
            schedule: Some(Schedule::new(rate, random, begun_us, length, 0.0)),
            outstanding_max: self.outstanding_max,
        }
    }

    /// Chance.
    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn is_over(&self, work: Work, begun_us: u64) -> bool {
        self.statistics.gave_up
            || work
                .operations
                .is_some_and(|n| self.statistics.begun() >= n)
            || work
                .duration
                .is_some_and(|d| self.now_us - begun_us >= d.as_micros() as u64)
    }

    fn begin(&mut self, part: &mut Part, number: u8, state: &mut Running, due_us: u64) {
        if let Some(schedule) = &mut state.schedule {
            schedule.advance();
        }
        if self.under_way() == 0 {
            self.heard_us = self.now_us; // silence counts from here
        }
        let full = self.under_way() >= self.outstanding_max;
        let counts = &mut self.statistics.parts[usize::from(number)];
        counts.begun += 1;
        self.statistics
            .late_us
            .record(self.now_us.saturating_sub(due_us));
        if full {
            counts.failures.count(Cause::NotBegun);
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.operations.push(Operation::default());
            (self.operations.len() - 1) as u32
        });
        self.operations[slot as usize].renew(number, due_us);
        self.part_under_way[usize::from(number)] += 1;
        part.scenario.begin(self, slot);
    }

    /// Operations under way.
    fn under_way(&self) -> usize {
        self.operations.len() - self.free.len()
    }

    /// How long to sleep. A poller's timeouts are whole milliseconds, so what is due sooner is
    /// awaited without sleeping.
    fn poll_timeout(&self, next_us: Option<u64>) -> Duration {
        let next = next_us.unwrap_or(u64::MAX);
        let next = next.min(self.timers.next().unwrap_or(u64::MAX));
        let wait_us = next.saturating_sub(self.now_us).min(1_000_000);
        Duration::from_millis(wait_us.saturating_sub(1000).div_ceil(1000))
    }

    fn read_clock(&mut self) {
        self.now_us = self.epoch.elapsed().as_micros() as u64;
    }

    fn take(&mut self, parts: &mut [Part], from: &Source, message: &[u8]) {
        self.heard_us = self.now_us;
        let via = message::field(message, message::VIA);
        let id = via.and_then(|via| Id::find(&self.tag, via));
        match (message::code(message), id) {
            (Some(code), Some(id)) => self.response(parts, id, code, message),
            // Our own request: it comes from an echo server, and is as good as an answer.
            (None, Some(id)) => self.response(parts, id, 200, message),
            (Some(_), None) => self.statistics.strays += 1,
            (None, None) => self.request(parts, from, message),
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
        let now_us = self.now_us;
        let Some(operation) = self.operation(id) else {
            return; // of an operation that has ended
        };
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
        let took_us = now_us - transaction.sent_us;
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
        let operation = &mut self.operations[slot as usize];
        match self.flows.next(&mut self.io, operation, user) {
            Ok(flow) => {
                operation.flow = flow;
                Some(flow)
            }
            Err(cause) => {
                self.end(slot, Outcome::Failed(cause));
                None
            }
        }
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
        let id = self.id(slot);
        let now_us = self.now_us;
        let operation = &mut self.operations[slot as usize];
        let flow = operation.flow;
        let transaction = operation.lane(lane);
        transaction.begin(id.step, flow, now_us);
        self.io.send(flow, self.target, &transaction.request);
        self.timers
            .arm(now_us, transaction.wait_us, id, Due::Request);
    }

    /// Has [`Scenario::due`] called after `wait_us`, unless the operation has ended by then.
    pub(crate) fn arm(&mut self, wait_us: u64, id: Id, due: Due) {
        self.timers.arm(self.now_us, wait_us, id, due);
    }

    /// Records the operation's latency: from when it was due until now.
    pub(crate) fn record_latency(&mut self, slot: u32) {
        let operation = &self.operations[slot as usize];
        let latency_us = self.now_us - operation.due_us;
        self.statistics.parts[usize::from(operation.part)]
            .latency_us
            .record(latency_us);
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
        let part = &mut self.statistics.parts[usize::from(operation.part)];
        self.part_under_way[usize::from(operation.part)] -= 1;
        match outcome {
            Outcome::Good => part.succeeded += 1,
            Outcome::Failed(cause) => part.failures.count(cause),
        }
        self.flows.ended(&mut self.io, operation);
        self.free.push(slot);
    }

    fn expire(&mut self, parts: &mut [Part]) {
        while let Some((id, due)) = self.timers.expired(self.now_us) {
            let Some(operation) = self.operation(id) else {
                continue;
            };
            let part = usize::from(operation.part);
            if due == Due::Request {
                self.request_due(id);
            } else {
                parts[part].scenario.due(self, id, due);
            }
        }
        if self.under_way() > 0 && self.now_us - self.heard_us > 2 * self.timeout_us {
            self.give_up();
        }
    }

    fn request_due(&mut self, id: Id) {
        let (now_us, timeout_us) = (self.now_us, self.timeout_us);
        let operation = &mut self.operations[id.slot as usize];
        let Some(transaction) = operation.waiting(id.step) else {
            return;
        };
        let age_us = now_us - transaction.sent_us;
        if age_us >= timeout_us {
            return self.end(id.slot, Outcome::Failed(Cause::Timeout));
        }
        if self.io.is_udp(transaction.flow) && !(transaction.invite && transaction.provisional) {
            self.io
                .send(transaction.flow, self.target, &transaction.request);
            self.statistics.retransmissions += 1;
        }
        transaction.wait_us = match (transaction.invite, transaction.provisional) {
            (true, _) => transaction.wait_us * 2,
            (false, true) => T2_US,
            (false, false) => (transaction.wait_us * 2).min(T2_US),
        };
        let wait_us = transaction.wait_us.min(timeout_us - age_us);
        self.timers.arm(now_us, wait_us, id, Due::Request);
    }

    /// A connection is gone, and what was under way on it. Rare, so it may look at every operation.
    fn lost(&mut self, flow: FlowId) {
        for slot in 0..self.operations.len() as u32 {
            let operation = &self.operations[slot as usize];
            if operation.busy && operation.flow == flow {
                self.end(slot, Outcome::Failed(Cause::ConnectionLost));
            }
        }
    }

    /// Nothing has been heard for so long that the server must be gone: what is under way ends.
    fn give_up(&mut self) {
        for slot in 0..self.operations.len() as u32 {
            self.end(slot, Outcome::Failed(Cause::GaveUp));
        }
        self.statistics.gave_up = true;
    }
}

impl Running {
    /// When the next operation is due; never when one has to end first.
    fn due_us(&self, now_us: u64, under_way: usize) -> u64 {
        match &self.schedule {
            Some(schedule) => schedule.due_us(),
            None if under_way < self.outstanding_max => now_us,
            None => Schedule::NEVER,
        }
    }
}
