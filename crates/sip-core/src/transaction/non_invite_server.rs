use super::{ServerEffect, ServerInput};
use crate::{Mono, Timers};

/// Non-INVITE server transaction (RFC 3261 section 17.2.2).
///
/// Departures: when a response cannot be sent the state stays, as RFC 6026 wants it of the INVITE server transaction, so that a
/// request that comes again is absorbed and not processed anew; figure 8 would end it.
pub(crate) struct NonInviteServer {
    state: State,
    reliable: bool,
}

#[derive(Clone, Copy)]
enum State {
    Trying,
    Proceeding,
    /// The user gave the final response: requests that come again get it again until timer J.
    Completed {
        timer_j: Mono,
    },
    Terminated,
}

const _: () = assert!(size_of::<NonInviteServer>() <= 24);

impl NonInviteServer {
    /// Starts. `reliable`: the transport retransmits by itself.
    pub(crate) fn new(now: Mono, reliable: bool, timers: &Timers) -> Self {
        let _ = (now, timers); // no timer runs before the final response
        Self {
            state: State::Trying,
            reliable,
        }
    }

    pub(crate) fn handle(
        &mut self,
        now: Mono,
        input: ServerInput,
        timers: &Timers,
    ) -> ServerEffect {
        use ServerEffect as Effect;
        use ServerInput as Input;
        use State::*;
        let (state, effect) = match (self.state, input) {
            (Trying | Proceeding, Input::Provisional) => (Proceeding, Effect::Send),
            (Trying | Proceeding, Input::Success | Input::Failure) if self.reliable => {
                (Terminated, Effect::Send) // timer J is zero
            }
            (Trying | Proceeding, Input::Success | Input::Failure) => {
                let timer_j = now.after_ms(timers.t1_64_ms());
                (Completed { timer_j }, Effect::Send)
            }
            (Proceeding | Completed { .. }, Input::Request) => (self.state, Effect::Resend),
            (Completed { timer_j }, Input::Deadline) if timer_j <= now => {
                (Terminated, Effect::Nothing)
            }
            _ => return Effect::Nothing,
        };
        self.state = state;
        effect
    }

    /// The next moment this machine wants `Deadline`; `None` when it wants none.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        match self.state {
            State::Completed { timer_j } => Some(timer_j),
            State::Trying | State::Proceeding | State::Terminated => None,
        }
    }

    /// It is over: free everything.
    pub(crate) fn is_terminated(&self) -> bool {
        matches!(self.state, State::Terminated)
    }
}

#[cfg(test)]
mod tests {
    use super::NonInviteServer;
    use crate::transaction::script::{Link::*, check};

    #[test]
    fn in_trying_a_request_that_comes_again_is_discarded() {
        for link in [Udp, Tcp] {
            check::<NonInviteServer>(
                link,
                "500 Request: Nothing | 600 Ack: Nothing | 800 Deadline: Nothing | rest",
            );
        }
    }
    #[test]
    fn in_proceeding_a_request_that_comes_again_gets_the_last_provisional_again() {
        for link in [Udp, Tcp] {
            check::<NonInviteServer>(
                link,
                "100 Provisional: Send | 500 Request: Resend | 600 Provisional: Send | 1500 Request: Resend | rest",
            );
        }
    }
    #[test]
    fn over_udp_a_request_that_comes_again_gets_the_final_response_again_until_timer_j() {
        check::<NonInviteServer>(
            Udp,
            "100 Success: Send | 500 Request: Resend | 32000 Request: Resend | 32100 end",
        );
        check::<NonInviteServer>(Udp, "100 Failure: Send | 500 Request: Resend | 32100 end");
        check::<NonInviteServer>(Udp, "100 Provisional: Send | 200 Success: Send | 32200 end");
        check::<NonInviteServer>(Udp, "100 Provisional: Send | 200 Failure: Send | 32200 end");
    }
    #[test]
    fn in_completed_further_answers_of_the_user_are_discarded() {
        check::<NonInviteServer>(
            Udp,
            "0 Success: Send | 1 Success: Nothing | 2 Failure: Nothing | 3 Provisional: Nothing | 5 Deadline: Nothing | 32000 end",
        );
    }
    #[test]
    fn over_tcp_a_final_response_ends_it_at_once() {
        check::<NonInviteServer>(Tcp, "100 Success: Send | 100 end");
        check::<NonInviteServer>(Tcp, "100 Failure: Send | 100 end");
        check::<NonInviteServer>(Tcp, "100 Provisional: Send | 200 Success: Send | 200 end");
        check::<NonInviteServer>(Tcp, "100 Provisional: Send | 200 Failure: Send | 200 end");
    }
    #[test]
    fn once_terminated_nothing_has_an_effect() {
        check::<NonInviteServer>(
            Tcp,
            "100 Success: Send | 200 Request: Nothing | 200 Success: Nothing | 200 Provisional: Nothing | 99000 Deadline: Nothing | 99000 end",
        );
    }
}
