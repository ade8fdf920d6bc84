//! One SIP server for a city: the command line.

mod commands;
mod csv;
mod data;
mod demo;
mod failure;
mod password;
mod serve;
mod terminal;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// One SIP server for a city: registrar and proxy over UDP and TCP.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  sipolis demo                          watch two phones register and call each other
  sipolis serve                         run the server, no configuration needed
  sipolis user add alice@example.com    add a user, while it runs or before
  sipolis status                        what the server is doing
  sipolis load options 127.0.0.1        what a SIP server can do, this one or another
  sipolis echo                          the least that a server can do, to compare with";

#[derive(Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Demo(demo::Arguments),
    User(commands::user::Arguments),
    Bindings(commands::bindings::Arguments),
    Status(commands::status::Arguments),
    Check(commands::check::Arguments),
    Load(Box<loadgen::load::LoadArgs>),
    Echo(loadgen::echo::EchoArgs),
    Lab(lab::LabArgs),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::User(arguments) => commands::user::run(arguments),
        Command::Bindings(arguments) => commands::bindings::run(&arguments),
        Command::Status(arguments) => commands::status::run(&arguments),
        Command::Check(arguments) => commands::check::run(&arguments),
        Command::Load(arguments) => return loadgen::load::run(&arguments),
        Command::Echo(arguments) => return loadgen::echo::run(&arguments),
        Command::Lab(arguments) => return lab::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
