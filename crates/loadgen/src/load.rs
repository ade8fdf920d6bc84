//! `sipolis load`: one load against one server, from the command line or from a benchmark.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

pub use crate::args::LoadArgs;
use crate::{driver::Work, fleet::Fleet, summary::Summary};

/// Runs `sipolis load`: prints the figures, and fails if too little succeeded.
#[must_use]
pub fn run(args: &LoadArgs) -> ExitCode {
    match Load::new(args).and_then(|mut load| load.run(args.work())) {
        Ok(summary) => {
            print(&summary, args.json);
            let enough = summary.operations > 0 && summary.success_percent >= args.expect_success;
            if enough {
                return ExitCode::SUCCESS;
            }
            eprintln!(
                "error: {:.2} % succeeded, {} % were expected",
                summary.success_percent, args.expect_success
            );
        }
        Err(e) => eprintln!("error: {e}"),
    }
    ExitCode::FAILURE
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
}

/// A load that is ready to run.
pub struct Load {
    fleet: Fleet,
}

impl Load {
    /// Prepares a load.
    ///
    /// # Errors
    /// No users, a connection that can't be opened, callees that can't register.
    pub fn new(args: &LoadArgs) -> io::Result<Self> {
        let fleet = Fleet::prepare(&args.plan()?, &mut |_| {})?;
        Ok(Self { fleet })
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
