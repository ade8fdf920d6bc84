//! The fuzz targets of fuzz/, which build with the stable compiler.

use crate::run::{Run, root};

/// Seconds for each target when the command line names none: ten minutes.
const SECONDS: u32 = 600;

/// `[--seconds N] [TARGET]`
///
/// # Errors
/// A word that is not understood, an unknown target, or a target that found something.
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    let (seconds, rest) = match args {
        [flag, seconds, rest @ ..] if flag == "--seconds" => {
            let seconds = seconds.parse();
            (seconds.map_err(|_| "--seconds takes a whole number")?, rest)
        }
        rest => (SECONDS, rest),
    };
    match rest {
        [] => all(seconds),
        [target] => one(target, seconds),
        _ => Err(String::from(
            "usage: cargo xtask fuzz [--seconds N] [TARGET]",
        )),
    }
}

/// Every target in turn.
///
/// # Errors
/// The first target that found something.
pub(crate) fn all(seconds: u32) -> Result<(), String> {
    let targets = targets()?;
    targets.iter().try_for_each(|target| one(target, seconds))
}

/// Runs one target on the committed corpus; what it adds stays in fuzz/target, and what fails it is named in its output.
fn one(target: &str, seconds: u32) -> Result<(), String> {
    let targets = targets()?;
    if !targets.iter().any(|known| known == target) {
        return Err(format!(
            "no fuzz target {target}; there are {}",
            targets.join(", ")
        ));
    }
    let found = root().join("fuzz/target/corpus").join(target);
    std::fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
    let own = format!("fuzz/corpus/{target}");
    // Whatever begins with messages begins with the parser's.
    let seed = if root().join(&own).exists() {
        own.as_str()
    } else {
        "fuzz/corpus/parse"
    };
    println!("{target}, {seconds} s");
    let run = Run::new("cargo run --quiet --release --config fuzz/coverage.toml --manifest-path fuzz/Cargo.toml --bin")
        .args([target, "--", &format!("fuzz/target/corpus/{target}"), seed])
        .args([&format!("-max_total_time={seconds}"), "-print_final_stats=1"])
        .args(["-timeout=10", "-artifact_prefix=fuzz/target/"])
        // The short form of the tests repeats itself, so that a change fails for what it changes; a long one explores.
        .args((seconds <= 10).then_some("-seed=1"));
    let outcome = run.capture()?;
    let stats = outcome
        .lines
        .iter()
        .filter(|line| line.starts_with("stat::"));
    stats.for_each(|line| println!("{line}"));
    if outcome.ok {
        return Ok(());
    }
    // What is neither progress nor the dictionary.
    let told = outcome
        .lines
        .iter()
        .filter(|line| !line.starts_with(['#', '"']));
    let told: Vec<&str> = told.map(String::as_str).collect();
    let input = outcome
        .lines
        .iter()
        .find_map(|line| line.split_once("Test unit written to "));
    let input = input.map_or("INPUT", |(_, path)| path);
    Err(format!(
        "{}\nfuzz target {target} failed; again with:\n\
         cargo --config fuzz/coverage.toml run --release --manifest-path fuzz/Cargo.toml --bin {target} -- {input}",
        told.join("\n")
    ))
}

fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder);
    let entries = entries.map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}
