use super::{ServerEffect, ServerInput};
use crate::{Mono, Timers};

/// RFC 3261 section 17.
pub(crate) struct NonInviteServer {}

impl NonInviteServer {
    /// Starts. `reliable`: the transport retransmits by itself.
    pub(crate) fn new(now: Mono, reliable: bool, timers: &Timers) -> Self {
        let _ = (now, reliable, timers);
        todo!()
    }
    pub(crate) fn handle(
        &mut self,
        now: Mono,
        input: ServerInput,
        timers: &Timers,
    ) -> ServerEffect {
        let _ = (now, input, timers);
        todo!()
    }
    /// The next moment this machine wants `Deadline`; `None` when it wants none.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        todo!()
    }
    /// It is over: free everything.
    pub(crate) fn is_terminated(&self) -> bool {
        todo!()
    }
}
