//! `sipolis serve`: the server.

mod banner;
mod domains;
mod host;
mod process;
mod running;
mod settings;
mod source;

pub(crate) use running::{Running, Setup};
pub(crate) use settings::wanted;
pub(crate) use source::Source;

use crate::failure::Result;
use std::path::PathBuf;

/// Runs the server
///
/// Needs no configuration: listens on UDP and TCP 5060 of all addresses, and keeps its data in ./sipolis-data. TERM and INT end it in order; HUP makes
/// it read its configuration again.
#[derive(clap::Args, Default, Clone)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Settings file; every key is in docs/configuration.md
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Data directory, made when it is not there [default: ./sipolis-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Where to listen, again for each place [default: UDP and TCP 5060 everywhere]
    #[arg(long, value_name = "udp://ADDR:PORT")]
    pub(crate) listen: Vec<config::Listen>,
    /// Domain to serve, again for each; the first is the primary one [default: those of the users]
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Vec<config::Domain>,
    /// Worker threads [default: one for every core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=128))]
    pub(crate) workers: Option<u8>,
    /// Host to name in Via and Record-Route, for a server behind a NAT or in a cloud
    #[arg(long, value_name = "HOST")]
    pub(crate) advertise: Option<config::Domain>,
    /// Digest authentication; off is for benchmarks and closed networks
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub(crate) auth: Option<bool>,
    /// Measure how long each stage of the work takes; `sipolis status` shows it
    #[arg(long)]
    pub(crate) stage_times: bool,
}

const EXAMPLES: &str = "\
Examples:
  sipolis serve
  sipolis serve --domain example.com --data /var/lib/sipolis
  sipolis serve --listen udp://192.0.2.1:5060 --listen tcp://192.0.2.1:5060
  sipolis serve --config /etc/sipolis.toml";

fn on_or_off(text: &str) -> std::result::Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(String::from("say on or off")),
    }
}

/// Runs it until it is told to end.
pub(crate) fn run(arguments: Arguments) -> Result {
    let mut running = Setup::new(Source::new(arguments))?.start()?;
    // Whoever started it may not read what it says.
    let _ = banner::print(&running);
    running.serve();
    running.stop()
}
