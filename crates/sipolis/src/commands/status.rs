//! `sipolis status`: what a running server is doing.

use super::place::{Place, Server, unexpected};
use crate::failure::{Failure, Result};
use crate::terminal::{Paint, bytes, duration, grouped};
use admin::control::{Request, Response, Status};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

/// Shows what the running server is doing
///
/// Takes two looks, a second apart, for the rates.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sipolis status --json | jq .rates")]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let mut server = arguments.place.server()?;
    let before = look(&mut server)?;
    let at = Instant::now();
    thread::sleep(Duration::from_secs(1));
    let now = look(&mut server)?;
    let rates = rates(&before, &now, at.elapsed());
    match arguments.json {
        true => json(&now, &rates),
        false => print(&now, &rates),
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

fn json(status: &Status, rates: &BTreeMap<String, f64>) -> Result {
    let mut value = serde_json::to_value(status).map_err(|e| Failure::new(e.to_string()))?;
    value["rates"] = serde_json::json!(rates);
    writeln!(io::stdout(), "{value}")?;
    Ok(())
}

fn print(status: &Status, rates: &BTreeMap<String, f64>) -> Result {
    let paint = Paint::stdout();
    let mut out = io::stdout().lock();
    let rate = |name: &str| rates.get(name).copied().unwrap_or(0.0);
    let count = |name: &str| status.counters.get(name).copied().unwrap_or(0);
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
    let mut line =
        |name: &str, text: String| writeln!(out, "  {} {text}", paint.dim(format!("{name:<14}")));
    line("listens on", status.listen.join(", "))?;
    line("domains", status.domains.join(", "))?;
    line("users", grouped(status.subscribers))?;
    let bindings = format!(
        "{} of {} users",
        grouped(status.bindings),
        grouped(status.aors)
    );
    line("bindings", bindings)?;
    let connections: Vec<_> = status
        .connections
        .iter()
        .map(|(name, count)| format!("{name} {}", grouped(*count)))
        .collect();
    line("connections", connections.join(", "))?;
    line(
        "transactions",
        format!(
            "{} server, {} client",
            grouped(count("server_transactions")),
            grouped(count("client_transactions"))
        ),
    )?;
    let both = |requests, responses| {
        format!(
            "{:.0}/s requests, {:.0}/s responses",
            rate(requests),
            rate(responses)
        )
    };
    line("received", both("requests_received", "responses_received"))?;
    line("sent", both("requests_sent", "responses_sent"))?;
    line(
        "registrations",
        format!(
            "{:.0}/s accepted, {:.0}/s refused, {:.0}/s challenged",
            rate("registrations_accepted"),
            rate("registrations_refused"),
            rate("challenges")
        ),
    )?;
    line(
        "calls",
        format!(
            "{:.1}/s answered, {:.1}/s failed",
            rate("calls_answered"),
            rate("calls_failed")
        ),
    )?;
    line(
        "queue delay",
        format!("{:.1} ms", status.queue_delay_us as f64 / 1000.0),
    )?;
    line("memory", bytes(status.memory_bytes))?;
    line("cpu", format!("{:.1} % of one core", rate("cpu_percent")))?;
    Ok(())
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
}
