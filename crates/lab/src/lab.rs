//! Runs experiments: servers and load as child processes, and what they used.

use std::process::ExitCode;

use clap::Args;

/// What to run, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// Experiments by name, or `all`.
    #[arg(required = true)]
    names: Vec<String>,
    /// In a smaller size, each under a minute: shows that it works.
    #[arg(long)]
    quick: bool,
}

/// The experiment's means: the servers, the load, the machine.
pub(crate) struct Lab {
    pub(crate) quick: bool,
}

pub(crate) fn list() -> ExitCode {
    for experiment in crate::experiments::ALL {
        println!("{}  {}", experiment.name, experiment.title);
    }
    ExitCode::SUCCESS
}

pub(crate) fn run(_: &RunArgs) -> ExitCode {
    todo!("filled in with the first experiment")
}
