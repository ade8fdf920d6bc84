//! Ono and Schulzrinne, figures 12, 13, 18 and 19: what becomes of a server that gets more than it can do.

use serde_json::Value;

use crate::{
    chart::{decimals, each, rounded},
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    lifetime::Lifetime,
    record::{Agreement, Axis, Chart, Curve, Finding, Measured, Sample, Table, Who},
    sample::median,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "overload",
    title: "More than a server can do: success, processor and memory up to four times the sustainable rate",
    paper: "Ono and Schulzrinne, figures 12, 13, 18, 19: past the sustainable rate UDP declines gradually (10-28 % dropped), \
            TCP collapses to 7 % success (83-93 % dropped)",
    how: "REGISTER and calls at the sustainable rate and at multiples of it, each against a fresh server, once; \
          an operation has 2 s. The rate is that at which the load really began operations: it has one core, too. \
          What succeeds only because the load is over does not count. At twice the rate half of it can be done: a server \
          that does 40 % has declined gradually, one that does less than 25 % has collapsed.",
    run,
};

const SCENARIOS: [&str; 2] = ["register", "call"];
const LIFETIMES: [Lifetime; 2] = [Lifetime::UDP, Lifetime::PERSISTENT];
/// So many that none registers again before its last REGISTER has had its time.
const USERS: u32 = 500_000;
/// Offered rate, in sustainable rates.
const TIMES: [f64; 4] = [1.0, 1.5, 2.0, 4.0];
/// Seconds that an operation has.
const PATIENCE: f64 = 2.0;
/// Share of requests that succeeded past the sustainable rate, percent, in the paper: UDP, TCP.
const PAPER_UDP: (f64, f64) = (72.0, 90.0);
const PAPER_TCP: f64 = 7.0;

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let mut samples = Vec::new();
    let times = lab.size(&TIMES[..], &TIMES[..2]);
    for scenario in SCENARIOS {
        for lifetime in LIFETIMES {
            for who in lab.sip_servers() {
                let mut plan = lifetime.plan(scenario);
                if scenario == "register" {
                    plan.load = plan.load.with(&format!("--users {USERS}"));
                }
                let (sustained, _) = lab.sustainable(who, &plan)?;
                for times in times {
                    let plan = offer(&plan, scenario, sustained, *times, lab.size(2.0, 0.2));
                    samples.push(lab.measure(who, &plan, 0)?);
                }
            }
        }
    }
    let servers = lab.sip_servers();
    Ok(Measured {
        charts: charts(&servers, &samples),
        tables: SCENARIOS
            .map(|scenario| table(scenario, &servers, &samples))
            .to_vec(),
        findings: findings(&servers, &samples),
        ratios: Vec::new(),
        samples,
    })
}

/// A multiple of the sustainable rate.
fn offer(plan: &Plan, scenario: &str, sustained: f64, times: f64, seconds: f64) -> Plan {
    let rate = (times * sustained).round();
    let mut plan = plan.clone().of("scenario", scenario);
    let words = format!("--rate {rate} --timeout {PATIENCE}");
    plan.load = plan.load.with(&words).lasting(seconds);
    plan.at("rate", rate)
        .at("sustained", sustained)
        .at("seconds", seconds)
}

/// Operations of one kind a second while the load was offered: `begun`, `succeeded`. The first
/// second of several is left out, in which queues fill.
fn meanwhile(sample: &Sample, name: &str) -> Option<f64> {
    let end = sample.at("seconds")?;
    let start = if end >= 2.0 { 1.0 } else { 0.0 };
    let timeline = sample.load.get("timeline")?.as_array()?;
    let within = timeline.iter().filter(|second| {
        let second = second.get("second").and_then(Value::as_f64);
        second.is_some_and(|second| (start..end).contains(&second))
    });
    let count: f64 = within.filter_map(|second| second.get(name)?.as_f64()).sum();
    Some(count / (end - start))
}

/// Share of the operations that succeeded while the load was offered, percent. What succeeds when it
/// is over, because it is over, does not count.
fn share(sample: &Sample) -> Option<f64> {
    let begun = meanwhile(sample, "begun").filter(|begun| *begun > 0.0)?;
    Some((100.0 * meanwhile(sample, "succeeded")? / begun).min(100.0))
}

/// The rate that was really offered, in sustainable rates: the load itself has a limit.
fn times(sample: &Sample) -> Option<f64> {
    Some(meanwhile(sample, "begun")? / sample.at("sustained")?)
}

/// The samples of one server, one scenario and one transport.
fn of<'a>(
    samples: &'a [Sample],
    who: Who,
    scenario: &'a str,
    lifetime: Lifetime,
) -> impl Iterator<Item = &'a Sample> {
    samples.iter().filter(move |s| {
        s.who == who && s.of("scenario") == scenario && s.of("lifetime") == lifetime.label
    })
}

fn charts(servers: &[Who], samples: &[Sample]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for scenario in SCENARIOS {
        let mut chart = |id: &str,
                         title: &str,
                         y: Axis,
                         paper: Vec<Curve>,
                         of_sample: fn(&Sample) -> Option<f64>| {
            let mut curves = paper;
            for lifetime in LIFETIMES {
                curves.extend(servers.iter().map(|who| {
                    let of = of(samples, *who, scenario, lifetime);
                    Curve::of(*who, lifetime.label, of, times, of_sample)
                }));
            }
            let x = Axis::linear("offered rate, times the sustainable one");
            let id = format!("{scenario}-{id}");
            charts.push(Chart::lines(
                &id,
                &format!("{title}, {scenario}"),
                x,
                y,
                curves,
            ));
        };
        chart(
            "success",
            "Success past the sustainable rate",
            Axis::linear("succeeded, %"),
            published(),
            share,
        );
        chart(
            "useful",
            "Operations that still succeed",
            Axis::log("succeeded per second"),
            Vec::new(),
            |s| meanwhile(s, "succeeded"),
        );
        chart(
            "processor",
            "Processor past the sustainable rate",
            Axis::linear("share of one core, %"),
            Vec::new(),
            |s| Some(s.server.busy_percent),
        );
        chart(
            "memory",
            "Memory past the sustainable rate",
            Axis::linear("memory of all processes, MB"),
            Vec::new(),
            |s| Some(s.server.memory_bytes as f64 / 1e6),
        );
    }
    charts
}

/// What the paper says of its two figures; it names no rates beyond.
fn published() -> Vec<Curve> {
    let curve = |label: &str, low: f64, high: f64| {
        let point = crate::record::Point {
            x: 1.5,
            y: f64::midpoint(low, high),
            low,
            high,
        };
        Curve {
            who: Who::Paper,
            label: label.to_owned(),
            points: vec![point],
        }
    };
    vec![
        curve("UDP", PAPER_UDP.0, PAPER_UDP.1),
        curve("TCP persistent", PAPER_TCP, 17.0),
    ]
}

fn whole(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| rounded(rate).to_string())
}

fn table(scenario: &str, servers: &[Who], samples: &[Sample]) -> Table {
    let mut rows = Vec::new();
    for lifetime in LIFETIMES {
        for who in servers {
            for sample in of(samples, *who, scenario, lifetime) {
                rows.push(vec![
                    format!("{}, {}", who.name(), lifetime.label),
                    decimals(times(sample).unwrap_or(f64::NAN), 2),
                    whole(sample.at("rate")),
                    whole(meanwhile(sample, "begun")),
                    whole(meanwhile(sample, "succeeded")),
                    decimals(share(sample).unwrap_or(f64::NAN), 1),
                    decimals(sample.success_percent(), 1),
                    format!("{:.0}", sample.server.busy_percent),
                    format!("{:.0}", sample.server.memory_bytes as f64 / 1e6),
                ]);
            }
        }
    }
    let columns = [
        "server",
        "begun, times the sustainable rate",
        "wanted/s",
        "begun/s",
        "succeeded/s meanwhile",
        "success %",
        "in the end %",
        "busy %",
        "MB",
    ];
    Table {
        title: format!("Past the sustainable rate: {scenario}"),
        columns: columns.map(String::from).to_vec(),
        rows,
    }
}

/// The lowest success up to twice the sustainable rate, where the paper looks, and that at the
/// highest rate; `None` where the load could not offer more than the server sustains.
fn success(samples: &[Sample], who: Who, scenario: &str, lifetime: Lifetime) -> Option<(f64, f64)> {
    let mut past: Vec<(f64, f64)> = of(samples, who, scenario, lifetime)
        .filter_map(|s| Some((times(s)?, share(s)?)))
        .filter(|(times, _)| *times > 1.1)
        .collect();
    past.sort_by(|a, b| a.0.total_cmp(&b.0));
    let near = past.iter().filter(|(times, _)| *times < 2.2);
    let near = near.map(|(_, success)| *success).reduce(f64::min);
    let (_, far) = *past.last()?;
    Some((near.unwrap_or(far), far))
}

fn findings(servers: &[Who], samples: &[Sample]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for scenario in SCENARIOS {
        let of = |lifetime| {
            let of = servers
                .iter()
                .filter_map(move |who| Some((*who, success(samples, *who, scenario, lifetime)?)));
            of.collect::<Vec<_>>()
        };
        let text = |found: &[(Who, (f64, f64))]| {
            each(found.iter().map(|(who, (near, far))| {
                (
                    *who,
                    format!("{near:.0} % succeed up to twice the rate, {far:.0} % at the highest offered"),
                )
            }))
        };
        let udp = of(Lifetime::UDP);
        findings.push(Finding::new(
            &format!(
                "past the sustainable rate UDP declines gradually: 72-90 % succeed ({scenario})"
            ),
            text(&udp),
            // At twice the rate half can be done.
            Agreement::of(udp.iter().map(|(_, (near, _))| *near > 40.0)),
        ));
        let tcp = of(Lifetime::PERSISTENT);
        findings.push(Finding::new(
            &format!("past the sustainable rate TCP collapses: 7-17 % succeed ({scenario})"),
            text(&tcp),
            Agreement::of(tcp.iter().map(|(_, (near, _))| *near < 25.0)),
        ));
    }
    findings.push(useful(servers, samples));
    findings
}

/// What a server still does at four times its rate, of what it can do.
fn useful(servers: &[Who], samples: &[Sample]) -> Finding {
    let kept = |who: Who| {
        let shares = SCENARIOS
            .iter()
            .flat_map(|scenario| LIFETIMES.map(|l| (*scenario, l)));
        let share = |(scenario, lifetime)| {
            let done: Vec<f64> = of(samples, who, scenario, lifetime)
                .filter_map(|s| meanwhile(s, "succeeded"))
                .collect();
            Some(100.0 * done.last()? / done.first()?)
        };
        median(shares.filter_map(share))
    };
    let found = servers.iter().filter_map(|who| Some((*who, kept(*who)?)));
    Finding::new(
        "the paper gives no rate of what still succeeds far past the sustainable rate",
        each(found.map(|(who, kept)| {
            (
                who,
                format!("does {kept:.0} % of its sustainable rate at the highest offered"),
            )
        })),
        Agreement::NotComparable,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;
    use serde_json::json;

    #[test]
    fn what_is_past_the_sustainable_rate_counts() {
        let sample = |times: f64, done: f64| {
            let begun = 100.0 * times;
            let load = json!({"timeline": [
                {"second": 0, "begun": begun, "succeeded": done},
                {"second": 1, "begun": 0, "succeeded": 500},
            ]});
            let plan = offer(&Lifetime::UDP.plan("call"), "call", 100.0, 4.0, 1.0);
            plan.sample(Who::Sipolis, 0, load, ServerUse::default())
        };
        let samples = [
            sample(1.0, 100.0),
            sample(1.5, 120.0),
            sample(2.0, 120.0),
            sample(4.0, 40.0),
        ];
        assert_eq!(times(&samples[1]), Some(1.5));
        let found = success(&samples, Who::Sipolis, "call", Lifetime::UDP);
        assert_eq!(found, Some((60.0, 10.0)));
        assert_eq!(
            success(&samples, Who::Sipolis, "register", Lifetime::UDP),
            None
        );
        let useful = useful(&[Who::Sipolis], &samples);
        assert!(useful.here.contains("does 40 %"), "{}", useful.here);
    }
}
