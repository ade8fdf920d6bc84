//! `sipolis echo`: the floor that a server's cost is compared with.
//!
//! For each request it sends the same bytes back with the first line replaced by
//! `SIP/2.0 200 OK`: a message of the same size, that a client takes for an answer. It reads no
//! more of a message than its end, and over TCP not more than Content-Length.

use std::{io, net::SocketAddr, process::ExitCode, str::FromStr, thread};

use clap::Args;

use crate::{
    io::{Inbox, Io, Transport},
    message::{self, Put},
};

/// Answers every request with itself as a 200.
#[derive(Args, Clone, Debug)]
pub struct EchoArgs {
    /// Where to listen: udp://ADDR:PORT or tcp://ADDR:PORT; may be given more than once.
    #[arg(long, value_name = "URL", default_values = ["udp://127.0.0.1:5060", "tcp://127.0.0.1:5060"])]
    listen: Vec<Listen>,
    /// Threads, each with sockets of its own.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
}

#[derive(Clone, Copy, Debug)]
struct Listen(Transport, SocketAddr);

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (transport, address) = match text.split_once("://") {
            Some(("udp", address)) => (Transport::Udp, address),
            Some(("tcp", address)) => (Transport::Tcp, address),
            _ => return Err("udp://ADDR:PORT or tcp://ADDR:PORT is wanted".into()),
        };
        let address = address.parse().map_err(|e| format!("{address}: {e}"))?;
        Ok(Self(transport, address))
    }
}

/// Runs `sipolis echo` until it is killed.
#[must_use]
pub fn run(args: &EchoArgs) -> ExitCode {
    let loops: Result<Vec<_>, _> = (0..args.workers.max(1)).map(|_| open(args)).collect();
    let loops = match loops {
        Ok(loops) => loops,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    let threads: Vec<_> = loops
        .into_iter()
        .map(|io| thread::spawn(move || echo(io)))
        .collect();
    for listen in &args.listen {
        println!("echo on {:?} {}", listen.0, listen.1);
    }
    for thread in threads {
        if let Ok(Err(e)) = thread.join() {
            eprintln!("error: {e}");
        }
    }
    ExitCode::FAILURE
}

fn open(args: &EchoArgs) -> io::Result<Io> {
    let mut io = Io::new()?;
    for Listen(transport, address) in &args.listen {
        match transport {
            Transport::Udp => io.udp(*address),
            Transport::Tcp => io.listen(*address),
        }
        .map_err(|e| io::Error::new(e.kind(), format!("{address}: {e}")))?;
    }
    Ok(io)
}

fn echo(mut io: Io) -> io::Result<()> {
    let (mut ready, mut inbox) = (Vec::new(), Inbox::new());
    let mut answer = Vec::new();
    loop {
        io.wait(None, &mut ready)?;
        for flow in ready.drain(..) {
            loop {
                io.read(flow, &mut inbox);
                for (request, from) in inbox.messages() {
                    if answer_of(request, &mut answer) {
                        io.send(flow, from, &answer);
                    }
                }
                io.flush();
                if inbox.closed {
                    io.close(flow);
                }
                if inbox.closed || !inbox.more {
                    break;
                }
            }
        }
    }
}

/// Writes the answer; `false` for what is no request.
fn answer_of(request: &[u8], answer: &mut Vec<u8>) -> bool {
    let Some(line) = memchr::memchr(b'\n', request) else {
        return false;
    };
    if message::code(request).is_some() || request.starts_with(b"ACK ") {
        return false;
    }
    answer.clear();
    answer.put(&[b"SIP/2.0 200 OK\r\n", &request[line + 1..]]);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_and_a_response_is_not() {
        let mut answer = Vec::new();
        assert!(answer_of(
            b"OPTIONS sip:h SIP/2.0\r\nVia: x\r\n\r\n",
            &mut answer
        ));
        assert_eq!(answer, b"SIP/2.0 200 OK\r\nVia: x\r\n\r\n");
        assert!(!answer_of(b"SIP/2.0 200 OK\r\n\r\n", &mut answer));
        assert!(!answer_of(b"junk", &mut answer));
    }
}
