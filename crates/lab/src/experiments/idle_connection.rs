//! The SIP-Router capacity test: what an idle connection costs the server, and whether it works on while it holds many.

use crate::{
    chart::each,
    experiment::{Experiment, Stop},
    held::exchange,
    lab::Lab,
    load::Load,
    record::{Agreement, Axis, Bar, Chart, Finding, Group, Measured, Point, Ratio, Sample, Who},
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
    let mut samples = Vec::new();
    if let Some(holding) = holding {
        let grown = begin.memory.saturating_sub(idle.memory);
        lab.progress(&format!("{} holds {held} with {grown} bytes", who.name()));
        let mut used = begin.since(&idle);
        // Beside what it has without them.
        used.memory_bytes = grown;
        samples.push(sample("held", holding.finish().map_err(Stop::Fail)?, used));
    }
    let used = Reading::of(&server).since(&begin);
    for (of, load) in loads {
        let sample = sample(of, load.finish().map_err(Stop::Fail)?, used.clone());
        lab.progress(&sample.line());
        samples.push(sample);
    }
    Ok(samples)
}

fn conclude(samples: Vec<Sample>) -> Measured {
    let findings = vec![memory(&samples), works_on(&samples), secured()];
    Measured {
        charts: vec![memory_chart(&samples), time_chart(&samples)],
        tables: Vec::new(),
        findings,
        ratios: [REQUESTS, NEW].map(|load| slower(&samples, load)).into(),
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

/// 99 % of the operations end within so many milliseconds.
fn p99(samples: &[Sample], who: Who, load: &str, held: bool) -> Option<Point> {
    let matching = of(samples, who, load).filter(|s| (s.at("held") > Some(0.0)) == held);
    let times: Vec<f64> = matching
        .filter_map(|s| s.figure("latency_us.p99"))
        .map(|us| us / 1_000.0)
        .collect();
    Point::of(0.0, &times)
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

fn time_chart(samples: &[Sample]) -> Chart {
    let group = |load: &str| {
        let bar = |who, held, label: &str| {
            let time = p99(samples, who, load, held)?;
            Some(Bar {
                label: label.to_owned(),
                ..Bar::plain(who, time)
            })
        };
        let both = |who| [bar(who, false, "none held"), bar(who, true, "many held")];
        Group::new(load, servers(samples).into_iter().flat_map(both).flatten())
    };
    let axis = Axis::linear("99 % of the operations within, ms");
    let title = "Requests and new connections beside those held";
    Chart::bars("beside", title, axis, [REQUESTS, NEW].map(group).into())
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
            "{held} held, {rate}/s of each: {}",
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

fn slower(samples: &[Sample], load: &str) -> Ratio {
    let of = |who| {
        let [without, with] = [false, true].map(|held| p99(samples, who, load, held));
        Some((who, with?.y / without?.y))
    };
    Ratio::new(
        &format!("p99 of {load}: many held / none"),
        servers(samples).into_iter().filter_map(of),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;
    use serde_json::json;

    fn sample(
        who: Who,
        held: f64,
        load: &str,
        memory_bytes: u64,
        p99: u32,
        success: f64,
    ) -> Sample {
        Sample {
            who,
            at: [("held".to_owned(), held), ("rate".to_owned(), 1_000.0)].into(),
            of: [("load".to_owned(), load.to_owned())].into(),
            repeat: 0,
            load: json!({"latency_us": {"p99": p99}, "success_percent": success}),
            server: ServerUse {
                memory_bytes,
                ..ServerUse::default()
            },
        }
    }

    fn samples() -> Vec<Sample> {
        vec![
            sample(Who::Kamailio, 100.0, "held", 440_000, 0, 100.0),
            sample(Who::Kamailio, 100.0, REQUESTS, 0, 800, 99.0),
            sample(Who::Sipolis, 0.0, REQUESTS, 0, 400, 100.0),
            sample(Who::Sipolis, 100.0, "held", 20_000, 0, 100.0),
            sample(Who::Sipolis, 100.0, REQUESTS, 0, 800, 100.0),
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
        assert_eq!(slower(&samples, REQUESTS).of, [(Who::Sipolis, 2.0)].into());
    }
}
