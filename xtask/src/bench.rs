//! The benchmark and the lab, which are part of the server's binary.

use crate::packages;
use crate::run::{Run, target_directory};

/// Builds the binary and passes the arguments on to the benchmark, Kamailio installed first.
///
/// # Errors
/// When the build or the benchmark fails.
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    if let Err(why) = packages::install_peer() {
        // The benchmark says that it skips it.
        eprintln!("{why}");
    }
    lab(&["bench".to_owned()], args)
}

/// Builds the binary and passes the arguments on to the lab.
///
/// # Errors
/// When the build or the lab fails.
pub(crate) fn lab(words: &[String], args: &[String]) -> Result<(), String> {
    Run::new("cargo build --quiet --release --package sipolis").run()?;
    let binary = target_directory()?.join("release/sipolis");
    Run::at(&binary.display().to_string())
        .args(["lab"])
        .args(words)
        .args(args)
        .run()
}

/// Shows that the benchmark still runs; no figure of it is judged, and no Kamailio is needed.
///
/// # Errors
/// When the benchmark fails.
pub(crate) fn quick() -> Result<(), String> {
    let args = ["bench", "--quick", "--servers", "echo,sipolis"].map(String::from);
    lab(&args, &[])
}

/// Shows that every experiment still runs; no figure is judged, and no Kamailio is needed.
///
/// # Errors
/// When an experiment fails.
pub(crate) fn lab_quick() -> Result<(), String> {
    let data = target_directory()?.join("lab-quick");
    let args = ["run", "all", "--quick", "--data"].map(String::from);
    lab(&args, &[data.display().to_string()])
}
