use crate::Mail;
use crate::outlet::{Outlet, State};
use crate::status::Delay;
use location::{Flow, Transport};
use net::{Closed, ConnectionId, Handler, Io, Source, Tag};
use sip_core::{Core, Now, Origin};
use sip_wire::ParseError;

/// Joins a worker's sockets to its core.
pub(crate) struct Hub {
    pub(crate) core: Core,
    pub(crate) state: State,
    pub(crate) now: Now,
    pub(crate) delay: Delay,
    pub(crate) shutting_down: bool,
    stun_ignored: u64,
}

/// Rounds of telling the core of failures in one go: a core that is told of one may try another way, which may fail too.
const FAILURE_ROUNDS: usize = 8;

impl Handler for Hub {
    fn message(&mut self, io: &mut Io, from: &Source, bytes: &[u8]) {
        let flow = flow(from);
        if flow.transport == Transport::Udp && is_stun(bytes) {
            self.stun_ignored += 1;
            return;
        }
        self.call(io, |core, now, outlet| {
            core.receive(now, &flow, bytes, outlet);
        });
    }

    fn broken(&mut self, io: &mut Io, from: &Source, bytes: &[u8], error: ParseError) {
        let flow = flow(from);
        self.call(io, |core, _, outlet| {
            core.receive_broken(&flow, bytes, error, outlet);
        });
    }

    fn closed(&mut self, _: &mut Io, closed: &Closed) {
        self.state.voice.expelled(self.now.mono, closed);
    }

    fn unsent(&mut self, io: &mut Io, tag: Tag) {
        let origin = Origin(tag.value);
        if tag.owner == self.state.worker {
            self.call(io, |core, now, outlet| {
                core.send_failed(now, origin, outlet);
            });
        } else {
            self.state.post.send(tag.owner, Mail::SendFailed(origin));
        }
    }
}

impl Hub {
    pub(crate) fn new(core: Core, state: State, now: Now) -> Self {
        Self {
            core,
            state,
            now,
            delay: Delay::default(),
            shutting_down: false,
            stun_ignored: 0,
        }
    }

    /// A new turn, at that time.
    pub(crate) fn begin(&mut self, now: Now) {
        self.now = now;
        self.state.now = now.mono;
    }

    /// Does what came by mail.
    pub(crate) fn handle(&mut self, io: &mut Io, mail: Mail) {
        match mail {
            Mail::HandedOver { flow, bytes } => self.call(io, |core, now, outlet| {
                core.receive_handed(now, &flow, &bytes, outlet);
            }),
            Mail::Send {
                flow,
                origin,
                bytes,
            } => {
                let tag = origin.map(|(owner, origin)| Tag {
                    owner,
                    value: origin.0,
                });
                io.send(ConnectionId(flow.connection), tag, &bytes);
            }
            Mail::SendFailed(origin) => self.call(io, |core, now, outlet| {
                core.send_failed(now, origin, outlet);
            }),
            Mail::Resolved { id, targets } => self.call(io, |core, now, outlet| {
                core.resolved(now, id, &targets, outlet);
            }),
            Mail::Settings(settings) => {
                io.set_limits(settings.limits);
                self.core.set_settings(settings);
            }
            Mail::Status(reply) => {
                // Whoever asked may have gone.
                let _ = reply.try_send(self.status(io));
            }
            Mail::CloseConnection(id) => io.close(id),
            Mail::ShutDown if self.shutting_down => {}
            Mail::ShutDown => {
                self.shutting_down = true;
                io.stop_accepting();
                self.call(io, |core, now, outlet| core.shut_down(now, outlet));
            }
        }
    }

    /// Runs the core's timers when they are due.
    pub(crate) fn advance(&mut self, io: &mut Io) {
        if self
            .core
            .next_deadline()
            .is_some_and(|at| at <= self.now.mono)
        {
            self.call(io, |core, now, outlet| core.advance(now, outlet));
        }
    }

    /// Sends the answers that do not wait for the journal any more.
    pub(crate) fn settle_durable(&mut self, io: &mut Io) {
        if self.state.durable.len() == 0 {
            return;
        }
        let mut durable = std::mem::take(&mut self.state.durable);
        let location = std::sync::Arc::clone(&self.state.location);
        durable.settle(self.state.now, &location, |flow, message, is_durable| {
            let mut outlet = Outlet {
                io,
                state: &mut self.state,
            };
            if is_durable {
                outlet.send_on(flow, None, message);
            } else {
                outlet.state.answers_refused += 1;
                self.core.durability_failed(flow, message, &mut outlet);
            }
        });
        self.state.durable = durable;
    }

    /// Tells the core what it could not be told while it was running.
    pub(crate) fn tell_failures(&mut self, io: &mut Io) {
        for _ in 0..FAILURE_ROUNDS {
            if !self.has_failures() {
                return;
            }
            let (core, now) = (&mut self.core, self.now);
            let failed = std::mem::take(&mut self.state.failed);
            let unresolved = std::mem::take(&mut self.state.unresolved);
            let refused = std::mem::take(&mut self.state.refused);
            let mut outlet = Outlet {
                io,
                state: &mut self.state,
            };
            for origin in failed {
                core.send_failed(now, origin, &mut outlet);
            }
            for id in unresolved {
                core.resolved(now, id, &[], &mut outlet);
            }
            for (flow, message) in refused {
                outlet.state.answers_refused += 1;
                core.durability_failed(&flow, &message, &mut outlet);
            }
        }
    }

    pub(crate) fn has_failures(&self) -> bool {
        let state = &self.state;
        !state.failed.is_empty() || !state.unresolved.is_empty() || !state.refused.is_empty()
    }

    fn call(&mut self, io: &mut Io, call: impl FnOnce(&mut Core, Now, &mut Outlet<'_>)) {
        let before = io.stages().now();
        let mut outlet = Outlet {
            io,
            state: &mut self.state,
        };
        call(&mut self.core, self.now, &mut outlet);
        if self.has_failures() {
            self.tell_failures(io);
        }
        io.stages().back_to(before);
    }

    fn status(&mut self, io: &mut Io) -> crate::WorkerStatus {
        let now_us = self.now.mono.0;
        let (delay_us_max, delay_us_average, turns) = self.delay.read(now_us);
        let mailbox = self.state.post.mailbox(self.state.worker);
        crate::WorkerStatus {
            worker: self.state.worker,
            uptime_ms: now_us / 1000,
            core: self.core.counters(),
            net: io.counters(),
            delay_us_max,
            delay_us_average,
            turns,
            mail_dropped: mailbox.dropped.load(std::sync::atomic::Ordering::Relaxed),
            answers_waiting: self.state.durable.len() as u64,
            answers_refused: self.state.answers_refused,
            disk_waits: self.state.durable.waits,
            disk_wait_us: self.state.durable.waited_us,
            stages: io.stages().times(),
            stun_ignored: self.stun_ignored,
            lines_suppressed: self.state.voice.suppressed,
        }
    }
}

fn flow(from: &Source) -> Flow {
    Flow {
        transport: if from.connection == ConnectionId::NONE {
            Transport::Udp
        } else {
            Transport::Tcp
        },
        listener: from.listener,
        connection: from.connection.0,
        local: from.local,
        peer: from.peer,
    }
}

/// A STUN message (RFC 8489 section 5), which some phones send to keep a NAT binding open: not SIP, and worth no log line.
fn is_stun(bytes: &[u8]) -> bool {
    bytes.len() >= 20 && bytes[0] < 4 && bytes[4..8] == [0x21, 0x12, 0xa4, 0x42]
}
