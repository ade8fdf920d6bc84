//! Who does the work: this process, or several.

use std::io;

use crate::{
    driver::Work,
    fleet::{Fleet, Preparation},
    pace::Pace,
    plan::Plan,
    processes::Processes,
    statistics::Statistics,
};

/// A load that is ready to run.
pub(crate) enum Crew {
    Here(Box<Fleet>),
    Processes(Processes),
}

impl Crew {
    /// Prepares a plan in so many processes. `watch` is told a few times a second how far it is.
    ///
    /// # Errors
    /// A connection can't be opened, callees can't register.
    pub(crate) fn prepare(
        plan: &Plan,
        processes: usize,
        watch: &mut dyn FnMut(&Preparation),
    ) -> io::Result<Self> {
        Ok(match processes {
            0 | 1 => Self::Here(Box::new(Fleet::prepare(plan, watch)?)),
            _ => Self::Processes(Processes::prepare(processes, &plan.stop, watch)?),
        })
    }

    /// Does the work. `watch` is told a few times a second what has come of it so far.
    ///
    /// # Errors
    /// A poller fails, or all processes have died.
    pub(crate) fn run(
        &mut self,
        work: Work,
        watch: &mut dyn FnMut(&Statistics),
    ) -> io::Result<Statistics> {
        match self {
            Self::Here(fleet) => fleet.run(work, watch),
            Self::Processes(processes) => processes.run(work, watch),
        }
    }

    /// Paces each part anew, from the next run on.
    pub(crate) fn pace(&mut self, paces: &[Pace]) {
        match self {
            Self::Here(fleet) => {
                for (part, pace) in paces.iter().enumerate() {
                    fleet.set_pace(part, pace.clone());
                }
            }
            Self::Processes(processes) => processes.pace(paces),
        }
    }

    /// Processes that died.
    pub(crate) fn lost(&self) -> usize {
        match self {
            Self::Here(_) => 0,
            Self::Processes(processes) => processes.lost(),
        }
    }
}
