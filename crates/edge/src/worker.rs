use crate::Mail;
use crate::clock::Clock;
use crate::hub::Hub;
use net::Net;
use sip_core::Mono;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The event loop of one core.
pub(crate) struct Worker {
    net: Net,
    hub: Hub,
    clock: Clock,
    mail: VecDeque<Mail>,
    /// How long a shutdown may take.
    shutdown_ms: u32,
}

impl Worker {
    pub(crate) fn new(net: Net, hub: Hub, clock: Clock, shutdown_ms: u32) -> Self {
        Self {
            net,
            hub,
            clock,
            mail: VecDeque::new(),
            shutdown_ms,
        }
    }

    /// Runs until it is told to shut down and has done so, or the time for that is over.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut ends_at: Option<Mono> = None;
        loop {
            self.net.wait(self.timeout(ends_at))?;
            self.turn();
            if self.hub.shutting_down {
                let now = self.hub.now.mono;
                let until = *ends_at.get_or_insert(now.after_ms(self.shutdown_ms));
                if now >= until || self.is_drained() {
                    return Ok(());
                }
            }
        }
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        self.hub.begin(now);
        self.net.turn(now.mono.0 / 1000, &mut self.hub);
        if self.net.take_woken() {
            self.read_mail();
        }
        let io = self.net.io();
        self.hub.advance(io);
        if self.hub.has_failures() {
            self.hub.tell_failures(io);
        }
        self.settle_durable();
        self.net.flush(&mut self.hub);
        let ended = self.clock.mono();
        self.hub.delay.record(now.mono.0, ended.0);
    }

    fn read_mail(&mut self) {
        let post = &self.hub.state.post;
        post.mailbox(self.hub.state.worker).take(&mut self.mail);
        while let Some(mail) = self.mail.pop_front() {
            self.hub.handle(self.net.io(), mail);
        }
    }

    fn settle_durable(&mut self) {
        let io = self.net.io();
        self.hub.settle_durable(io);
        if self.hub.state.durable.len() > 0 {
            // First asked for, then looked at once more: a batch written in between has woken nobody.
            let mailbox = self.hub.state.post.mailbox(self.hub.state.worker);
            mailbox.waits_for_disk.store(true, Ordering::SeqCst);
            self.hub.settle_durable(io);
        }
    }

    /// How long there is nothing to do without an event.
    fn timeout(&self, ends_at: Option<Mono>) -> Option<Duration> {
        if self.hub.has_failures() {
            return Some(Duration::ZERO);
        }
        let at = [self.hub.core.next_deadline(), ends_at]
            .into_iter()
            .flatten()
            .min()?;
        Some(Duration::from_micros(
            at.0.saturating_sub(self.hub.now.mono.0),
        ))
    }

    /// Nothing that was promised waits any more.
    fn is_drained(&mut self) -> bool {
        self.hub.state.durable.len() == 0 && !self.net.io().is_pushed_back()
    }
}
