//! The component test: where a REGISTER's time goes in the server, stage by stage.

use crate::{
    chart::decimals,
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    lifetime::Lifetime,
    record::{
        Agreement, Axis, Bar, Chart, Finding, Group, Measured, Ratio, Sample, StageUse, Table, Who,
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

/// In the order of the paper's figures.
const LIFETIMES: [Lifetime; 4] = [
    Lifetime::UDP,
    Lifetime::PERSISTENT,
    Lifetime::PERSISTENT_OPEN,
    Lifetime::TRANSACTION,
];
/// The two that the paper holds against each other.
const UDP_AND_TCP: [Lifetime; 2] = [Lifetime::UDP, Lifetime::PERSISTENT];

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
    // A connection for each request: 12,000 at most, which both sides have descriptors for.
    let levels = lab.size(
        [
            level("low load", 10.0, 10.0),
            level("high load", 6000.0, 2.0),
        ],
        [
            level("low load", 50.0, 1.0),
            level("high load", 1000.0, 1.0),
        ],
    );
    let plans: Vec<Plan> = levels
        .iter()
        .flat_map(|level| LIFETIMES.map(|lifetime| plan(*level, lifetime)))
        .collect();
    let samples = lab.measure_all(&[Who::Sipolis], &plans)?;
    for sample in &samples {
        let found = sample.success_percent();
        if found < 100.0 {
            let (lifetime, load) = (sample.of("lifetime"), sample.of("load"));
            lab.warn(format!(
                "{lifetime} at {load}: only {found:.2} % of the requests succeeded; its figures are of other work"
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

/// A user and, where they are kept, a connection for each request.
fn plan(level: Level, lifetime: Lifetime) -> Plan {
    let requests = level.rate * level.seconds;
    let mut plan = lifetime.plan_of_first("register", requests);
    plan.load = plan.load.with(&format!("--rate {}", level.rate));
    if lifetime == Lifetime::PERSISTENT {
        plan.load = plan.load.with(&format!("--connections {requests}"));
    }
    plan.load = plan.load.lasting(level.seconds);
    plan.features(Features {
        stage_times: true,
        ..Features::default()
    })
    .at("rate", level.rate)
    .of("load", level.name)
}

fn measured(samples: Vec<Sample>, levels: &[Level; 2]) -> Measured {
    let view = View {
        samples: &samples,
        levels,
    };
    let time = |id: &str, level: &Level| {
        let title = format!(
            "Figure 21: time of a REGISTER in the server, {}",
            level.name
        );
        view.chart(id, &title, "us per request", &[*level], BUSY, us)
    };
    let charts = vec![
        view.chart(
            "calls",
            "Figure 20: calls for a REGISTER",
            "calls per request",
            levels,
            CALLED,
            calls,
        ),
        time("time-low", &levels[0]),
        time("time-high", &levels[1]),
    ];
    let tables = vec![
        view.table("Calls for a REGISTER", &STAGES, calls),
        view.table("Microseconds of a REGISTER", BUSY, us),
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
    levels: &'a [Level; 2],
}

impl View<'_> {
    /// For one request, in these stages together: a value for each repeat.
    fn each(&self, load: &str, lifetime: Lifetime, stages: &[&str], what: What) -> Vec<f64> {
        let of = |sample: &Sample| {
            let requests = sample.figure("operations").filter(|n| *n > 0.0)?;
            let stages = sample
                .server
                .stages
                .iter()
                .filter(|stage| stages.contains(&stage.name.as_str()));
            Some(stages.map(what).sum::<f64>() / requests)
        };
        self.of(load, lifetime).filter_map(of).collect()
    }

    fn of(&self, load: &str, lifetime: Lifetime) -> impl Iterator<Item = &Sample> {
        let wanted = move |s: &&Sample| s.of("load") == load && s.of("lifetime") == lifetime.label;
        self.samples.iter().filter(wanted)
    }

    /// The server's share of its core.
    fn busy_percent(&self, load: &str, lifetime: Lifetime) -> f64 {
        let shares = self.of(load, lifetime).map(|s| s.server.busy_percent);
        median(shares).unwrap_or(f64::NAN)
    }

    /// The median of it; no number where nothing was measured.
    fn one(&self, load: &str, lifetime: Lifetime, stages: &[&str], what: What) -> f64 {
        median(self.each(load, lifetime, stages, what)).unwrap_or(f64::NAN)
    }

    fn chart(
        &self,
        id: &str,
        title: &str,
        unit: &str,
        levels: &[Level],
        stages: &[&str],
        what: What,
    ) -> Chart {
        let groups = levels.iter().map(|level| {
            let bars = LIFETIMES.map(|lifetime| self.bar(level.name, lifetime, stages, what));
            let bars = bars.into_iter().filter(|bar| bar.high.is_finite());
            Group::new(&format!("{}: {} requests/s", level.name, level.rate), bars)
        });
        Chart::bars(id, title, Axis::linear(unit), groups.collect())
    }

    fn bar(&self, load: &str, lifetime: Lifetime, stages: &[&str], what: What) -> Bar {
        let names: Vec<String> = stages.iter().map(|stage| stage.replace('_', " ")).collect();
        let values = stages
            .iter()
            .map(|stage| self.one(load, lifetime, &[*stage], what));
        let parts: Vec<(&str, f64)> = names.iter().map(String::as_str).zip(values).collect();
        let mut bar = Bar::stacked(Who::Sipolis, &parts);
        lifetime.label.clone_into(&mut bar.label);
        for whole in self.each(load, lifetime, stages, what) {
            bar.low = bar.low.min(whole);
            bar.high = bar.high.max(whole);
        }
        bar
    }

    fn table(&self, title: &str, stages: &[&str], what: What) -> Table {
        let mut columns = vec![String::new()];
        columns.extend(stages.iter().map(|stage| stage.replace('_', " ")));
        columns.extend(["all", "core busy, %"].map(String::from));
        let row = |level: &Level, lifetime: Lifetime| {
            let one = |stages: &[&str]| decimals(self.one(level.name, lifetime, stages, what), 2);
            let mut row = vec![format!("{}, {}", lifetime.label, level.name)];
            row.extend(stages.iter().map(|stage| one(&[*stage])));
            row.push(one(stages));
            row.push(decimals(self.busy_percent(level.name, lifetime), 0));
            row
        };
        let levels = self.levels.iter();
        let rows = levels.flat_map(|level| LIFETIMES.map(|lifetime| row(level, lifetime)));
        Table {
            title: title.to_owned(),
            columns,
            rows: rows.collect(),
        }
    }

    /// None of a load that was not measured over everything.
    fn findings(&self) -> Vec<Finding> {
        let [low, high] = self.levels.map(|level| level.name);
        let mut findings = Vec::new();
        if self.is_whole(low) {
            findings.extend([
                self.most_calls(low),
                self.sorting(
                    low,
                    "at low load, reading a message and sorting it for overload control costs over UDP a quarter of what it costs over persistent TCP",
                ),
                self.understanding(low),
                self.operation(low),
            ]);
        }
        if self.is_whole(high) {
            findings.extend([
                self.sorting(
                    high,
                    "the cost of sorting for overload control makes TCP significantly worse than UDP at high load",
                ),
                self.operation(high),
            ]);
        }
        findings
    }

    fn is_whole(&self, load: &str) -> bool {
        LIFETIMES
            .iter()
            .all(|lifetime| !self.each(load, *lifetime, BUSY, us).is_empty())
    }

    /// Figure 20.
    fn most_calls(&self, load: &str) -> Finding {
        let [udp, persistent, open, transaction] =
            LIFETIMES.map(|lifetime| self.one(load, lifetime, RECEIVE, calls));
        let same = (udp - persistent).abs() <= 0.05 * persistent;
        let agrees = match (transaction > open, open > persistent, same) {
            (true, true, true) => Agreement::Yes,
            (true, ..) => Agreement::Partly,
            _ => Agreement::No,
        };
        Finding::new(
            "transaction TCP needs most calls to receive a REGISTER, persistent TCP with open comes next, UDP and persistent TCP need the same",
            format!(
                "calls at {load} for connections, reading, classifying and parsing: {transaction:.2} for transaction TCP, \
                 {open:.2} for persistent TCP with open, {persistent:.2} for persistent TCP, {udp:.2} for UDP"
            ),
            agrees,
        )
    }

    /// Figure 21, what comes before a message can be put into its queue.
    fn sorting(&self, load: &str, paper: &str) -> Finding {
        let [udp, tcp] = UDP_AND_TCP.map(|lifetime| self.one(load, lifetime, SORT, us));
        let [first, framing] =
            UDP_AND_TCP.map(|lifetime| self.one(load, lifetime, &["classify"], us));
        let agrees = match udp / tcp {
            n if n <= 0.4 => Agreement::Yes,
            n if n <= 0.9 => Agreement::Partly,
            _ => Agreement::No,
        };
        Finding::new(
            paper,
            format!(
                "at {load}, reading and classifying take {udp:.2} us over UDP and {tcp:.2} us over persistent TCP, the first is {:.0} % of the second; \
                 classifying alone {first:.2} us (a look at the first bytes) and {framing:.2} us (finding the end of the message)",
                100.0 * udp / tcp
            ),
            agrees,
        )
    }

    /// Figure 21, from the first byte to a message that is understood.
    fn understanding(&self, load: &str) -> Finding {
        let [udp, tcp] = UDP_AND_TCP.map(|lifetime| self.one(load, lifetime, RECEIVE, us));
        let more = 100.0 * (udp / tcp - 1.0);
        let agrees = match more {
            n if n > 25.0 => Agreement::Partly,
            n if n > 0.0 => Agreement::Yes,
            _ => Agreement::No,
        };
        Finding::new(
            "reading and parsing together take slightly longer over UDP than over persistent TCP, since the first line is parsed twice",
            format!(
                "at {load}, {udp:.2} us over UDP and {tcp:.2} us over persistent TCP ({more:+.0} %); nothing is parsed twice here"
            ),
            agrees,
        )
    }

    /// Figure 21, the part that no transport changes.
    fn operation(&self, load: &str) -> Finding {
        let [udp, tcp] = UDP_AND_TCP.map(|lifetime| {
            let one = |stages| self.one(load, lifetime, stages, us);
            (one(RECEIVE), one(OPERATION), one(BUSY))
        });
        let [of_udp, of_tcp] = [udp, tcp].map(|(_, operation, all)| operation / all);
        let difference = (udp.0 - tcp.0).abs();
        let agrees = if of_udp > 0.5 && of_tcp > 0.5 {
            Agreement::Yes
        } else if difference < udp.1 {
            Agreement::Partly
        } else {
            Agreement::No
        };
        Finding::new(
            "the SIP operation dominates the elapsed time; the differences between the transports are much smaller",
            format!(
                "at {load}, looking up and deciding take {:.0} % of the time over UDP and {:.0} % over persistent TCP; \
                 receiving differs by {difference:.2} us, the operation takes {:.2} us",
                100.0 * of_udp,
                100.0 * of_tcp,
                udp.1
            ),
            agrees,
        )
    }

    fn ratios(&self) -> Vec<Ratio> {
        let load = self.levels[0].name;
        let [udp, tcp] = UDP_AND_TCP.map(|lifetime| self.one(load, lifetime, SORT, us));
        let [transaction, persistent] = [Lifetime::TRANSACTION, Lifetime::PERSISTENT]
            .map(|lifetime| self.one(load, lifetime, RECEIVE, calls));
        vec![
            Ratio::new(
                "time to read and sort a REGISTER over UDP / over persistent TCP",
                [(Who::Sipolis, udp / tcp), (Who::Paper, 0.25)],
            ),
            Ratio::new(
                "calls to receive a REGISTER over transaction TCP / over persistent TCP",
                [(Who::Sipolis, transaction / persistent)],
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Data, ServerUse};

    const LEVELS: [Level; 2] = [level("low load", 10.0, 1.0), level("high load", 100.0, 1.0)];

    /// Ten requests; `spent` is what each took: stage, calls, microseconds.
    fn sample(load: &str, lifetime: Lifetime, repeat: u32, spent: &[(&str, u64, u64)]) -> Sample {
        let stage = |(name, calls, us): &(&str, u64, u64)| StageUse {
            name: (*name).to_owned(),
            calls: 10 * calls,
            nanoseconds: 10_000 * us,
        };
        Sample {
            who: Who::Sipolis,
            at: [("rate".to_owned(), 10.0)].into(),
            of: [("load", load), ("lifetime", lifetime.label)]
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
            for (lifetime, read, connections, reads) in [
                (Lifetime::UDP, 2, 0, 1),
                (Lifetime::PERSISTENT, 8, 0, 1),
                (Lifetime::PERSISTENT_OPEN, 8, 1, 1),
                (Lifetime::TRANSACTION, 10, 2, 2),
            ] {
                let spent = [
                    ("wait", 1, 1000),
                    ("read", reads, read),
                    ("connections", connections, connections),
                    ("parse", 1, if lifetime == Lifetime::UDP { 7 } else { 0 }),
                    ("look_up", 1, 30),
                    ("write", 1, 5),
                ];
                samples.push(sample(load, lifetime, 0, &spent));
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
            let is_udp = sample.of("lifetime") == Lifetime::UDP.label;
            for stage in &mut sample.server.stages {
                match stage.name.as_str() {
                    "read" => (stage.calls, stage.nanoseconds) = (10, 80_000),
                    "connections" => (stage.calls, stage.nanoseconds) = (0, 0),
                    "look_up" => stage.nanoseconds = 100,
                    "parse" if is_udp => stage.nanoseconds = 0,
                    _ => {}
                }
            }
        }
        let findings = measured(samples, &LEVELS).findings;
        let agrees: Vec<_> = findings.iter().map(|f| f.agrees).collect();
        let no = Agreement::No;
        // Receiving takes the same everywhere: less than the operation, however short that is.
        let partly = Agreement::Partly;
        assert_eq!(agrees, [no, no, no, partly, no, partly], "{findings:#?}");
    }

    #[test]
    fn a_bar_is_the_median_of_the_repeats_for_one_request_and_waiting_is_no_part_of_the_time() {
        let spent = |us| [("wait", 2, 500), ("parse", 1, us)];
        let samples: Vec<Sample> = (0..3)
            .zip([4, 9, 5])
            .map(|(repeat, us)| sample("low load", Lifetime::UDP, repeat, &spent(us)))
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

    #[test]
    fn a_load_that_was_not_measured_whole_has_dashes_and_no_finding() {
        let mut samples = as_in_the_paper();
        samples.retain(|sample| sample.of("load") == "low load");
        samples[3].load = serde_json::json!({"operations": 0});
        let measured = measured(samples, &LEVELS);
        assert!(measured.findings.is_empty(), "{:#?}", measured.findings);
        let of_none = &measured.tables[0].rows[3];
        let stages = &of_none[1..=STAGES.len()];
        assert!(stages.iter().all(|cell| cell == "-"), "{of_none:?}");
        let Data::Bars(groups) = &measured.charts[0].data else {
            panic!("bars");
        };
        let bars: Vec<usize> = groups.iter().map(|group| group.bars.len()).collect();
        assert_eq!(bars, [3]);
    }
}
