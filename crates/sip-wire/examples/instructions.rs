//! Runs one case of the benchmark COUNT times and nothing else, so that its instructions can be counted from outside
//! (`valgrind --tool=callgrind`). One operation is the difference of two runs divided by the difference of their counts.
//!
//! `cargo run --release -p sip-wire --example instructions CASE COUNT`; `list` names the cases.

#![allow(clippy::disallowed_methods, reason = "a program takes its arguments")]

#[path = "../benches/cases/mod.rs"]
mod cases;

use cases::{CASES, State};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let case = args.next().unwrap_or_default();
    let count = args.next().and_then(|count| count.parse::<u64>().ok());
    if case == "list" {
        CASES.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let work = CASES.iter().find(|(name, _)| *name == case);
    let (Some((_, work)), Some(count)) = (work, count) else {
        eprintln!("usage: instructions CASE COUNT; `instructions list` names the cases");
        return ExitCode::FAILURE;
    };
    let mut state = State::new();
    for _ in 0..count {
        work(&mut state);
    }
    ExitCode::SUCCESS
}
