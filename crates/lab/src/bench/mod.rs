//! Compares servers by the processor time that an operation costs them.
//!
//! Each server runs in turn on the first core, the load on the second. A run starts the server anew,
//! opens the load's connections, warms up, and reads the processor time of all the server's threads
//! before and after a counted number of operations. The lowest of several runs is published: noise
//! only adds. The load's own cost per operation is published beside: where it differs between the
//! runs against one server, the machine was disturbed.

mod report;
mod rows;

use std::{io, path::PathBuf, process::ExitCode, thread, time::Duration};

use clap::Args;
use report::{Figure, Held, Line, Report};
use rows::Row;
use serde_json::Value;

use crate::{
    experiment::Stop,
    lab::{Lab, Plan},
    load::Load,
    machine,
    record::{Sample, Who},
    servers::{Features, Server, Servers},
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

/// Timers B, F, H and J of RFC 3261 are 32 s; after this a server holds nothing of a finished call.
const TIMERS_END: Duration = Duration::from_secs(36);

/// Runs the benchmark.
#[must_use]
pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    match compare(args).and_then(|report| publish(args, &report)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn compare(args: &BenchArgs) -> io::Result<Report> {
    let servers = Servers::find(args.sipolis.clone(), args.port)?;
    let machine = machine::describe(servers.kamailio.as_ref());
    let mut who = vec![Who::Echo, Who::Kamailio, Who::Sipolis];
    who.retain(|who| args.servers.is_empty() || args.servers.contains(who));
    let mut notes = Vec::new();
    who.retain(|who| match servers.missing(*who) {
        Some(why) => {
            notes.push(format!("SKIPPED: {}: {why}", who.name()));
            false
        }
        None => true,
    });
    let runs = if args.quick { 1 } else { args.runs.max(1) };
    let mut bench = Bench {
        args,
        lab: Lab::new(servers, who, runs, args.quick)?,
        notes,
    };
    let named = |row: &&Row| {
        args.only
            .as_ref()
            .is_none_or(|t| row.name.contains(t.as_str()))
    };
    let mut lines = Vec::new();
    for row in rows::ROWS.iter().filter(named) {
        lines.push(bench.row(row));
    }
    let held = [&rows::HELD].into_iter().find(named);
    let held = held.map(|row| bench.held(row)).unwrap_or_default();
    Ok(Report {
        machine,
        runs,
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
    lab: Lab,
    notes: Vec<String>,
}

impl Bench<'_> {
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
        for run in 0..self.lab.repeats {
            for who in self.lab.who() {
                if who == Who::Kamailio && !row.rival {
                    continue;
                }
                let (plan, exchanges) = self.plan(row, who);
                match self.lab.measure(who, &plan, run).and_then(all_well) {
                    Ok(sample) => line.add(who, Figure::of(&sample, exchanges)),
                    Err(e) => self.fail(row, who, &e),
                }
            }
        }
        line
    }

    /// What a server gets, and how many of its operations stand for one of the row's.
    fn plan(&self, row: &Row, who: Who) -> (Plan, f64) {
        let (words, exchanges) = match who {
            Who::Echo => row.echo,
            _ => (row.load, 1.0),
        };
        let features = Features {
            digest: row.digest,
            ..Features::default()
        };
        let load = self.load(row, words);
        (
            Plan::new(load).features(features).of("work", row.name),
            exchanges,
        )
    }

    /// A load of words: transport, scenario and options.
    fn load(&self, row: &Row, words: &str) -> Load {
        let (transport, words) = words.split_once(' ').unwrap_or((words, ""));
        let (scenario, options) = words.split_once(' ').unwrap_or((words, ""));
        let load = Load::new(scenario, transport).with(options);
        let (warm_up, operations) = (row.warm_up, self.operations(row));
        load.with(&format!("--warm-up {warm_up} --count {operations}"))
    }

    fn fail(&mut self, row: &Row, who: Who, why: &Stop) {
        let (Stop::Skip(why) | Stop::Fail(why)) = why;
        let note = format!("FAILED: {}: {}: {why}", row.name, who.name());
        eprintln!("{note}");
        self.notes.push(note);
    }

    /// Measures what finished calls hold, and what it costs to forget them.
    fn held(&mut self, row: &Row) -> Vec<Held> {
        let mut all = Vec::new();
        for who in self.lab.sip_servers() {
            match self.held_by(row, who) {
                Ok(held) => all.push(held),
                Err(e) => self.fail(row, who, &e),
            }
        }
        all
    }

    fn held_by(&mut self, row: &Row, who: Who) -> Result<Held, Stop> {
        let operations = self.operations(row);
        let (plan, _) = self.plan(row, who);
        let server = self.lab.start(who, plan.features)?;
        let mut load = self.lab.prepare(&server, &plan.load_for(who))?;
        let before = server.memory();
        load.begin().map_err(Stop::Fail)?;
        load.wait().map_err(Stop::Fail)?;
        let grown = server.memory().saturating_sub(before);
        enough(&load.finish().map_err(Stop::Fail)?)?;
        let forgetting = if self.args.quick {
            None
        } else {
            Some(cost_of_waiting(&server).as_secs_f64() * 1e6 / operations as f64)
        };
        Ok(Held {
            server: who,
            bytes_per_call: grown / operations,
            forgetting_us_per_call: forgetting,
        })
    }
}

/// Processor time that a server takes while nobody asks it anything, until all its timers have ended.
fn cost_of_waiting(server: &Server) -> Duration {
    let before = server.cpu();
    thread::sleep(TIMERS_END);
    server.cpu().since(before).total
}

fn all_well(sample: Sample) -> Result<Sample, Stop> {
    enough(&sample.load).map(|()| sample)
}

/// Figures of a run in which something failed are worth nothing.
fn enough(load: &Value) -> Result<(), Stop> {
    if load["succeeded"] == load["operations"] && load["succeeded"].as_u64() > Some(0) {
        return Ok(());
    }
    let failures = &load["failures"];
    Err(Stop::Fail(format!(
        "not all operations succeeded: {} of {}; failures: {failures}",
        load["succeeded"], load["operations"]
    )))
}
