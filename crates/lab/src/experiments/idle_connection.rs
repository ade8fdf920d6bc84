//! The SIP-Router capacity test: what an idle connection costs the server, and whether it works on while it holds many.

use crate::{
    chart::each,
    experiment::{Experiment, Stop},
    held::exchange,
    lab::Lab,
    load::Load,
    record::{
        Agreement, Axis, Bar, Chart, Finding, Group, Measured, Point, Ratio, Sample, Table, Who,
    },
    report::readable,
    sample::{median, servers},
    sampler::Reading,
    servers::Features,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "idle-connection",
    title: "Idle connections: memory in the server, and work that goes on beside them",
    paper: "SIP-Router 3.0 capacity test: 4.5 kB for each TCP connection in the server beside the kernel's, 61 kB more for TLS; \
            with 80,000 held connections 1,000 requests/s and 1,000 new connections/s go on",
    how: "Connections are opened, one OPTIONS goes over each, and they stay idle: the memory of the server's processes is divided by \
          them. Then two loads at once, with and without them: requests over 100 other connections, and \
          new connections with a request each, which stay too.",
    run,
};

/// Bytes of a connection in the paper's server.
const PAPER_TCP: f64 = 4_500.0;
/// Names of the two loads.
const REQUESTS: &str = "requests over 100 connections";
const NEW: &str = "new connections, a request each";

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    lab.warn("TLS, WS and WSS are missing: the server does not speak them yet. They come here when it does.");
    let most = lab.holdable();
    let new = lab.size(3_000, 200).min(most / 4);
    let most = most - new;
    let mut samples = Vec::new();
    for repeat in 0..lab.repeats {
        for who in lab.who() {
            for held in [0, most] {
                samples.extend(one(lab, who, (held, new), repeat)?);
            }
        }
    }
    Ok(conclude(samples))
}

/// The sample of holding, then of each load.
fn one(
    lab: &mut Lab,
    who: Who,
    (held, new): (usize, usize),
    repeat: u32,
) -> Result<Vec<Sample>, Stop> {
    let rate = lab.size(1_000, 200);
    let server = lab.start(who, Features::default())?;
    let idle = Reading::of(&server);
    let holding = match held {
        0 => None,
        held => Some(lab.hold(&server, who, held)?),
    };
    let begin = Reading::of(&server);
    let requests = exchange(who, "tcp").with("--connections 100");
    let opening = exchange(who, "tcp").with(&format!("--lifetime persistent-open --users {new}"));
    let paced = |load: Load| load.with(&format!("--rate {rate} --count {new}"));
    let mut loads = vec![
        (REQUESTS, lab.prepare(&server, &paced(requests))?),
        (NEW, lab.prepare(&server, &paced(opening))?),
    ];
    for (_, load) in &mut loads {
        load.begin().map_err(Stop::Fail)?;
    }
    for (_, load) in &mut loads {
        load.wait().map_err(Stop::Fail)?;
    }
    let sample = |of: &str, load, server| Sample {
        who,
        at: [
            ("held".to_owned(), held as f64),
            ("rate".to_owned(), f64::from(rate)),
        ]
        .into(),
        of: [("load".to_owned(), of.to_owned())].into(),
        repeat,
        load,
        server,
    };
    let used_beside = Reading::of(&server).since(&begin);
    let mut samples = Vec::new();
    if let Some(holding) = holding {
        let grown = begin.memory.saturating_sub(idle.memory);
        lab.progress(&format!("{} holds {held} with {grown} bytes", who.name()));
        let mut used = begin.since(&idle);
        // Beside what it has without them.
        used.memory_bytes = grown;
        samples.push(sample("held", holding.finish().map_err(Stop::Fail)?, used));
    }
    for (of, load) in loads {
        let sample = sample(of, load.finish().map_err(Stop::Fail)?, used_beside.clone());
        lab.progress(&sample.line());
        samples.push(sample);
    }
    Ok(samples)
}

fn conclude(samples: Vec<Sample>) -> Measured {
    let findings = vec![memory(&samples), works_on(&samples), secured()];
    Measured {
        charts: vec![memory_chart(&samples), processor_chart(&samples)],
        tables: vec![time_table(&samples)],
        findings,
        ratios: vec![dearer(&samples)],
        samples,
    }
}

fn of<'a>(samples: &'a [Sample], who: Who, load: &str) -> impl Iterator<Item = &'a Sample> {
    samples
        .iter()
        .filter(move |s| s.who == who && s.of("load") == load)
}

/// Bytes of a held connection in the server's processes.
fn bytes_each(samples: &[Sample], who: Who) -> Option<Point> {
    let bytes = of(samples, who, "held").filter_map(|s| {
        let held = s.at("held").filter(|n| *n > 0.0)?;
        Some(s.server.memory_bytes as f64 / held)
    });
    Point::of(0.0, &bytes.collect::<Vec<_>>())
}

/// The server's processor time of an operation while both loads run, microseconds.
fn processor_each(samples: &[Sample], who: Who, held: bool) -> Option<Point> {
    let holding = |s: &&Sample| (s.at("held") > Some(0.0)) == held;
    let each = of(samples, who, REQUESTS).filter(holding).map(|requests| {
        let at_once = of(samples, who, NEW)
            .filter(holding)
            .filter(|s| s.repeat == requests.repeat);
        let operations =
            requests.count("operations") + at_once.map(|s| s.count("operations")).sum::<f64>();
        // What both samples have is of both loads.
        requests.server.cpu_us / operations
    });
    Point::of(0.0, &each.filter(|us| us.is_finite()).collect::<Vec<_>>())
}

fn memory_chart(samples: &[Sample]) -> Chart {
    let measured = servers(samples)
        .into_iter()
        .filter_map(|who| Some(Bar::plain(who, bytes_each(samples, who)?)));
    let paper = Bar {
        label: "SIP-Router 3.0".to_owned(),
        ..Bar::plain(Who::Paper, Point::exact(0.0, PAPER_TCP))
    };
    let group = Group::new("TCP", measured.chain([paper]));
    let axis = Axis::linear("memory of the server's processes, bytes for a connection");
    Chart::bars(
        "memory",
        "Memory of an idle connection in the server",
        axis,
        vec![group],
    )
}

fn processor_chart(samples: &[Sample]) -> Chart {
    let bar = |who, held, label: &str| {
        let label = label.to_owned();
        Some(Bar {
            label,
            ..Bar::plain(who, processor_each(samples, who, held)?)
        })
    };
    let both = |who| [bar(who, false, "none held"), bar(who, true, "many held")];
    let group = Group::new(
        "both loads",
        servers(samples).into_iter().flat_map(both).flatten(),
    );
    let axis = Axis::linear("server's processor time, µs for an operation");
    Chart::bars(
        "beside",
        "Requests and new connections beside those held",
        axis,
        vec![group],
    )
}

fn time_table(samples: &[Sample]) -> Table {
    let mut rows = Vec::new();
    for who in servers(samples) {
        for load in [REQUESTS, NEW] {
            for held in [false, true] {
                let matching =
                    || of(samples, who, load).filter(move |s| (s.at("held") > Some(0.0)) == held);
                let time = |figure| {
                    let us = median(matching().filter_map(|s| s.figure(figure)));
                    us.map_or_else(|| "–".to_owned(), |us| format!("{:.2} ms", us / 1_000.0))
                };
                let Some(count) = median(matching().filter_map(|s| s.at("held"))) else {
                    continue;
                };
                let success = matching()
                    .map(Sample::success_percent)
                    .fold(100.0, f64::min);
                rows.push(vec![
                    format!("{}, {load}", who.name()),
                    readable(count),
                    format!("{success} %"),
                    time("latency_us.p50"),
                    time("latency_us.p99"),
                ]);
            }
        }
    }
    let columns = ["load", "held", "succeeded", "p50", "p99"];
    Table {
        title: "Response times; the two loads share a core, and wait for each other".to_owned(),
        columns: columns.map(str::to_owned).into(),
        rows,
    }
}

fn memory(samples: &[Sample]) -> Finding {
    let bytes: Vec<(Who, f64)> = servers(samples)
        .into_iter()
        .filter_map(|who| Some((who, bytes_each(samples, who)?.y)))
        .collect();
    // What it says is of SIP-Router, which Kamailio is today.
    let kamailio = bytes.iter().filter(|(who, _)| *who == Who::Kamailio);
    Finding::new(
        "SIP-Router needs 4.5 kB for a TCP connection",
        each(
            bytes
                .iter()
                .map(|(who, bytes)| (*who, format!("{:.2} kB", bytes / 1_000.0))),
        ),
        Agreement::of(kamailio.map(|(_, bytes)| (0.75..1.25).contains(&(bytes / PAPER_TCP)))),
    )
}

fn works_on(samples: &[Sample]) -> Finding {
    let worst = |who| {
        let beside = samples
            .iter()
            .filter(|s| s.who == who && s.of("load") != "held");
        let with = beside.filter(|s| s.at("held") > Some(0.0));
        median(with.clone().filter_map(|s| s.at("held")))?;
        Some((who, with.map(Sample::success_percent).fold(100.0, f64::min)))
    };
    let worst: Vec<(Who, f64)> = servers(samples).into_iter().filter_map(worst).collect();
    let held = samples
        .iter()
        .filter_map(|s| s.at("held"))
        .fold(0.0, f64::max);
    let rate = samples
        .iter()
        .filter_map(|s| s.at("rate"))
        .fold(0.0, f64::max);
    let text = |(who, percent): &(Who, f64)| (*who, format!("{percent} % succeeded"));
    Finding::new(
        "80,000 are held while 1,000 requests/s and 1,000 new connections/s go on",
        format!(
            "{} held, {}/s of each: {}",
            readable(held),
            readable(rate),
            each(worst.iter().map(text))
        ),
        Agreement::of(worst.iter().map(|(_, percent)| *percent >= 100.0)),
    )
}

fn secured() -> Finding {
    Finding::new(
        "a TLS connection needs 61 kB more",
        "not measured: no TLS in the server yet".to_owned(),
        Agreement::NotComparable,
    )
}

fn dearer(samples: &[Sample]) -> Ratio {
    let of = |who| {
        let [without, with] = [false, true].map(|held| processor_each(samples, who, held));
        Some((who, with?.y / without?.y))
    };
    Ratio::new(
        "processor time of an operation: many connections held / none",
        servers(samples).into_iter().filter_map(of),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;
    use serde_json::json;

    fn sample(who: Who, held: f64, load: &str, server: ServerUse, success: f64) -> Sample {
        Sample {
            who,
            at: [("held".to_owned(), held), ("rate".to_owned(), 1_000.0)].into(),
            of: [("load".to_owned(), load.to_owned())].into(),
            repeat: 0,
            load: json!({"operations": 50, "success_percent": success}),
            server,
        }
    }

    fn bytes(memory_bytes: u64) -> ServerUse {
        ServerUse {
            memory_bytes,
            ..ServerUse::default()
        }
    }

    fn processor(cpu_us: f64) -> ServerUse {
        ServerUse {
            cpu_us,
            ..ServerUse::default()
        }
    }

    fn samples() -> Vec<Sample> {
        vec![
            sample(Who::Kamailio, 100.0, "held", bytes(440_000), 100.0),
            sample(Who::Kamailio, 100.0, REQUESTS, processor(900.0), 99.0),
            sample(Who::Sipolis, 0.0, REQUESTS, processor(400.0), 100.0),
            sample(Who::Sipolis, 0.0, NEW, processor(400.0), 100.0),
            sample(Who::Sipolis, 100.0, "held", bytes(20_000), 100.0),
            sample(Who::Sipolis, 100.0, REQUESTS, processor(800.0), 100.0),
            sample(Who::Sipolis, 100.0, NEW, processor(800.0), 100.0),
        ]
    }

    #[test]
    fn memory_is_for_each_connection_and_the_paper_is_held_against_kamailio() {
        let samples = samples();
        assert_eq!(bytes_each(&samples, Who::Sipolis).unwrap().y, 200.0);
        let finding = memory(&samples);
        assert_eq!(finding.agrees, Agreement::Yes);
        assert!(finding.here.contains("sipolis 0.20 kB"), "{}", finding.here);
        assert_eq!(memory(&samples[2..]).agrees, Agreement::NotComparable);
    }

    #[test]
    fn a_request_that_fails_beside_held_connections_counts() {
        let samples = samples();
        assert_eq!(works_on(&samples).agrees, Agreement::Partly);
        assert_eq!(dearer(&samples).of, [(Who::Sipolis, 2.0)].into());
        // A hundred operations of both loads.
        assert_eq!(
            processor_each(&samples, Who::Sipolis, false).unwrap().y,
            4.0
        );
        assert_eq!(time_table(&samples).rows.len(), 5);
    }
}
