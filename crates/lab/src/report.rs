//! The report: a Markdown file with pictures, and one self-contained page.

use std::process::ExitCode;

use clap::Args;

/// Where from and where to.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {}

pub(crate) fn run(_: &ReportArgs) -> ExitCode {
    todo!("filled in with the first record")
}
