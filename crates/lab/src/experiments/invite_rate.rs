//! Ono and Schulzrinne, figures 17 to 19: how fast calls can come.

use crate::{
    chart::{each, rounded},
    experiment::{Experiment, Stop},
    lab::Lab,
    lifetime::Lifetime,
    record::{Agreement, Finding, Measured, Sample, Who},
    sustained::{Found, Sustained},
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "invite-rate",
    title: "Calls: response time against rate, until the first failure",
    paper: "Ono and Schulzrinne, figures 17-19: 700 calls/s over TCP with every connection lifetime, 900/s over UDP; \
            the processor below 40 % when it begins to fail",
    how: "INVITE-180-200-ACK-BYE-200 without ringing or talking, both sides played by the load; callees \
          keep the connections that they registered over. The highest rate at which every call succeeds \
          and 99 % within 50 ms is searched; then rates up to a tenth above it run one after the other.",
    run,
};

/// The four, and what the paper's server sustained of each.
const PUBLISHED: [(Lifetime, f64); 4] = [
    (Lifetime::UDP, 900.0),
    (Lifetime::PERSISTENT, 700.0),
    (Lifetime::DIALOG, 700.0),
    (Lifetime::TRANSACTION, 700.0),
];

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let mut samples = Vec::new();
    let mut found = Vec::new();
    for who in lab.sip_servers() {
        for (lifetime, _) in PUBLISHED {
            let (rate, sample) = lab.sustainable(who, &lifetime.plan("call"))?;
            samples.push(sample);
            found.push(Found {
                who,
                lifetime,
                rate,
            });
        }
    }
    let sustained = Sustained {
        unit: "call",
        published: &PUBLISHED,
        found,
    };
    let swept = sustained.sweep(lab, |found| (found.lifetime.plan("call"), f64::INFINITY))?;
    let mut charts = sustained.swept(&swept, ("figure 17", "figures 18 and 19"));
    charts.extend(sustained.charts());
    let findings = vec![
        sustained.persistent_of_udp(
            "persistent TCP sustains 78 % of the calls of UDP",
            0.63..0.93,
        ),
        lifetimes(&sustained),
        city(&sustained),
        longer(&sustained, &swept),
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

/// The lowest of the three rates over TCP against the highest.
fn lifetimes(sustained: &Sustained) -> Finding {
    let spread = |who| {
        let rates = || sustained.rates(who).skip(1);
        rates().fold(f64::INFINITY, f64::min) / rates().fold(0.0, f64::max)
    };
    let text = |who| (who, format!("{:.0} %", 100.0 * spread(who)));
    Finding::new(
        "the lifetime of TCP connections makes no difference for calls: the lowest rate is 100 % of the highest",
        each(sustained.who().map(text)),
        Agreement::of(sustained.who().map(|who| spread(who) > 0.85)),
    )
}

/// Calls per second of the paper's city of 300,000.
const CITY: f64 = 167.0;

fn city(sustained: &Sustained) -> Finding {
    let lowest = |who| sustained.rates(who).fold(f64::INFINITY, f64::min) / CITY;
    Finding::new(
        "the lowest rate, 700/s, is four times the 167 calls/s of a city of 300,000 subscribers",
        each(
            sustained
                .who()
                .map(|who| (who, format!("{:.0} times", lowest(who)))),
        ),
        Agreement::of(sustained.who().map(|who| lowest(who) >= 4.0)),
    )
}

/// Response time at the highest rates against that at the lowest, over UDP.
fn longer(sustained: &Sustained, swept: &[Sample]) -> Finding {
    let growth = |who| {
        let curve = sustained.curves(swept, |s| s.figure("latency_us.p50"));
        let curve = curve
            .into_iter()
            .find(|c| c.who == who && c.label == Lifetime::UDP.label)?;
        Some(curve.points.last()?.y / curve.points.first()?.y)
    };
    let found: Vec<(Who, f64)> = sustained
        .who()
        .filter_map(|who| Some((who, growth(who)?)))
        .collect();
    Finding::new(
        "the response time grows steeply around the sustainable rate",
        each(found.iter().map(|(who, n)| {
            (
                *who,
                format!(
                    "{}-fold from a tenth of it to a tenth above, over UDP",
                    rounded(*n)
                ),
            )
        })),
        Agreement::of(found.iter().map(|(_, n)| *n > 3.0)),
    )
}
