//! `sipolis status`: what a running server is doing.

use super::place::{Place, Server, unexpected};
use crate::failure::{Failure, Result};
use crate::terminal::{Paint, bytes, duration, grouped};
use admin::control::{Request, Response, StageTime, StageTimes, Status};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

/// Shows what the running server is doing
///
/// Takes two looks, a second apart, for the rates. Counters and stage times are since the start: what happened in between is the difference of two looks.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sipolis status --json | jq .rates")]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// JSON
    #[arg(long)]
    json: bool,
    /// One look only: at once, and without rates
    #[arg(long, requires = "json")]
    once: bool,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let mut server = arguments.place.server()?;
    let before = look(&mut server)?;
    if arguments.once {
        return json(&before, None);
    }
    let at = Instant::now();
    thread::sleep(Duration::from_secs(1));
    let now = look(&mut server)?;
    let elapsed = at.elapsed();
    let rates = rates(&before, &now, elapsed);
    match arguments.json {
        true => json(&now, Some(&rates)),
        false => print(&before, &now, &rates, elapsed),
    }
}

fn look(server: &mut Server) -> Result<Status> {
    match server.call(Request::Status)? {
        Response::Status(status) => Ok(*status),
        other => Err(unexpected(other)),
    }
}

/// What the counters went up by in a second; those of what is there now have none.
fn rates(before: &Status, now: &Status, elapsed: Duration) -> BTreeMap<String, f64> {
    let seconds = elapsed.as_secs_f64();
    let mut rates = BTreeMap::new();
    for (name, value) in &now.counters {
        if !GAUGES.contains(&name.as_str()) {
            let old = before.counters.get(name).copied().unwrap_or(0);
            let rate = value.saturating_sub(old) as f64 / seconds;
            rates.insert(name.clone(), (rate * 10.0).round() / 10.0);
        }
    }
    let cpu = now.cpu_ms.saturating_sub(before.cpu_ms) as f64 / 10.0 / seconds;
    rates.insert(String::from("cpu_percent"), (cpu * 10.0).round() / 10.0);
    rates
}

/// Counters that go down, too.
const GAUGES: [&str; 5] = [
    "answers_waiting",
    "client_transactions",
    "connections_open",
    "held_bytes",
    "server_transactions",
];

fn json(status: &Status, rates: Option<&BTreeMap<String, f64>>) -> Result {
    let mut value = serde_json::to_value(status).map_err(|e| Failure::new(e.to_string()))?;
    if let Some(rates) = rates {
        value["rates"] = serde_json::json!(rates);
    }
    writeln!(io::stdout(), "{value}")?;
    Ok(())
}

fn print(
    before: &Status,
    status: &Status,
    rates: &BTreeMap<String, f64>,
    elapsed: Duration,
) -> Result {
    let paint = Paint::stdout();
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} {}, process {}, up {}, {} workers, digest {}",
        paint.bold("sipolis"),
        status.version,
        status.pid,
        duration(status.uptime_s),
        status.workers,
        if status.auth { "on" } else { "off" },
    )?;
    for (name, text) in holds(status).into_iter().chain(does(status, rates)) {
        writeln!(out, "  {} {text}", paint.dim(format!("{name:<14}")))?;
    }
    if let (Some(before), Some(now)) = (&before.stage_times, &status.stage_times) {
        let (head, lines) = stages(before, now, elapsed);
        writeln!(out, "  {}", paint.dim(head))?;
        lines
            .iter()
            .try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    Ok(())
}

/// What was spent in each stage between two looks: the head of the columns, and a line each.
fn stages(before: &StageTimes, now: &StageTimes, elapsed: Duration) -> (String, Vec<String>) {
    let seconds = elapsed.as_secs_f64();
    let columns = |stage: &StageTime| {
        let per_second = (stage.calls as f64 / seconds).round() as u64;
        let each = grouped(stage.nanoseconds_per_call);
        let name = stage.name.replace('_', " ");
        format!("{name:<14} {:>10} {each:>13}", grouped(per_second))
    };
    let pairs = before.stages.iter().zip(&now.stages);
    let mut lines: Vec<String> = pairs
        .map(|(before, now)| {
            let stage = now.since(before);
            let share = stage.nanoseconds as f64 / 1e7 / seconds;
            format!("{} {share:>9.1} %", columns(&stage))
        })
        .collect();
    let disk = now.disk.since(&before.disk);
    lines.push(format!("{}  (wait for it)", columns(&disk)));
    let head = format!(
        "{:<14} {:>10} {:>13} {:>11}",
        "stage", "calls/s", "ns each", "of a core"
    );
    (head, lines)
}

/// What there is now.
fn holds(status: &Status) -> Vec<(&'static str, String)> {
    let count = |name: &str| grouped(status.counters.get(name).copied().unwrap_or(0));
    let connections: Vec<_> = status
        .connections
        .iter()
        .map(|(name, count)| format!("{name} {}", grouped(*count)))
        .collect();
    let (bindings, aors) = (grouped(status.bindings), grouped(status.aors));
    let (server, client) = (count("server_transactions"), count("client_transactions"));
    vec![
        ("listens on", status.listen.join(", ")),
        ("domains", status.domains.join(", ")),
        ("users", grouped(status.subscribers)),
        ("bindings", format!("{bindings} of {aors} users")),
        ("connections", connections.join(", ")),
        ("transactions", format!("{server} server, {client} client")),
    ]
}

/// What goes on.
fn does(status: &Status, rates: &BTreeMap<String, f64>) -> Vec<(&'static str, String)> {
    let per_second = |names: &[(&str, &str)]| {
        let parts: Vec<_> = names
            .iter()
            .map(|(name, what)| {
                let rate = rates.get(*name).copied().unwrap_or(0.0);
                format!("{}/s {what}", grouped(rate.round() as u64))
            })
            .collect();
        parts.join(", ")
    };
    let cpu = rates.get("cpu_percent").copied().unwrap_or(0.0);
    let delay = status.queue_delay_us as f64 / 1000.0;
    vec![
        (
            "received",
            per_second(&[
                ("requests_received", "requests"),
                ("responses_received", "responses"),
            ]),
        ),
        (
            "sent",
            per_second(&[
                ("requests_sent", "requests"),
                ("responses_sent", "responses"),
            ]),
        ),
        (
            "registrations",
            per_second(&[
                ("registrations_accepted", "accepted"),
                ("registrations_refused", "refused"),
                ("challenges", "challenged"),
            ]),
        ),
        (
            "calls",
            per_second(&[("calls_answered", "answered"), ("calls_failed", "failed")]),
        ),
        ("queue delay", format!("{delay:.1} ms")),
        ("memory", bytes(status.memory_bytes)),
        ("cpu", format!("{cpu:.1} % of one core")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_what_the_counters_went_up_by_in_a_second() {
        let with = |requests, transactions| Status {
            counters: BTreeMap::from([
                (String::from("requests_received"), requests),
                (String::from("server_transactions"), transactions),
            ]),
            ..Status::default()
        };
        let rates = rates(&with(100, 9), &with(600, 5), Duration::from_secs(2));
        assert_eq!(rates["requests_received"], 250.0);
        assert!(!rates.contains_key("server_transactions"));
    }

    #[test]
    fn stages_are_what_was_spent_between_two_looks() {
        let look = |parsed, ns| StageTimes {
            stages: vec![
                StageTime::new("parse", parsed, ns),
                StageTime::new("look_up", 0, 0),
            ],
            disk: StageTime::new("disk", parsed, 0),
            clock_nanoseconds: 25,
        };
        let (before, now) = (look(100, 1_000_000), look(300, 101_000_000));
        let (head, lines) = stages(&before, &now, Duration::from_secs(2));
        assert_eq!(head.len(), lines[0].len());
        let words: Vec<_> = lines[0].split_whitespace().collect();
        assert_eq!(words, ["parse", "100", "500,000", "5.0", "%"]);
        let words: Vec<_> = lines[1].split_whitespace().collect();
        assert_eq!(words, ["look", "up", "0", "0", "0.0", "%"]);
    }
}
