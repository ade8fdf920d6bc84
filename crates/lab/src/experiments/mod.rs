//! Every row of the papers' results, an experiment each, in one file each.

mod invite_rate;
mod overload;
mod own_cost;
mod phones;
mod register_rate;
mod setup_cost;
mod stages;
mod sustainable;

use crate::experiment::Experiment;

/// All of them, in the report's order.
pub(crate) const ALL: &[Experiment] = &[
    setup_cost::EXPERIMENT,
    register_rate::EXPERIMENT,
    invite_rate::EXPERIMENT,
    overload::EXPERIMENT,
    stages::EXPERIMENT,
    phones::EXPERIMENT,
    sustainable::EXPERIMENT,
    own_cost::EXPERIMENT,
];
