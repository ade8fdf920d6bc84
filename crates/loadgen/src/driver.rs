//! Runs operations against a server: so many at a time, or so many a second.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use net::Source;

use crate::{
    cpu::CpuTime,
    io::{FlowId, Inbox, Io, Transport},
    message::{self, Id, Put},
    report::Statistics,
    timers::{Due, T1_US, T2_US, Timers},
    users::User,
};

/// What a driver is made of.
pub(crate) struct Setup {
    /// Where the server is. Every request goes there, as to an outbound proxy.
    pub(crate) target: SocketAddr,
    pub(crate) users: Vec<User>,
    /// Operations under way at most.
    pub(crate) outstanding: usize,
    /// How long one transaction may take.
    pub(crate) timeout: Duration,
}

/// How much to do. It ends with whichever comes first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) operations: Option<u64>,
    pub(crate) duration: Option<Duration>,
    /// Operations begun in a second; without it one begins when another ends.
    pub(crate) rate: Option<f64>,
}

/// The messages of one kind of operation. An operation has one client transaction at a time,
/// which the driver looks after; what it leads to is decided here.
pub(crate) trait Scenario {
    /// Sends the first request of an operation.
    fn begin(&mut self, driver: &mut Driver, slot: u32);
    /// A final response to the operation's transaction.
    fn answered(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]);
    /// A response again: its transaction has had a final one before.
    fn answered_again(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]);
    /// A request from the server.
    fn request(&mut self, driver: &mut Driver, from: &Source, message: &[u8]);
    /// Something that the scenario armed is due.
    fn due(&mut self, driver: &mut Driver, id: Id, due: Due);
    /// The operation has ended, well or not.
    fn ended(&mut self, driver: &mut Driver, slot: u32);
}

/// One operation under way, and its client transaction.
#[derive(Default)]
pub(crate) struct Operation {
    pub(crate) busy: bool,
    generation: u32,
    /// Counts the operation's transactions.
    step: u32,
    /// Where its requests go out.
    pub(crate) flow: FlowId,
    /// When it was to begin; its latency counts from here.
    begun_us: u64,
    /// The transaction's request, kept to send again.
    pub(crate) request: Vec<u8>,
    invite: bool,
    unanswered: bool,
    provisional: bool,
    sent_us: u64,
    wait_us: u64,
}

/// The operations of one thread, its flows and its clock.
pub(crate) struct Driver {
    pub(crate) io: Io,
    pub(crate) target: SocketAddr,
    pub(crate) users: Vec<User>,
    /// What names this run in branches, tags and Call-IDs.
    pub(crate) tag: Vec<u8>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) statistics: Statistics,
    free: Vec<u32>,
    timers: Timers,
    timeout_us: u64,
    epoch: Instant,
    now_us: u64,
    heard_us: u64,
}

impl Driver {
    /// Without flows yet.
    pub(crate) fn new(setup: Setup) -> io::Result<Self> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = since.map_or(0, |d| d.as_nanos() as u64);
        let run = nanos ^ (u64::from(std::process::id()) << 40);
        Ok(Self {
            io: Io::new()?,
            target: setup.target,
            users: setup.users,
            tag: format!("L{run:016x}").into_bytes(),
            free: (0..setup.outstanding as u32).rev().collect(),
            operations: (0..setup.outstanding)
                .map(|_| Operation::default())
                .collect(),
            statistics: Statistics::default(),
            timers: Timers::default(),
            timeout_us: setup.timeout.as_micros() as u64,
            epoch: Instant::now(),
            now_us: 0,
            heard_us: 0,
        })
    }

    /// Opens `count` flows to the target and waits until they are connected.
    ///
    /// # Errors
    /// A connection is refused, or not there in time, or descriptors run out.
    pub(crate) fn open(&mut self, transport: Transport, count: usize) -> io::Result<Vec<FlowId>> {
        let any = SocketAddr::new(local_address(self.target)?, 0);
        let mut flows: Vec<FlowId> = Vec::with_capacity(count);
        let deadline = Instant::now() + Duration::from_micros(self.timeout_us);
        while flows.len() < count {
            // A few at a time: no listening socket's queue overflows.
            for _ in 0..(count - flows.len()).min(64) {
                flows.push(match transport {
                    Transport::Udp => self.io.udp(any)?,
                    Transport::Tcp => self.io.connect(self.target)?,
                });
            }
            self.wait_connected(&flows[flows.len().saturating_sub(64)..], deadline)?;
        }
        Ok(flows)
    }

    fn wait_connected(&mut self, flows: &[FlowId], deadline: Instant) -> io::Result<()> {
        let mut inbox = Inbox::default();
        while !flows.iter().all(|f| self.io.is_connected(*f)) {
            if Instant::now() > deadline {
                let text = format!("{} does not accept connections in time", self.target);
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            self.io.turn(Duration::from_millis(100), &mut inbox)?;
            if !inbox.lost.is_empty() {
                let text = format!("{} closes or refuses connections", self.target);
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, text));
            }
        }
        Ok(())
    }

    /// Does the work and returns what came of it. Operations still under way at the end are waited
    /// for, each at most the time that a transaction has.
    ///
    /// # Errors
    /// The poller fails.
    pub(crate) fn run(
        &mut self,
        scenario: &mut impl Scenario,
        work: Work,
    ) -> io::Result<Statistics> {
        self.statistics = Statistics::default();
        self.read_clock();
        self.heard_us = self.now_us;
        let begun_us = self.now_us;
        let cpu = CpuTime::of_this_thread();
        let mut inbox = Inbox::default();
        let mut begun = 0u64;
        loop {
            let next_us = self.begin_due(scenario, work, begun_us, &mut begun);
            if next_us.is_none() && self.under_way() == 0 {
                break;
            }
            self.io.turn(self.poll_timeout(next_us), &mut inbox)?;
            self.read_clock();
            for (message, from) in inbox.messages() {
                self.take(scenario, from, message);
            }
            for flow in &inbox.lost {
                self.lost(scenario, *flow);
            }
            self.expire(scenario);
        }
        let mut statistics = std::mem::take(&mut self.statistics);
        statistics.begun = begun;
        statistics.elapsed = Duration::from_micros(self.now_us - begun_us);
        statistics.driver = CpuTime::of_this_thread().since(cpu);
        self.timers.clear();
        Ok(statistics)
    }

    /// Begins what is to begin now. Returns when the next one is to; `None` when there is no more.
    fn begin_due(
        &mut self,
        scenario: &mut impl Scenario,
        work: Work,
        begun_us: u64,
        begun: &mut u64,
    ) -> Option<u64> {
        loop {
            let over = self.statistics.gave_up
                || work.operations.is_some_and(|n| *begun >= n)
                || work
                    .duration
                    .is_some_and(|d| self.now_us - begun_us >= d.as_micros() as u64);
            if over {
                return None;
            }
            let due_us = match work.rate {
                Some(rate) => begun_us + (*begun as f64 * 1e6 / rate) as u64,
                None => self.now_us,
            };
            if due_us > self.now_us {
                return Some(due_us);
            }
            if self.under_way() == 0 {
                self.heard_us = self.now_us; // silence counts from here
            }
            let Some(slot) = self.free.pop() else {
                return Some(u64::MAX);
            };
            let operation = &mut self.operations[slot as usize];
            operation.generation = operation.generation.wrapping_add(1);
            operation.step = 0;
            operation.busy = true;
            operation.unanswered = false;
            operation.begun_us = due_us;
            *begun += 1;
            scenario.begin(self, slot);
        }
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

    fn take(&mut self, scenario: &mut impl Scenario, from: &Source, message: &[u8]) {
        self.heard_us = self.now_us;
        let via = message::field(message, message::VIA);
        let id = via.and_then(|via| Id::find(&self.tag, via));
        match (message::code(message), id) {
            (Some(code), Some(id)) => self.response(scenario, id, code, message),
            // Our own request: it comes from an echo server, and is as good as an answer.
            (None, Some(id)) => self.response(scenario, id, 200, message),
            (Some(_), None) => self.statistics.strays += 1,
            (None, None) => scenario.request(self, from, message),
        }
    }

    fn response(&mut self, scenario: &mut impl Scenario, id: Id, code: u16, message: &[u8]) {
        let Some(operation) = self.operation(id) else {
            return; // of an operation that has ended
        };
        if !operation.unanswered || operation.step != id.step {
            if code >= 200 {
                scenario.answered_again(self, id, code, message);
            }
            return;
        }
        operation.provisional = true;
        operation.unanswered = code < 200;
        self.statistics.count(code);
        if code >= 200 {
            scenario.answered(self, id, code, message);
        }
    }

    /// The operation that an identifier names, unless it has ended.
    pub(crate) fn operation(&mut self, id: Id) -> Option<&mut Operation> {
        let operation = self.operations.get_mut(id.slot as usize)?;
        (operation.busy && operation.generation == id.generation).then_some(operation)
    }

    /// Whether the operation's present transaction is that of an INVITE.
    pub(crate) fn is_invite(&self, slot: u32) -> bool {
        self.operations[slot as usize].invite
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

    /// The flow, opened anew if it was closed; `None` if it can't be.
    pub(crate) fn reopen(&mut self, flow: &mut FlowId, transport: Transport) -> Option<FlowId> {
        if transport == Transport::Tcp && self.io.is_closed(*flow) {
            *flow = self.io.connect(self.target).ok()?;
        }
        Some(*flow)
    }

    /// Identifier of the operation's present transaction.
    pub(crate) fn id(&self, slot: u32) -> Id {
        let operation = &self.operations[slot as usize];
        Id {
            slot,
            generation: operation.generation,
            step: operation.step,
        }
    }

    /// Identifier of the operation's next transaction, which becomes the present one.
    pub(crate) fn next_id(&mut self, slot: u32) -> Id {
        self.operations[slot as usize].step += 1;
        self.id(slot)
    }

    /// Sends the operation's `request` as its present transaction, and looks after it: sends it
    /// again over UDP (RFC 3261 sections 17.1.1.2 and 17.1.2.2), ends it when it has had its time.
    pub(crate) fn transact(&mut self, slot: u32) {
        let id = self.id(slot);
        let now_us = self.now_us;
        let operation = &mut self.operations[slot as usize];
        operation.invite = operation.request.starts_with(b"INVITE ");
        operation.unanswered = true;
        operation.provisional = false;
        operation.sent_us = now_us;
        operation.wait_us = T1_US;
        self.io
            .send(operation.flow, self.target, &operation.request);
        self.timers.arm(now_us, T1_US, id, Due::Request);
    }

    /// Has [`Scenario::due`] called after `wait_us`, unless the operation has ended by then.
    pub(crate) fn arm(&mut self, wait_us: u64, id: Id, due: Due) {
        self.timers.arm(self.now_us, wait_us, id, due);
    }

    /// Microseconds since the operation was to begin.
    pub(crate) fn age_us(&self, slot: u32) -> u64 {
        self.now_us - self.operations[slot as usize].begun_us
    }

    /// Ends an operation and counts it.
    pub(crate) fn end(&mut self, scenario: &mut (impl Scenario + ?Sized), slot: u32, well: bool) {
        let operation = &mut self.operations[slot as usize];
        if !operation.busy {
            return;
        }
        operation.busy = false;
        operation.unanswered = false;
        self.statistics.succeeded += u64::from(well);
        self.free.push(slot);
        scenario.ended(self, slot);
    }

    fn expire(&mut self, scenario: &mut impl Scenario) {
        while let Some((id, due)) = self.timers.expired(self.now_us) {
            if self.operation(id).is_none() {
                continue;
            }
            if due == Due::Request {
                self.request_due(scenario, id);
            } else {
                scenario.due(self, id, due);
            }
        }
        if self.under_way() > 0 && self.now_us - self.heard_us > 2 * self.timeout_us {
            self.give_up(scenario);
        }
    }

    fn request_due(&mut self, scenario: &mut impl Scenario, id: Id) {
        let (now_us, timeout_us) = (self.now_us, self.timeout_us);
        let udp = self.io.is_udp(self.operations[id.slot as usize].flow);
        let operation = &mut self.operations[id.slot as usize];
        if operation.step != id.step || !operation.unanswered {
            return;
        }
        let age_us = now_us - operation.sent_us;
        if age_us >= timeout_us {
            self.statistics.timeouts += 1;
            return self.end(scenario, id.slot, false);
        }
        if udp && !(operation.invite && operation.provisional) {
            self.io
                .send(operation.flow, self.target, &operation.request);
            self.statistics.retransmissions += 1;
        }
        operation.wait_us = match (operation.invite, operation.provisional) {
            (true, _) => operation.wait_us * 2,
            (false, true) => T2_US,
            (false, false) => (operation.wait_us * 2).min(T2_US),
        };
        let wait_us = operation.wait_us.min(timeout_us - age_us);
        self.timers.arm(now_us, wait_us, id, Due::Request);
    }

    /// A connection is gone, and what was under way on it. Rare, so it may look at every operation.
    fn lost(&mut self, scenario: &mut impl Scenario, flow: FlowId) {
        for slot in 0..self.operations.len() as u32 {
            let operation = &self.operations[slot as usize];
            if operation.busy && operation.flow == flow {
                self.statistics.connections_lost += 1;
                self.end(scenario, slot, false);
            }
        }
    }

    /// Nothing has been heard for so long that the server must be gone: what is under way ends.
    fn give_up(&mut self, scenario: &mut impl Scenario) {
        for slot in 0..self.operations.len() as u32 {
            if self.operations[slot as usize].busy {
                self.statistics.timeouts += 1;
                self.end(scenario, slot, false);
            }
        }
        self.statistics.gave_up = true;
    }
}

/// The address of this machine that the target is reached from.
fn local_address(target: SocketAddr) -> io::Result<std::net::IpAddr> {
    let any = match target {
        SocketAddr::V4(_) => "0.0.0.0:0",
        SocketAddr::V6(_) => "[::]:0",
    };
    let probe = std::net::UdpSocket::bind(any)?;
    probe.connect(target)?;
    Ok(probe.local_addr()?.ip())
}
