//! Every row of the papers' results, an experiment each, in one file each.

mod invite_rate;
mod register_rate;
mod stages;

use crate::experiment::Experiment;

/// All of them, in the report's order.
pub(crate) const ALL: &[Experiment] = &[
    register_rate::EXPERIMENT,
    invite_rate::EXPERIMENT,
    stages::EXPERIMENT,
];
