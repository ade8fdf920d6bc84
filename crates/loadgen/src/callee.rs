//! The called side of a call.

use net::Source;

use crate::{
    call::{Call, End, Fate, put_session},
    driver::Driver,
    io::Transport,
    message::{self, Id, Put},
    timers::{Due, T1_US, T2_US},
    uas,
};

/// What the callee knows of its call.
#[derive(Default)]
pub(crate) struct Callee {
    /// Where the INVITE came from.
    came_from: Option<Source>,
    /// CSeq of the INVITE.
    sequence: u32,
    /// The header fields that every response to the INVITE has.
    head: Vec<u8>,
    /// The response to the INVITE that was sent last; sent again when the INVITE comes again.
    answer: Vec<u8>,
    /// A final response was sent.
    answered: bool,
    /// What was sent last is sent again until it is acknowledged: a 180 by PRACK, a final response by ACK.
    unacknowledged: bool,
    /// Ringing is over, but the 180 has to be acknowledged first.
    picks_up: bool,
    wait_us: u64,
    /// Tells what is sent again now from what was before: deadlines of that are over.
    round: u32,
}

/// RSeq of the 180 (RFC 3262).
const RELIABLE_NUMBER: u32 = 1;

impl Callee {
    /// Begins anew for another call.
    pub(crate) fn renew(&mut self) {
        *self = Self {
            head: std::mem::take(&mut self.head),
            answer: std::mem::take(&mut self.answer),
            ..Self::default()
        };
    }

    /// An ACK has come.
    pub(crate) fn acknowledged(&mut self, message: &[u8]) {
        if self.answered && message::sequence(message) == Some(self.sequence) {
            self.unacknowledged = false;
        }
    }

    fn repeats(&mut self) -> u32 {
        self.unacknowledged = true;
        self.wait_us = T1_US;
        self.round += 1;
        self.round
    }
}

impl Fate {
    /// Header fields that tell the other side what may come.
    pub(crate) fn abilities(&self) -> &'static [u8] {
        match (self.prack, self.update) {
            (false, false) => b"",
            (true, _) => b"Supported: 100rel\r\nAllow: INVITE, ACK, CANCEL, BYE, PRACK, UPDATE\r\n",
            (false, true) => b"Allow: INVITE, ACK, CANCEL, BYE, UPDATE\r\n",
        }
    }
}

impl Call {
    /// An INVITE: the first one rings, and is answered at once or later; one in the dialog is answered at once.
    pub(crate) fn invited(&mut self, driver: &mut Driver, id: Id, from: &Source, message: &[u8]) {
        let sequence = message::sequence(message).unwrap_or(0);
        let callee = &mut self.callee;
        if callee.came_from.is_some() && callee.sequence >= sequence {
            return driver.io.reply(from, &callee.answer);
        }
        let first = callee.came_from.is_none();
        callee.came_from = Some(*from);
        callee.sequence = sequence;
        callee.answered = false;
        callee.head.clear();
        uas::copy_head(message, &driver.tag, &mut callee.head);
        match self.fate.end {
            _ if !first => self.answer(driver, id, b"200 OK"),
            End::Busy => self.answer(driver, id, b"486 Busy Here"),
            End::Cancel => self.ring(driver, id),
            End::Bye => {
                self.ring(driver, id);
                if self.fate.ring_us > 0 {
                    driver.arm(self.fate.ring_us, Id { step: 0, ..id }, Due::Answer);
                } else {
                    self.pick_up(driver, id);
                }
            }
        }
    }

    fn ring(&mut self, driver: &mut Driver, id: Id) {
        self.begin_answer(driver, b"180 Ringing");
        let callee = &mut self.callee;
        if self.fate.prack {
            callee.answer.put(&[b"Require: 100rel\r\nRSeq: "]);
            callee.answer.put_number(u64::from(RELIABLE_NUMBER));
            callee.answer.put(&[b"\r\n"]);
            let step = callee.repeats();
            driver.arm(T1_US, Id { step, ..id }, Due::RingAgain);
        }
        callee.answer.put(&[b"Content-Length: 0\r\n\r\n"]);
        self.send_answer(driver);
    }

    /// The callee has rung long enough.
    pub(crate) fn pick_up(&mut self, driver: &mut Driver, id: Id) {
        // RFC 3262 section 3 lets a 2xx wait for the PRACK; here it always does.
        self.callee.picks_up = self.callee.unacknowledged;
        if !self.callee.unacknowledged && !self.callee.answered {
            self.answer(driver, id, b"200 OK");
        }
    }

    /// Sends a final response to the INVITE, until it is acknowledged.
    fn answer(&mut self, driver: &mut Driver, id: Id, status: &[u8]) {
        self.begin_answer(driver, status);
        let well = status.starts_with(b"2");
        let callee = &mut self.callee;
        match well {
            true => put_session(&mut callee.answer),
            false => callee.answer.put(&[b"Content-Length: 0\r\n\r\n"]),
        }
        callee.answered = true;
        // A 2xx is repeated over every transport (RFC 3261 section 13.3.1.4), others where they may be lost.
        if well || driver.flows.callee_transport() == Transport::Udp {
            let step = callee.repeats();
            driver.arm(T1_US, Id { step, ..id }, Due::AnswerAgain);
        }
        self.send_answer(driver);
    }

    fn begin_answer(&mut self, driver: &Driver, status: &[u8]) {
        let callee = &mut self.callee;
        callee.answer.clear();
        callee
            .answer
            .put(&[b"SIP/2.0 ", status, b"\r\n", &callee.head]);
        if !status.starts_with(b"4") {
            put_contact(driver, self.pair, &mut callee.answer);
            callee.answer.put(&[self.fate.abilities()]);
        }
    }

    fn send_answer(&self, driver: &mut Driver) {
        if let Some(from) = &self.callee.came_from {
            driver.io.reply(from, &self.callee.answer);
        }
    }

    /// What was sent last has not been acknowledged in time. The wait for a PRACK doubles each time (RFC 3262 section 3),
    /// the one for an ACK up to T2 (RFC 3261 section 13.3.1.4).
    pub(crate) fn answer_again(&mut self, driver: &mut Driver, id: Id, due: Due) {
        let callee = &mut self.callee;
        if !callee.unacknowledged || callee.round != id.step {
            return;
        }
        callee.wait_us *= 2;
        if due == Due::AnswerAgain {
            callee.wait_us = callee.wait_us.min(T2_US);
        }
        driver.arm(callee.wait_us, id, due);
        driver.statistics.retransmissions += 1;
        self.send_answer(driver);
    }

    /// A PRACK has come.
    pub(crate) fn ring_acknowledged(
        &mut self,
        driver: &mut Driver,
        id: Id,
        from: &Source,
        message: &[u8],
    ) {
        let mut numbers = message::field(message, message::RACK)
            .unwrap_or_default()
            .split(|b| *b == b' ')
            .map(message::number);
        let known = self.fate.prack
            && numbers.next().flatten() == Some(RELIABLE_NUMBER)
            && numbers.next().flatten() == Some(self.callee.sequence);
        if !known {
            return uas::refuse(driver, from, message);
        }
        uas::reply(driver, from, message, b"200 OK", b"");
        if !self.callee.answered {
            self.callee.unacknowledged = false;
            if std::mem::take(&mut self.callee.picks_up) {
                self.pick_up(driver, id);
            }
        }
    }

    /// A CANCEL has come: the INVITE is refused, unless it is too late (RFC 3261 section 9.2).
    pub(crate) fn cancelled(&mut self, driver: &mut Driver, id: Id, from: &Source, message: &[u8]) {
        if self.callee.came_from.is_none() {
            return uas::refuse(driver, from, message);
        }
        uas::reply(driver, from, message, b"200 OK", b"");
        if !self.callee.answered {
            self.answer(driver, id, b"487 Request Terminated");
        }
    }

    /// An UPDATE or a BYE. Whoever sends one has the 200 of the INVITE, even if the ACK was lost.
    pub(crate) fn in_dialog(&mut self, driver: &mut Driver, from: &Source, message: &[u8]) {
        if !self.callee.answered {
            return uas::refuse(driver, from, message);
        }
        self.callee.unacknowledged = false;
        let mut contact = Vec::new();
        if message::method(message) == b"UPDATE" {
            put_contact(driver, self.pair, &mut contact);
        }
        uas::reply(driver, from, message, b"200 OK", &contact);
    }
}

fn put_contact(driver: &Driver, pair: usize, out: &mut Vec<u8>) {
    let index = 2 * pair + 1;
    let user = driver.users.get(index);
    let host = driver.host(driver.flows.callee(index));
    out.put(&[b"Contact: <sip:", &user.name, b"@", host.as_bytes()]);
    out.put(&[uas::contact_end(driver.flows.callee_transport())]);
}
