use location::{Flow, Location, Ticket, TicketState};
use sip_core::Mono;
use std::collections::VecDeque;

/// Answers that wait until the journal batch of what they promise is on disk, first in, first out.
///
/// Tickets come in order but for answers to refreshes that changed nothing, which wait for an older ticket and are then held up by
/// at most one batch.
#[derive(Default)]
pub(crate) struct Durable {
    waiting: VecDeque<Waiting>,
    /// Bytes that wait.
    byte_count: usize,
    spare: Vec<Vec<u8>>,
    /// Answers that have waited, and how long together.
    pub(crate) waits: u64,
    pub(crate) waited_us: u64,
}

struct Waiting {
    since: Mono,
    ticket: Ticket,
    flow: Flow,
    message: Vec<u8>,
}

/// Bytes that may wait in one worker: at the disk's pace of 50,000 answers a second, more than a second.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Buffers kept for the next answers, and how large each may be.
const SPARE_COUNT: usize = 4096;
const SPARE_BYTES_MAX: usize = 4096;

impl Durable {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Keeps an answer. `false`: too much waits.
    pub(crate) fn push(&mut self, now: Mono, ticket: Ticket, flow: &Flow, message: &[u8]) -> bool {
        if self.byte_count + message.len() > BYTES_MAX {
            return false;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(message);
        self.byte_count += message.len();
        self.waiting.push_back(Waiting {
            since: now,
            ticket,
            flow: *flow,
            message: bytes,
        });
        true
    }

    /// Gives out what does not wait any more, and whether it is durable.
    pub(crate) fn settle(
        &mut self,
        now: Mono,
        location: &Location,
        mut each: impl FnMut(&Flow, &[u8], bool),
    ) {
        while let Some(first) = self.waiting.front() {
            let durable = match location.ticket_state(first.ticket) {
                TicketState::Waiting => return,
                TicketState::Durable => true,
                TicketState::Failed => false,
            };
            if let Some(Waiting {
                since,
                flow,
                mut message,
                ..
            }) = self.waiting.pop_front()
            {
                self.waits += 1;
                self.waited_us += now.0.saturating_sub(since.0);
                each(&flow, &message, durable);
                self.byte_count -= message.len();
                if self.spare.len() < SPARE_COUNT && message.capacity() <= SPARE_BYTES_MAX {
                    message.clear();
                    self.spare.push(message);
                }
            }
        }
    }
}
