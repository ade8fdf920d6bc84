//! All drivers of a load together.

use std::io;

use crate::{
    call::Calls,
    driver::{Driver, Part, Setup, Work},
    pace::Pace,
    plan::{Kind, PartPlan, Plan},
    requests::{self, Digest, Requests},
    scenario::Scenario,
    statistics::Statistics,
};

/// Drivers that are ready to run: users made, connections open, callees registered.
pub(crate) struct Fleet {
    driver: Driver,
    parts: Vec<Part>,
}

/// How far a preparation is, of all threads together.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Preparation {
    pub(crate) connections: u64,
    pub(crate) connections_wanted: u64,
    pub(crate) callees: u64,
    pub(crate) callees_wanted: u64,
}

impl Fleet {
    /// Prepares a load. `watch` is told a few times a second how far it is.
    ///
    /// # Errors
    /// A connection that can't be opened, callees that can't register.
    pub(crate) fn prepare(plan: &Plan, watch: &mut dyn FnMut(&Preparation)) -> io::Result<Self> {
        watch(&Preparation::default()); // TODO(engine): and while it goes on; `plan.stop`
        // What can't be raised shows when descriptors run out.
        let _ = net::limits::raise_descriptors();
        // TODO(engine): threads
        let mut driver = Driver::new(Setup {
            target: plan.target.address,
            users: plan.users.clone(),
            connections: plan.connections.clone(),
            outstanding_max: plan.outstanding_max,
            timeout: plan.timeout,
            number: 0,
        })?;
        let callees = plan.parts.iter().find_map(|p| p.kind.callees());
        driver.open(callees.is_some())?;
        if let Some(digest) = callees {
            register_callees(&mut driver, digest)?;
        }
        let parts = plan.parts.iter().map(|p| part(p, &driver)).collect();
        Ok(Self { driver, parts })
    }

    /// Does the work. `watch` is told a few times a second what has come of it so far.
    ///
    /// # Errors
    /// A poller fails.
    pub(crate) fn run(
        &mut self,
        work: Work,
        watch: &mut dyn FnMut(&Statistics),
    ) -> io::Result<Statistics> {
        let _ = watch; // TODO(engine)
        self.driver.run(&mut self.parts, work)
    }

    /// Paces a part anew for the next run.
    #[expect(dead_code, reason = "for the search of the highest rate")]
    pub(crate) fn set_pace(&mut self, part: usize, pace: Pace) {
        self.parts[part].pace = pace;
    }
}

impl Kind {
    /// What the callees answer challenges of their registration with; `None`: there are no callees.
    fn callees(&self) -> Option<Digest> {
        match self {
            Self::Call(call) => Some(call.digest),
            Self::Message { digest, .. } => Some(*digest),
            _ => None,
        }
    }
}

fn part(plan: &PartPlan, driver: &Driver) -> Part {
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

/// Registers every other user over the callees' flows.
fn register_callees(driver: &mut Driver, digest: Digest) -> io::Result<()> {
    let callees = (1..driver.users.len()).step_by(2);
    let mut requests = Requests::new(requests::Kind::Register, callees);
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
    let statistics = driver.run(&mut [part], work)?;
    let summary = statistics.summary();
    if summary.succeeded < summary.operations {
        let text = format!("not all callees could register:\n{summary}");
        return Err(io::Error::other(text));
    }
    Ok(())
}
