//! The SIP-Router capacity test: handshakes of TLS. Not done yet.

use crate::experiment::{Experiment, Stop};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tls-handshakes",
    title: "TLS handshakes",
    paper: "SIP-Router 3.0 capacity test: 478 new TLS connections/s, 617 of them at a time, 61 kB each",
    how: "Handshakes in a second of the server's processor time, with and without resumption.",
    run: |_| {
        Err(Stop::Skip(
            "Neither server nor load speaks TLS yet: it comes as a transport in a later version, and this experiment with it.".to_owned(),
        ))
    },
};
