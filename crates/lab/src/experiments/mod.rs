//! Every row of the papers' results, an experiment each, in one file each.

mod city;
mod connections_memory;
mod energy;
mod idle_connection;
mod invite_rate;
mod itsp;
mod overload;
mod own_cost;
mod phones;
mod register_rate;
mod response_held;
mod sctp_memory;
mod sctp_times;
mod setup_cost;
mod stages;
mod sustainable;
mod tls_handshakes;

use crate::experiment::Experiment;

/// All of them, in the report's order.
pub(crate) const ALL: &[Experiment] = &[
    connections_memory::EXPERIMENT,
    setup_cost::EXPERIMENT,
    response_held::EXPERIMENT,
    sctp_memory::EXPERIMENT,
    sctp_times::EXPERIMENT,
    register_rate::EXPERIMENT,
    invite_rate::EXPERIMENT,
    overload::EXPERIMENT,
    stages::EXPERIMENT,
    city::EXPERIMENT,
    phones::EXPERIMENT,
    itsp::EXPERIMENT,
    idle_connection::EXPERIMENT,
    tls_handshakes::EXPERIMENT,
    energy::EXPERIMENT,
    sustainable::EXPERIMENT,
    own_cost::EXPERIMENT,
];
