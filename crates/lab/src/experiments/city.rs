//! Ono and Schulzrinne, section 3.2: all the traffic of a city at once.

use std::time::Duration;

use crate::{
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    load::Load,
    mixes::Mixed,
    record::{Agreement, Measured, Sample},
    report::readable,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "city",
    title: "One server per city: the traffic of 300,000 subscribers",
    paper: "Ono and Schulzrinne, sections 3.2 and 5.5: 300,000 subscribers make 83 registrations/s and 167 calls/s of 180 s, with PRACK, ACK, \
            UPDATE and BYE 833 requests/s; their server sustains 700 calls/s over TCP",
    how: "The mix `city` of sipolis load over persistent connections, for a quarter and for all of the city. The subscribers share \
          the connections that one server process can have here. In so short a run few calls end by themselves: those that \
          are under way at its end are hung up then.",
    run,
};

/// Subscribers of the mix at scale 1.
const SUBSCRIBERS: f64 = 300_000.0;

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let connections = lab.holdable() / 2;
    lab.warn(format!(
        "The subscribers share {} connections, half of them callers': a process can't have one for each here.",
        readable(2.0 * connections as f64)
    ));
    let seconds = lab.size(8.0, 2.0);
    let plan = |scale: f64| {
        let words = format!("--scale {scale} --connections {connections}");
        let load = Load::new("city", "tcp").with(&words).lasting(seconds);
        Plan::new(load.within(Duration::from_secs(180))).at("users", SUBSCRIBERS * scale)
    };
    let plans: Vec<Plan> = lab
        .size(vec![0.25, 1.0], vec![0.01])
        .into_iter()
        .map(plan)
        .collect();
    let samples = lab.measure_once(&plans)?;
    Ok(conclude(samples))
}

fn conclude(samples: Vec<Sample>) -> Measured {
    let mixed = Mixed { samples: &samples };
    let paper = "one server takes the traffic of 300,000 subscribers over persistent TCP";
    let largest = samples
        .iter()
        .filter_map(|s| s.at("users"))
        .fold(0.0, f64::max);
    let mut findings = Vec::from_iter(mixed.taken(paper, largest));
    if largest < SUBSCRIBERS {
        // Less traffic than the paper's, however well it is taken.
        findings
            .iter_mut()
            .for_each(|f| f.agrees = Agreement::NotComparable);
    }
    Measured {
        charts: vec![mixed.busy_chart("How busy the traffic of a city keeps a server's core")],
        tables: vec![mixed.table()],
        findings,
        ratios: Vec::new(),
        samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ServerUse, Who};
    use serde_json::json;

    #[test]
    fn a_part_of_the_city_is_not_held_against_the_paper() {
        let sample = |users| Sample {
            who: Who::Sipolis,
            at: [("users".to_owned(), users)].into(),
            of: [].into(),
            repeat: 0,
            load: json!({"success_percent": 100.0}),
            server: ServerUse::default(),
        };
        assert_eq!(
            conclude(vec![sample(3_000.0)]).findings[0].agrees,
            Agreement::NotComparable
        );
        assert_eq!(
            conclude(vec![sample(SUBSCRIBERS)]).findings[0].agrees,
            Agreement::Yes
        );
    }
}
