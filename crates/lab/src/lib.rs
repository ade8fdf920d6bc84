//! The measurement lab: every experiment of the papers, repeated on the user's own machine, side by side with the rival.
//!
//! An [`experiment::Experiment`] measures and returns a [`record::Measured`]; the runner keeps it as a [`record::Record`], one file each;
//! the report is made from those files alone, so that it can be made again without measuring again. Servers and load are
//! child processes of this same program, so that each command in a record can be typed by hand.

mod bench;
mod chart;
mod child;
mod experiment;
mod experiments;
mod held;
mod lab;
mod lifetime;
mod load;
mod machine;
mod mixes;
mod record;
mod report;
mod runner;
mod sample;
mod sampler;
mod search;
mod servers;
mod sustained;

use std::process::ExitCode;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  sipolis lab list                          what there is to repeat
  sipolis lab run register-rate --quick     one, in some seconds: shows that it works
  sipolis lab run all --peer kamailio       all, beside Kamailio; half an hour
  sipolis lab report                        pictures of it, in docs/lab";

/// Repeats the papers' experiments on this machine and reports.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct LabArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// Names every experiment, and what it repeats.
    List(runner::ListArgs),
    /// Runs experiments and keeps what they measured.
    Run(runner::RunArgs),
    /// Makes the report from what is kept.
    Report(report::ReportArgs),
    /// Compares servers by the processor time of an operation.
    Bench(bench::BenchArgs),
}

/// Runs `sipolis lab`.
#[must_use]
pub fn run(args: &LabArgs) -> ExitCode {
    match &args.command {
        Command::List(args) => runner::list(args),
        Command::Run(args) => runner::run(args),
        Command::Report(args) => report::run(args),
        Command::Bench(args) => bench::run(args),
    }
}
