//! The benchmark's runner, which is part of the lab.

use crate::run::{Run, target_directory};

/// Builds the servers and the runner, and passes the arguments on.
///
/// # Errors
/// When the build or the runner fails.
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    Run::new("cargo build --quiet --release --package sipolis").run()?;
    let runner = target_directory()?.join("release/sipolis");
    Run::at(&runner.display().to_string())
        .args(["lab", "bench"])
        .args(args)
        .run()
}

/// Shows that the benchmark still runs; no figure of it is judged, and no Kamailio is needed.
///
/// # Errors
/// When the runner fails.
pub(crate) fn quick() -> Result<(), String> {
    command(&["--quick", "--servers", "echo,sipolis"].map(String::from))
}
