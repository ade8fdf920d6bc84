//! Deadlines of the operations under way.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use crate::message::Id;

/// Timer T1 of RFC 3261 (table 4), microseconds.
pub(crate) const T1_US: u64 = 500_000;
/// Timer T2: the longest wait between two sendings of a non-INVITE request.
pub(crate) const T2_US: u64 = 4_000_000;

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// A look at the operation's requests: one is sent again, or has had its time.
    Request,
    /// The callee answers.
    Answer,
    /// The callee's 180 is sent again, since no PRACK has come (RFC 3262 section 3).
    RingAgain,
    /// The callee's final response is sent again, since no ACK has come (RFC 3261 section 13.3.1.4).
    AnswerAgain,
    /// The caller gives up while it rings.
    Cancel,
    /// The caller sends its next request in the dialog, in the end the BYE.
    Continue,
}

type Entry = (u64, u32, u32, u32, Due);

/// Deadlines in order. Many are one T1 away, so those are in a queue that is in order by itself; a heap keeps the rest. Nothing is taken
/// out early: what an entry was for is compared when it comes up.
#[derive(Default)]
pub(crate) struct Timers {
    first: VecDeque<Entry>,
    later: BinaryHeap<Reverse<Entry>>,
}

impl Timers {
    /// Sets a deadline `wait_us` from `now_us`, which does not go back.
    pub(crate) fn arm(&mut self, now_us: u64, wait_us: u64, id: Id, due: Due) {
        let entry = (now_us + wait_us, id.slot, id.generation, id.step, due);
        if wait_us == T1_US {
            self.first.push_back(entry);
        } else {
            self.later.push(Reverse(entry));
        }
    }

    /// Has an operation's transactions looked at, at a time.
    pub(crate) fn look(&mut self, now_us: u64, at_us: u64, slot: u32) {
        let (generation, step) = (0, 0);
        let id = Id {
            slot,
            generation,
            step,
        };
        self.arm(now_us, at_us.saturating_sub(now_us), id, Due::Request);
    }

    /// The next deadline, microseconds.
    pub(crate) fn next(&self) -> Option<u64> {
        let first = self.first.front().map(|e| e.0);
        let later = self.later.peek().map(|e| e.0.0);
        match (first, later) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes a deadline that has come, and when that was.
    pub(crate) fn expired(&mut self, now_us: u64) -> Option<(u64, Id, Due)> {
        let (at_us, slot, generation, step, due) =
            if self.first.front().is_some_and(|e| e.0 <= now_us) {
                self.first.pop_front()?
            } else if self.later.peek().is_some_and(|e| e.0.0 <= now_us) {
                self.later.pop()?.0
            } else {
                return None;
            };
        let id = Id {
            slot,
            generation,
            step,
        };
        Some((at_us, id, due))
    }

    /// Forgets all deadlines.
    pub(crate) fn clear(&mut self) {
        self.first.clear();
        self.later.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_up_when_they_are_due_and_not_before() {
        let id = |slot| Id {
            slot,
            generation: 0,
            step: 0,
        };
        let mut timers = Timers::default();
        timers.arm(0, 2 * T1_US, id(2), Due::Continue);
        timers.arm(0, T1_US, id(1), Due::Request);
        assert_eq!(timers.next(), Some(T1_US));
        assert_eq!(timers.expired(T1_US - 1), None);
        assert_eq!(timers.expired(T1_US), Some((T1_US, id(1), Due::Request)));
        assert_eq!(timers.expired(T1_US), None);
        assert_eq!(timers.next(), Some(2 * T1_US));
        let late = timers.expired(3 * T1_US);
        assert_eq!(late, Some((2 * T1_US, id(2), Due::Continue)));
        assert_eq!(timers.next(), None);
    }
}
