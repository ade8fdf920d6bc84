use super::{ClientEffect, ClientInput, Resend, earlier, is_due};
use crate::{Mono, Timers};

/// INVITE client transaction (RFC 3261 section 17.1.1, RFC 6026 section 7.2).
///
/// In Proceeding it waits for ever: a proxy's timer C (RFC 3261 section 16.6 step 11) is the proxy's.
///
/// Departures: none.
pub(crate) struct InviteClient {
    state: State,
    reliable: bool,
}

#[derive(Clone, Copy)]
enum State {
    Calling {
        timer_a: Option<Resend>,
        timer_b: Mono,
    },
    Proceeding,
    /// A 2xx came: more of them are passed up until timer M.
    Accepted {
        timer_m: Mono,
    },
    /// A 300 to 699 came: more of them are acknowledged until timer D.
    Completed {
        timer_d: Mono,
    },
    Terminated,
}

const _: () = assert!(size_of::<InviteClient>() <= 40);

impl InviteClient {
    /// Starts; the caller sends the request. `reliable`: the transport retransmits by itself.
    pub(crate) fn new(now: Mono, reliable: bool, timers: &Timers) -> Self {
        let state = State::Calling {
            timer_a: Resend::first(now, reliable, timers.t1_ms),
            timer_b: now.after_ms(timers.t1_64_ms()),
        };
        Self { state, reliable }
    }

    pub(crate) fn handle(
        &mut self,
        now: Mono,
        input: ClientInput,
        timers: &Timers,
    ) -> ClientEffect {
        use ClientEffect as Effect;
        use ClientInput as Input;
        use State::*;
        let (state, effect) = match (self.state, input) {
            (Calling { .. } | Proceeding, Input::Provisional) => (Proceeding, Effect::Pass),
            (Calling { .. } | Proceeding, Input::Success) => {
                let timer_m = now.after_ms(timers.t1_64_ms());
                (Accepted { timer_m }, Effect::Pass)
            }
            (Calling { .. } | Proceeding, Input::Failure) if self.reliable => {
                (Terminated, Effect::PassAndAck) // timer D is zero
            }
            (Calling { .. } | Proceeding, Input::Failure) => {
                let timer_d = now.after_ms(timers.d_ms);
                (Completed { timer_d }, Effect::PassAndAck)
            }
            (Calling { .. }, Input::TransportFailed) => (Terminated, Effect::TransportFailed),
            (Calling { timer_b, .. }, Input::Deadline) if timer_b <= now => {
                (Terminated, Effect::TimedOut)
            }
            (Calling { timer_a, timer_b }, Input::Deadline) => match is_due(timer_a, now) {
                Some(due) => {
                    let timer_a = Resend::next(now, due.wait_ms.saturating_mul(2));
                    (Calling { timer_a, timer_b }, Effect::Resend)
                }
                None => return Effect::Nothing,
            },
            (Accepted { .. }, Input::Success) => (self.state, Effect::Pass),
            (Accepted { timer_m: end } | Completed { timer_d: end }, Input::Deadline)
                if end <= now =>
            {
                (Terminated, Effect::Nothing)
            }
            (Completed { .. }, Input::Failure) => (self.state, Effect::Ack),
            // The ACK could not be sent.
            (Completed { .. }, Input::TransportFailed) => (Terminated, Effect::TransportFailed),
            _ => return Effect::Nothing,
        };
        self.state = state;
        effect
    }

    /// The next moment this machine wants `Deadline`; `None` when it wants none.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        match self.state {
            State::Calling { timer_a, timer_b } => Some(earlier(timer_a, timer_b)),
            State::Accepted { timer_m: end } | State::Completed { timer_d: end } => Some(end),
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
    use super::InviteClient;
    use crate::transaction::script::{Link::*, check};

    const A_AND_B: &str = "500 Resend | 1500 Resend | 3500 Resend | 7500 Resend | 15500 Resend | 31500 Resend | 32000 TimedOut | 32000 end";

    #[test]
    fn over_udp_the_request_is_sent_again_at_doubling_intervals_until_timer_b() {
        check::<InviteClient>(Udp, A_AND_B);
    }
    #[test]
    fn over_tcp_the_request_is_sent_once_and_timer_b_ends_it() {
        check::<InviteClient>(Tcp, "32000 TimedOut | 32000 end");
    }
    #[test]
    fn a_provisional_response_stops_timers_a_and_b_for_good() {
        for link in [Udp, Tcp] {
            check::<InviteClient>(
                link,
                "100 Provisional: Pass | 200 Provisional: Pass | 200000 Provisional: Pass | rest",
            );
        }
    }
    #[test]
    fn in_proceeding_a_deadline_or_a_late_transport_failure_is_absorbed() {
        check::<InviteClient>(
            Udp,
            "100 Provisional: Pass | 600 Deadline: Nothing | 700 TransportFailed: Nothing | rest",
        );
    }
    #[test]
    fn a_success_is_passed_up_and_so_are_more_until_timer_m() {
        for link in [Udp, Tcp] {
            check::<InviteClient>(
                link,
                "100 Success: Pass | 600 Success: Pass | 31000 Success: Pass | 32100 end",
            );
            check::<InviteClient>(
                link,
                "100 Provisional: Pass | 5000 Success: Pass | 5500 Success: Pass | 37000 end",
            );
        }
    }
    #[test]
    fn in_accepted_all_but_a_success_is_absorbed() {
        check::<InviteClient>(
            Udp,
            "100 Success: Pass | 200 Provisional: Nothing | 300 Failure: Nothing | 400 TransportFailed: Nothing | 500 Deadline: Nothing | 32100 end",
        );
    }
    #[test]
    fn over_udp_a_failure_is_acknowledged_each_time_until_timer_d() {
        check::<InviteClient>(
            Udp,
            "100 Failure: PassAndAck | 600 Failure: Ack | 1600 Failure: Ack | 32100 end",
        );
        check::<InviteClient>(
            Udp,
            "100 Provisional: Pass | 5000 Failure: PassAndAck | 5500 Failure: Ack | 37000 end",
        );
    }
    #[test]
    fn over_tcp_a_failure_ends_it_at_once() {
        check::<InviteClient>(Tcp, "100 Failure: PassAndAck | 100 end");
        check::<InviteClient>(
            Tcp,
            "100 Provisional: Pass | 5000 Failure: PassAndAck | 5000 end",
        );
    }
    #[test]
    fn in_completed_other_responses_are_absorbed() {
        check::<InviteClient>(
            Udp,
            "100 Failure: PassAndAck | 200 Provisional: Nothing | 300 Success: Nothing | 400 Deadline: Nothing | 32100 end",
        );
    }
    #[test]
    fn a_transport_failure_ends_calling_and_completed() {
        check::<InviteClient>(Udp, "10 TransportFailed: TransportFailed | 10 end");
        check::<InviteClient>(Tcp, "10 TransportFailed: TransportFailed | 10 end");
        check::<InviteClient>(
            Udp,
            "100 Failure: PassAndAck | 110 TransportFailed: TransportFailed | 110 end",
        );
    }
    #[test]
    fn once_terminated_nothing_has_an_effect() {
        check::<InviteClient>(
            Tcp,
            "100 Failure: PassAndAck | 200 Failure: Nothing | 200 Success: Nothing | 200 Provisional: Nothing | 200 TransportFailed: Nothing | 99000 Deadline: Nothing | 99000 end",
        );
    }
    #[test]
    fn a_wake_up_that_is_late_by_far_resends_once_and_times_out_on_time() {
        check::<InviteClient>(Udp, "late 31999 Resend | 32000 TimedOut | 32000 end");
        check::<InviteClient>(Udp, "late 90000 TimedOut | 90000 end");
    }
}
