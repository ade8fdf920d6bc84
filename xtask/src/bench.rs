//! The benchmark's runner, which the load generator's crate holds.

use crate::run::Run;

/// Passes the arguments on.
///
/// # Errors
/// When the runner fails.
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    Run::new("cargo run --release --package loadgen -- bench")
        .args(args)
        .run()
}

/// Shows that the benchmark still runs; no figure of it is judged.
///
/// # Errors
/// When the runner fails.
pub(crate) fn quick() -> Result<(), String> {
    command(&[String::from("--quick")])
}
