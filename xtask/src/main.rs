//! The project's own commands; `cargo xtask` lists them.

mod bench;
mod fuzz;
mod instructions;
mod layers;
mod licences;
mod packages;
mod run;
mod suite;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test                           everything that CI runs, packages installed first
  layers                         crate arrows, data-plane dependencies, unsafe, licences
  torture                        the RFC 4475 and RFC 5118 messages over UDP and TCP
  crash                          kill -9, torn journal and full disk under registrations
  interop [FILTER]               SIPp, baresip, sipsak and the hostile peers
  sim [--seeds A..B]             the core on a simulated network, by seed
  fuzz [--seconds N] [TARGET]    each fuzz target, or one, for N seconds (600)
  instructions [--update]        instruction counts against bench/instructions.toml
  bench [ARGS]                   server CPU per operation; arguments go to `sipolis lab bench`
  lab ARGS                       the experiments; arguments go to `sipolis lab`
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let done = match args.first().map(String::as_str) {
        Some("test") => suite::run(),
        Some("layers") => layers::check().and_then(|()| licences::check()),
        Some("torture") => suite::torture().run(),
        Some("crash") => suite::crash().run(),
        Some("interop") => suite::interop(rest).run(),
        Some("sim") => suite::sim(rest).run(),
        Some("fuzz") => fuzz::command(rest),
        Some("instructions") => instructions::command(rest),
        Some("bench") => bench::command(rest),
        Some("lab") => bench::lab(&[], rest),
        _ => Err(String::from(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
