//! One operation under way, and its client transactions.

use crate::{
    io::FlowId,
    message::{self, Id},
    timers::{T1_US, T2_US},
};

/// No operation, no flow.
pub(crate) const NONE: u32 = u32::MAX;
/// In the step of a CANCEL: its branch is the INVITE's (RFC 3261 section 9.1), and so would its step be.
pub(crate) const CANCEL: u32 = 1 << 31;
/// No transaction's step.
const NO_STEP: u32 = CANCEL - 1;

/// Which of an operation's client transactions: the one that it is about, or one beside it (PRACK, CANCEL).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    Main,
    Side,
}

/// A client transaction (RFC 3261 section 17.1).
#[derive(Default)]
pub(crate) struct Transaction {
    /// Its request, kept to send again.
    pub(crate) request: Vec<u8>,
    /// Which of the operation's transactions; that of a CANCEL is the INVITE's and [`CANCEL`].
    pub(crate) step: u32,
    pub(crate) invite: bool,
    pub(crate) unanswered: bool,
    pub(crate) provisional: bool,
    pub(crate) flow: FlowId,
    /// When its request left for the first time: when its connection was open.
    pub(crate) sent_us: u64,
    /// When it has had its time.
    over_us: u64,
    /// The wait before the next sending.
    wait_us: u64,
    /// When there is something to do about it.
    next_us: u64,
    datagrams: bool,
}

/// What is to be done about a transaction now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Now {
    Nothing,
    SendAgain,
    TimedOut,
}

impl Transaction {
    /// Begins, with `request` written. `datagrams`: it is sent again until it is answered.
    pub(crate) fn begin(
        &mut self,
        step: u32,
        flow: FlowId,
        datagrams: bool,
        now_us: u64,
        timeout_us: u64,
    ) {
        self.step = step;
        self.invite = self.request.starts_with(b"INVITE ");
        self.unanswered = true;
        self.provisional = false;
        self.flow = flow;
        self.sent_us = now_us;
        self.over_us = now_us + timeout_us;
        self.wait_us = T1_US;
        self.datagrams = datagrams;
        self.next_us = match datagrams {
            true => self.over_us.min(now_us + T1_US),
            false => self.over_us,
        };
    }

    /// When there is something to do about it, unless it is answered before.
    pub(crate) fn next_us(&self) -> Option<u64> {
        self.unanswered.then_some(self.next_us)
    }

    /// What there is to do at `now_us`. Timers A and E (RFC 3261 sections 17.1.1.2 and 17.1.2.2) say when a
    /// request is sent again: after T1, then after twice the wait before; other requests than INVITE after T2 at most, and after T2 each once there was a
    /// provisional response. An INVITE is not sent again after one. Timers B and F are the timeout; for an INVITE with a
    /// provisional response it counts from `ring_until_us`, since the callee may ring for long.
    pub(crate) fn act(&mut self, now_us: u64, ring_until_us: u64, timeout_us: u64) -> Now {
        if !self.unanswered || now_us < self.next_us {
            return Now::Nothing;
        }
        let proceeding = self.invite && self.provisional;
        if proceeding {
            self.over_us = self.over_us.max(ring_until_us + timeout_us);
        }
        if now_us >= self.over_us {
            return Now::TimedOut;
        }
        if proceeding || !self.datagrams {
            self.next_us = self.over_us;
            return Now::Nothing;
        }
        self.wait_us = match (self.invite, self.provisional) {
            (true, _) => 2 * self.wait_us,
            (false, true) => T2_US,
            (false, false) => T2_US.min(2 * self.wait_us),
        };
        // Counted from when it was due, not from when this is called: no wait adds up with the ones before.
        self.next_us = self.over_us.min(self.next_us + self.wait_us);
        Now::SendAgain
    }
}

/// One operation.
pub(crate) struct Operation {
    pub(crate) busy: bool,
    /// Which part of the load it belongs to.
    pub(crate) part: u8,
    /// Which step of the rate it was due in; `u16::MAX`: the rate has none.
    pub(crate) stage: u16,
    pub(crate) generation: u32,
    /// Counts the operation's transactions.
    pub(crate) step: u32,
    /// Where its requests go out.
    pub(crate) flow: FlowId,
    /// It ends with its flow, and is linked with the others of which that is true.
    pub(crate) attached: bool,
    pub(crate) before: u32,
    pub(crate) after: u32,
    /// When it was due; its latency counts from here.
    pub(crate) due_us: u64,
    /// Until when its callee rings, as far as is known.
    pub(crate) ring_until_us: u64,
    /// When the timers look at its transactions; `u64::MAX`: they do not.
    pub(crate) look_us: u64,
    pub(crate) main: Transaction,
    pub(crate) side: Transaction,
}

impl Default for Operation {
    fn default() -> Self {
        Self {
            busy: false,
            part: 0,
            stage: u16::MAX,
            generation: 0,
            step: 0,
            flow: NONE,
            attached: false,
            before: NONE,
            after: NONE,
            due_us: 0,
            ring_until_us: 0,
            look_us: u64::MAX,
            main: Transaction::default(),
            side: Transaction::default(),
        }
    }
}

impl Operation {
    /// The transaction in a lane.
    pub(crate) fn lane(&mut self, lane: Lane) -> &mut Transaction {
        match lane {
            Lane::Main => &mut self.main,
            Lane::Side => &mut self.side,
        }
    }

    /// The transaction that waits for a response and has that step.
    pub(crate) fn waiting(&mut self, step: u32) -> Option<&mut Transaction> {
        [&mut self.main, &mut self.side]
            .into_iter()
            .find(|t| t.unanswered && t.step == step)
    }

    /// When there is something to do about its transactions.
    pub(crate) fn next_us(&self) -> Option<u64> {
        match (self.main.next_us(), self.side.next_us()) {
            (Some(main), Some(side)) => Some(main.min(side)),
            (main, side) => main.or(side),
        }
    }

    /// Begins anew for another operation.
    pub(crate) fn renew(&mut self, part: u8, stage: u16, due_us: u64) {
        self.busy = true;
        self.part = part;
        self.stage = stage;
        self.generation = self.generation.wrapping_add(1);
        self.step = 0;
        self.due_us = due_us;
        self.ring_until_us = 0;
        self.main.unanswered = false;
        self.side.unanswered = false;
        self.side.step = NO_STEP;
    }

    /// The identifier in a response's branch, told apart from that of the INVITE when it answers the CANCEL.
    pub(crate) fn told_apart(&self, id: Id, message: &[u8]) -> Id {
        if self.side.step != id.step | CANCEL {
            return id;
        }
        let cseq = message::field(message, message::CSEQ).unwrap_or_default();
        let step = match cseq.ends_with(b"CANCEL") {
            true => id.step | CANCEL,
            false => id.step,
        };
        Id { step, ..id }
    }

    /// Identifier of the newest transaction.
    pub(crate) fn id(&self, slot: u32) -> Id {
        Id {
            slot,
            generation: self.generation,
            step: self.step,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT_US: u64 = 64 * T1_US;

    fn transaction(request: &[u8], datagrams: bool, timeout_us: u64) -> Transaction {
        let mut transaction = Transaction {
            request: request.to_vec(),
            ..Transaction::default()
        };
        transaction.begin(0, 0, datagrams, 1000, timeout_us);
        transaction
    }

    /// Milliseconds after its begin at which it is sent again, and at which it has had its time.
    fn times(mut transaction: Transaction, timeout_us: u64, ring_until_us: u64) -> (Vec<u64>, u64) {
        let mut sent = Vec::new();
        loop {
            let now_us = transaction.next_us().expect("is unanswered");
            // The tool is always a little late.
            match transaction.act(now_us + 300, ring_until_us, timeout_us) {
                Now::SendAgain => sent.push((now_us - 1000) / 1000),
                Now::TimedOut => return (sent, (now_us - 1000) / 1000),
                Now::Nothing => assert!(transaction.next_us() > Some(now_us)),
            }
        }
    }

    #[test]
    fn an_invite_is_sent_again_by_timer_a_until_timer_b() {
        let invite = transaction(b"INVITE sip:a SIP/2.0\r\n", true, TIMEOUT_US);
        let sent = vec![500, 1500, 3500, 7500, 15_500, 31_500];
        assert_eq!(times(invite, TIMEOUT_US, 0), (sent, 32_000));
    }

    #[test]
    fn another_request_is_sent_again_by_timer_e_until_timer_f() {
        let request = transaction(b"REGISTER sip:a SIP/2.0\r\n", true, TIMEOUT_US);
        let sent = vec![
            500, 1500, 3500, 7500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500,
        ];
        assert_eq!(times(request, TIMEOUT_US, 0), (sent, 32_000));
    }

    #[test]
    fn a_provisional_response_slows_a_request_down_and_stops_an_invite() {
        let mut request = transaction(b"BYE sip:a SIP/2.0\r\n", true, TIMEOUT_US);
        request.provisional = true;
        let (sent, over) = times(request, TIMEOUT_US, 0);
        assert_eq!((&sent[..3], over), (&[500, 4500, 8500][..], 32_000));
        let mut invite = transaction(b"INVITE sip:a SIP/2.0\r\n", true, TIMEOUT_US);
        invite.provisional = true;
        let ring_until_us = 1000 + 60_000_000;
        assert_eq!(times(invite, TIMEOUT_US, ring_until_us), (vec![], 92_000));
    }

    #[test]
    fn over_a_connection_nothing_is_sent_again_and_the_timeout_is_the_same() {
        let invite = transaction(b"INVITE sip:a SIP/2.0\r\n", false, TIMEOUT_US);
        assert_eq!(times(invite, TIMEOUT_US, 0), (vec![], 32_000));
        let request = transaction(b"OPTIONS sip:a SIP/2.0\r\n", false, 100_000);
        assert_eq!(times(request, 100_000, 0), (vec![], 100));
    }

    #[test]
    fn a_timeout_shorter_than_the_first_wait_is_kept() {
        let request = transaction(b"OPTIONS sip:a SIP/2.0\r\n", true, 120_000);
        assert_eq!(times(request, 120_000, 0), (vec![], 120));
    }
}
