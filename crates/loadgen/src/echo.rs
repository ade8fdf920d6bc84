//! `sipolis echo`: the floor that a server's cost is compared with.
//!
//! Each message goes back as it came, over the sockets, the poller and the framing that the server
//! stands on too. `sipolis load` takes its own request for an answer when it comes back.

use std::{io, net::SocketAddr, process::ExitCode, thread};

use clap::Args;
use net::{
    Counters, Options,
    echo::{Echo, Ender},
    limits,
};
use serde::Serialize;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::words::{counted, grouped};

/// Sends every SIP message back as it came, over UDP and TCP.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct EchoArgs {
    /// Where to listen, UDP and TCP; may be given more than once.
    #[arg(long, value_name = "ADDR:PORT", default_values = ["0.0.0.0:5060", "[::]:5060"])]
    listen: Vec<SocketAddr>,
    /// Threads, each with sockets of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    workers: u8,
    /// At the end, what it counted as JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sipolis echo                                  UDP and TCP 5060 on all addresses, one thread
  sipolis echo --listen 127.0.0.1:5070 --workers 2
  sipolis load options 127.0.0.1:5070           what it can do, in another terminal

Ctrl-C or TERM ends it; then it says what it has counted.";

/// What an echo server has counted. Messages that came; all of them went back unless the peer was gone.
#[derive(Clone, Copy, Debug, Serialize)]
struct Counted {
    udp_messages: u64,
    udp_unsent: u64,
    udp_overflowed: u64,
    tcp_messages: u64,
    tcp_unsent: u64,
    tcp_connections: u64,
    tcp_connections_open: u64,
}

/// Runs `sipolis echo` until it is told to end.
#[must_use]
pub fn run(args: &EchoArgs) -> ExitCode {
    match echo(args) {
        Ok(counted) => {
            counted.print(args.json);
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn echo(args: &EchoArgs) -> io::Result<Counted> {
    // What can't be raised shows when descriptors run out.
    let _ = limits::raise_descriptors();
    let echo = Echo::start(&args.listen, args.workers, Options::default()).map_err(|e| {
        let places: Vec<String> = args.listen.iter().map(SocketAddr::to_string).collect();
        io::Error::new(
            e.kind(),
            format!("{e}: {}; --listen names another place", places.join(", ")),
        )
    })?;
    end_on_signals(echo.ender())?;
    for (udp, tcp) in echo.udp.iter().zip(&echo.tcp) {
        let line = format!("echo on udp://{udp} and tcp://{tcp}");
        match args.json {
            true => eprintln!("{line}"),
            false => println!("{line}"),
        }
    }
    Ok(Counted::from(echo.join()?))
}

fn end_on_signals(ender: Ender) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let wait = move || signals.forever().for_each(|_| ender.end());
    thread::Builder::new()
        .name(String::from("signals"))
        .spawn(wait)?;
    Ok(())
}

impl From<Counters> for Counted {
    fn from(counters: Counters) -> Self {
        Self {
            udp_messages: counters.datagrams_received - counters.keepalives_received,
            udp_unsent: counters.datagrams_unsent,
            udp_overflowed: counters.datagrams_overflowed,
            tcp_messages: counters.messages_received,
            tcp_unsent: counters.messages_unsent,
            tcp_connections: counters.connections_accepted,
            tcp_connections_open: counters.connections_open,
        }
    }
}

impl Counted {
    fn print(&self, json: bool) {
        if json {
            let json = serde_json::to_string_pretty(self);
            println!("{}", json.expect("text keys and numbers only"));
            return;
        }
        println!("UDP  {}", counted(self.udp_messages, "message", "messages"));
        println!(
            "TCP  {} on {}, {} open at the end",
            counted(self.tcp_messages, "message", "messages"),
            counted(self.tcp_connections, "connection", "connections"),
            grouped(self.tcp_connections_open)
        );
        let lost = self.udp_unsent + self.tcp_unsent;
        if lost + self.udp_overflowed > 0 {
            println!(
                "lost {} on the way in (the kernel's buffer was full), {} on the way out",
                grouped(self.udp_overflowed),
                grouped(lost)
            );
        }
    }
}
