//! `sim --seeds FROM..TO` runs many seeds, `sim --seed N --trace` shows one.

use sim::{Outcome, Plan, Stats, run};
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

struct Options {
    from: u64,
    to: u64,
    phones: Option<usize>,
    trace: bool,
    threads: usize,
}

const USAGE: &str = "usage: sim [--seeds FROM..TO | --seed N] [--phones N] [--threads N] [--trace]

  --seeds FROM..TO  runs the seeds from FROM to below TO; 0..200 without it
  --seed N          runs one seed
  --phones N        so many phones instead of what the seed says
  --threads N       runs so many seeds at a time; 2 without it
  --trace           prints every message and event";

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(options) => run_all(&options),
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        from: 0,
        to: 200,
        phones: None,
        trace: false,
        threads: 2,
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--seeds" => {
                let range = value()?;
                let (from, to) = range.split_once("..").ok_or("--seeds needs FROM..TO")?;
                (options.from, options.to) = (number(from)?, number(to)?);
            }
            "--seed" => {
                options.from = number(&value()?)?;
                options.to = options.from + 1;
            }
            "--phones" => options.phones = Some(number(&value()?)? as usize),
            "--threads" => options.threads = number(&value()?)? as usize,
            "--trace" => options.trace = true,
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    Ok(options)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

fn run_all(options: &Options) -> ExitCode {
    let next = AtomicU64::new(options.from);
    let worker = || {
        let mut failed = Vec::new();
        let mut total = Stats::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= options.to {
                return (failed, total);
            }
            match run_one(seed, options) {
                Some((stats, true)) => total.add(&stats),
                Some((stats, false)) => {
                    total.add(&stats);
                    failed.push(seed);
                }
                None => failed.push(seed),
            }
        }
    };
    let (mut failed, mut total) = (Vec::new(), Stats::default());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads.max(1))
            .map(|_| scope.spawn(worker))
            .collect();
        for thread in threads {
            let (seeds, stats) = thread.join().expect("a run that panics is caught");
            failed.extend(seeds);
            total.add(&stats);
        }
    });
    failed.sort_unstable();
    println!(
        "{} seeds, {} failed {failed:?}",
        options.to - options.from,
        failed.len()
    );
    println!("{total:#?}");
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What it was made of and whether all was well, `None` after a panic; the faults and the command that replays it are printed.
fn run_one(seed: u64, options: &Options) -> Option<(Stats, bool)> {
    let plan = Plan::new(seed, options.phones);
    let Ok(Outcome { faults, stats, .. }) = catch_unwind(|| run(&plan, options.trace)) else {
        eprintln!("seed {seed} panicked");
        replay(seed, options);
        return None;
    };
    if faults.is_empty() {
        return Some((stats, true));
    }
    eprintln!("seed {seed}: {} faults; {plan:?}", faults.len());
    faults
        .iter()
        .take(10)
        .for_each(|fault| eprintln!("  {fault}"));
    replay(seed, options);
    Some((stats, false))
}

fn replay(seed: u64, options: &Options) {
    let phones = options
        .phones
        .map_or(String::new(), |n| format!(" --phones {n}"));
    eprintln!("  replay: cargo run --release -p sim -- --seed {seed}{phones} --trace");
}
