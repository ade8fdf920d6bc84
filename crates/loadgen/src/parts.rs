//! What the parts of a plan are made of, and what has to be there before they begin.

use std::{collections::BTreeSet, io};

use crate::{
    call::Calls,
    driver::{Driver, Part, Work},
    pace::Pace,
    plan::{Kind, PartPlan},
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

/// The part that a plan describes. The plan's users are indices of the driver's.
pub(crate) fn part(plan: &PartPlan) -> Part {
    let everyone = plan.users.clone();
    let scenario: Box<dyn Scenario> = match &plan.kind {
        Kind::Register {
            digest, expires_s, ..
        } => {
            let mut requests = Requests::new(requests::Kind::Register, everyone);
            requests.digest = *digest;
            requests.expires_s = *expires_s;
            Box::new(requests)
        }
        Kind::Options { body } | Kind::Echo { body } => {
            let mut requests = Requests::new(requests::Kind::Options, everyone);
            requests.body = vec![b'x'; *body];
            Box::new(requests)
        }
        Kind::Call(plan) => Box::new(Calls::new(plan)),
        Kind::Notify { .. } | Kind::Message { .. } => todo!("scenarios"),
    };
    Part {
        name: plan.name.clone(),
        scenario,
        pace: plan.pace.clone(),
    }
}

/// Registers the callees of all parts over the callees' flows: every other user of each part.
///
/// # Errors
/// Not all could register; the text says what came of it.
pub(crate) fn register_callees(driver: &mut Driver, plans: &[PartPlan]) -> io::Result<()> {
    let Some(digest) = plans.iter().find_map(|p| p.kind.callees()) else {
        return Ok(());
    };
    let with_callees = plans.iter().filter(|p| p.kind.callees().is_some());
    // Parts may share users; each registers once.
    let callees: BTreeSet<usize> = with_callees
        .flat_map(|p| (p.users.start + 1..p.users.end).step_by(2))
        .collect();
    let mut requests = Requests::new(requests::Kind::Register, callees.into_iter());
    requests.digest = digest;
    requests.as_callees = true;
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
