//! One operation under way, and its client transactions.

use crate::{io::FlowId, message::Id, timers::T1_US};

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
    /// Which of the operation's transactions.
    pub(crate) step: u32,
    pub(crate) invite: bool,
    pub(crate) unanswered: bool,
    pub(crate) provisional: bool,
    pub(crate) flow: FlowId,
    pub(crate) sent_us: u64,
    pub(crate) wait_us: u64,
}

impl Transaction {
    /// Begins, with `request` written.
    pub(crate) fn begin(&mut self, step: u32, flow: FlowId, now_us: u64) {
        self.step = step;
        self.invite = self.request.starts_with(b"INVITE ");
        self.unanswered = true;
        self.provisional = false;
        self.flow = flow;
        self.sent_us = now_us;
        self.wait_us = T1_US;
    }
}

/// One operation.
#[derive(Default)]
pub(crate) struct Operation {
    pub(crate) busy: bool,
    /// Which part of the load it belongs to.
    pub(crate) part: u8,
    pub(crate) generation: u32,
    /// Counts the operation's transactions.
    pub(crate) step: u32,
    /// Where its requests go out.
    pub(crate) flow: FlowId,
    /// When it was due; its latency counts from here.
    pub(crate) due_us: u64,
    pub(crate) main: Transaction,
    pub(crate) side: Transaction,
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

    /// Begins anew for another operation.
    pub(crate) fn renew(&mut self, part: u8, due_us: u64) {
        self.busy = true;
        self.part = part;
        self.generation = self.generation.wrapping_add(1);
        self.step = 0;
        self.due_us = due_us;
        self.main.unanswered = false;
        self.side.unanswered = false;
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
