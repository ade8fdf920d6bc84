//! The instruments without the server, and the benchmark that compares servers with them.

mod bench;

use std::process::ExitCode;

use clap::Parser;
use loadgen::{echo, load};

/// Load generator, echo server and benchmark.
#[derive(Parser)]
#[command(version)]
enum Command {
    Load(load::LoadArgs),
    Echo(echo::EchoArgs),
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Load(args) => load::run(&args),
        Command::Echo(args) => echo::run(&args),
        Command::Bench(args) => bench::run(&args),
    }
}
