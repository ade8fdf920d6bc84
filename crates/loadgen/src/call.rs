//! Calls through the server, caller and callee both played here.
//!
//! ```text
//! caller      server      callee
//!   |--INVITE-->|            |
//!   |<---100----|--INVITE--->|
//!   |<---180----|<---180-----|
//!   |<---200----|<---200-----|
//!   |----ACK--->|----ACK---->|
//!   |----BYE--->|----BYE---->|
//!   |<---200----|<---200-----|
//! ```
//! Thirteen messages at the server; sixteen when the INVITE is challenged and acknowledged first.
//! The caller sends every request to the target, as a phone does with an outbound proxy, whatever
//! its first Route names (RFC 3261 section 12.2.1.1 allows it). Only the caller sends requests in
//! the dialog, so none of them cross.

use std::ops::Range;

use net::Source;

use crate::{
    callee::Callee,
    caller::{Caller, Request},
    cause::{Cause, Outcome},
    digest::Accounts,
    driver::Driver,
    message::{self, Id, Put},
    plan::CallPlan,
    requests::Digest,
    scenario::Scenario,
    timers::Due,
};

/// The calls of one driver: user 2i calls user 2i+1.
pub(crate) struct Calls {
    pub(crate) plan: CallPlan,
    pub(crate) accounts: Accounts,
    pairs: Range<usize>,
    next: usize,
    /// No other call begins, and those that are answered end at once.
    finishes: bool,
    pub(crate) calls: Vec<Call>,
}

/// A call, both sides of it.
#[derive(Default)]
pub(crate) struct Call {
    pub(crate) pair: usize,
    generation: u32,
    pub(crate) fate: Fate,
    pub(crate) caller: Caller,
    pub(crate) callee: Callee,
}

/// What is meant to happen in a call.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Fate {
    pub(crate) end: End,
    pub(crate) prack: bool,
    pub(crate) update: bool,
    pub(crate) reinvite: bool,
    /// How long the callee rings, microseconds.
    pub(crate) ring_us: u64,
    /// How long the caller waits before each request in the dialog.
    pub(crate) rest_us: u64,
}

/// How a call is meant to end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum End {
    /// Answered, and ended by the caller.
    #[default]
    Bye,
    /// Given up by the caller while it rings.
    Cancel,
    /// Refused by the callee.
    Busy,
}

/// Time from one hang-up to the next when a run ends: 5,000 a second.
const FINISH_GAP_US: u64 = 200;

impl Calls {
    /// Between the users of that range, in pairs.
    pub(crate) fn new(plan: &CallPlan, users: &Range<usize>) -> Self {
        let pairs = pairs(users);
        Self {
            plan: plan.clone(),
            accounts: Accounts::default(),
            next: pairs.start,
            pairs,
            finishes: false,
            calls: Vec::new(),
        }
    }

    fn fate(&self, driver: &mut Driver) -> Fate {
        let random = driver.random();
        let end = match 100.0 * random.unit() {
            n if n < self.plan.cancel => End::Cancel,
            n if n < self.plan.cancel + self.plan.busy => End::Busy,
            _ => End::Bye,
        };
        let mut share = |percent: f64| percent > 0.0 && 100.0 * random.unit() < percent;
        let (prack, update) = (share(self.plan.prack), share(self.plan.update));
        let reinvite = share(self.plan.reinvite);
        let pieces = 1 + u64::from(update) + u64::from(reinvite);
        Fate {
            end,
            prack,
            update,
            reinvite,
            ring_us: self.plan.ring.draw(random),
            rest_us: self.plan.talk.draw(random) / pieces,
        }
    }

    /// Has the caller send its next request in the dialog after a while.
    pub(crate) fn rest(&mut self, driver: &mut Driver, slot: u32) {
        let call = &mut self.calls[slot as usize];
        let wait_us = if self.finishes { 0 } else { call.fate.rest_us };
        call.caller.rests = wait_us > 0;
        if call.caller.rests {
            driver.arm(wait_us, driver.id(slot), Due::Continue);
        } else {
            self.go_on(driver, slot);
        }
    }

    /// Sends the caller's next request in the dialog, unless it rests or waits for an answer.
    pub(crate) fn go_on(&mut self, driver: &mut Driver, slot: u32) {
        let operation = &driver.operations[slot as usize];
        let call = &mut self.calls[slot as usize];
        if call.caller.rests || operation.main.unanswered || operation.side.unanswered {
            return;
        }
        if let Some(outcome) = call.caller.outcome {
            return driver.end(slot, outcome);
        }
        let request = if std::mem::take(&mut call.fate.update) {
            Request::Update
        } else if std::mem::take(&mut call.fate.reinvite) {
            Request::Reinvite
        } else {
            Request::Bye
        };
        self.send(driver, slot, request);
    }

    /// A final response to the INVITE. Whatever it is, it has been acknowledged.
    pub(crate) fn invite_answered(&mut self, driver: &mut Driver, slot: u32, code: u16) {
        let call = &mut self.calls[slot as usize];
        let meant = match (code, call.fate.end) {
            (200..300, End::Bye) => {
                driver.record_latency(slot);
                return self.rest(driver, slot);
            }
            (200..300, _) => {
                // The CANCEL came too late, or the callee is not one of ours.
                call.fate.update = false;
                call.fate.reinvite = false;
                return self.go_on(driver, slot);
            }
            (486, End::Busy) | (487, End::Cancel) => true,
            _ => false,
        };
        if meant {
            driver.record_latency(slot);
            call.caller.outcome = Some(Outcome::Good);
            self.go_on(driver, slot); // when the CANCEL is answered, too
        } else {
            driver.end(slot, failure(code));
        }
    }

    /// The BYE was answered.
    pub(crate) fn hung_up(&mut self, driver: &mut Driver, slot: u32, code: u16) {
        let outcome = match (code, self.calls[slot as usize].fate.end) {
            (200..300, End::Bye) => Outcome::Good,
            (200..300, _) => Outcome::Failed(Cause::Response),
            _ => failure(code),
        };
        driver.end(slot, outcome);
    }
}

/// Pairs of caller and callee among users.
pub(crate) fn pairs(users: &Range<usize>) -> Range<usize> {
    users.start.div_ceil(2)..users.end / 2
}

/// How an operation ends with a final response that it was not for.
pub(crate) fn failure(code: u16) -> Outcome {
    Outcome::Failed(match code {
        401 | 407 => Cause::Credentials,
        503 => Cause::Refused,
        _ => Cause::Response,
    })
}

/// Content-Type, Content-Length and a session description as a phone's.
pub(crate) fn put_session(out: &mut Vec<u8>) {
    const BODY: &[u8] = b"v=0\r\no=- 3884 3884 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\n\
        t=0 0\r\nm=audio 40000 RTP/AVP 8 0 101\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\n\
        a=rtpmap:101 telephone-event/8000\r\na=sendrecv\r\n";
    out.put(&[b"Content-Type: application/sdp\r\nContent-Length: "]);
    out.put_number(BODY.len() as u64);
    out.put(&[b"\r\n\r\n", BODY]);
}

impl Scenario for Calls {
    fn begin(&mut self, driver: &mut Driver, slot: u32) {
        self.finishes = false;
        self.calls
            .resize_with(driver.operations.len(), Call::default);
        let fate = self.fate(driver);
        let pair = self.next;
        self.next = match pair + 1 {
            end if end >= self.pairs.end => self.pairs.start,
            next => next,
        };
        let call = &mut self.calls[slot as usize];
        call.pair = pair;
        call.generation = driver.id(slot).generation;
        call.fate = fate;
        let known = self.plan.digest == Digest::Reuse && self.accounts.are_challenged(2 * pair);
        call.caller.renew(known);
        call.callee.renew();
        self.send(driver, slot, Request::Invite);
    }

    fn provisional(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]) {
        self.rings(driver, id, code, message);
    }

    fn answered(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]) {
        self.finally(driver, id, code, message);
    }

    fn answered_again(&mut self, driver: &mut Driver, id: Id, _: u16, _: &[u8]) {
        self.acknowledge_again(driver, id);
    }

    fn request(&mut self, driver: &mut Driver, id: Id, from: &Source, message: &[u8]) {
        let call = &mut self.calls[id.slot as usize];
        match message::method(message) {
            b"INVITE" => call.invited(driver, id, from, message),
            b"PRACK" => call.ring_acknowledged(driver, id, from, message),
            b"ACK" => call.callee.acknowledged(message),
            b"CANCEL" => call.cancelled(driver, id, from, message),
            b"UPDATE" | b"BYE" => call.in_dialog(driver, from, message),
            _ => crate::uas::refuse(driver, from, message),
        }
    }

    fn due(&mut self, driver: &mut Driver, id: Id, due: Due) {
        let call = &mut self.calls[id.slot as usize];
        match due {
            Due::Request => {}
            Due::Answer => call.pick_up(driver, id),
            Due::RingAgain | Due::AnswerAgain => call.answer_again(driver, id, due),
            Due::Cancel => self.cancel(driver, id.slot),
            Due::Continue => {
                call.caller.rests = false;
                self.go_on(driver, id.slot);
            }
        }
    }

    fn finish(&mut self, driver: &mut Driver) {
        self.finishes = true;
        let mut wait_us = 0;
        for (slot, call) in self.calls.iter().enumerate() {
            let operation = &driver.operations[slot];
            let is_this = operation.busy && operation.generation == call.generation;
            if is_this && call.caller.rests {
                wait_us += FINISH_GAP_US;
                driver.arm(wait_us, driver.id(slot as u32), Due::Continue);
            }
        }
    }
}
