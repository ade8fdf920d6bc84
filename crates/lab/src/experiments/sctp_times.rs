//! Ono and Schulzrinne on SCTP: setup and transaction times. Not done yet.

use std::path::Path;

use super::sctp_memory::missing;
use crate::experiment::{Experiment, Stop};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sctp-times",
    title: "SCTP: setup and transaction times",
    paper: "Ono and Schulzrinne (SCTP): setup, transaction and total in ms: one-to-one 0.34, 0.54, 0.88; with piggyback 0.84 in all; \
            TCP 0.17, 0.48, 0.65; one-to-many grew with the associations until their look-up became a hash table",
    how: "Setup and transaction times by style of socket and type of setup, beside TCP.",
    run: |_| Err(Stop::Skip(missing(Path::new("/proc/net/sctp").exists()))),
};
