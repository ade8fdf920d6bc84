//! Every row of the papers' results, an experiment each, in one file each.

use crate::experiment::Experiment;

/// All of them, in the report's order.
pub(crate) const ALL: &[Experiment] = &[];
