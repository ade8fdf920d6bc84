//! Ono and Schulzrinne, figure 6: whether held connections slow a server.

use crate::{
    chart::each,
    experiment::{Experiment, Stop},
    held::exchange,
    lab::Lab,
    record::{Agreement, Axis, Chart, Curve, Finding, Measured, Point, Ratio, Sample, Who},
    report::readable,
    sample::{median, servers},
    sampler::Reading,
    servers::Features,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "response-held",
    title: "Response time against the number of connections held",
    paper: "Ono and Schulzrinne, figure 6: from 0 to 520,000 held connections the response time stays at 0.3 ms, \
            and with the handshake at 0.4 to 0.5 ms",
    how: "While connections are held, new ones are opened at a steady rate, one request and its answer over each, and kept, as the paper did. \
          The handshake is from connect() until the connection is there; send-receive from the request to its answer; the total from \
          when the operation was due.",
    run,
};

/// Milliseconds of the paper: its total is the middle of 0.4 and 0.5.
const PUBLISHED: [(&str, f64); 3] = [(HANDSHAKE, 0.15), (EXCHANGE, 0.3), (TOTAL, 0.45)];
const HANDSHAKE: &str = "handshake";
const EXCHANGE: &str = "send-receive";
const TOTAL: &str = "total";

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let most = lab.holdable();
    // New ones come on top.
    let opened = lab.size(2_000, 300).min(most / 4);
    let most = most - opened;
    let mut samples = Vec::new();
    for repeat in 0..lab.repeats {
        for share in [0.0, 0.5, 1.0] {
            let held = (most as f64 * share) as usize;
            for who in lab.who() {
                samples.push(one(lab, who, (held, opened), repeat)?);
            }
        }
    }
    Ok(conclude(samples))
}

fn one(
    lab: &mut Lab,
    who: Who,
    (held, opened): (usize, usize),
    repeat: u32,
) -> Result<Sample, Stop> {
    let rate = lab.size(1_000, 300);
    let server = lab.start(who, Features::default())?;
    let holding = match held {
        0 => None,
        held => Some(lab.hold(&server, who, held)?),
    };
    // So that with none held, too, the server has worked before.
    let warm = exchange(who, "tcp").with("--connections 10 --warm-up 1000 --count 0");
    let mut warm = lab.prepare(&server, &warm)?;
    warm.begin().map_err(Stop::Fail)?;
    warm.finish().map_err(Stop::Fail)?;
    let words =
        format!("--lifetime persistent-open --users {opened} --count {opened} --rate {rate}");
    let mut load = lab.prepare(&server, &exchange(who, "tcp").with(&words))?;
    let begin = Reading::of(&server);
    load.begin().map_err(Stop::Fail)?;
    load.wait().map_err(Stop::Fail)?;
    let end = Reading::of(&server);
    let sample = Sample {
        who,
        at: [
            ("held".to_owned(), held as f64),
            ("rate".to_owned(), f64::from(rate)),
        ]
        .into(),
        of: [("lifetime".to_owned(), "persistent-open".to_owned())].into(),
        repeat,
        load: load.finish().map_err(Stop::Fail)?,
        server: end.since(&begin),
    };
    if let Some(holding) = holding {
        holding.finish().map_err(Stop::Fail)?;
    }
    lab.progress(&sample.line());
    Ok(sample)
}

fn conclude(samples: Vec<Sample>) -> Measured {
    let flat = flat(&samples);
    let growth = |of: &str| {
        let of = of.to_owned();
        servers(&samples)
            .into_iter()
            .filter_map(|who| Some((who, growth(&samples, who, &of)?)))
            .collect::<Vec<_>>()
    };
    let paper = [(Who::Paper, 1.0)];
    let ratio = |label: &str, of| Ratio::new(label, growth(of).into_iter().chain(paper));
    Measured {
        ratios: vec![
            ratio("handshake, most connections held / none", HANDSHAKE),
            ratio("send-receive, most connections held / none", EXCHANGE),
        ],
        charts: vec![chart(&samples)],
        tables: Vec::new(),
        findings: vec![flat, all_answered(&samples)],
        samples,
    }
}

fn held(sample: &Sample) -> Option<f64> {
    sample.at("held")
}

/// Median time of a sample, milliseconds.
fn time(sample: &Sample, of: &str) -> Option<f64> {
    let figure = match of {
        HANDSHAKE => "setup_us.p50",
        EXCHANGE => "transaction_us.p50",
        _ => "latency_us.p50",
    };
    sample.figure(figure).map(|us| us / 1_000.0)
}

fn most(samples: &[Sample]) -> f64 {
    samples.iter().filter_map(held).fold(0.0, f64::max)
}

/// With the most held, as a multiple of with none.
fn growth(samples: &[Sample], who: Who, of: &str) -> Option<f64> {
    let with = |count: f64| {
        let samples = samples
            .iter()
            .filter(|s| s.who == who && held(s) == Some(count));
        median(samples.filter_map(|s| time(s, of)))
    };
    Some(with(most(samples))? / with(0.0)?)
}

fn chart(samples: &[Sample]) -> Chart {
    let mut curves = Vec::new();
    for who in servers(samples) {
        for (of, _) in PUBLISHED {
            let samples = samples.iter().filter(|s| s.who == who);
            curves.push(Curve::of(who, of, samples, held, |s| time(s, of)));
        }
    }
    for (of, ms) in PUBLISHED {
        let points = vec![Point::exact(0.0, ms), Point::exact(most(samples), ms)];
        curves.push(Curve {
            who: Who::Paper,
            label: of.to_owned(),
            points,
        });
    }
    Chart::lines(
        "response",
        "Response time against connections held (figure 6)",
        Axis::linear("connections held (the paper's lines go on to 520,000)"),
        Axis::log("median time, ms"),
        curves,
    )
}

fn flat(samples: &[Sample]) -> Finding {
    let growths: Vec<(Who, f64)> = servers(samples)
        .into_iter()
        .filter_map(|who| Some((who, growth(samples, who, TOTAL)?)))
        .collect();
    let text = |(who, growth): &(Who, f64)| (*who, format!("{:+.0} %", 100.0 * (growth - 1.0)));
    Finding::new(
        "held connections change neither the handshake nor the response time",
        format!(
            "total time with {} held against none: {}",
            readable(most(samples)),
            each(growths.iter().map(text))
        ),
        Agreement::of(
            growths
                .iter()
                .map(|(_, growth)| (0.7..1.3).contains(growth)),
        ),
    )
}

fn all_answered(samples: &[Sample]) -> Finding {
    let worst = |who| {
        let of = samples
            .iter()
            .filter(|s| s.who == who)
            .map(Sample::success_percent);
        of.fold(100.0, f64::min)
    };
    Finding::new(
        "every request over every new connection is answered, however many are held",
        each(
            servers(samples)
                .into_iter()
                .map(|who| (who, format!("{} %", worst(who)))),
        ),
        Agreement::of(servers(samples).into_iter().map(|who| worst(who) >= 100.0)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;
    use serde_json::json;

    fn sample(who: Who, held: f64, us: u32, success: f64) -> Sample {
        Sample {
            who,
            at: [("held".to_owned(), held)].into(),
            of: [].into(),
            repeat: 0,
            load: json!({"latency_us": {"p50": us}, "success_percent": success}),
            server: ServerUse::default(),
        }
    }

    #[test]
    fn a_response_time_that_grows_with_the_connections_does_not_agree() {
        let echo = [
            sample(Who::Echo, 0.0, 100, 100.0),
            sample(Who::Echo, 9.0, 110, 100.0),
        ];
        assert_eq!(flat(&echo).agrees, Agreement::Yes);
        assert_eq!(growth(&echo, Who::Echo, HANDSHAKE), None);
        let slow = [
            sample(Who::Sipolis, 0.0, 100, 100.0),
            sample(Who::Sipolis, 9.0, 300, 99.0),
        ];
        assert_eq!(flat(&slow).agrees, Agreement::No);
        assert!(flat(&slow).here.contains("+200 %"));
        assert_eq!(all_answered(&slow).agrees, Agreement::No);
        assert_eq!(flat(&[echo, slow].concat()).agrees, Agreement::Partly);
    }
}
