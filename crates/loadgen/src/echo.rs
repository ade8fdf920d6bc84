//! `sipolis echo`: the floor that a server's cost is compared with.
//!
//! Each message goes back as it came, over the sockets, the poller and the framing that the server
//! stands on too. `sipolis load` takes its own request for an answer when it comes back.

use std::{net::SocketAddr, process::ExitCode};

use clap::Args;
use net::{Options, echo::Echo, limits};

/// Sends every SIP message back as it came, over UDP and TCP.
#[derive(Args, Clone, Debug)]
pub struct EchoArgs {
    /// Where to listen, UDP and TCP; may be given more than once.
    #[arg(long, value_name = "ADDR:PORT", default_values = ["0.0.0.0:5060", "[::]:5060"])]
    listen: Vec<SocketAddr>,
    /// Threads, each with sockets of its own.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: u8,
}

/// Runs `sipolis echo` until it is killed.
#[must_use]
pub fn run(args: &EchoArgs) -> ExitCode {
    // What can't be raised shows when descriptors run out.
    let _ = limits::raise_descriptors();
    let echo = Echo::start(&args.listen, args.workers, Options::default());
    let done = echo.and_then(|echo| {
        for (udp, tcp) in echo.udp.iter().zip(&echo.tcp) {
            println!("echo on udp://{udp} and tcp://{tcp}");
        }
        echo.join()
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
