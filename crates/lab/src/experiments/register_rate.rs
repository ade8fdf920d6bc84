//! Ono and Schulzrinne, figures 10 to 13: how fast REGISTER can come.

use crate::{
    chart::{each, rounded},
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    lifetime::Lifetime,
    record::{Agreement, Finding, Measured, Sample, Who},
    sustained::{Found, Sustained},
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "register-rate",
    title: "REGISTER: response time against rate, until the first failure",
    paper: "Ono and Schulzrinne, figures 10-13: 2,900/s with a connection each, 3,300/s persistent with open, \
            4,100/s persistent, 5,300/s over UDP; the processor below 40 % when it begins to fail",
    how: "The highest rate at which every REGISTER succeeds and 99 % within 50 ms is searched; then \
          rates up to a tenth above it run one after the other. Persistent with open: every user's first, \
          12,000 in a run, for want of descriptors; at high rates that is a short run. Each rate is of one search; on a virtual machine two differ by a third and more.",
    run,
};

/// The four, and what the paper's server sustained of each.
const PUBLISHED: [(Lifetime, f64); 4] = [
    (Lifetime::UDP, 5_300.0),
    (Lifetime::PERSISTENT, 4_100.0),
    (Lifetime::PERSISTENT_OPEN, 3_300.0),
    (Lifetime::TRANSACTION, 2_900.0),
];
/// Connections opened in one run at most, below the descriptors that both sides have.
const OPENED_MAX: f64 = 12_000.0;
/// Where the search with opened connections begins, per second.
const LOWEST: f64 = 2_000.0;
/// The paper's share of the processor in use when requests began to fail, percent.
const PAPER_BUSY: f64 = 40.0;

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let mut samples = Vec::new();
    let mut found = Vec::new();
    for who in lab.sip_servers() {
        found.extend(search(lab, who, &mut samples)?);
    }
    let sustained = Sustained {
        unit: "REGISTER",
        published: &PUBLISHED,
        found,
    };
    let swept = sustained.sweep(lab, plan)?;
    let mut charts = sustained.swept(&swept, ("figure 10", "figures 12 and 13"));
    charts.extend(sustained.charts());
    let findings = vec![
        sustained.persistent_of_udp(
            "persistent TCP sustains 77 % of the rate of UDP",
            0.62..0.92,
        ),
        order(&sustained),
        spare(&sustained, &swept),
    ];
    samples.extend(swept);
    Ok(Measured {
        charts,
        tables: vec![sustained.table()],
        findings,
        ratios: sustained.ratios(),
        samples,
    })
}

/// Finds what one server sustains in each way.
fn search(lab: &mut Lab, who: Who, samples: &mut Vec<Sample>) -> Result<Vec<Found>, Stop> {
    let mut rate = |lifetime: Lifetime| {
        let (rate, sample) = lab.sustainable(who, &lifetime.plan("register"))?;
        samples.push(sample);
        Ok::<f64, Stop>(rate)
    };
    let udp = rate(Lifetime::UDP)?;
    let persistent = rate(Lifetime::PERSISTENT)?;
    let transaction = rate(Lifetime::TRANSACTION)?;
    let operations = lab.size(OPENED_MAX, OPENED_MAX / 10.0);
    let first = |rate: f64| {
        let mut plan = Lifetime::PERSISTENT_OPEN.plan_of_first("register", operations);
        plan.load = plan
            .load
            .with(&format!("--count {operations:.0} --rate {rate:.0}"));
        plan.at("rate", rate)
    };
    let (open, trials) = lab.sustainable_between(who, (LOWEST, persistent), first)?;
    samples.extend(trials);
    let rates = [udp, persistent, open, transaction];
    let found = PUBLISHED
        .iter()
        .zip(rates)
        .map(|((lifetime, _), rate)| Found {
            who,
            lifetime: *lifetime,
            rate,
        });
    Ok(found.collect())
}

/// The load of one way, and the most operations of one run.
fn plan(found: &Found) -> (Plan, f64) {
    if found.lifetime == Lifetime::PERSISTENT_OPEN {
        let plan = found.lifetime.plan_of_first("register", OPENED_MAX);
        return (plan, OPENED_MAX);
    }
    (found.lifetime.plan("register"), f64::INFINITY)
}

fn order(sustained: &Sustained) -> Finding {
    let falling = |who| {
        let rates: Vec<f64> = sustained.rates(who).collect();
        // Two rates within the search's step are equal.
        rates.windows(2).all(|pair| pair[1] <= pair[0] * 1.05)
    };
    let text = |who| {
        let rates = sustained.rates(who).map(|rate| rounded(rate).to_string());
        (who, rates.collect::<Vec<_>>().join(" > ") + " /s")
    };
    Finding::new(
        "UDP sustains more than persistent TCP, that more than persistent with open, that more than a connection each",
        each(sustained.who().map(text)),
        Agreement::of(sustained.who().map(falling)),
    )
}

/// How busy the server was at the highest rate without a failure.
fn spare(sustained: &Sustained, swept: &[Sample]) -> Finding {
    let busiest = |who| {
        let whole = |s: &&Sample| s.who == who && s.success_percent() >= 100.0;
        let busy = swept.iter().filter(whole).map(|s| s.server.busy_percent);
        busy.fold(0.0, f64::max)
    };
    let text = |who| {
        (
            who,
            format!("{:.0} % busy before the first failure", busiest(who)),
        )
    };
    Finding::new(
        "requests fail while the processor is below 40 % busy: the queue of its threads is the bottleneck",
        each(sustained.who().map(text)),
        Agreement::of(sustained.who().map(|who| busiest(who) < PAPER_BUSY)),
    )
}
