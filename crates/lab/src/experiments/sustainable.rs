//! Every scenario's sustainable rate, of every server.

use crate::{
    chart::{each, rounded},
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    lifetime::Lifetime,
    load::Load,
    record::{Agreement, Axis, Bar, Chart, Finding, Group, Measured, Point, Ratio, Table, Who},
    servers::Features,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sustainable",
    title: "The highest rate of each scenario at which everything succeeds",
    paper: "Ram and others: over TCP OpenSER does 13-51 % of the calls it does over UDP, 50-78 % after their changes",
    how: "A search with a fresh server each: for 1.5 s every operation succeeds, and 99 % within 50 ms. Each rate is of one search; \
          on a virtual machine two differ by a third and more. The echo server \
          gets the same requests, or as many exchanges as the scenario has messages, of about their size.",
    run,
};

/// A scenario.
struct Row {
    label: &'static str,
    scenario: &'static str,
    digest: bool,
    /// What the echo server gets, and how many of its exchanges stand for one operation.
    echo: (&'static str, f64),
}

const ROWS: [Row; 7] = [
    row("OPTIONS-200", "options", ("options", 1.0)),
    row("NOTIFY-200, keep-alive", "notify", ("notify", 1.0)),
    row("REGISTER-200", "register", ("register", 1.0)),
    Row {
        digest: true,
        ..row("REGISTER-401-REGISTER-200", "register", ("register", 2.0))
    },
    row("MESSAGE, relayed", "message", ("echo", 2.0)),
    row("call, 13 messages", "call", ("echo --body 200", 6.5)),
    Row {
        digest: true,
        ..row(
            "call with digest, 16 messages",
            "call",
            ("echo --body 200", 8.0),
        )
    },
];
const LIFETIMES: [Lifetime; 2] = [Lifetime::UDP, Lifetime::PERSISTENT];

const fn row(label: &'static str, scenario: &'static str, echo: (&'static str, f64)) -> Row {
    Row {
        label,
        scenario,
        digest: false,
        echo,
    }
}

impl Row {
    /// What a server gets, and by what its rate is divided.
    fn plan(&self, who: Who, lifetime: Lifetime) -> (Plan, f64) {
        if who == Who::Echo {
            let (words, exchanges) = self.echo;
            let (scenario, words) = words.split_once(' ').unwrap_or((words, ""));
            let load = Load::new(scenario, lifetime.transport).with(words);
            return (Plan::new(load).of("lifetime", lifetime.label), exchanges);
        }
        let features = Features {
            digest: self.digest,
            ..Features::default()
        };
        (lifetime.plan(self.scenario).features(features), 1.0)
    }
}

/// What one server sustains.
struct Found {
    row: usize,
    lifetime: Lifetime,
    who: Who,
    rate: f64,
}

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let rows = lab.size(ROWS.len(), 4);
    let mut samples = Vec::new();
    let mut found = Vec::new();
    for (n, row) in ROWS.iter().enumerate().take(rows) {
        for lifetime in LIFETIMES {
            for who in lab.who() {
                let (plan, exchanges) = row.plan(who, lifetime);
                let plan = plan.of("scenario", row.label);
                let (rate, sample) = match lab.sustainable(who, &plan) {
                    Ok(found) => found,
                    Err(Stop::Fail(why)) => {
                        lab.warn(format!("{}, {}: {why}", row.label, lifetime.label));
                        continue;
                    }
                    Err(skip) => return Err(skip),
                };
                samples.push(sample);
                found.push(Found {
                    row: n,
                    lifetime,
                    who,
                    rate: rate / exchanges,
                });
            }
        }
    }
    if found.is_empty() {
        return Err(Stop::Fail("no search found a rate".to_owned()));
    }
    Ok(Measured {
        charts: LIFETIMES.map(|lifetime| chart(lifetime, &found)).to_vec(),
        tables: vec![table(&lab.who(), &found)],
        findings: vec![calls(&found), floor(&found)],
        ratios: ratios(&found),
        samples,
    })
}

/// The rate of one, if it was found.
fn rate(found: &[Found], row: usize, lifetime: Lifetime, who: Who) -> Option<f64> {
    let one = |f: &&Found| f.row == row && f.lifetime == lifetime && f.who == who;
    found.iter().find(one).map(|found| found.rate)
}

fn chart(lifetime: Lifetime, found: &[Found]) -> Chart {
    let group = |(n, row): (usize, &Row)| {
        let of = found
            .iter()
            .filter(|f| f.row == n && f.lifetime == lifetime);
        let bars = of.map(|found| Bar::plain(found.who, Point::exact(0.0, found.rate)));
        Group::new(row.label, bars)
    };
    Chart::bars(
        &format!("rate-{}", lifetime.transport),
        &format!("Sustained rate, {}", lifetime.label),
        Axis::log("operations per second"),
        ROWS.iter().enumerate().map(group).collect(),
    )
}

fn table(who: &[Who], found: &[Found]) -> Table {
    let mut rows = Vec::new();
    for (n, row) in ROWS.iter().enumerate() {
        for lifetime in LIFETIMES {
            let rates: Vec<Option<f64>> = who
                .iter()
                .map(|who| rate(found, n, lifetime, *who))
                .collect();
            if rates.iter().all(Option::is_none) {
                continue;
            }
            let cells = rates
                .iter()
                .map(|rate| rate.map_or_else(|| "-".to_owned(), |rate| rounded(rate).to_string()));
            let mut cells: Vec<String> = [format!("{}, {}", row.label, lifetime.label)]
                .into_iter()
                .chain(cells)
                .collect();
            let of = |who| rate(found, n, lifetime, who);
            let times = of(Who::Sipolis).zip(of(Who::Kamailio));
            cells.push(times.map_or_else(
                || "-".to_owned(),
                |(own, rival)| format!("{:.2}", own / rival),
            ));
            rows.push(cells);
        }
    }
    let mut columns = vec!["scenario".to_owned()];
    columns.extend(who.iter().map(|who| who.name().to_owned()));
    columns.push("sipolis / Kamailio".to_owned());
    Table {
        title: "Sustained operations per second".to_owned(),
        columns,
        rows,
    }
}

/// The two servers that can be asked.
const SIP: [Who; 2] = [Who::Kamailio, Who::Sipolis];

/// A row over TCP as a share of the same over UDP.
fn of_udp(found: &[Found], row: usize, who: Who) -> Option<f64> {
    let udp = rate(found, row, Lifetime::UDP, who)?;
    Some(rate(found, row, Lifetime::PERSISTENT, who)? / udp)
}

fn ratios(found: &[Found]) -> Vec<Ratio> {
    let ratio = |(n, row): (usize, &Row)| {
        let of =
            [Who::Echo, Who::Kamailio, Who::Sipolis].map(|who| Some((who, of_udp(found, n, who)?)));
        Ratio::new(
            &format!("{}: sustained over TCP / over UDP", row.label),
            of.into_iter().flatten(),
        )
    };
    let all = ROWS.iter().enumerate().map(ratio);
    all.filter(|ratio| !ratio.of.is_empty()).collect()
}

fn calls(found: &[Found]) -> Finding {
    let call = ROWS.iter().position(|row| row.scenario == "call");
    let share = |who| Some((who, 100.0 * of_udp(found, call?, who)?));
    let shares: Vec<(Who, f64)> = SIP.into_iter().filter_map(share).collect();
    Finding::new(
        "over persistent TCP a proxy without descriptor passing does 50-78 % of the calls of UDP",
        each(
            shares
                .iter()
                .map(|(who, percent)| (*who, format!("{percent:.0} %"))),
        ),
        Agreement::of(
            shares
                .iter()
                .map(|(_, percent)| (45.0..85.0).contains(percent)),
        ),
    )
}

/// How near each comes to a server that only sends back.
fn floor(found: &[Found]) -> Finding {
    let share = |who: Who| {
        let shares = ROWS.iter().enumerate().filter_map(|(n, _)| {
            Some(
                100.0 * rate(found, n, Lifetime::UDP, who)?
                    / rate(found, n, Lifetime::UDP, Who::Echo)?,
            )
        });
        let (low, high) = shares.fold((f64::INFINITY, 0.0), |(low, high), share| {
            (f64::min(low, share), f64::max(high, share))
        });
        (high > 0.0).then_some((who, low, high))
    };
    let shares = SIP.into_iter().filter_map(share);
    Finding::new(
        "the papers hold their SIP server against an echo server only at a fixed rate",
        each(shares.map(|(who, low, high)| {
            (
                who,
                format!("sustains {low:.0}-{high:.0} % of the echo server's rate over UDP"),
            )
        })),
        Agreement::NotComparable,
    )
}
