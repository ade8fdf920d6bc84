use super::{ClientEffect, ClientInput, Resend, earlier, is_due};
use crate::{Mono, Timers};

/// Non-INVITE client transaction (RFC 3261 section 17.1.2).
///
/// Departures: none.
pub(crate) struct NonInviteClient {
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Trying {
        /// `None` over a reliable transport, here and below.
        timer_e: Option<Resend>,
        timer_f: Mono,
    },
    /// A provisional response came: the request is still sent again, every T2.
    Proceeding {
        timer_e: Option<Resend>,
        timer_f: Mono,
    },
    /// A final response came: more of them are absorbed until timer K.
    Completed {
        timer_k: Mono,
    },
    Terminated,
}

const _: () = assert!(size_of::<NonInviteClient>() <= 40);

impl NonInviteClient {
    /// Starts; the caller sends the request. `reliable`: the transport retransmits by itself.
    pub(crate) fn new(now: Mono, reliable: bool, timers: &Timers) -> Self {
        let state = State::Trying {
            timer_e: Resend::first(now, reliable, timers.t1_ms),
            timer_f: now.after_ms(timers.t1_64_ms()),
        };
        Self { state }
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
            (Trying { timer_e, timer_f } | Proceeding { timer_e, timer_f }, Input::Provisional) => {
                (Proceeding { timer_e, timer_f }, Effect::Pass)
            }
            (
                Trying { timer_e: None, .. } | Proceeding { timer_e: None, .. },
                Input::Success | Input::Failure,
            ) => (Terminated, Effect::Pass), // reliable: timer K is zero
            (Trying { .. } | Proceeding { .. }, Input::Success | Input::Failure) => {
                let timer_k = now.after_ms(timers.t4_ms);
                (Completed { timer_k }, Effect::Pass)
            }
            (Trying { .. } | Proceeding { .. }, Input::TransportFailed) => {
                (Terminated, Effect::TransportFailed)
            }
            (Trying { timer_f, .. } | Proceeding { timer_f, .. }, Input::Deadline)
                if timer_f <= now =>
            {
                (Terminated, Effect::TimedOut)
            }
            (Trying { timer_e, timer_f }, Input::Deadline) => match is_due(timer_e, now) {
                Some(due) => {
                    let wait_ms = due.wait_ms.saturating_mul(2).min(timers.t2_ms);
                    let timer_e = Resend::next(now, wait_ms);
                    (Trying { timer_e, timer_f }, Effect::Resend)
                }
                None => return Effect::Nothing,
            },
            (Proceeding { timer_e, timer_f }, Input::Deadline) => match is_due(timer_e, now) {
                Some(_) => {
                    let timer_e = Resend::next(now, timers.t2_ms);
                    (Proceeding { timer_e, timer_f }, Effect::Resend)
                }
                None => return Effect::Nothing,
            },
            (Completed { timer_k }, Input::Deadline) if timer_k <= now => {
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
            State::Trying { timer_e, timer_f } | State::Proceeding { timer_e, timer_f } => {
                Some(earlier(timer_e, timer_f))
            }
            State::Completed { timer_k } => Some(timer_k),
            State::Terminated => None,
        }
    }

    /// It is over: free everything.
    pub(crate) fn is_terminated(&self) -> bool {
        matches!(self.state, State::Terminated)
    }
}

#[cfg(test)]
mod tests {
    use super::NonInviteClient;
    use crate::transaction::script::{Link::*, check};

    #[test]
    fn over_udp_the_request_is_sent_again_at_doubling_intervals_up_to_t2_until_timer_f() {
        check::<NonInviteClient>(
            Udp,
            "500 Resend | 1500 Resend | 3500 Resend | 7500 Resend | 11500 Resend | 15500 Resend | 19500 Resend | 23500 Resend | 27500 Resend | 31500 Resend | 32000 TimedOut | 32000 end",
        );
    }
    #[test]
    fn over_tcp_the_request_is_sent_once_and_timer_f_ends_it() {
        check::<NonInviteClient>(Tcp, "32000 TimedOut | 32000 end");
    }
    #[test]
    fn after_a_provisional_response_the_running_timer_e_comes_up_and_then_every_t2() {
        check::<NonInviteClient>(
            Udp,
            "500 Resend | 600 Provisional: Pass | 1500 Resend | 5500 Resend | 9500 Resend | 10000 Provisional: Pass | 13500 Resend | 17500 Resend | 21500 Resend | 25500 Resend | 29500 Resend | 32000 TimedOut | 32000 end",
        );
        check::<NonInviteClient>(
            Tcp,
            "600 Provisional: Pass | 700 Provisional: Pass | 32000 TimedOut | 32000 end",
        );
    }
    #[test]
    fn over_udp_a_final_response_is_passed_up_once_and_more_are_absorbed_until_timer_k() {
        check::<NonInviteClient>(
            Udp,
            "100 Success: Pass | 200 Success: Nothing | 300 Failure: Nothing | 400 Provisional: Nothing | 500 TransportFailed: Nothing | 600 Deadline: Nothing | 5100 end",
        );
        check::<NonInviteClient>(Udp, "100 Failure: Pass | 200 Failure: Nothing | 5100 end");
        check::<NonInviteClient>(Udp, "100 Provisional: Pass | 200 Success: Pass | 5200 end");
        check::<NonInviteClient>(Udp, "100 Provisional: Pass | 200 Failure: Pass | 5200 end");
    }
    #[test]
    fn over_tcp_a_final_response_ends_it_at_once() {
        check::<NonInviteClient>(Tcp, "100 Success: Pass | 100 end");
        check::<NonInviteClient>(Tcp, "100 Failure: Pass | 100 end");
        check::<NonInviteClient>(Tcp, "100 Provisional: Pass | 200 Success: Pass | 200 end");
        check::<NonInviteClient>(Tcp, "100 Provisional: Pass | 200 Failure: Pass | 200 end");
    }
    #[test]
    fn a_transport_failure_ends_trying_and_proceeding() {
        check::<NonInviteClient>(Udp, "10 TransportFailed: TransportFailed | 10 end");
        check::<NonInviteClient>(Tcp, "10 TransportFailed: TransportFailed | 10 end");
        check::<NonInviteClient>(
            Udp,
            "100 Provisional: Pass | 110 TransportFailed: TransportFailed | 110 end",
        );
    }
    #[test]
    fn once_terminated_nothing_has_an_effect() {
        check::<NonInviteClient>(
            Tcp,
            "100 Success: Pass | 200 Failure: Nothing | 200 Success: Nothing | 200 Provisional: Nothing | 200 TransportFailed: Nothing | 99000 Deadline: Nothing | 99000 end",
        );
    }
    #[test]
    fn a_wake_up_that_is_late_by_far_resends_once_and_times_out_on_time() {
        check::<NonInviteClient>(Udp, "late 31999 Resend | 32000 TimedOut | 32000 end");
        check::<NonInviteClient>(
            Udp,
            "100 Provisional: Pass | late 31999 Resend | 32000 TimedOut | 32000 end",
        );
    }
}
