//! Ram and others, figures 3 to 5: phones that call one another as fast as they can.

use crate::{
    chart::{each, rounded},
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    load::Load,
    record::{Agreement, Axis, Chart, Curve, Finding, Measured, Point, Ratio, Sample, Table, Who},
    sample::median,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "phones",
    title: "Phones that call as fast as they can: UDP against TCP with 50 and 500 operations per connection and persistent",
    paper: "Ram and others, figures 3-5: OpenSER does 13-51 % over TCP of its operations over UDP, with a descriptor cache and \
            a priority queue for idle connections 50-78 %",
    how: "100, 500 and 1,000 callers, each with its own connection and callee, each beginning its next call when one ends; \
          registration is not counted. An operation is an INVITE or a BYE transaction, as in the paper: two a call.",
    run,
};

/// A way of keeping connections, in the paper's operations; a call has two.
struct Workload {
    label: &'static str,
    transport: &'static str,
    words: &'static str,
}

const UDP: Workload = Workload {
    label: "UDP",
    transport: "udp",
    words: "",
};
const WORKLOADS: [Workload; 4] = [
    UDP,
    Workload {
        label: "TCP, 50 operations",
        transport: "tcp",
        words: "--lifetime 25",
    },
    Workload {
        label: "TCP, 500 operations",
        transport: "tcp",
        words: "--lifetime 250",
    },
    Workload {
        label: "TCP persistent",
        transport: "tcp",
        words: "--lifetime persistent",
    },
];
const CLIENTS: [u32; 3] = [100, 500, 1000];
/// INVITE and BYE.
const OPERATIONS_PER_CALL: f64 = 2.0;
/// OpenSER's share of its UDP rate over TCP, percent: as it was, and after both changes.
const PAPER_BEFORE: (f64, f64) = (13.0, 51.0);
const PAPER_AFTER: (f64, f64) = (50.0, 78.0);

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let clients = lab.size(&CLIENTS[..], &CLIENTS[..1]);
    let seconds = lab.size(1.0, 0.3);
    let mut plans = Vec::new();
    for clients in clients {
        for workload in &WORKLOADS {
            plans.push(plan(workload, *clients, seconds));
        }
    }
    let servers = lab.sip_servers();
    let samples = lab.measure_all(&servers, &plans)?;
    let shares = Shares::of(&servers, clients, &samples);
    Ok(Measured {
        charts: charts(&servers, clients, &samples, &shares),
        tables: vec![table(&servers, clients, &samples)],
        findings: findings(&servers, &shares),
        ratios: ratios(&servers, clients, &shares),
        samples,
    })
}

fn plan(workload: &Workload, clients: u32, seconds: f64) -> Plan {
    let users = 2 * clients;
    let mut words = format!("--outstanding {clients} --users {users} {}", workload.words);
    if workload.transport == "tcp" {
        words += &format!(" --connections {clients}");
    }
    let load = Load::new("call", workload.transport).with(&words);
    Plan::new(load.lasting(seconds))
        .of("workload", workload.label)
        .at("clients", f64::from(clients))
}

fn operations(sample: &Sample) -> Option<f64> {
    let calls = sample.figure("succeeded_per_second")?;
    Some(calls * OPERATIONS_PER_CALL)
}

/// The median rate, operations per second.
fn rate(samples: &[Sample], who: Who, workload: &str, clients: u32) -> Option<f64> {
    let same = |s: &&Sample| {
        s.who == who && s.of("workload") == workload && s.at("clients") == Some(f64::from(clients))
    };
    median(samples.iter().filter(same).filter_map(operations))
}

/// Rates over TCP as shares of the same server's over UDP with as many clients.
struct Shares(Vec<Share>);

struct Share {
    who: Who,
    workload: &'static str,
    clients: u32,
    percent: f64,
}

impl Shares {
    fn of(servers: &[Who], clients: &[u32], samples: &[Sample]) -> Self {
        let mut shares = Vec::new();
        for who in servers {
            for workload in &WORKLOADS[1..] {
                for clients in clients {
                    let rate = |workload| rate(samples, *who, workload, *clients);
                    if let Some((tcp, udp)) = rate(workload.label).zip(rate(UDP.label)) {
                        shares.push(Share {
                            who: *who,
                            workload: workload.label,
                            clients: *clients,
                            percent: 100.0 * tcp / udp,
                        });
                    }
                }
            }
        }
        Self(shares)
    }

    /// The lowest and the highest of one server.
    fn range(&self, who: Who) -> (f64, f64) {
        let of = self.0.iter().filter(|share| share.who == who);
        of.fold((f64::INFINITY, 0.0), |(low, high), share| {
            (f64::min(low, share.percent), f64::max(high, share.percent))
        })
    }
}

fn charts(servers: &[Who], clients: &[u32], samples: &[Sample], shares: &Shares) -> Vec<Chart> {
    let mut rates = Vec::new();
    let mut percents = published(clients);
    for who in servers {
        for workload in &WORKLOADS {
            let of = |s: &&Sample| s.who == *who && s.of("workload") == workload.label;
            let at = |s: &Sample| s.at("clients");
            rates.push(Curve::of(
                *who,
                workload.label,
                samples.iter().filter(of),
                at,
                operations,
            ));
            let of = shares
                .0
                .iter()
                .filter(|s| s.who == *who && s.workload == workload.label);
            percents.push(Curve {
                who: *who,
                label: workload.label.to_owned(),
                points: of
                    .map(|s| Point::exact(f64::from(s.clients), s.percent))
                    .collect(),
            });
        }
    }
    let x = || Axis::linear("clients at once");
    vec![
        Chart::lines(
            "operations",
            "Operations by transport and number of clients (figure 3)",
            x(),
            Axis::log("INVITE and BYE transactions per second"),
            rates,
        ),
        Chart::lines(
            "of-udp",
            "TCP against UDP of the same server (figures 3 and 5)",
            x(),
            Axis::linear("% of the operations over UDP"),
            percents,
        ),
    ]
}

/// The two ranges that the paper gives for all its workloads and numbers of clients.
fn published(clients: &[u32]) -> Vec<Curve> {
    let curve = |label: &str, (low, high): (f64, f64)| Curve {
        who: Who::Paper,
        label: label.to_owned(),
        points: clients
            .iter()
            .map(|clients| Point {
                x: f64::from(*clients),
                y: f64::midpoint(low, high),
                low,
                high,
            })
            .collect(),
    };
    vec![
        curve("OpenSER as it was", PAPER_BEFORE),
        curve("OpenSER after both changes", PAPER_AFTER),
    ]
}

fn table(servers: &[Who], clients: &[u32], samples: &[Sample]) -> Table {
    let mut rows = Vec::new();
    for who in servers {
        for workload in &WORKLOADS {
            let mut row = vec![format!("{}, {}", who.name(), workload.label)];
            row.extend(clients.iter().map(|clients| {
                let rate = |workload| rate(samples, *who, workload, *clients);
                rate(workload.label).zip(rate(UDP.label)).map_or_else(
                    || "-".to_owned(),
                    |(here, udp)| format!("{} ({:.0} %)", rounded(here), 100.0 * here / udp),
                )
            }));
            rows.push(row);
        }
    }
    let mut columns = vec!["server".to_owned()];
    columns.extend(clients.iter().map(|clients| format!("{clients} clients")));
    Table {
        title: "Operations per second, and their share of UDP's".to_owned(),
        columns,
        rows,
    }
}

fn ratios(servers: &[Who], clients: &[u32], shares: &Shares) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for workload in &WORKLOADS[1..] {
        for clients in clients {
            let share = |who: &Who| {
                let same = |s: &&Share| {
                    s.who == *who && s.workload == workload.label && s.clients == *clients
                };
                Some((*who, shares.0.iter().find(same)?.percent / 100.0))
            };
            let label = format!("operations/s, {clients} clients: {} / UDP", workload.label);
            ratios.push(Ratio::new(&label, servers.iter().filter_map(share)));
        }
    }
    ratios
}

fn findings(servers: &[Who], shares: &Shares) -> Vec<Finding> {
    let text = |who: Who| {
        let (low, high) = shares.range(who);
        (who, format!("{low:.0}-{high:.0} %"))
    };
    let before = servers
        .iter()
        .map(|who| shares.range(*who).0 < PAPER_BEFORE.1);
    let after = servers
        .iter()
        .map(|who| shares.range(*who).0 >= PAPER_AFTER.0);
    vec![
        Finding::new(
            "one process that passes descriptors to the others keeps TCP at 13-51 % of UDP",
            each(servers.iter().map(|who| text(*who))),
            Agreement::of(before),
        ),
        Finding::new(
            "without passing descriptors and without scanning idle connections TCP reaches 50-78 % of UDP, with any workload",
            each(servers.iter().map(|who| text(*who))),
            Agreement::of(after),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;
    use serde_json::json;

    #[test]
    fn shares_are_of_udp_with_as_many_clients() {
        let sample = |workload: usize, clients, calls| {
            let load = json!({"succeeded_per_second": calls});
            let plan = plan(&WORKLOADS[workload], clients, 1.0);
            plan.sample(Who::Kamailio, 0, load, ServerUse::default())
        };
        let samples = [
            sample(0, 100, 200),
            sample(1, 100, 50),
            sample(3, 100, 100),
            sample(0, 500, 100),
            sample(3, 500, 90),
        ];
        let shares = Shares::of(&[Who::Kamailio], &[100, 500], &samples);
        assert_eq!(shares.range(Who::Kamailio), (25.0, 90.0));
        assert_eq!(rate(&samples, Who::Kamailio, UDP.label, 100), Some(400.0));
        let agrees: Vec<_> = findings(&[Who::Kamailio], &shares)
            .iter()
            .map(|finding| finding.agrees)
            .collect();
        assert_eq!(agrees, [Agreement::Yes, Agreement::No]);
    }
}
