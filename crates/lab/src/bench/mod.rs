//! Compares servers by the processor time that an operation costs them.
//!
//! Each server runs in turn on the first core, the driver on the second. A run starts the server
//! anew, opens the driver's connections, warms up, and reads the processor time of all the server's
//! threads before and after a counted number of operations. The lowest of several runs is
//! published: noise only adds. The driver's own cost is published beside: where it differs between
//! the runs against one server, the machine was disturbed.

mod report;
mod rows;

use std::{
    env, io,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use clap::{Args, Parser};
use loadgen::{
    Summary,
    load::{Load, LoadArgs},
};
use report::{Figure, Held, Line, Report};
use rows::Row;

use crate::{
    machine,
    record::Who,
    servers::{DOMAIN, Features, Server, Servers},
};

/// Compares the server with an echo server and with Kamailio: processor time per operation.
#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    /// One short run of each: shows that it works, not how fast.
    #[arg(long)]
    quick: bool,
    /// Runs of each; the lowest counts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,
    /// Only rows whose name has this in it.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Only these servers.
    #[arg(long, value_enum, value_delimiter = ',')]
    servers: Vec<Who>,
    /// The server's binary, unless it is beside this one.
    #[arg(long, value_name = "FILE")]
    sipolis: Option<PathBuf>,
    /// Port of the servers, UDP and TCP.
    #[arg(long, default_value_t = 22_060)]
    port: u16,
    /// Write the figures as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Write docs/benchmarks.md and bench/results.json too.
    #[arg(long)]
    write: bool,
}

/// Set once the process is on its core.
const PINNED: &str = "SIPOLIS_BENCH_PINNED";
/// The driver's core.
const SECOND_CORE: &str = "1";
/// Work that the server does behind its answers belongs to the operations counted.
const SETTLE: Duration = Duration::from_millis(50);
/// Timers B, F, H and J of RFC 3261 are 32 s; after this a server holds nothing of a finished call.
const TIMERS_END: Duration = Duration::from_secs(36);

/// Runs the benchmark.
#[must_use]
pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    if env::var_os(PINNED).is_none() {
        let error = run_pinned();
        eprintln!("error: taskset, of the package util-linux: {error}");
        return ExitCode::FAILURE;
    }
    match compare(args).and_then(|report| publish(args, &report)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Starts this program again on the second core. Returns only if that fails.
fn run_pinned() -> io::Error {
    match env::current_exe() {
        Ok(own) => Command::new("taskset")
            .args(["-c", SECOND_CORE])
            .arg(own)
            .args(env::args_os().skip(1))
            .env(PINNED, "1")
            .exec(),
        Err(e) => e,
    }
}

fn compare(args: &BenchArgs) -> io::Result<Report> {
    let installed = Servers::find(args.sipolis.clone(), args.port)?;
    let wanted = |kind: &Who| args.servers.is_empty() || args.servers.contains(kind);
    let mut kinds: Vec<Who> = [Who::Echo, Who::Kamailio, Who::Sipolis]
        .into_iter()
        .filter(wanted)
        .collect();
    let mut notes = Vec::new();
    kinds.retain(|kind| match installed.missing(*kind) {
        Some(why) => {
            notes.push(format!("SKIPPED: {kind:?}: {why}"));
            false
        }
        None => true,
    });
    let named = |row: &&Row| {
        args.only
            .as_ref()
            .is_none_or(|t| row.name.contains(t.as_str()))
    };
    let mut bench = Bench {
        args,
        installed,
        kinds,
        notes,
    };
    let mut lines = Vec::new();
    for row in rows::ROWS.iter().filter(named) {
        lines.push(bench.row(row));
    }
    let held = [&rows::HELD].into_iter().find(named);
    let held = held.map(|row| bench.held(row)).unwrap_or_default();
    Ok(Report {
        machine: machine::describe(bench.installed.kamailio.as_ref()),
        runs: bench.runs(),
        quick: args.quick,
        notes: bench.notes,
        lines,
        held,
    })
}

fn publish(args: &BenchArgs, report: &Report) -> io::Result<()> {
    let json = serde_json::to_string_pretty(report)?;
    if args.json {
        println!("{json}");
    } else {
        println!("{}", report.markdown());
    }
    if args.write {
        std::fs::create_dir_all("docs")?;
        std::fs::write("docs/benchmarks.md", report.markdown())?;
        std::fs::write("bench/results.json", json + "\n")?;
    }
    let failures = report
        .notes
        .iter()
        .filter(|n| n.starts_with("FAILED"))
        .count();
    if failures > 0 {
        return Err(io::Error::other(format!(
            "{failures} measurements failed; see the notes"
        )));
    }
    Ok(())
}

struct Bench<'a> {
    args: &'a BenchArgs,
    installed: Servers,
    kinds: Vec<Who>,
    notes: Vec<String>,
}

impl Bench<'_> {
    fn runs(&self) -> u32 {
        if self.args.quick {
            1
        } else {
            self.args.runs.max(1)
        }
    }

    fn operations(&self, row: &Row) -> u64 {
        if self.args.quick {
            row.operations / 20
        } else {
            row.operations
        }
    }

    /// Measures a row: every server once, then again.
    fn row(&mut self, row: &Row) -> Line {
        let mut line = Line::new(row);
        for run in 1..=self.runs() {
            for kind in self.kinds.clone() {
                if kind == Who::Kamailio && !row.rival {
                    continue;
                }
                match self.measure(row, kind) {
                    Ok(figure) => {
                        eprintln!("{} | {run} | {kind:?} | {figure}", row.name);
                        line.add(kind, figure);
                    }
                    Err(e) => self.fail(row, kind, &e),
                }
            }
        }
        line
    }

    fn fail(&mut self, row: &Row, kind: Who, error: &io::Error) {
        eprintln!("FAILED: {}: {kind:?}: {error}", row.name);
        self.notes
            .push(format!("FAILED: {}: {kind:?}: {error}", row.name));
    }

    fn measure(&self, row: &Row, kind: Who) -> io::Result<Figure> {
        let (load, exchanges) = match kind {
            Who::Echo => row.echo,
            _ => (row.load, 1.0),
        };
        let digest = row.digest && kind != Who::Echo;
        let server = self.installed.start(kind, features(digest))?;
        let mut load = self.load(load, digest)?;
        all_well(&load.operations(row.warm_up)?)?;
        let operations = self.operations(row);
        let before = server.cpu();
        let summary = load.operations(operations)?;
        thread::sleep(SETTLE);
        let spent = server.cpu().since(before);
        all_well(&summary)?;
        let per_operation = exchanges * 1e6 / operations as f64;
        Ok(Figure {
            total_us: spent.total.as_secs_f64() * per_operation,
            user_us: spent.user.as_secs_f64() * per_operation,
            driver_us: summary.driver_us_per_operation,
            operations_per_second: summary.operations_per_second,
            retransmissions: summary.retransmissions,
        })
    }

    /// Prepares a load from a row's words.
    fn load(&self, words: &str, digest: bool) -> io::Result<Load> {
        #[derive(Parser)]
        struct Words {
            #[command(flatten)]
            load: LoadArgs,
        }
        let mut words = words.split(' ');
        let transport = words.next().unwrap_or_default();
        let scenario = words.next().unwrap_or_default();
        let target = format!("{transport}://127.0.0.1:{}", self.args.port);
        let fixed = ["load", scenario, &target, "--domain", DOMAIN, "--digest"];
        let digest = if digest { "answer" } else { "none" };
        let line = fixed.into_iter().chain([digest]).chain(words);
        let parsed = Words::try_parse_from(line).map_err(io::Error::other)?;
        Load::new(&parsed.load)
    }

    /// Measures what finished calls hold, and what it costs to forget them.
    fn held(&mut self, row: &Row) -> Vec<Held> {
        let mut all = Vec::new();
        for kind in self.kinds.clone() {
            if kind == Who::Echo {
                continue;
            }
            match self.held_by(row, kind) {
                Ok(held) => all.push(held),
                Err(e) => self.fail(row, kind, &e),
            }
        }
        all
    }

    fn held_by(&self, row: &Row, kind: Who) -> io::Result<Held> {
        let server = self.installed.start(kind, features(false))?;
        let mut load = self.load(row.load, false)?;
        all_well(&load.operations(row.warm_up)?)?;
        let operations = self.operations(row);
        let before = server.memory();
        all_well(&load.operations(operations)?)?;
        let grown = server.memory().saturating_sub(before);
        let forgetting = if self.args.quick {
            None
        } else {
            Some(cost_of_waiting(&server).as_secs_f64() * 1e6 / operations as f64)
        };
        Ok(Held {
            server: kind,
            bytes_per_call: grown / operations,
            forgetting_us_per_call: forgetting,
        })
    }
}

fn features(digest: bool) -> Features {
    Features {
        digest,
        ..Features::default()
    }
}

/// Processor time that a server takes while nobody asks it anything, until all its timers have ended.
fn cost_of_waiting(server: &Server) -> Duration {
    let before = server.cpu();
    thread::sleep(TIMERS_END);
    server.cpu().since(before).total
}

/// Figures of a run in which something failed are worth nothing.
fn all_well(summary: &Summary) -> io::Result<()> {
    if summary.succeeded == summary.operations {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "not all operations succeeded:\n{summary}"
    )))
}
