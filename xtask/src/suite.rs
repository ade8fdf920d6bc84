//! `cargo xtask test`: every check of the project, in the order in which a failure is cheapest to learn.

use crate::run::{Outcome, Run};
use crate::{bench, fuzz, instructions, layers, licences, packages};
use std::time::{Duration, Instant};

/// Seconds that each fuzz target runs here; by command it is ten minutes.
const FUZZ_SECONDS: u32 = 10;

/// Runs all steps, also after one has failed, and closes with the counts.
///
/// # Errors
/// When anything failed: the failing steps, each with the command that repeats it.
pub(crate) fn run() -> Result<(), String> {
    let mut report = Report::default();
    report.check("packages", "cargo xtask test", packages::install);
    report.check("format", "cargo fmt", format);
    report.run("lints", &lints());
    report.check("layers", "cargo xtask layers", || {
        layers::check().and_then(|()| licences::check())
    });
    report.tests("unit and flow tests", &unit());
    report.check("fuzz", "cargo xtask fuzz --seconds 10", || {
        fuzz::all(FUZZ_SECONDS)
    });
    report.run("simulation", &sim(&[]));
    report.tests("real peers, hostile peers, crashes", &interop(&[]));
    report.run(
        "demo",
        &Run::new("cargo run --package sipolis -- demo --once"),
    );
    report.check("benchmark runs", "cargo xtask bench --quick", bench::quick);
    report.check(
        "every experiment runs",
        "cargo xtask lab run all --quick --data target/lab-quick",
        bench::lab_quick,
    );
    report.check_or_skip(
        "instruction counts",
        "cargo xtask instructions",
        instructions::compare,
    );
    report.close()
}

/// The RFC 4475 and RFC 5118 table over the wire.
pub(crate) fn torture() -> Run {
    Run::new("cargo test --package interop --test torture")
}

/// Crashes and disk faults under registrations.
pub(crate) fn crash() -> Run {
    Run::new("cargo test --package interop --test crash")
}

/// Tests against real and hostile peers; the arguments choose among them.
pub(crate) fn interop(args: &[String]) -> Run {
    Run::new("cargo test --no-fail-fast --package interop --").args(args)
}

/// The simulation: 200 seeds, or as the arguments say.
pub(crate) fn sim(args: &[String]) -> Run {
    let run = Run::new("cargo run --release --package sim --");
    if args.is_empty() {
        run.args(["--seeds", "0..200"])
    } else {
        run.args(args)
    }
}

fn lints() -> Run {
    Run::new("cargo clippy --workspace --all-targets -- -D warnings")
}

fn unit() -> Run {
    Run::new("cargo test --no-fail-fast --workspace --exclude interop")
}

fn format() -> Result<(), String> {
    Run::new("cargo fmt --version")
        .read()
        .map_err(|_| String::from("cargo fmt is missing: rustup component add rustfmt clippy"))?;
    Run::new("cargo fmt --all --check").run()
}

/// What the steps came to.
#[derive(Default)]
struct Report {
    passed: u32,
    failed: u32,
    /// `name: reason`
    skipped: Vec<String>,
    /// Failed step and the command that repeats it.
    replays: Vec<(String, String)>,
    /// Step and how long it took.
    times: Vec<(String, Duration)>,
}

impl Report {
    /// A step that can find that it does not apply here, and then says why.
    fn check_or_skip(
        &mut self,
        step: &str,
        replay: &str,
        check: impl FnOnce() -> Result<Option<String>, String>,
    ) {
        let mut reason = None;
        self.check(step, replay, || {
            reason = check()?;
            Ok(())
        });
        if let Some(reason) = reason {
            self.passed -= 1;
            self.skipped.push(format!("{step}: {reason}"));
        }
    }

    /// A step that is one check.
    fn check(&mut self, step: &str, replay: &str, check: impl FnOnce() -> Result<(), String>) {
        let ok = self.timed(step, || match check() {
            Ok(()) => true,
            Err(why) => {
                println!("{why}");
                false
            }
        });
        self.count(step, replay, ok);
    }

    /// A command that passes or fails as one.
    fn run(&mut self, step: &str, run: &Run) {
        self.check(step, &run.to_string(), || run.run());
    }

    /// A command whose output counts tests.
    fn tests(&mut self, step: &str, run: &Run) {
        let outcome = self.timed(step, || run.watch());
        let outcome = outcome.unwrap_or_else(|why| {
            println!("{why}");
            Outcome {
                ok: false,
                lines: Vec::new(),
            }
        });
        let before = self.failed;
        for line in &outcome.lines {
            self.read(line);
        }
        if !outcome.ok {
            // A test program that does not build, or dies, reports no count.
            self.failed = self.failed.max(before + 1);
            self.replays.push((step.to_owned(), run.to_string()));
        }
    }

    /// Takes in a line of the test harness.
    fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += number_before(counts, " passed");
            self.failed += number_before(counts, " failed");
        } else if let Some(skip) = line.strip_prefix("skipped: ") {
            self.skipped.push(skip.to_owned());
        } else if let Some((name, reason)) = line.split_once(" ... ignored") {
            let name = name.trim_start_matches("test ");
            let reason = reason.trim_start_matches(", ");
            self.skipped.push(format!("{name}: {reason}"));
        }
    }

    fn count(&mut self, step: &str, replay: &str, ok: bool) {
        if ok {
            self.passed += 1;
        } else {
            self.failed += 1;
            self.replays.push((step.to_owned(), replay.to_owned()));
        }
    }

    fn timed<T>(&mut self, step: &str, work: impl FnOnce() -> T) -> T {
        println!("\n== {step}");
        let start = Instant::now();
        let result = work();
        self.times.push((step.to_owned(), start.elapsed()));
        result
    }

    fn close(self) -> Result<(), String> {
        println!();
        for (step, took) in &self.times {
            println!("{:>6.1} s  {step}", took.as_secs_f64());
        }
        for skip in &self.skipped {
            println!("skipped  {skip}");
        }
        for (step, replay) in &self.replays {
            println!("failed   {step}; again with: {replay}");
        }
        let skipped = self.skipped.len();
        println!(
            "{} passed, {} failed, {skipped} skipped",
            self.passed, self.failed
        );
        if self.failed == 0 {
            Ok(())
        } else {
            Err(String::from("not everything passed"))
        }
    }
}

/// The number that stands before `word`: 3 for `3 passed`.
fn number_before(text: &str, word: &str) -> u32 {
    let before = text.split(word).next().unwrap_or_default();
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn counts_and_skips_are_read_from_the_harness() {
        let mut report = Report::default();
        for line in [
            "test a ... ok",
            "test b ... ignored, needs a kernel with SCTP",
            "skipped: disk_full: mount is not permitted",
            "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            report.read(line);
        }
        assert_eq!((report.passed, report.failed), (17, 3));
        assert_eq!(
            report.skipped,
            [
                "b: needs a kernel with SCTP",
                "disk_full: mount is not permitted"
            ]
        );
    }
}
