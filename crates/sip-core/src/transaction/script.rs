//! Scripts of times and effects for the tests of the four machines.

use super::{
    ClientEffect, ClientInput, InviteClient, InviteServer, NonInviteClient, NonInviteServer,
    ServerEffect, ServerInput,
};
use crate::{Mono, Timers};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    Udp,
    Tcp,
}

/// Runs a machine that starts at 0 through `script`, steps parted by `|`, times in milliseconds:
///
/// - `500 Resend`: its deadline comes at 500 and has this effect; effects of deadlines are never left out of a script,
/// - `100 Success: Pass`: this input comes at 100 and has this effect,
/// - `late 900 Resend`: nobody wakes the machine before 900, then this is the effect,
/// - `900 end`: at 900 it is terminated, and was not before; `rest`: it waits for input and wants no deadline.
///
/// Early deadlines are thrown in everywhere: they must have no effect.
pub(super) fn check<M: Machine>(link: Link, script: &str) {
    let mut run = Run {
        machine: M::start(Mono(START), link == Link::Tcp, &Timers::default()),
        now: Mono(START),
        script,
    };
    for step in script.split('|').map(str::trim) {
        run.step(step);
    }
    let last = script.rsplit('|').next().unwrap_or_default();
    assert!(
        last.ends_with("end") || last.trim() == "rest",
        "unfinished: {script}"
    );
}

/// What the four machines have in common. Inputs and effects go by their names.
pub(super) trait Machine {
    fn start(now: Mono, reliable: bool, timers: &Timers) -> Self;
    fn input(&mut self, now: Mono, name: &str) -> String;
    fn next_deadline(&self) -> Option<Mono>;
    fn is_terminated(&self) -> bool;
}

struct Run<'a, M> {
    machine: M,
    now: Mono,
    script: &'a str,
}

/// Not zero, so that a deadline is not taken for a time since the start.
const START: u64 = 7_000_000;

impl<M: Machine> Run<'_, M> {
    fn step(&mut self, step: &str) {
        if step == "rest" {
            self.quiet_until(Mono(u64::MAX), step);
            assert!(!self.machine.is_terminated(), "{}", self.context(step));
            return;
        }
        let late = step.strip_prefix("late ");
        let (time, rest) = late.unwrap_or(step).split_once(' ').expect("TIME EFFECT");
        let at = Mono(START + time.parse::<u64>().expect("milliseconds") * 1000);
        if late.is_some() {
            self.now = at;
            self.expect("Deadline", rest, step);
        } else if rest == "end" {
            self.end_at(at, step);
        } else if let Some((input, effect)) = rest.split_once(": ") {
            self.quiet_until(at, step);
            self.now = at;
            self.expect(input, effect, step);
        } else {
            self.quiet_until(at, step);
            assert_eq!(
                self.machine.next_deadline(),
                Some(at),
                "{}",
                self.context(step)
            );
            self.now = at;
            self.expect("Deadline", rest, step);
        }
    }

    /// No deadline before `at`, and waking the machine earlier has no effect.
    fn quiet_until(&mut self, at: Mono, step: &str) {
        let next = self.machine.next_deadline();
        assert!(
            next.is_none_or(|next| next >= at),
            "{} in {next:?}",
            self.context(step)
        );
        let early = self.now.0 + (at.0 - self.now.0) / 2;
        if early < at.0 {
            assert_eq!(
                self.machine.input(Mono(early), "Deadline"),
                "Nothing",
                "{}",
                self.context(step)
            );
            assert_eq!(self.machine.next_deadline(), next, "{}", self.context(step));
        }
    }

    fn end_at(&mut self, at: Mono, step: &str) {
        if at > self.now {
            self.quiet_until(at, step);
            assert!(!self.machine.is_terminated(), "{}", self.context(step));
            assert_eq!(
                self.machine.next_deadline(),
                Some(at),
                "{}",
                self.context(step)
            );
            self.now = at;
            self.expect("Deadline", "Nothing", step);
        }
        assert!(self.machine.is_terminated(), "{}", self.context(step));
        assert_eq!(self.machine.next_deadline(), None, "{}", self.context(step));
    }

    fn expect(&mut self, input: &str, effect: &str, step: &str) {
        assert_eq!(
            self.machine.input(self.now, input),
            effect,
            "{}",
            self.context(step)
        );
    }

    fn context(&self, step: &str) -> String {
        format!("at `{step}` of `{}`", self.script)
    }
}

fn client_input(name: &str) -> ClientInput {
    use ClientInput::*;
    let all = [Provisional, Success, Failure, TransportFailed, Deadline];
    *all.iter()
        .find(|i| format!("{i:?}") == name)
        .expect("a client's input")
}

fn server_input(name: &str) -> ServerInput {
    use ServerInput::*;
    let all = [Request, Ack, Provisional, Success, Failure, Deadline];
    *all.iter()
        .find(|i| format!("{i:?}") == name)
        .expect("a server's input")
}

macro_rules! machine {
    ($machine:ty, $input:ident, $effect:ty) => {
        impl Machine for $machine {
            fn start(now: Mono, reliable: bool, timers: &Timers) -> Self {
                Self::new(now, reliable, timers)
            }
            fn input(&mut self, now: Mono, name: &str) -> String {
                let effect: $effect = self.handle(now, $input(name), &Timers::default());
                format!("{effect:?}")
            }
            fn next_deadline(&self) -> Option<Mono> {
                self.next_deadline()
            }
            fn is_terminated(&self) -> bool {
                self.is_terminated()
            }
        }
    };
}

machine!(InviteClient, client_input, ClientEffect);
machine!(NonInviteClient, client_input, ClientEffect);
machine!(InviteServer, server_input, ServerEffect);
machine!(NonInviteServer, server_input, ServerEffect);
