use super::{Resend, ServerEffect, ServerInput, earlier, is_due};
use crate::{Mono, Timers};

/// INVITE server transaction (RFC 3261 section 17.2.1, RFC 6026 section 7.1).
///
/// A 2xx is not sent again by this machine but by the user agent that answered. When a response cannot be sent, the state
/// stays and the timers end it, so that an INVITE that comes again is still absorbed (RFC 6026 section 7.1).
///
/// Departures: none.
pub(crate) struct InviteServer {
    state: State,
    reliable: bool,
}

#[derive(Clone, Copy)]
enum State {
    Proceeding,
    /// The user answered 2xx: INVITEs that come again are absorbed, ACKs and more 2xx go through until timer L.
    Accepted {
        timer_l: Mono,
    },
    /// The user answered 300 to 699, which is sent again until the ACK comes.
    Completed {
        timer_g: Option<Resend>,
        timer_h: Mono,
    },
    /// The ACK came: more of them are absorbed until timer I.
    Confirmed {
        timer_i: Mono,
    },
    Terminated,
}

const _: () = assert!(size_of::<InviteServer>() <= 40);

impl InviteServer {
    /// Starts. `reliable`: the transport retransmits by itself.
    pub(crate) fn new(now: Mono, reliable: bool, timers: &Timers) -> Self {
        let _ = (now, timers); // no timer runs in Proceeding
        Self {
            state: State::Proceeding,
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
            (Proceeding | Completed { .. }, Input::Request) => (self.state, Effect::Resend),
            (Proceeding, Input::Provisional) => (Proceeding, Effect::Send),
            (Proceeding, Input::Success) => {
                let timer_l = now.after_ms(timers.t1_64_ms());
                (Accepted { timer_l }, Effect::Send)
            }
            (Proceeding, Input::Failure) => {
                let timer_g = Resend::first(now, self.reliable, timers.t1_ms);
                let timer_h = now.after_ms(timers.t1_64_ms());
                (Completed { timer_g, timer_h }, Effect::Send)
            }
            (Accepted { .. }, Input::Success) => (self.state, Effect::Send),
            (Accepted { .. }, Input::Ack) => (self.state, Effect::PassAck),
            (Completed { .. }, Input::Ack) if self.reliable => {
                (Terminated, Effect::Nothing) // timer I is zero
            }
            (Completed { .. }, Input::Ack) => {
                let timer_i = now.after_ms(timers.t4_ms);
                (Confirmed { timer_i }, Effect::Nothing)
            }
            (Completed { timer_h, .. }, Input::Deadline) if timer_h <= now => {
                (Terminated, Effect::TimedOut)
            }
            (Completed { timer_g, timer_h }, Input::Deadline) => match is_due(timer_g, now) {
                Some(due) => {
                    let wait_ms = due.wait_ms.saturating_mul(2).min(timers.t2_ms);
                    let timer_g = Resend::next(now, wait_ms);
                    (Completed { timer_g, timer_h }, Effect::Resend)
                }
                None => return Effect::Nothing,
            },
            (Accepted { timer_l: end } | Confirmed { timer_i: end }, Input::Deadline)
                if end <= now =>
            {
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
            State::Completed { timer_g, timer_h } => Some(earlier(timer_g, timer_h)),
            State::Accepted { timer_l: end } | State::Confirmed { timer_i: end } => Some(end),
            State::Proceeding | State::Terminated => None,
        }
    }

    /// It is over: free everything.
    pub(crate) fn is_terminated(&self) -> bool {
        matches!(self.state, State::Terminated)
    }
}

#[cfg(test)]
mod tests {
    use super::InviteServer;
    use crate::transaction::script::{Link::*, check};

    #[test]
    fn a_request_that_comes_again_gets_the_last_provisional_again() {
        for link in [Udp, Tcp] {
            check::<InviteServer>(
                link,
                "0 Provisional: Send | 500 Request: Resend | 600 Provisional: Send | 1500 Request: Resend | rest",
            );
        }
    }
    #[test]
    fn in_proceeding_a_stray_ack_and_a_transport_failure_change_nothing() {
        check::<InviteServer>(
            Udp,
            "0 Ack: Nothing | 0 Deadline: Nothing | 10 Provisional: Send | rest",
        );
    }
    #[test]
    fn over_udp_a_failure_is_sent_again_at_doubling_intervals_up_to_t2_until_timer_h() {
        check::<InviteServer>(
            Udp,
            "0 Failure: Send | 500 Resend | 1500 Resend | 3500 Resend | 7500 Resend | 11500 Resend | 15500 Resend | 19500 Resend | 23500 Resend | 27500 Resend | 31500 Resend | 32000 TimedOut | 32000 end",
        );
    }
    #[test]
    fn over_tcp_a_failure_is_sent_once_and_timer_h_ends_it() {
        check::<InviteServer>(Tcp, "0 Failure: Send | 32000 TimedOut | 32000 end");
    }
    #[test]
    fn in_completed_a_request_gets_the_failure_again_and_the_timers_run_on() {
        check::<InviteServer>(
            Udp,
            "0 Failure: Send | 300 Request: Resend | 500 Resend | 1500 Resend | 2000 Ack: Nothing | 7000 end",
        );
        check::<InviteServer>(
            Tcp,
            "0 Failure: Send | 300 Request: Resend | 400 Ack: Nothing | 400 end",
        );
    }
    #[test]
    fn in_completed_further_answers_of_the_user_are_discarded() {
        check::<InviteServer>(
            Udp,
            "0 Failure: Send | 100 Failure: Nothing | 100 Success: Nothing | 100 Provisional: Nothing | 200 Ack: Nothing | 5200 end",
        );
    }
    #[test]
    fn after_the_ack_everything_is_absorbed_until_timer_i() {
        check::<InviteServer>(
            Udp,
            "0 Failure: Send | 100 Ack: Nothing | 200 Ack: Nothing | 300 Request: Nothing | 400 Failure: Nothing | 5100 end",
        );
    }
    #[test]
    fn over_tcp_the_ack_ends_it_at_once() {
        check::<InviteServer>(Tcp, "0 Failure: Send | 100 Ack: Nothing | 100 end");
    }
    #[test]
    fn in_accepted_requests_are_absorbed_while_acks_and_more_successes_pass_until_timer_l() {
        for link in [Udp, Tcp] {
            check::<InviteServer>(
                link,
                "0 Provisional: Send | 100 Success: Send | 500 Request: Nothing | 600 Success: Send | 700 Ack: PassAck | 800 Ack: PassAck | 32100 end",
            );
        }
    }
    #[test]
    fn in_accepted_other_answers_and_a_transport_failure_change_nothing() {
        check::<InviteServer>(
            Udp,
            "0 Success: Send | 1 Provisional: Nothing | 2 Failure: Nothing | 4 Deadline: Nothing | 32000 end",
        );
    }
    #[test]
    fn once_terminated_nothing_has_an_effect() {
        check::<InviteServer>(
            Tcp,
            "0 Failure: Send | 0 Ack: Nothing | 1 Request: Nothing | 1 Success: Nothing | 1 Failure: Nothing | 1 Ack: Nothing | 99000 Deadline: Nothing | 99000 end",
        );
    }
    #[test]
    fn a_wake_up_that_is_late_by_far_resends_once_and_times_out_on_time() {
        check::<InviteServer>(
            Udp,
            "0 Failure: Send | late 31999 Resend | 32000 TimedOut | 32000 end",
        );
    }
}
