//! Ono and Schulzrinne, figures 5 and 11: what it costs to open and to close a connection.

use crate::{
    chart::{decimals, each},
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    lifetime::Lifetime,
    record::{
        Agreement, Axis, Bar, Chart, Finding, Group, Measured, Point, Ratio, Sample, Table, Who,
    },
    sample::median,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "setup-cost",
    title: "The cost of opening and of closing a TCP connection",
    paper: "Ono and Schulzrinne, figures 5 and 11: opening takes 0.2 ms beside 0.3 ms for the exchange; at 14,800 requests/s \
            opening takes 15 % of the processor and closing 14 %, at 2,500/s nothing that shows",
    how: "UDP, TCP with connections opened before, with each opened for its first request and kept, and with each \
          closed again, at the paper's two rates; messages of about 512 bytes to the echo server, \
          REGISTER to the others. An answer of sipolis waits for its disk.",
    run,
};

const LIFETIMES: [Lifetime; 4] = [
    Lifetime::UDP,
    Lifetime::PERSISTENT,
    Lifetime::PERSISTENT_OPEN,
    Lifetime::TRANSACTION,
];
/// The paper's, requests per second.
const SLOW: f64 = 2_500.0;
const FAST: f64 = 14_800.0;
/// Operations of one run at most, each on a connection of its own, below the descriptors of both sides.
const OPERATIONS_MAX: f64 = 12_000.0;
/// The paper's milliseconds to open a connection, and of an exchange over an open one.
const PAPER_OPEN_MS: f64 = 0.2;
const PAPER_EXCHANGE_MS: f64 = 0.3;
/// The paper's share of one processor at the fast rate, percent.
const PAPER_OPEN_PERCENT: f64 = 15.0;
const PAPER_CLOSE_PERCENT: f64 = 14.0;

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let rates = lab.size(&[SLOW, FAST][..], &[SLOW][..]);
    let seconds = lab.size(1.5, 0.3);
    let mut samples = Vec::new();
    for repeat in 0..lab.repeats {
        for rate in rates {
            for lifetime in LIFETIMES {
                for who in lab.who() {
                    let plan = plan(who, lifetime, *rate, seconds);
                    samples.push(lab.measure(who, &plan, repeat)?);
                }
            }
        }
    }
    let who = lab.who();
    let costs = costs(&who, rates, &samples);
    Ok(Measured {
        charts: charts(&who, rates, &samples),
        tables: vec![table(&costs)],
        findings: findings(&costs),
        ratios: ratios(&costs),
        samples,
    })
}

/// As many connections in every way, so that only their opening and closing differs.
fn plan(who: Who, lifetime: Lifetime, rate: f64, seconds: f64) -> Plan {
    let operations = f64::min(rate * seconds, OPERATIONS_MAX).round();
    let scenario = if who == Who::Echo {
        "echo --body 150"
    } else {
        "register"
    };
    let (scenario, body) = scenario.split_once(' ').unwrap_or((scenario, ""));
    let mut plan = lifetime.plan_of_first(scenario, operations);
    plan.load = plan
        .load
        .with(&format!("{body} --rate {rate} --count {operations}"));
    if lifetime == Lifetime::PERSISTENT {
        plan.load = plan.load.with(&format!("--connections {operations}"));
    }
    plan.at("rate", rate)
}

/// What was found of one server at one rate; medians over the repeats.
struct Cost {
    who: Who,
    rate: f64,
    /// Response time over a connection that was there, milliseconds, median.
    exchange_ms: f64,
    /// By how much it is longer when the connection is opened first.
    open_ms: f64,
    /// From connect() to the open connection, as the load sees it.
    connect_ms: f64,
    /// Processor time for opening, and for closing, of the server, microseconds.
    open_us: f64,
    close_us: f64,
    request_us: f64,
}

fn costs(who: &[Who], rates: &[f64], samples: &[Sample]) -> Vec<Cost> {
    let mut costs = Vec::new();
    for rate in rates {
        for who in who {
            let middle = |lifetime: Lifetime, y: &dyn Fn(&Sample) -> Option<f64>| {
                let of = of(samples, *who, lifetime, *rate);
                median(of.filter_map(y)).unwrap_or(f64::NAN)
            };
            let cpu = |lifetime| middle(lifetime, &Sample::cpu_us_per_operation);
            let response = |lifetime| middle(lifetime, &|s| s.figure("latency_us.p50")) / 1000.0;
            let (kept, opened) = (cpu(Lifetime::PERSISTENT), cpu(Lifetime::PERSISTENT_OPEN));
            costs.push(Cost {
                who: *who,
                rate: *rate,
                exchange_ms: response(Lifetime::PERSISTENT),
                open_ms: response(Lifetime::PERSISTENT_OPEN) - response(Lifetime::PERSISTENT),
                connect_ms: middle(Lifetime::PERSISTENT_OPEN, &|s| s.figure("setup_us.p50"))
                    / 1000.0,
                open_us: opened - kept,
                close_us: cpu(Lifetime::TRANSACTION) - opened,
                request_us: kept,
            });
        }
    }
    costs
}

fn of(
    samples: &[Sample],
    who: Who,
    lifetime: Lifetime,
    rate: f64,
) -> impl Iterator<Item = &Sample> {
    let same = move |s: &&Sample| {
        s.who == who && s.of("lifetime") == lifetime.label && s.at("rate") == Some(rate)
    };
    samples.iter().filter(same)
}

fn charts(who: &[Who], rates: &[f64], samples: &[Sample]) -> Vec<Chart> {
    let chart = |id: &str, title: &str, label: &str, y: fn(&Sample) -> Option<f64>| {
        let mut groups = Vec::new();
        for rate in rates {
            for lifetime in LIFETIMES {
                let bar = |who: &Who| {
                    let values: Vec<f64> =
                        of(samples, *who, lifetime, *rate).filter_map(y).collect();
                    Some(Bar::plain(*who, Point::of(0.0, &values)?))
                };
                let label = format!("{} {rate:.0}/s", lifetime.label);
                groups.push(Group::new(&label, who.iter().filter_map(bar)));
            }
        }
        Chart::bars(id, title, Axis::linear(label), groups)
    };
    vec![
        chart(
            "response",
            "Response time by connection lifetime (figures 5 and 11)",
            "median response time, ms",
            |s| s.figure("latency_us.p50").map(|us| us / 1000.0),
        ),
        chart(
            "processor",
            "Processor by connection lifetime (figures 5 and 11)",
            "share of one core, %",
            |s| {
                let us = s.cpu_us_per_operation()?;
                Some(us * s.at("rate")? / 1e6 * 100.0)
            },
        ),
    ]
}

/// Share of one core, percent, of so many microseconds at a rate.
fn percent(us: f64, rate: f64) -> f64 {
    us * rate / 1e4
}

fn table(costs: &[Cost]) -> Table {
    let columns = [
        "server",
        "rate/s",
        "exchange ms",
        "longer with opening, ms",
        "connect() ms",
        "open us of processor (share)",
        "close us of processor (share)",
        "request us of processor",
    ];
    let row = |cost: &Cost| {
        let share = |us| {
            let percent = decimals(percent(us, cost.rate), 1);
            format!("{} ({percent} %)", decimals(us, 1))
        };
        vec![
            cost.who.name().to_owned(),
            format!("{:.0}", cost.rate),
            decimals(cost.exchange_ms, 3),
            decimals(cost.open_ms, 3),
            decimals(cost.connect_ms, 3),
            share(cost.open_us),
            share(cost.close_us),
            decimals(cost.request_us, 1),
        ]
    };
    let paper_us = |percent: f64| format!("{:.1} ({percent:.1} %)", percent * 1e4 / FAST);
    let paper = vec![
        Who::Paper.name().to_owned(),
        format!("{FAST:.0}"),
        PAPER_EXCHANGE_MS.to_string(),
        PAPER_OPEN_MS.to_string(),
        "-".to_owned(),
        paper_us(PAPER_OPEN_PERCENT),
        paper_us(PAPER_CLOSE_PERCENT),
        "-".to_owned(),
    ];
    Table {
        title: "Opening and closing a connection".to_owned(),
        columns: columns.map(String::from).to_vec(),
        rows: [paper].into_iter().chain(costs.iter().map(row)).collect(),
    }
}

fn ratios(costs: &[Cost]) -> Vec<Ratio> {
    let slow = || costs.iter().filter(|cost| cost.rate == SLOW);
    let fast = || costs.iter().filter(|cost| cost.rate == FAST);
    vec![
        Ratio::new(
            "response time that opening a connection adds / that without it, 2,500/s",
            slow()
                .map(|cost| (cost.who, cost.open_ms / cost.exchange_ms))
                .chain([(Who::Paper, PAPER_OPEN_MS / PAPER_EXCHANGE_MS)]),
        ),
        Ratio::new(
            "processor to close a connection / to open it, 14,800/s",
            fast()
                .map(|cost| (cost.who, cost.close_us / cost.open_us))
                .chain([(Who::Paper, PAPER_CLOSE_PERCENT / PAPER_OPEN_PERCENT)]),
        ),
    ]
}

fn findings(costs: &[Cost]) -> Vec<Finding> {
    let at = |rate: f64| {
        let of = costs.iter().filter(move |cost| cost.rate == rate);
        of.filter(|cost| (cost.open_us + cost.close_us).is_finite())
    };
    let open = |cost: &Cost| cost.open_ms / cost.exchange_ms;
    let opened = || at(SLOW).filter(|cost| open(cost).is_finite());
    let mut findings = vec![
        Finding::new(
            "a request takes 0.3 ms, and 0.2 ms more when its connection is opened first",
            each(opened().map(|cost| {
                (
                    cost.who,
                    format!("{:.3} ms and {:.3} ms more", cost.exchange_ms, cost.open_ms),
                )
            })),
            // It shows, and is not most of it.
            Agreement::of(opened().map(|cost| (0.1..1.33).contains(&open(cost)))),
        ),
        Finding::new(
            "at 2,500 requests/s opening and closing take nothing of the processor that shows",
            each(at(SLOW).map(|cost| (cost.who, both(cost)))),
            Agreement::of(
                at(SLOW).map(|cost| percent(cost.open_us + cost.close_us, cost.rate) < 5.0),
            ),
        ),
    ];
    if at(FAST).next().is_some() {
        findings.push(Finding::new(
            "at 14,800 requests/s opening takes 15 % of one processor and closing 14 %",
            each(at(FAST).map(|cost| (cost.who, both(cost)))),
            // Processors are faster now; that both cost about the same is what can hold.
            Agreement::of(
                at(FAST).map(|cost| (0.5..2.0).contains(&(cost.close_us / cost.open_us))),
            ),
        ));
    }
    findings
}

fn both(cost: &Cost) -> String {
    format!(
        "{:.1} % and {:.1} %",
        percent(cost.open_us, cost.rate),
        percent(cost.close_us, cost.rate)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;
    use serde_json::json;

    /// A run of 1,000 operations at the fast rate.
    fn sample(lifetime: Lifetime, cpu_us: f64, p50_us: f64) -> Sample {
        let load =
            json!({"operations": 1000, "latency_us": {"p50": p50_us}, "setup_us": {"p50": 20}});
        let server = ServerUse {
            cpu_us: 1000.0 * cpu_us,
            ..ServerUse::default()
        };
        plan(Who::Echo, lifetime, FAST, 1.0).sample(Who::Echo, 0, load, server)
    }

    #[test]
    fn opening_and_closing_cost_what_a_request_costs_more_with_them() {
        let samples = [
            sample(Lifetime::PERSISTENT, 2.0, 300.0),
            sample(Lifetime::PERSISTENT_OPEN, 12.0, 500.0),
            sample(Lifetime::TRANSACTION, 21.0, 510.0),
        ];
        let costs = costs(&[Who::Echo], &[FAST], &samples);
        let cost = &costs[0];
        assert_eq!(
            (cost.open_us, cost.close_us, cost.request_us),
            (10.0, 9.0, 2.0)
        );
        assert_eq!(
            (cost.open_ms, cost.exchange_ms, cost.connect_ms),
            (0.2, 0.3, 0.02)
        );
        assert_eq!(both(cost), "14.8 % and 13.3 %");
        assert_eq!(findings(&costs)[2].agrees, Agreement::Yes);
    }
}
