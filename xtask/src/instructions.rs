//! Instruction counts of the hot operations: a regression shows on any machine, however noisy.

use crate::run::{Run, root};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A count may differ from the committed one by this share, in percent.
const TOLERANCE_PERCENT: f64 = 3.0;

/// Examples that hold the operations: package and example. Each prints its operations with `list`,
/// and runs one as often as told with `OPERATION COUNT`.
const PROGRAMS: [(&str, &str); 1] = [("sip-wire", "instructions")];

/// `[--update]`
///
/// # Errors
/// As [`compare`].
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    match args {
        [] => compare(),
        [flag] if flag == "--update" => update(),
        _ => Err(String::from("usage: cargo xtask instructions [--update]")),
    }
}

/// Holds the counts of this build against the committed ones.
///
/// # Errors
/// Operations that cost more, or so much less that the file should say so.
pub(crate) fn compare() -> Result<(), String> {
    let _ = (measure()?, TOLERANCE_PERCENT);
    Ok(())
}

fn update() -> Result<(), String> {
    let _ = (measure()?, root());
    Ok(())
}

fn measure() -> Result<BTreeMap<String, u64>, String> {
    let _ = (PROGRAMS, PathBuf::new(), Run::new(""));
    Err(String::from("not yet"))
}
