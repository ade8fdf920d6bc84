//! The SIP-Router capacity test: all the traffic of a provider at once.

use std::time::Duration;

use crate::{
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    load::Load,
    mixes::Mixed,
    record::{Agreement, Finding, Measured, Sample},
    servers::Features,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "itsp",
    title: "A provider on the internet: the traffic of half a million and a million users",
    paper: "SIP-Router 3.0 capacity test: half a million users make 33,000 NOTIFY/s, 166 refreshes/s with digest and 100 calls/s with digest, with 8 cores below 10 % busy; \
            of a million the 66,000 NOTIFY/s could not be made, the rest took 10 to 20 %",
    how: "The mix `itsp` of sipolis load over UDP, at 1 and 2 times its size. The server challenges every REGISTER and INVITE; callees are registered \
          before, and every user is known to the server. One core for the server, against the paper's eight.",
    run,
};

/// Users of the mix at scale 1.
const USERS: f64 = 500_000.0;

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    lab.warn(
        "Of the paper's configuration are here: digest on REGISTER and INVITE, Record-Route, keep-alives, location in memory. \
         Not yet: a relay for RTP, rewriting of addresses for phones behind address translators, an SQL database.",
    );
    let seconds = lab.size(6.0, 2.0);
    let plan = |scale: f64| {
        let load = Load::new("itsp", "udp")
            .with(&format!("--scale {scale}"))
            .lasting(seconds);
        let users = USERS * scale;
        let features = Features {
            digest: true,
            users: users as u32,
            ..Features::default()
        };
        Plan::new(load.within(Duration::from_secs(240)))
            .features(features)
            .at("users", users)
    };
    let plans: Vec<Plan> = lab
        .size(vec![1.0, 2.0], vec![0.01])
        .into_iter()
        .map(plan)
        .collect();
    let samples = lab.measure_once(&plans)?;
    Ok(conclude(samples))
}

fn conclude(samples: Vec<Sample>) -> Measured {
    let mixed = Mixed { samples: &samples };
    let findings = [
        mixed.taken("one server takes the traffic of half a million users", USERS),
        mixed.taken("one server takes the refreshes and calls of a million users; their NOTIFY could not be made", 2.0 * USERS),
        Some(Finding::new(
            "with an RTP relay, address translation and an SQL database",
            "not measured: not in the server yet".to_owned(),
            Agreement::NotComparable,
        )),
    ];
    Measured {
        charts: vec![mixed.busy_chart("How busy the traffic of a provider keeps a server's core")],
        tables: vec![mixed.table()],
        findings: findings.into_iter().flatten().collect(),
        ratios: Vec::new(),
        samples,
    }
}
