use crate::attack::Attacker;
use crate::judge::{Judge, Stats};
use crate::phone::credentials::ha1;
use crate::phone::{Effects, Names, Phone, Role, Timer};
use crate::plan::Plan;
use crate::rng::Rng;
use crate::server::{Connections, Effect, Port, Server, Waiting, now_at, run_ms, wake_us};
use crate::trace::Trace;
use location::{Disk, Flow, Ha1, MemoryDisk, Tear, TicketState, Transport};
use sip_core::{Core, Counters, Now, Origin, ResolveId, ResolveRequest, Target};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::rc::Rc;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Of everything that happened; the same for the same seed.
    pub hash: u64,
    /// What must not happen, and did.
    pub faults: Vec<String>,
    /// What the run was made of.
    pub stats: Stats,
}

/// Runs a plan to its end; `print`: every message and event goes to standard output.
#[must_use]
pub fn run(plan: &Plan, print: bool) -> Outcome {
    let mut world = World::new(plan.clone(), print);
    world.prepare();
    world.run();
    world.look_back();
    Outcome {
        hash: world.trace.hash(),
        stats: world.judge.stats,
        faults: world.judge.faults(),
    }
}

/// Everything there is in a run: one queue of events, one clock.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) now_us: u64,
    pub(crate) rng: Rng,
    pub(crate) trace: Trace,
    pub(crate) judge: Judge,
    queue: BinaryHeap<Entry>,
    sequence: u64,
    pub(crate) names: Rc<Names>,
    pub(crate) phones: Vec<Phone>,
    /// Where phones are, and where they have ever been.
    pub(crate) present: BTreeMap<SocketAddr, usize>,
    pub(crate) known: BTreeMap<SocketAddr, usize>,
    /// How often each phone has changed its address.
    moves: Vec<u16>,
    pub(crate) server: Option<Server>,
    subscribers: Vec<(String, Ha1)>,
    disk: MemoryDisk,
    starts: u32,
    flush_planned: bool,
    /// It has been told to end.
    ending_since_ms: Option<u64>,
    pub(crate) connections: Connections,
    /// The connection of each phone.
    pub(crate) links: Vec<Option<u64>>,
    pub(crate) connection_last: u64,
    attacker: Attacker,
}

/// What can happen.
pub(crate) enum Event {
    DatagramToServer {
        from: SocketAddr,
        message: Vec<u8>,
    },
    StreamToServer {
        connection: u64,
        message: Vec<u8>,
    },
    DatagramToPhone {
        to: SocketAddr,
        message: Vec<u8>,
    },
    StreamToPhone {
        connection: u64,
        message: Vec<u8>,
    },
    PhoneTimer {
        phone: usize,
        timer: Timer,
    },
    Connect {
        phone: usize,
    },
    Break {
        phone: usize,
    },
    ServerNotices {
        connection: u64,
    },
    Move {
        phone: usize,
    },
    Wake {
        worker: usize,
        start: u32,
    },
    Handed {
        worker: usize,
        start: u32,
        flow: Flow,
        message: Vec<u8>,
    },
    SendFailed {
        worker: usize,
        start: u32,
        origin: Origin,
    },
    Resolved {
        worker: usize,
        start: u32,
        id: ResolveId,
        targets: Vec<Target>,
    },
    Flush {
        start: u32,
    },
    Crash {
        away_ms: u64,
    },
    /// The server is told to end.
    End {
        grace_ms: u64,
    },
    /// It has ended.
    Ended,
    Start,
    DiskFull {
        until_ms: u64,
    },
    DiskWorks,
    Attack,
    CalmDown,
}

struct Entry {
    at_us: u64,
    sequence: u64,
    event: Event,
}

/// How long the server is away after it was told to end.
const AWAY_MS: u64 = 500;
/// After the phones have calmed down everything has to come to rest within: the longest patience of a caller, and what may follow.
const REST_MS: u64 = 1_000_000;

impl World {
    fn new(plan: Plan, print: bool) -> Self {
        let mut rng = Rng::new(plan.seed, 2);
        let subscribers = plan.phones * 2 / 3 + 1;
        let names = Rc::new(Names {
            domain: "sim.example".into(),
            server: [
                SocketAddr::from(([192, 0, 2, 1], 5060)),
                SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 5060)),
            ],
            users: (0..subscribers).map(|n| format!("u{n}")).collect(),
            abroad: vec!["far@far.example".into()],
        });
        let mut phones = Vec::new();
        for id in 0..plan.phones {
            let user = format!("u{}", id % subscribers);
            let transport = if rng.per_mille(400) {
                Transport::Tcp
            } else {
                Transport::Udp
            };
            phones.push(Phone::new(
                id,
                user,
                Role::Subscriber,
                transport,
                names.clone(),
                plan.seed,
            ));
        }
        phones.push(Phone::new(
            plan.phones,
            "far".into(),
            Role::Abroad,
            Transport::Udp,
            names.clone(),
            plan.seed,
        ));
        let subscribers = phones[..plan.phones].iter();
        let subscribers = subscribers.map(|phone| {
            let aor = format!("{}@{}", phone.user, names.domain);
            (aor, ha1(&phone.user, &names.domain, phone.password()))
        });
        Self {
            subscribers: subscribers.collect(),
            trace: Trace::new(print),
            attacker: Attacker::new(plan.seed),
            moves: vec![0; phones.len()],
            links: vec![None; phones.len()],
            plan,
            now_us: 0,
            rng,
            judge: Judge::default(),
            queue: BinaryHeap::new(),
            sequence: 0,
            names,
            phones,
            present: BTreeMap::new(),
            known: BTreeMap::new(),
            server: None,
            disk: MemoryDisk::new(),
            starts: 0,
            flush_planned: false,
            ending_since_ms: None,
            connections: Connections::new(),
            connection_last: 0,
        }
    }

    /// Puts everything that the plan has decided into the queue.
    fn prepare(&mut self) {
        self.start();
        let plan = self.plan.clone();
        for phone in 0..self.phones.len() {
            let at_us = self.rng.range(0, 10_000_000);
            self.settle(phone);
            match self.phones[phone].transport {
                Transport::Tcp => self.at(at_us, Event::Connect { phone }),
                _ => self.at(
                    at_us,
                    Event::PhoneTimer {
                        phone,
                        timer: Timer::Register,
                    },
                ),
            }
            let first_us = self.rng.range(10_000_000, 40_000_000);
            self.at(
                first_us,
                Event::PhoneTimer {
                    phone,
                    timer: Timer::NewCall,
                },
            );
            self.at(
                first_us + 5_000_000,
                Event::PhoneTimer {
                    phone,
                    timer: Timer::NewMessage,
                },
            );
            self.plan_move(phone);
        }
        for (at_ms, away_ms) in &plan.crashes {
            self.at(at_ms * 1000, Event::Crash { away_ms: *away_ms });
        }
        for (at_ms, grace_ms) in &plan.restarts {
            self.at(
                at_ms * 1000,
                Event::End {
                    grace_ms: *grace_ms,
                },
            );
        }
        for (from_ms, until_ms) in &plan.disk_full {
            self.at(
                from_ms * 1000,
                Event::DiskFull {
                    until_ms: *until_ms,
                },
            );
        }
        for _ in 0..plan.attacks {
            let at_us = self.rng.range(0, plan.busy_ms * 1000);
            self.at(at_us, Event::Attack);
        }
        self.at(plan.busy_ms * 1000, Event::CalmDown);
    }

    fn run(&mut self) {
        let end_us = (self.plan.busy_ms + REST_MS) * 1000;
        while let Some(entry) = self.queue.pop().filter(|entry| entry.at_us <= end_us) {
            self.now_us = entry.at_us;
            self.happen(entry.event);
        }
    }

    pub(crate) fn at(&mut self, at_us: u64, event: Event) {
        self.sequence += 1;
        self.queue.push(Entry {
            at_us,
            sequence: self.sequence,
            event,
        });
    }

    pub(crate) fn after(&mut self, wait_us: u64, event: Event) {
        self.at(self.now_us + wait_us, event);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_us / 1000
    }

    pub(crate) fn now(&self) -> Now {
        now_at(self.now_us)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::DatagramToServer { from, message } => self.datagram_at_server(from, &message),
            Event::StreamToServer {
                connection,
                message,
            } => self.stream_at_server(connection, &message),
            Event::DatagramToPhone { to, message } => self.datagram_at_phone(to, &message),
            Event::StreamToPhone {
                connection,
                message,
            } => self.stream_at_phone(connection, &message),
            Event::PhoneTimer { phone, timer } => {
                self.with_phone(phone, |phone, now_ms, fx| phone.on_timer(now_ms, timer, fx));
            }
            Event::Connect { phone } => self.connect(phone),
            Event::Break { phone } => self.break_connection(phone),
            Event::ServerNotices { connection } => {
                if let Some(connection) = self.connections.get_mut(&connection) {
                    connection.open = false;
                }
            }
            Event::Move { phone } => self.move_phone(phone),
            Event::Wake { worker, start } => self.wake(worker, start),
            Event::Handed {
                worker,
                start,
                flow,
                message,
            } => {
                self.with_core(worker, start, |core, now, port| {
                    core.receive_handed(now, &flow, &message, port)
                });
            }
            Event::SendFailed {
                worker,
                start,
                origin,
            } => {
                self.with_core(worker, start, |core, now, port| {
                    core.send_failed(now, origin, port)
                });
            }
            Event::Resolved {
                worker,
                start,
                id,
                targets,
            } => {
                self.with_core(worker, start, |core, now, port| {
                    core.resolved(now, id, &targets, port)
                });
            }
            Event::Flush { start } => self.flush(start),
            Event::Crash { away_ms } => self.crash(away_ms),
            Event::End { grace_ms } => self.end_server(grace_ms),
            Event::Ended => self.server_ended(),
            Event::Start => self.start(),
            Event::DiskFull { until_ms } => self.fill_disk(until_ms),
            Event::DiskWorks => self.disk.set_capacity(None),
            Event::Attack => {
                let (from, message) = self.attacker.strike(&self.names, self.plan.auth);
                self.after(1, Event::DatagramToServer { from, message });
            }
            Event::CalmDown => self.calm_down(),
        }
    }
}

/// Phones.
impl World {
    pub(crate) fn with_phone(
        &mut self,
        number: usize,
        then: impl FnOnce(&mut Phone, u64, &mut Effects),
    ) {
        let mut fx = Effects::default();
        let now_ms = self.now_ms();
        then(&mut self.phones[number], now_ms, &mut fx);
        for message in fx.messages {
            self.phone_sends(number, message);
        }
        for (wait_ms, timer) in fx.timers {
            self.after(
                wait_ms * 1000,
                Event::PhoneTimer {
                    phone: number,
                    timer,
                },
            );
        }
        for report in fx.reports {
            let phones = &self.phones;
            self.judge.hear(now_ms, report, |user, since_ms| {
                let mut of_user = phones.iter().filter(|p| p.user == user);
                of_user.all(|p| p.stable_since_ms().is_some_and(|stable| stable < since_ms))
            });
        }
    }

    /// Gives a phone the address that belongs to its next place.
    pub(crate) fn settle(&mut self, number: usize) {
        let place = self.moves[number];
        self.moves[number] += 1;
        let (high, low) = ((number / 200) as u8, (number % 200 + 1) as u8);
        let home = (number / self.names.users.len()) as u8;
        let phone = &mut self.phones[number];
        self.present.remove(&phone.address);
        let (address, believed) = match (phone.role, phone.transport, number % 4) {
            (Role::Abroad, ..) => {
                let address = SocketAddr::from(([203, 0, 113, 5], 5060));
                (address, address)
            }
            // Behind a NAT, which changes the port now and then; several phones have the same private address.
            (_, _, 1) => {
                let public = SocketAddr::from(([198, 19, high, low], 20_000 + place));
                (
                    public,
                    SocketAddr::from(([192, 168, home, 2 + low % 5], 5060)),
                )
            }
            (_, Transport::Udp, 3) => {
                let (number, place) = (number as u16 + 1, place + 1);
                let address = SocketAddr::from(([0x2001, 0xdb8, 1, place, 0, 0, 0, number], 5060));
                (address, address)
            }
            // A connection's port is one, the port that a phone says it listens on another.
            (_, Transport::Tcp, 2) => {
                let ip = [198, 18, high, low];
                (
                    SocketAddr::from((ip, 20_000 + place)),
                    SocketAddr::from((ip, 5060)),
                )
            }
            (_, Transport::Tcp, _) => {
                let address = SocketAddr::from(([198, 18, high, low], 20_000 + place));
                (address, address)
            }
            _ => {
                let address = SocketAddr::from(([198, 20 + (place % 200) as u8, high, low], 5060));
                (address, address)
            }
        };
        phone.settle(address, believed);
        self.present.insert(address, number);
        self.known.insert(address, number);
        if !matches!(believed.ip(), std::net::IpAddr::V4(ip) if ip.is_private()) {
            self.known.insert(believed, number);
        }
    }

    fn plan_move(&mut self, phone: usize) {
        let (every_ms, event) = match self.phones[phone].transport {
            Transport::Udp => (self.plan.move_every_ms, Event::Move { phone }),
            _ => (self.plan.break_every_ms, Event::Break { phone }),
        };
        if every_ms == 0 || self.phones[phone].role == Role::Abroad {
            return;
        }
        let at_us = self.now_us + self.rng.range(every_ms / 2, every_ms * 2) * 1000;
        if at_us < self.plan.busy_ms * 1000 {
            self.at(at_us, event);
        }
    }

    fn move_phone(&mut self, number: usize) {
        self.trace
            .event(self.now_us, format_args!("phone {number} moves"));
        self.with_phone(number, |phone, _, fx| phone.uprooted(fx));
        self.settle(number);
        self.after(
            500_000,
            Event::PhoneTimer {
                phone: number,
                timer: Timer::Register,
            },
        );
        self.plan_move(number);
    }

    fn break_connection(&mut self, number: usize) {
        self.cut(number);
        self.plan_move(number);
    }

    /// The phone's connection is no more, which the server need not notice at once.
    fn cut(&mut self, number: usize) {
        let Some(id) = self.links[number].take() else {
            return;
        };
        self.trace.event(
            self.now_us,
            format_args!("phone {number} loses its connection"),
        );
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.whole = false;
        }
        let unnoticed_us = self.rng.range(0, 5_000_000);
        self.after(unnoticed_us, Event::ServerNotices { connection: id });
        self.with_phone(number, |phone, _, fx| phone.uprooted(fx));
        let again_us = self.rng.range(100_000, 3_000_000);
        self.after(again_us, Event::Connect { phone: number });
    }

    /// From here on phones only finish what they have begun; some sign off in order.
    fn calm_down(&mut self) {
        self.trace
            .event(self.now_us, format_args!("everybody calms down"));
        self.check_bindings("at the end of the day");
        for number in 0..self.phones.len() {
            self.phones[number].calm_down();
            if self.rng.per_mille(300) {
                self.with_phone(number, |phone, now_ms, fx| phone.unregister(now_ms, fx));
            }
        }
    }
}

/// The server and its disk.
impl World {
    /// Lets a worker's core do something and sees to what it wants done. Nothing happens when the server has ended since `start`.
    pub(crate) fn with_core(
        &mut self,
        worker: usize,
        start: u32,
        then: impl FnOnce(&mut Core, Now, &mut Port<'_>),
    ) {
        let now = self.now();
        let Some(server) = self.server.as_mut().filter(|server| server.start == start) else {
            return;
        };
        let mut port = Port {
            names: &self.names,
            connections: &self.connections,
            worker,
            effects: Vec::new(),
        };
        then(&mut server.cores[worker], now, &mut port);
        let effects = port.effects;
        for effect in effects {
            self.do_effect(worker, start, effect);
        }
        self.plan_wake(worker, start);
    }

    fn do_effect(&mut self, worker: usize, start: u32, effect: Effect) {
        match effect {
            Effect::Send {
                to,
                origin,
                message,
            } => self.server_sends(worker, &to, origin, message),
            Effect::Wait(waiting) => {
                if let Some(server) = &mut self.server {
                    server.waiting.push(waiting);
                }
                self.plan_flush(start);
            }
            Effect::Resolve { id, request } => self.resolve(worker, start, id, &request),
            Effect::HandOver {
                worker: to,
                flow,
                message,
            } => {
                self.judge.stats.handed_over += 1;
                let wait_us = self.rng.range(5, 200);
                self.after(
                    wait_us,
                    Event::Handed {
                        worker: usize::from(to),
                        start,
                        flow,
                        message,
                    },
                );
            }
        }
    }

    fn plan_wake(&mut self, worker: usize, start: u32) {
        let Some(server) = &mut self.server else {
            return;
        };
        let Some(at_us) = server.cores[worker].next_deadline().map(wake_us) else {
            return;
        };
        let at_us = at_us.max(self.now_us + 1);
        if server.wake_us[worker].is_none_or(|planned| at_us < planned) {
            server.wake_us[worker] = Some(at_us);
            self.at(at_us, Event::Wake { worker, start });
        }
    }

    fn wake(&mut self, worker: usize, start: u32) {
        let Some(server) = self.server.as_mut().filter(|s| s.start == start) else {
            return;
        };
        if server.wake_us[worker] != Some(self.now_us) {
            return;
        }
        server.wake_us[worker] = None;
        self.with_core(worker, start, |core, now, port| core.advance(now, port));
        let next = self
            .server
            .as_ref()
            .and_then(|s| s.cores[worker].next_deadline());
        if next.is_some_and(|next| next <= self.now().mono) {
            self.judge.fault(format!(
                "worker {worker} wants to be woken at once, over and over"
            ));
        }
    }

    /// The writer's turn: what waits goes to disk, and the responses that waited for it leave.
    fn flush(&mut self, start: u32) {
        self.flush_planned = false;
        let now = self.now();
        let Some(server) = self.server.as_mut().filter(|s| s.start == start) else {
            return;
        };
        server.writer.step(now.wall);
        server.location.expire(now.wall);
        let (mut durable, mut failed) = (Vec::new(), Vec::new());
        for waiting in std::mem::take(&mut server.waiting) {
            match server.location.ticket_state(waiting.ticket) {
                TicketState::Durable => durable.push(waiting),
                TicketState::Failed => failed.push(waiting),
                TicketState::Waiting => server.waiting.push(waiting),
            }
        }
        let again = !server.waiting.is_empty();
        for Waiting {
            to,
            message,
            worker,
            ..
        } in durable
        {
            self.server_sends(worker, &sip_core::Destination::Flow(to), None, message);
        }
        for Waiting {
            to,
            message,
            worker,
            ..
        } in failed
        {
            self.with_core(worker, start, |core, _, port| {
                core.durability_failed(&to, &message, port)
            });
        }
        if again {
            self.plan_flush(start);
        }
    }

    fn plan_flush(&mut self, start: u32) {
        if !self.flush_planned {
            self.flush_planned = true;
            self.after(self.plan.flush_ms * 1000, Event::Flush { start });
        }
    }

    /// `kill -9`, perhaps in the middle of a write; whatever was not on disk is gone.
    fn crash(&mut self, away_ms: u64) {
        self.trace
            .event(self.now_us, format_args!("the server crashes"));
        let now = self.now();
        let Some(mut server) = self.server.take() else {
            return;
        };
        if self.rng.per_mille(600) {
            let tear = *self.rng.pick(&[Tear::Short, Tear::Zeros]);
            self.disk.crash_after(self.rng.range(0, 400), tear);
            server.writer.step(now.wall);
        }
        self.judge.crashed(self.now_ms() + away_ms);
        self.take_away(server, away_ms);
    }

    /// The server is told to end: calls in setup are answered, new ones refused.
    fn end_server(&mut self, grace_ms: u64) {
        let Some(start) = self.server.as_ref().map(|server| server.start) else {
            return;
        };
        self.trace
            .event(self.now_us, format_args!("the server is told to end"));
        self.ending_since_ms = Some(self.now_ms());
        self.judge.may_refuse = true;
        self.judge.crashed(self.now_ms() + grace_ms + AWAY_MS);
        for worker in 0..usize::from(self.plan.workers) {
            self.with_core(worker, start, |core, now, port| core.shut_down(now, port));
        }
        self.after(grace_ms * 1000, Event::Ended);
    }

    fn server_ended(&mut self) {
        let Some(since_ms) = self.ending_since_ms.take() else {
            return;
        };
        let now = self.now();
        let Some(mut server) = self.server.take() else {
            return;
        };
        self.trace
            .event(self.now_us, format_args!("the server ends"));
        server.writer.step(now.wall);
        for phone in &self.phones {
            for (call_id, began_ms) in phone.calls_in_setup(since_ms) {
                if !self.judge.was_disturbed(call_id, began_ms, since_ms) {
                    self.judge.fault(format!(
                        "the server ended and left call {call_id} of phone {} unanswered",
                        phone.id
                    ));
                }
            }
        }
        self.take_away(server, AWAY_MS);
    }

    fn take_away(&mut self, server: Server, away_ms: u64) {
        drop(server);
        self.ending_since_ms = None;
        self.flush_planned = false;
        self.disk.restart();
        for number in 0..self.phones.len() {
            self.cut(number);
        }
        self.connections
            .values_mut()
            .for_each(|connection| connection.open = false);
        self.after(away_ms * 1000, Event::Start);
    }

    fn start(&mut self) {
        self.starts += 1;
        self.trace
            .event(self.now_us, format_args!("the server starts"));
        let now = self.now();
        match Server::start(
            &self.plan,
            &self.names,
            &self.subscribers,
            &self.disk,
            self.starts,
            now,
        ) {
            Ok(server) => self.server = Some(server),
            Err(error) => return self.judge.fault(error),
        }
        if self.starts > 1 {
            self.check_bindings("after a crash");
        }
        for worker in 0..usize::from(self.plan.workers) {
            self.plan_wake(worker, self.starts);
        }
    }

    /// The disk takes a little more, and then nothing until then.
    fn fill_disk(&mut self, until_ms: u64) {
        self.trace
            .event(self.now_us, format_args!("the disk is full"));
        self.judge.may_refuse = true;
        let mut disk = self.disk.clone();
        let files = disk.list().unwrap_or_default();
        let used: usize = files
            .iter()
            .filter_map(|file| disk.read(file).ok())
            .map(|bytes| bytes.len())
            .sum();
        self.disk
            .set_capacity(Some(used as u64 + self.rng.range(0, 300)));
        self.at(until_ms * 1000, Event::DiskWorks);
    }

    fn resolve(&mut self, worker: usize, start: u32, id: ResolveId, request: &ResolveRequest) {
        let mut targets = Vec::new();
        let fails = self.rng.per_mille(self.plan.resolver_fails);
        if request.host == "far.example" && !fails {
            let peer = SocketAddr::from(([203, 0, 113, 5], 5060));
            targets.push(Target {
                transport: Transport::Udp,
                peer,
            });
        } else if request.host == "victim.example" {
            targets.push(Target {
                transport: Transport::Udp,
                peer: crate::attack::victim(),
            });
        }
        let wait_us = self.rng.range(100, if fails { 5_000_000 } else { 50_000 });
        self.after(
            wait_us,
            Event::Resolved {
                worker,
                start,
                id,
                targets,
            },
        );
    }
}

/// The last look.
impl World {
    /// Every binding that a phone was promised is there, and none that it has taken back.
    fn check_bindings(&mut self, when: &str) {
        let (now, now_ms) = (self.now(), self.now_ms());
        let Some(server) = &self.server else { return };
        for phone in &self.phones {
            let Some(promise) = phone.promise() else {
                continue;
            };
            let aor = format!("{}@{}", phone.user, self.names.domain);
            let found = server.location.read(aor.as_bytes(), now.wall, |bindings| {
                let mut parts = bindings.iter().map(|binding| binding.parts());
                let found = parts.find(|parts| parts.contact == promise.contact.as_bytes());
                found.map(|p| {
                    (
                        p.call_id == promise.call_id.as_bytes(),
                        p.cseq,
                        run_ms(p.expires),
                    )
                })
            });
            let right = match found {
                Some((true, cseq, _)) if cseq > promise.cseq => promise.until_ms > 0,
                Some((true, cseq, until_ms)) => {
                    cseq == promise.cseq && until_ms + 1000 >= promise.until_ms
                }
                Some((false, ..)) => false,
                None => promise.until_ms <= now_ms,
            };
            if right {
                self.judge.stats.bindings_recovered += u64::from(found.is_some());
            } else {
                self.judge.fault(format!(
                    "{when}: phone {} of {aor} was promised {promise:?}, and the server has {found:?}",
                    phone.id
                ));
            }
        }
    }

    fn look_back(&mut self) {
        self.check_bindings("at rest");
        for phone in &self.phones {
            for (call_id, since_ms, state) in phone.open_legs() {
                let what = format!("phone {} is left in a call: {state}", phone.id);
                self.judge.complaint(call_id, since_ms, &what);
            }
        }
        let Some(server) = &self.server else {
            return self.judge.fault("the server is not there at the end");
        };
        let mut counters = Counters::default();
        server
            .cores
            .iter()
            .for_each(|core| counters.add(&core.counters()));
        let (held, waiting) = (
            (counters.server_transactions, counters.client_transactions),
            server.waiting.len(),
        );
        if held != (0, 0) {
            self.judge.fault(format!(
                "{} server and {} client transactions are left over",
                held.0, held.1
            ));
        }
        if waiting > 0 {
            self.judge
                .fault(format!("{waiting} responses still wait for the disk"));
        }
    }
}

impl Ord for Entry {
    /// The earliest is the greatest: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_us, other.sequence).cmp(&(self.at_us, self.sequence))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
