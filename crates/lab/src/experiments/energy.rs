//! The SIP-Router capacity test: what calls cost in energy.

use crate::{
    chart::each,
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    load::Load,
    record::{
        Agreement, Axis, Bar, BarPart, Chart, Finding, Group, Measured, Point, Ratio, Sample, Who,
    },
    sample::{median, servers},
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "energy",
    title: "Energy, or processor time, of a thousand calls",
    paper: "SIP-Router 3.0 capacity test: the whole machine takes 190 W with 332 refreshes and 200 calls/s, \
            210 W with 33,000 keep-alives, 166 refreshes and 100 calls/s",
    how: "Calls of 13 messages each, without ringing and talking, at a steady rate. Joules are of the processor's own counter where it can be read \
          (of all its cores, the load's too); processor time is the server's alone.",
    run,
};

const TRANSPORTS: [&str; 2] = ["udp", "tcp"];

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let rate = lab.size(2_000.0, 200.0);
    let plan = |transport: &str| {
        let load = Load::new("call", transport).with(&format!("--rate {rate}"));
        Plan::new(load.lasting(lab.size(4.0, 1.0)))
            .at("rate", rate)
            .of("transport", transport)
    };
    let plans = TRANSPORTS.map(plan);
    let who = lab.sip_servers();
    let samples = lab.measure_all(&who, &plans)?;
    if samples.iter().all(|s| s.server.joules.is_none()) {
        lab.warn(
            "The processor's energy counter can't be read here (/sys/class/powercap has no intel-rapl, or not for this user): \
             processor time stands in its place. A machine that is not virtual has it, for root.",
        );
    }
    Ok(conclude(samples))
}

fn conclude(samples: Vec<Sample>) -> Measured {
    let mut charts = vec![processor(&samples)];
    charts.extend(joules_chart(&samples));
    Measured {
        charts,
        tables: Vec::new(),
        findings: vec![finding(&samples)],
        ratios: vec![tcp_over_udp(&samples)],
        samples,
    }
}

/// Median and spread of a figure of a server over a transport.
fn point(
    samples: &[Sample],
    who: Who,
    transport: &str,
    of: impl Fn(&Sample) -> Option<f64>,
) -> Option<Point> {
    let matching = samples
        .iter()
        .filter(|s| s.who == who && s.of("transport") == transport);
    Point::of(0.0, &matching.filter_map(of).collect::<Vec<_>>())
}

/// Processor seconds of a thousand calls: a call's microseconds are a thousandth of its milliseconds.
fn seconds(sample: &Sample) -> Option<f64> {
    Some(sample.cpu_us_per_operation()? / 1_000.0)
}

fn user_seconds(sample: &Sample) -> Option<f64> {
    Some(sample.user_us_per_operation()? / 1_000.0)
}

fn joules(sample: &Sample) -> Option<f64> {
    let calls = sample.figure("operations").filter(|n| *n > 0.0)?;
    Some(sample.server.joules? / calls * 1_000.0)
}

fn processor(samples: &[Sample]) -> Chart {
    let bar = |who, transport: &str| {
        let whole = point(samples, who, transport, seconds)?;
        let user = median(point(samples, who, transport, user_seconds).map(|p| p.y))?;
        let part = |label: &str, value: f64| BarPart {
            label: label.to_owned(),
            value,
        };
        Some(Bar {
            parts: vec![
                part("user", user),
                part("kernel", (whole.y - user).max(0.0)),
            ],
            ..Bar::plain(who, whole)
        })
    };
    let group = |transport: &str| {
        let bars = servers(samples)
            .into_iter()
            .filter_map(|who| bar(who, transport));
        Group::new(&transport.to_uppercase(), bars)
    };
    let axis = Axis::linear("server's processor time, s for a thousand calls");
    Chart::bars(
        "processor",
        "Processor time of a thousand calls",
        axis,
        TRANSPORTS.map(group).into(),
    )
}

fn joules_chart(samples: &[Sample]) -> Option<Chart> {
    samples.iter().find_map(joules)?;
    let group = |transport: &str| {
        let bar = |who| Some(Bar::plain(who, point(samples, who, transport, joules)?));
        Group::new(
            &transport.to_uppercase(),
            servers(samples).into_iter().filter_map(bar),
        )
    };
    let axis = Axis::linear("processor's energy, J for a thousand calls");
    Some(Chart::bars(
        "joules",
        "Energy of a thousand calls",
        axis,
        TRANSPORTS.map(group).into(),
    ))
}

fn finding(samples: &[Sample]) -> Finding {
    let text = |who| {
        let of = |transport| {
            let seconds = point(samples, who, transport, seconds).map(|p| format!("{:.3} s", p.y));
            let joules =
                point(samples, who, transport, joules).map(|p| format!(" and {:.1} J", p.y));
            Some(format!(
                "{}{} over {}",
                seconds?,
                joules.unwrap_or_default(),
                transport.to_uppercase()
            ))
        };
        let both: Vec<String> = TRANSPORTS.into_iter().filter_map(of).collect();
        (who, both.join(", "))
    };
    Finding::new(
        "210 W for the whole machine under the traffic of half a million users",
        format!(
            "a thousand calls take {}; the power of a whole machine isn't measured",
            each(servers(samples).into_iter().map(text))
        ),
        Agreement::NotComparable,
    )
}

fn tcp_over_udp(samples: &[Sample]) -> Ratio {
    let of = |who| {
        let [udp, tcp] = TRANSPORTS.map(|transport| point(samples, who, transport, seconds));
        Some((who, tcp?.y / udp?.y))
    };
    Ratio::new(
        "processor time of a call: TCP / UDP",
        servers(samples).into_iter().filter_map(of),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;
    use serde_json::json;

    fn sample(transport: &str, cpu_us: f64, joules: Option<f64>) -> Sample {
        Sample {
            who: Who::Sipolis,
            at: [].into(),
            of: [("transport".to_owned(), transport.to_owned())].into(),
            repeat: 0,
            load: json!({"operations": 2_000}),
            server: ServerUse {
                cpu_us,
                user_us: cpu_us / 4.0,
                joules,
                ..ServerUse::default()
            },
        }
    }

    #[test]
    fn figures_are_of_a_thousand_calls() {
        let samples = [sample("udp", 1e6, Some(30.0)), sample("tcp", 2e6, None)];
        assert_eq!(seconds(&samples[0]), Some(0.5));
        assert_eq!(joules(&samples[0]), Some(15.0));
        assert_eq!(tcp_over_udp(&samples).of, [(Who::Sipolis, 2.0)].into());
        assert!(joules_chart(&samples).is_some());
        assert!(
            finding(&samples)
                .here
                .contains("0.500 s and 15.0 J over UDP, 1.000 s over TCP")
        );
    }

    #[test]
    fn without_a_counter_there_is_no_chart_of_joules() {
        let samples = [sample("udp", 1e6, None)];
        assert!(joules_chart(&samples).is_none());
        assert!(conclude(samples.into()).charts.len() == 1);
    }
}
