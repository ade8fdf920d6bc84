//! All drivers of a load together.

use std::io;

use serde::{Deserialize, Serialize};

use crate::{
    driver::{Driver, Part, Setup, Work},
    pace::Pace,
    parts,
    plan::Plan,
    statistics::Statistics,
};

/// Drivers that are ready to run: users made, connections open, callees registered.
pub(crate) struct Fleet {
    driver: Driver,
    parts: Vec<Part>,
}

/// How far a preparation is, of all threads together.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
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
        driver.open(plan.parts.iter().any(|p| p.kind.callees().is_some()))?;
        parts::register_callees(&mut driver, &plan.parts)?;
        let parts = plan.parts.iter().map(parts::part).collect();
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
    pub(crate) fn set_pace(&mut self, part: usize, pace: Pace) {
        self.parts[part].pace = pace;
    }
}
