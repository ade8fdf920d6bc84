//! `sipolis load`: one load against one server, from the command line or from a benchmark.

use std::{
    io::{self, Read as _, Write as _},
    process::ExitCode,
};

pub use crate::args::LoadArgs;
use crate::{
    driver::Work,
    fleet::Fleet,
    io::Transport,
    pace::Pace,
    plan::{Lifetime, Plan},
    summary::{Expected, Summary},
};

/// Runs `sipolis load`: prints the figures, and fails if a bound does not hold.
///
/// Exit status: 0 all bounds held, 1 a bound was missed, 2 it could not run.
#[must_use]
pub fn run(args: &LoadArgs) -> ExitCode {
    match carry_out(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::from(2)
        }
    }
}

/// Whether all bounds held.
fn carry_out(args: &LoadArgs) -> Result<bool, String> {
    if args.connections.processes > 1 {
        return Err(String::from("--processes is not built yet"));
    }
    if args.pace.find_max.is_some() {
        return Err(String::from("--find-max is not built yet"));
    }
    let plan = args.plan()?;
    let mut load = Load::prepare(plan).map_err(|e| e.to_string())?;
    if args.output.wait {
        eprintln!("sipolis load: ready");
        let mut line = String::new();
        let _ = io::stdin().read_line(&mut line); // its end is as good as a line
    }
    let mut summary = load.run(args.work()).map_err(|e| e.to_string())?;
    summary.describe(args, &load.plan);
    print(&summary, args.output.json);
    if args.output.stay {
        eprintln!("sipolis load: done");
        let _ = io::copy(&mut io::stdin().lock().take(u64::MAX), &mut io::sink());
    }
    let missed = summary.expectations.iter().filter(|bound| !bound.held);
    missed.clone().for_each(|bound| {
        eprintln!("missed: {}, found {}", bound.text, bound.written);
    });
    Ok(missed.count() == 0)
}

/// Writes the figures. Whoever closed the output does not want them.
fn print(summary: &Summary, json: bool) {
    let mut out = io::stdout().lock();
    let _ = if json {
        let json = serde_json::to_string_pretty(summary);
        writeln!(
            out,
            "{}",
            json.expect("a summary has only text keys and numbers")
        )
    } else {
        writeln!(out, "{summary}")
    };
    let _ = out.flush();
}

/// A load that is ready to run.
pub struct Load {
    plan: Plan,
    fleet: Fleet,
}

impl Load {
    /// Prepares a load.
    ///
    /// # Errors
    /// No users, a connection that can't be opened, callees that can't register.
    pub fn new(args: &LoadArgs) -> io::Result<Self> {
        Self::prepare(args.plan().map_err(io::Error::other)?)
    }

    fn prepare(plan: Plan) -> io::Result<Self> {
        let fleet = Fleet::prepare(&plan, &mut |_| {})?;
        Ok(Self { plan, fleet })
    }

    /// Begins so many operations and waits for their end.
    ///
    /// # Errors
    /// The poller fails.
    pub fn operations(&mut self, count: u64) -> io::Result<Summary> {
        self.run(Work {
            operations: Some(count),
            duration: None,
        })
    }

    fn run(&mut self, work: Work) -> io::Result<Summary> {
        Ok(self.fleet.run(work, &mut |_| {})?.summary())
    }
}

impl Summary {
    /// Says what was done, and whether the bounds hold.
    fn describe(&mut self, args: &LoadArgs, plan: &Plan) {
        let words = std::env::args_os().skip(1);
        let words: Vec<_> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        self.command = format!("sipolis {}", words.join(" "));
        args.scenario.name().clone_into(&mut self.scenario);
        self.transport = match plan.connections.transport {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
        };
        self.target = format!("{}://{}", self.transport, plan.target.address);
        self.lifetime = plan.connections.lifetime.to_string();
        self.threads = args.connections.threads;
        self.processes = args.connections.processes;
        for (part, planned) in self.parts.iter_mut().zip(&plan.parts) {
            part.offered_per_second = planned.pace.offered();
        }
        let offered: Option<Vec<f64>> = self.parts.iter().map(|p| p.offered_per_second).collect();
        self.offered_per_second = offered.map(|rates| rates.iter().sum());
        self.expectations = args
            .expectations()
            .iter()
            .map(|bound| {
                let (held, found) = bound.check(self);
                Expected {
                    text: bound.to_string(),
                    held,
                    found,
                    written: bound.written(found),
                }
            })
            .collect();
    }
}

impl Pace {
    /// Operations a second that are due, on average.
    fn offered(&self) -> Option<f64> {
        match self {
            Self::Outstanding(_) => None,
            Self::Open { rate, .. } => Some(rate.mean()),
        }
    }
}

impl std::fmt::Display for Lifetime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Persistent => f.write_str("persistent"),
            Self::PersistentOpen => f.write_str("persistent-open"),
            Self::Operations(count) => write!(f, "{count}"),
            Self::Dialog => f.write_str("dialog"),
            Self::Transaction => f.write_str("transaction"),
        }
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+[]".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
