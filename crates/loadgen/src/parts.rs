//! What the parts of a plan are made of, and what has to be there before they begin.

use std::{io, ops::Range};

use crate::{
    call::{Calls, pairs},
    driver::{Driver, Part, Work},
    pace::{Pace, Rate},
    plan::{Kind, PartPlan, Plan},
    requests::{self, Digest, Requests},
    scenario::Scenario,
};

impl Kind {
    /// What the callees answer challenges of their registration with; `None`: there are no callees.
    pub(crate) fn callees(&self) -> Option<Digest> {
        match self {
            Self::Call(call) => Some(call.digest),
            Self::Message { digest, .. } => Some(*digest),
            _ => None,
        }
    }
}

/// Pairs of caller and callee at least, if there are so many users.
const PAIRS_MIN: usize = 5000;

/// The plan whose parts call among no more users than the run has calls for, since each callee has to register before. All call
/// among the same, those of the part that needs most: a callee has one place where it is registered, in one thread.
pub(crate) fn narrowed(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for part in plan.parts.iter_mut().filter(|p| p.kind.callees().is_some()) {
        let pairs = pairs(&part.users);
        let calls = match (&part.pace, plan.duration) {
            (Pace::Open { rate, .. }, Some(duration)) => {
                let rate = match rate {
                    Rate::Constant(rate) => *rate,
                    Rate::Ramp(from, to) => from.max(*to),
                    Rate::Steps(rates) => rates.iter().copied().fold(0.0, f64::max),
                };
                (rate * duration.as_secs_f64()).ceil() as usize
            }
            _ => plan.count.map_or(usize::MAX, |n| n as usize),
        };
        let count = calls.max(PAIRS_MIN).min(pairs.len());
        part.users = 2 * pairs.start..2 * (pairs.start + count);
    }
    let all = callees(&plan.parts);
    for part in plan.parts.iter_mut().filter(|p| p.kind.callees().is_some()) {
        part.users = all.clone();
    }
    plan
}

/// What a driver does, part by part. `callees` are those of all drivers, every other one in that range.
pub(crate) fn parts(plans: &[PartPlan], all_callees: &Range<usize>) -> Vec<Part> {
    let own_callees = callees(plans);
    let part = |plan: &PartPlan| Part {
        name: plan.name.clone(),
        scenario: scenario(plan, &own_callees, all_callees),
        pace: plan.pace.clone(),
    };
    plans.iter().map(part).collect()
}

fn scenario(
    plan: &PartPlan,
    own_callees: &Range<usize>,
    all_callees: &Range<usize>,
) -> Box<dyn Scenario> {
    let request = |kind, digest, body| {
        let requests = Requests::new(kind, digest, body, &plan.users);
        Box::new(requests.with_callees(own_callees, all_callees))
    };
    match &plan.kind {
        Kind::Register {
            digest,
            expires_s,
            first,
        } => {
            let (expires_s, first) = (*expires_s, *first);
            request(requests::Kind::Register { expires_s, first }, *digest, 0)
        }
        Kind::Options { body } | Kind::Echo { body } => {
            request(requests::Kind::Options, Digest::None, *body)
        }
        Kind::Notify { digest } => request(requests::Kind::Notify, *digest, 0),
        Kind::Message { digest, body } => request(requests::Kind::Message, *digest, *body),
        Kind::Call(call) => Box::new(Calls::new(call, &plan.users)),
    }
}

/// The users among whom the parts have callees: every other one.
pub(crate) fn callees(plans: &[PartPlan]) -> Range<usize> {
    let with = plans.iter().filter(|p| p.kind.callees().is_some());
    with.map(|p| p.users.clone())
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        .unwrap_or(0..0)
}

/// Registers the callees of all parts over the callees' flows.
///
/// # Errors
/// Not all could register; the text says what came of it.
pub(crate) fn register_callees(driver: &mut Driver, plans: &[PartPlan]) -> io::Result<()> {
    let Some(digest) = plans.iter().find_map(|p| p.kind.callees()) else {
        return Ok(());
    };
    let requests = Requests::of_callees(digest, &callees(plans));
    let work = Work {
        operations: Some(requests.members() as u64),
        duration: None,
    };
    let part = Part {
        name: String::from("callees"),
        scenario: Box::new(requests),
        pace: Pace::Outstanding(64),
    };
    let statistics = driver.prepare(&mut [part], work)?;
    let summary = statistics.summary();
    if summary.succeeded < summary.operations {
        let text = format!("not all callees could register:\n{summary}");
        return Err(io::Error::other(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan::CallPlan, users::Users};
    use std::time::Duration;

    fn plan(parts: Vec<PartPlan>, seconds: u64) -> Plan {
        use crate::{io::Transport, plan::Connections, plan::Lifetime};
        Plan {
            name: Default::default(),
            comment: Default::default(),
            target: "127.0.0.1".parse().unwrap(),
            users: Users::numbered(0, 1_000_000, "d", "p"),
            parts,
            connections: Connections {
                transport: Transport::Udp,
                callee_transport: Transport::Udp,
                lifetime: Lifetime::Persistent,
                count: 1,
                sources: Vec::new(),
            },
            count: None,
            duration: Some(Duration::from_secs(seconds)),
            timeout: Duration::from_secs(32),
            outstanding_max: 1,
            threads: 1,
            warm_up: 0,
            stop: Default::default(),
        }
    }

    fn part(kind: Kind, rate: f64) -> PartPlan {
        PartPlan {
            name: String::new(),
            users: 0..1_000_000,
            kind,
            pace: Pace::Open {
                rate: Rate::Constant(rate),
                poisson: true,
            },
        }
    }

    #[test]
    fn no_more_callees_register_than_there_are_calls_and_all_parts_share_them() {
        let digest = Digest::None;
        let constant = crate::distribution::Distribution::Constant(0);
        let call = Kind::Call(CallPlan {
            digest,
            ring: constant,
            talk: constant,
            prack: 0.0,
            update: 0.0,
            reinvite: 0.0,
            cancel: 0.0,
            busy: 0.0,
        });
        let message = Kind::Message { digest, body: 0 };
        let users = |seconds, rate| {
            let parts = vec![
                part(Kind::Options { body: 0 }, 1e5),
                part(call.clone(), rate),
                part(message.clone(), 1.0),
            ];
            let narrowed = narrowed(&plan(parts, seconds));
            let ends = narrowed.parts.iter().map(|p| p.users.end);
            ends.collect::<Vec<_>>()
        };
        assert_eq!(users(10, 1000.0), [1_000_000, 20_000, 20_000]);
        assert_eq!(users(1, 1.0), [1_000_000, 10_000, 10_000]);
        assert_eq!(users(1000, 1e6), [1_000_000, 1_000_000, 1_000_000]);
    }
}
