//! The component test: where a REGISTER's time goes in the server, stage by stage.

use crate::{
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    load::Load,
    record::{
        Agreement, Axis, Bar, BarPart, Chart, Data, Finding, Group, Measured, Ratio, Sample,
        StageUse, Table, Who,
    },
    sample::median,
    servers::Features,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "stages",
    title: "Component test: the stages of a REGISTER in the server",
    paper: "Figures 20, 21 (Ono, Schulzrinne, section 6.1): transaction TCP needs most calls, then persistent TCP with open; \
        reading and sorting a message for overload control costs over UDP a quarter of what it costs over TCP; \
        the SIP operation takes most of the time.",
    how: "REGISTER without digest, each of another user, at the paper's 10 requests a second for 10 s, and at a high rate. \
        The server counts the entries of each stage and reads the clock at each change of stage (`serve --stage-times`); what that costs \
        is measured at its start and subtracted. The times are those of the clock: other threads that have the server's core in between are in them. \
        Only sipolis has such a clock: there is no peer.",
    run,
};

const UDP: &str = "UDP";
const PERSISTENT: &str = "persistent TCP";
const OPEN: &str = "persistent TCP with open";
const TRANSACTION: &str = "transaction TCP";

/// Ways of a REGISTER to the server, in the order of the paper's figures: name, transport, options.
const WAYS: [(&str, &str, &str); 4] = [
    (UDP, "udp", ""),
    (PERSISTENT, "tcp", "--lifetime persistent"),
    (OPEN, "tcp", "--lifetime persistent-open"),
    (TRANSACTION, "tcp", "--lifetime transaction"),
];

/// Stages by the names that the server gives them, in the order in which a message goes through them.
const STAGES: [&str; 9] = [
    "wait",
    "connections",
    "read",
    "classify",
    "parse",
    "look_up",
    "decide",
    "write",
    "other",
];
/// Calls that are the event loop's own are no part of figure 20, and time spent waiting is none of figure 21.
const CALLED: &[&str] = STAGES.split_at(8).0;
const BUSY: &[&str] = STAGES.split_at(1).1;
/// Up to a message that is understood.
const RECEIVE: &[&str] = &["connections", "read", "classify", "parse"];
/// What has to be done before a message can be sorted for overload control.
const SORT: &[&str] = &["read", "classify"];
/// What the paper calls the SIP operation.
const OPERATION: &[&str] = &["look_up", "decide"];

/// One of the two loads.
#[derive(Clone, Copy)]
struct Level {
    name: &'static str,
    /// Requests a second.
    rate: f64,
    seconds: f64,
}

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let levels = lab.size(
        [
            level("low load", 10.0, 10.0),
            level("high load", 5000.0, 3.0),
        ],
        [
            level("low load", 50.0, 1.0),
            level("high load", 1000.0, 1.0),
        ],
    );
    let plans: Vec<Plan> = levels
        .iter()
        .flat_map(|level| WAYS.map(|way| plan(*level, way)))
        .collect();
    let samples = lab.measure_all(&[Who::Sipolis], &plans)?;
    for sample in &samples {
        if sample.success_percent() < 100.0 {
            let (way, load) = (sample.of("way"), sample.of("load"));
            let found = sample.success_percent();
            lab.warn(format!(
                "{way} at {load}: only {found:.2} % of the requests succeeded; its figures are of another work"
            ));
        }
    }
    Ok(measured(samples, &levels))
}

const fn level(name: &'static str, rate: f64, seconds: f64) -> Level {
    Level {
        name,
        rate,
        seconds,
    }
}

/// A user and, over TCP, a connection for each request.
fn plan(level: Level, (way, transport, options): (&str, &str, &str)) -> Plan {
    let Level {
        name,
        rate,
        seconds,
    } = level;
    let users = rate * seconds;
    let mut load = Load::new("register", transport)
        .with(&format!("--rate {rate} --users {users}"))
        .with(options)
        .lasting(seconds);
    if matches!(way, PERSISTENT | OPEN) {
        load = load.with(&format!("--connections {users}"));
    }
    let features = Features {
        stage_times: true,
        ..Features::default()
    };
    Plan::new(load)
        .features(features)
        .at("rate", rate)
        .of("load", name)
        .of("way", way)
}

fn measured(samples: Vec<Sample>, levels: &[Level]) -> Measured {
    let view = View {
        samples: &samples,
        levels,
    };
    let charts = vec![
        view.chart("calls", "Calls for one REGISTER", "calls", CALLED, calls),
        view.chart("time", "Time of one REGISTER in the server", "us", BUSY, us),
    ];
    let tables = vec![
        view.table("Calls for one REGISTER", &STAGES, 2, calls),
        view.table("Microseconds of one REGISTER", BUSY, 2, us),
    ];
    let (findings, ratios) = (view.findings(), view.ratios());
    Measured {
        charts,
        tables,
        findings,
        ratios,
        samples,
    }
}

fn calls(stage: &StageUse) -> f64 {
    stage.calls as f64
}

fn us(stage: &StageUse) -> f64 {
    stage.nanoseconds as f64 / 1000.0
}

/// What of a stage is looked at.
type What = fn(&StageUse) -> f64;

struct View<'a> {
    samples: &'a [Sample],
    levels: &'a [Level],
}

impl View<'_> {
    /// For one request, in these stages together: a value for each repeat.
    fn each(&self, load: &str, way: &str, stages: &[&str], what: What) -> Vec<f64> {
        let wanted = |s: &&Sample| s.of("load") == load && s.of("way") == way;
        let of = |sample: &Sample| {
            let requests = sample.figure("operations").filter(|n| *n > 0.0)?;
            let spent = sample.server.stages.iter();
            let sum: f64 = spent
                .filter(|stage| stages.contains(&stage.name.as_str()))
                .map(what)
                .sum();
            Some(sum / requests)
        };
        self.samples.iter().filter(wanted).filter_map(of).collect()
    }

    /// The median of it; nothing where nothing was measured.
    fn one(&self, load: &str, way: &str, stages: &[&str], what: What) -> f64 {
        median(self.each(load, way, stages, what)).unwrap_or(0.0)
    }

    fn chart(&self, id: &str, title: &str, unit: &str, stages: &[&str], what: What) -> Chart {
        let group = |level: &Level| Group {
            label: format!("{}, {} requests/s", level.name, level.rate),
            bars: WAYS
                .iter()
                .map(|(way, ..)| self.bar(level.name, way, stages, what))
                .collect(),
        };
        let axis = |label: String| Axis { label, log: false };
        Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            x: axis(String::from("how the requests come")),
            y: axis(format!("{unit} per request")),
            data: Data::Bars(self.levels.iter().map(group).collect()),
        }
    }

    fn bar(&self, load: &str, way: &str, stages: &[&str], what: What) -> Bar {
        let whole = self.each(load, way, stages, what);
        let part = |stage: &&str| BarPart {
            label: stage.replace('_', " "),
            value: self.one(load, way, &[*stage], what),
        };
        let (low, high) = whole
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
                (low.min(*value), high.max(*value))
            });
        Bar {
            who: Who::Sipolis,
            label: way.to_owned(),
            parts: stages.iter().map(part).collect(),
            low: low.min(high),
            high,
        }
    }

    fn table(&self, title: &str, stages: &[&str], digits: usize, what: What) -> Table {
        let mut columns = vec![String::new()];
        columns.extend(stages.iter().map(|stage| stage.replace('_', " ")));
        columns.push(String::from("all"));
        let row = |level: &Level, way: &str| {
            let one = |stages: &[&str]| {
                let value = self.one(level.name, way, stages, what);
                format!("{value:.digits$}")
            };
            let mut row = vec![format!("{way}, {}", level.name)];
            row.extend(stages.iter().map(|stage| one(&[*stage])));
            row.push(one(stages));
            row
        };
        let rows = self
            .levels
            .iter()
            .flat_map(|level| WAYS.map(|(way, ..)| row(level, way)));
        Table {
            title: title.to_owned(),
            columns,
            rows: rows.collect(),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let [low, high] = [self.levels[0].name, self.levels[1].name];
        vec![
            self.most_calls(low),
            self.sorting(
                low,
                "at low load, reading a message and sorting it for overload control costs over UDP a quarter of what it costs over persistent TCP",
            ),
            self.sorting(
                high,
                "the cost of sorting for overload control makes TCP significantly worse than UDP at high load",
            ),
            self.understanding(low),
            self.operation(low),
            self.operation(high),
        ]
    }

    /// Figure 20.
    fn most_calls(&self, load: &str) -> Finding {
        let [udp, persistent, open, transaction] =
            WAYS.map(|(way, ..)| self.one(load, way, RECEIVE, calls));
        let same = (udp - persistent).abs() <= 0.05 * persistent;
        let agrees = match (transaction > open, open > persistent, same) {
            (true, true, true) => Agreement::Yes,
            (true, ..) => Agreement::Partly,
            _ => Agreement::No,
        };
        Finding {
            paper: String::from(
                "transaction TCP needs most calls to receive a REGISTER, persistent TCP with open comes next, UDP and persistent TCP need the same",
            ),
            here: format!(
                "calls at {load} for connections, reading, classifying and parsing: {transaction:.2} for transaction TCP, {open:.2} for persistent TCP \
                 with open, {persistent:.2} for persistent TCP, {udp:.2} for UDP"
            ),
            agrees,
        }
    }

    /// Figure 21, what comes before a message can be put into its queue.
    fn sorting(&self, load: &str, paper: &str) -> Finding {
        let [udp, tcp] = [UDP, PERSISTENT].map(|way| self.one(load, way, SORT, us));
        let [first, framing] = [UDP, PERSISTENT].map(|way| self.one(load, way, &["classify"], us));
        let agrees = match share(udp, tcp) {
            n if n <= 0.4 => Agreement::Yes,
            n if n <= 0.9 => Agreement::Partly,
            _ => Agreement::No,
        };
        Finding {
            paper: paper.to_owned(),
            here: format!(
                "at {load}, reading and classifying take {udp:.2} us over UDP and {tcp:.2} us over persistent TCP, {:.0} % of it; classifying alone \
                 {first:.2} us (a look at the first bytes) and {framing:.2} us (finding the end of the message)",
                100.0 * share(udp, tcp)
            ),
            agrees,
        }
    }

    /// Figure 21, from the first byte to a message that is understood.
    fn understanding(&self, load: &str) -> Finding {
        let [udp, tcp] = [UDP, PERSISTENT].map(|way| self.one(load, way, RECEIVE, us));
        let more = 100.0 * (share(udp, tcp) - 1.0);
        let agrees = match more {
            n if n > 25.0 => Agreement::Partly,
            n if n > 0.0 => Agreement::Yes,
            _ => Agreement::No,
        };
        Finding {
            paper: String::from(
                "reading and parsing together take slightly longer over UDP than over persistent TCP, since the first line is parsed twice",
            ),
            here: format!(
                "at {load}, {udp:.2} us over UDP and {tcp:.2} us over persistent TCP ({more:+.0} %); nothing is parsed twice here"
            ),
            agrees,
        }
    }

    /// Figure 21, the part that no transport changes.
    fn operation(&self, load: &str) -> Finding {
        let mut shares = Vec::new();
        for way in [UDP, PERSISTENT] {
            let operation = self.one(load, way, OPERATION, us);
            shares.push(share(operation, self.one(load, way, BUSY, us)));
        }
        let [udp, tcp] = [UDP, PERSISTENT].map(|way| self.one(load, way, RECEIVE, us));
        let (difference, operation) = ((udp - tcp).abs(), self.one(load, UDP, OPERATION, us));
        let agrees = match shares.iter().all(|share| *share > 0.5) {
            true => Agreement::Yes,
            false if difference < operation => Agreement::Partly,
            false => Agreement::No,
        };
        Finding {
            paper: String::from(
                "the SIP operation dominates the elapsed time; the differences between the transports are much smaller",
            ),
            here: format!(
                "at {load}, looking up and deciding take {:.0} % of the time over UDP and {:.0} % over persistent TCP; receiving differs by {difference:.2} us, \
                 the operation takes {operation:.2} us",
                100.0 * shares[0],
                100.0 * shares[1]
            ),
            agrees,
        }
    }

    fn ratios(&self) -> Vec<Ratio> {
        let ratio = |label: &str, here: f64, paper: Option<f64>| Ratio {
            label: label.to_owned(),
            of: [(Who::Sipolis, Some(here)), (Who::Paper, paper)]
                .into_iter()
                .filter_map(|(who, value)| Some((who, value?)))
                .collect(),
        };
        let load = self.levels[0].name;
        let sort = |way| self.one(load, way, SORT, us);
        let receive = |way| self.one(load, way, RECEIVE, calls);
        vec![
            ratio(
                "reading and sorting a REGISTER over UDP / over persistent TCP, low load",
                share(sort(UDP), sort(PERSISTENT)),
                Some(0.25),
            ),
            ratio(
                "calls to receive a REGISTER over transaction TCP / over persistent TCP",
                share(receive(TRANSACTION), receive(PERSISTENT)),
                None,
            ),
        ]
    }
}

/// `part / whole`; nothing of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;

    const LEVELS: [Level; 2] = [level("low load", 10.0, 1.0), level("high load", 100.0, 1.0)];

    /// Ten requests; `spent` is what each took: stage, calls, microseconds.
    fn sample(load: &str, way: &str, repeat: u32, spent: &[(&str, u64, u64)]) -> Sample {
        let stage = |(name, calls, us): &(&str, u64, u64)| StageUse {
            name: (*name).to_owned(),
            calls: 10 * calls,
            nanoseconds: 10_000 * us,
        };
        Sample {
            who: Who::Sipolis,
            at: [("rate".to_owned(), 10.0)].into(),
            of: [("load", load), ("way", way)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            repeat,
            load: serde_json::json!({"operations": 10}),
            server: ServerUse {
                stages: spent.iter().map(stage).collect(),
                ..ServerUse::default()
            },
        }
    }

    /// As the paper has it: a quarter, most calls with a connection each, and an operation that takes longest.
    fn as_in_the_paper() -> Vec<Sample> {
        let mut samples = Vec::new();
        for load in LEVELS.map(|level| level.name) {
            for (way, read, connections, reads) in [
                (UDP, 2, 0, 1),
                (PERSISTENT, 8, 0, 1),
                (OPEN, 8, 1, 1),
                (TRANSACTION, 10, 2, 2),
            ] {
                let spent = [
                    ("wait", 1, 1000),
                    ("read", reads, read),
                    ("connections", connections, connections),
                    ("parse", 1, if way == UDP { 7 } else { 0 }),
                    ("look_up", 1, 30),
                    ("write", 1, 5),
                ];
                samples.push(sample(load, way, 0, &spent));
            }
        }
        samples
    }

    #[test]
    fn what_the_paper_found_is_found_in_figures_like_the_papers() {
        let measured = measured(as_in_the_paper(), &LEVELS);
        let agrees: Vec<_> = measured.findings.iter().map(|f| f.agrees).collect();
        assert_eq!(agrees, [Agreement::Yes; 6], "{:#?}", measured.findings);
        assert_eq!(measured.ratios[0].of[&Who::Sipolis], 0.25);
    }

    #[test]
    fn what_is_not_so_is_said_not_to_be_so() {
        let mut samples = as_in_the_paper();
        for sample in &mut samples {
            let way = sample.of("way").to_owned();
            for stage in &mut sample.server.stages {
                match stage.name.as_str() {
                    "read" => (stage.calls, stage.nanoseconds) = (10, 80_000),
                    "connections" => (stage.calls, stage.nanoseconds) = (0, 0),
                    "look_up" => stage.nanoseconds = 100,
                    "parse" if way == UDP => stage.nanoseconds = 0,
                    _ => {}
                }
            }
        }
        let findings = measured(samples, &LEVELS).findings;
        let agrees: Vec<_> = findings.iter().map(|f| f.agrees).collect();
        let no = Agreement::No;
        // Receiving takes the same everywhere: less than the operation, however short that is.
        let partly = Agreement::Partly;
        assert_eq!(agrees, [no, no, no, no, partly, partly], "{findings:#?}");
    }

    #[test]
    fn a_bar_is_the_median_of_the_repeats_for_one_request_and_waiting_is_no_part_of_the_time() {
        let spent = |us| [("wait", 2, 500), ("parse", 1, us)];
        let samples: Vec<Sample> = (0..3)
            .zip([4, 9, 5])
            .map(|(repeat, us)| sample("low load", UDP, repeat, &spent(us)))
            .collect();
        let measured = measured(samples, &LEVELS);
        let Data::Bars(groups) = &measured.charts[1].data else {
            panic!("bars");
        };
        let bar = &groups[0].bars[0];
        let parse = bar.parts.iter().find(|part| part.label == "parse");
        assert_eq!(parse.map(|part| part.value), Some(5.0));
        assert_eq!((bar.low, bar.high), (4.0, 9.0));
        assert!(bar.parts.iter().all(|part| part.label != "wait"));
    }
}
