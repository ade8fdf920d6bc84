//! The figures, and the page that is published.

use std::fmt::Write as _;

use serde::Serialize;

use super::rows::Row;
use crate::record::{Machine, Sample, Who};

/// All of one benchmark.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) machine: Machine,
    pub(super) runs: u32,
    pub(super) quick: bool,
    /// What was skipped, and what failed.
    pub(super) notes: Vec<String>,
    pub(super) lines: Vec<Line>,
    pub(super) held: Vec<Held>,
}

/// What one run found. Times are the server's, in microseconds per operation.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figure {
    pub(super) total_us: f64,
    /// The part in user space, exact to a clock tick of 10 ms over the run.
    pub(super) user_us: f64,
    /// The driver's own.
    pub(super) driver_us: f64,
    pub(super) operations_per_second: f64,
    pub(super) retransmissions: u64,
}

impl Figure {
    /// Of a sample whose operations stand for so many, or a part of one, of a row's.
    pub(super) fn of(sample: &Sample, exchanges: f64) -> Self {
        let per_operation = |us: Option<f64>| us.unwrap_or(f64::NAN) * exchanges;
        Self {
            total_us: per_operation(sample.cpu_us_per_operation()),
            user_us: per_operation(sample.user_us_per_operation()),
            driver_us: sample.count("driver_us_per_operation"),
            operations_per_second: sample.count("operations_per_second"),
            retransmissions: sample.count("retransmissions") as u64,
        }
    }
}

/// One row's figures, every run of them.
#[derive(Serialize)]
pub(super) struct Line {
    pub(super) name: &'static str,
    reach: f64,
    echo: Vec<Figure>,
    kamailio: Vec<Figure>,
    sipolis: Vec<Figure>,
}

impl Line {
    pub(super) fn new(row: &Row) -> Self {
        Self {
            name: row.name,
            reach: row.reach,
            echo: Vec::new(),
            kamailio: Vec::new(),
            sipolis: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, kind: Who, figure: Figure) {
        match kind {
            Who::Echo => self.echo.push(figure),
            Who::Kamailio => self.kamailio.push(figure),
            Who::Sipolis => self.sipolis.push(figure),
            Who::Paper => {}
        }
    }
}

/// The run with the lowest total.
fn lowest(figures: &[Figure]) -> Option<Figure> {
    let by_total = |a: &&Figure, b: &&Figure| a.total_us.total_cmp(&b.total_us);
    figures.iter().min_by(by_total).copied()
}

/// What finished calls hold until their timers end.
#[derive(Serialize)]
pub(super) struct Held {
    pub(super) server: Who,
    pub(super) bytes_per_call: u64,
    /// Processor time to forget them when the timers end, which the rows of calls do not contain.
    pub(super) forgetting_us_per_call: Option<f64>,
}

impl Report {
    /// The page.
    pub(super) fn markdown(&self) -> String {
        let mut page = String::from("# Benchmarks\n\n");
        page += &self.preface();
        page +=
            "| work | echo | Kamailio | sipolis | sipolis / Kamailio | to reach | driver us |\n";
        page += "|---|---|---|---|---|---|---|\n";
        for line in &self.lines {
            page += &row(line);
        }
        page += &self.held();
        page += METHOD;
        if !self.notes.is_empty() {
            page += "\n## Skipped and failed\n\n";
        }
        for note in &self.notes {
            let _ = writeln!(page, "- {}", note.replace('\n', "\n  "));
        }
        page
    }

    fn preface(&self) -> String {
        let machine = &self.machine;
        let mut text = String::new();
        if self.quick {
            text += "**One short run: it shows that the benchmark works, not how fast anything is.**\n\n";
        }
        let _ = write!(
            text,
            "Server processor time in microseconds per operation, total and (user + kernel); lowest of \
             {} runs. {}, {} cores, {} GiB, Linux {}; Kamailio {}; sipolis {}. Written by \
             `cargo xtask bench --write`; every run is in `bench/results.json`.\n\n",
            self.runs,
            machine.processor,
            machine.cores,
            machine.memory_gib,
            machine.kernel,
            machine.kamailio,
            machine.commit,
        );
        text
    }

    fn held(&self) -> String {
        let mut text = String::new();
        if self.held.is_empty() {
            return text;
        }
        text += "\nMemory held per finished call until its timers end, UDP, and the time to forget it \
                 then, which the rows above do not contain:\n\n";
        text += "| server | bytes | us |\n|---|---|---|\n";
        for held in &self.held {
            let cost = held.forgetting_us_per_call;
            let cost = cost.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"));
            let _ = writeln!(
                text,
                "| {} | {} | {cost} |",
                held.server.name(),
                held.bytes_per_call
            );
        }
        text
    }
}

fn row(line: &Line) -> String {
    let best = [&line.echo, &line.kamailio, &line.sipolis].map(|f| lowest(f));
    let cell = |figure: Option<Figure>| {
        figure.map_or_else(
            || "-".to_owned(),
            |f| {
                format!(
                    "{:.1} ({:.1} + {:.1})",
                    f.total_us,
                    f.user_us,
                    f.total_us - f.user_us
                )
            },
        )
    };
    let driver = best.map(|f| f.map_or_else(|| "-".to_owned(), |f| format!("{:.1}", f.driver_us)));
    let ratio = match best {
        [_, Some(rival), Some(own)] => format!("{:.0} %", 100.0 * own.total_us / rival.total_us),
        _ => "-".to_owned(),
    };
    format!(
        "| {} | {} | {} | {} | {ratio} | {:.0} % | {} |\n",
        line.name,
        cell(best[0]),
        cell(best[1]),
        cell(best[2]),
        100.0 * line.reach,
        driver.join(", "),
    )
}

const METHOD: &str = "
## How it is measured

- The server runs on the first core and the driver, one thread, on the second; 10,000 users. Under way
  at any time: 1,000 requests over UDP, as in the minute after a power cut; 100 over persistent TCP, so
  that none shares a read with another on the fewest connections; 64 calls or connections. The servers
  take turns within each run and are started anew each time.
- Processor time is that of all the server's threads and processes, from the kernel's scheduler
  statistics; the user part is exact to 10 ms over a run.
- The echo server stands on the same sockets, poller and framing as sipolis. Its figure is for as many
  messages as the row's operation has, of about the same size.
- Kamailio is tuned: `bench/kamailio/kamailio.cfg`, two UDP workers, one TCP worker, its fastest
  allocator, no logging, everything in memory. With digest its passwords are made by a rule, so that
  it looks nothing up.
- sipolis writes each binding to its journal before the 200 in every row: there is no setting that
  leaves it out. Kamailio keeps its bindings in memory only.
- The driver's own cost per operation, in the last column against each server in turn, is the gauge of
  noise: between runs against one server it should stay the same. Between servers it also differs by how
  many answers come at once. Absolute figures drift by 20 % and more between machines and hours.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(total_us: f64) -> Figure {
        Figure {
            total_us,
            user_us: 1.0,
            driver_us: 3.0,
            operations_per_second: 1.0,
            retransmissions: 0,
        }
    }

    #[test]
    fn the_lowest_run_counts_and_what_was_not_measured_is_a_dash() {
        let mut line = Line::new(&super::super::rows::ROWS[0]);
        line.add(Who::Kamailio, figure(8.0));
        line.add(Who::Sipolis, figure(5.0));
        line.add(Who::Sipolis, figure(4.0));
        let text = row(&line);
        assert!(
            text.contains("| - | 8.0 (1.0 + 7.0) | 4.0 (1.0 + 3.0) | 50 % | 50 % |"),
            "{text}"
        );
    }
}
