//! `sipolis load`: one scenario against one server, from the command line or from a benchmark.

use std::{
    io::{self, Write as _},
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    process::ExitCode,
    str::FromStr,
    time::Duration,
};

use clap::{Args, ValueEnum};

use crate::{
    call::Calls,
    driver::{Driver, Setup, Work},
    io::Transport,
    report::Summary,
    requests::{Digest, Flows, Kind, Requests},
    users,
};

/// Puts load on a SIP server and measures what comes back.
#[derive(Args, Clone, Debug)]
pub struct LoadArgs {
    /// What to do, over and over.
    #[arg(value_enum)]
    scenario: Scenario,
    /// The server: HOST[:PORT], udp://HOST[:PORT] or tcp://HOST[:PORT].
    target: Target,
    /// Operations begun before it ends.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Seconds after which no operation begins; 10 unless --count is given.
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Operations begun a second; latency counts from when each was due. Without it, one begins when another ends.
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Operations under way at most.
    #[arg(long, value_name = "N", default_value_t = 64)]
    outstanding: usize,
    /// Users user00000, user00001, ...; calls are made by every other one to the next.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    users: usize,
    /// Users from a file instead: its first line names the columns user, password and domain.
    #[arg(long, value_name = "FILE")]
    users_file: Option<PathBuf>,
    /// Password of each user; {user} stands for the user's name.
    #[arg(long, default_value = "{user}")]
    password: String,
    /// Domain of the users, the target's host unless given.
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// What to do about challenges.
    #[arg(long, value_enum, default_value = "answer")]
    digest: Digest,
    /// TCP connections or UDP sockets: 100 or 1 unless given. Calls use as many again for the callees.
    #[arg(long, value_name = "N")]
    connections: Option<usize>,
    /// Open a TCP connection for each operation and close it after.
    #[arg(long, conflicts_with = "connections")]
    connection_each: bool,
    /// Transport of the callees, the callers' unless given.
    #[arg(long, value_enum)]
    callee_transport: Option<TransportName>,
    /// Seconds that one transaction may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 32.0)]
    timeout: f64,
    /// Seconds that a registration is asked for.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    expires: u32,
    /// Milliseconds that a callee rings.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    ring: u64,
    /// Milliseconds that a call lasts.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    hold: u64,
    /// Bytes of body in an OPTIONS.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    body: usize,
    /// Fail when fewer operations succeed.
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0)]
    expect_success: f64,
    /// Write the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// What an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Scenario {
    /// A user registers, or refreshes.
    Register,
    /// A user asks the server for its abilities.
    Options,
    /// A user calls another, who answers; the caller hangs up.
    Call,
}

/// A transport by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TransportName {
    Udp,
    Tcp,
}

impl From<TransportName> for Transport {
    fn from(name: TransportName) -> Self {
        match name {
            TransportName::Udp => Self::Udp,
            TransportName::Tcp => Self::Tcp,
        }
    }
}

/// Where the server is.
#[derive(Clone, Debug)]
struct Target {
    transport: Transport,
    address: SocketAddr,
    host: String,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (transport, rest) = if let Some(rest) = text.strip_prefix("tcp://") {
            (Transport::Tcp, rest)
        } else {
            (Transport::Udp, text.strip_prefix("udp://").unwrap_or(text))
        };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = port.parse().map_err(|_| format!("{port:?} is no port"))?;
                (host, port)
            }
            _ => (rest, 5060),
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let mut addresses = (bare, port)
            .to_socket_addrs()
            .map_err(|e| format!("{bare}: {e}"))?;
        Ok(Self {
            transport,
            address: addresses.next().ok_or("has no address")?,
            host: host.to_owned(),
        })
    }
}

/// Runs `sipolis load`: prints the figures, and fails if too little succeeded.
#[must_use]
pub fn run(args: &LoadArgs) -> ExitCode {
    match Load::new(args).and_then(|mut load| load.run(args.work())) {
        Ok(summary) => {
            print(&summary, args.json);
            let enough = summary.operations > 0 && summary.success_percent >= args.expect_success;
            if enough {
                return ExitCode::SUCCESS;
            }
            eprintln!(
                "error: {:.2} % succeeded, {} % were expected",
                summary.success_percent, args.expect_success
            );
        }
        Err(e) => eprintln!("error: {e}"),
    }
    ExitCode::FAILURE
}

/// Writes the figures. Whoever closed the output does not want them.
fn print(summary: &Summary, json: bool) {
    let mut out = io::stdout().lock();
    let _ = if json {
        let json = serde_json::to_string_pretty(summary);
        writeln!(
            out,
            "{}",
            json.expect("a summary has only text keys and numbers")
        )
    } else {
        writeln!(out, "{summary}")
    };
}

impl LoadArgs {
    fn work(&self) -> Work {
        let seconds = self.duration.or(self.count.is_none().then_some(10.0));
        Work {
            operations: self.count,
            duration: seconds.map(Duration::from_secs_f64),
            rate: self.rate,
        }
    }

    fn flows(&self, transport: Transport) -> usize {
        let default = match transport {
            Transport::Udp => 1,
            Transport::Tcp => 100,
        };
        self.connections.unwrap_or(default).max(1)
    }
}

/// A scenario that is ready to run: users made, connections open, callees registered.
pub struct Load {
    driver: Driver,
    scenario: Ready,
    rate: Option<f64>,
}

enum Ready {
    Requests(Requests),
    Calls(Calls),
}

impl Load {
    /// Prepares a scenario.
    ///
    /// # Errors
    /// No users, a connection that can't be opened, callees that can't register.
    pub fn new(args: &LoadArgs) -> io::Result<Self> {
        // What can't be raised shows when descriptors run out.
        let _ = net::limits::raise_descriptors();
        let domain = args.domain.as_deref().unwrap_or(&args.target.host);
        let users = match &args.users_file {
            Some(file) => users::from_csv(file, domain)?,
            None => users::numbered(args.users, domain, &args.password),
        };
        if users.len() < 2 {
            return Err(io::Error::other("at least two users are needed"));
        }
        let mut driver = Driver::new(Setup {
            target: args.target.address,
            users,
            outstanding: args.outstanding.max(1),
            timeout: Duration::from_secs_f64(args.timeout.max(0.1)),
        })?;
        let scenario = match args.scenario {
            Scenario::Register => Ready::Requests(requests(args, &mut driver, Kind::Register)?),
            Scenario::Options => Ready::Requests(requests(args, &mut driver, Kind::Options)?),
            Scenario::Call => Ready::Calls(calls(args, &mut driver)?),
        };
        Ok(Self {
            driver,
            scenario,
            rate: args.rate,
        })
    }

    /// Begins so many operations and waits for their end.
    ///
    /// # Errors
    /// The poller fails.
    pub fn operations(&mut self, count: u64) -> io::Result<Summary> {
        self.run(Work {
            operations: Some(count),
            duration: None,
            rate: self.rate,
        })
    }

    fn run(&mut self, work: Work) -> io::Result<Summary> {
        let statistics = match &mut self.scenario {
            Ready::Requests(requests) => self.driver.run(requests, work)?,
            Ready::Calls(calls) => self.driver.run(calls, work)?,
        };
        Ok(statistics.summary())
    }
}

fn requests(args: &LoadArgs, driver: &mut Driver, kind: Kind) -> io::Result<Requests> {
    let transport = args.target.transport;
    let flows = if args.connection_each && transport == Transport::Tcp {
        Flows::Each
    } else {
        Flows::Persistent(driver.open(transport, args.flows(transport))?)
    };
    let mut requests = Requests::new(kind, transport, flows, 0..driver.users.len());
    requests.digest = args.digest;
    requests.expires_s = args.expires;
    requests.body = vec![b'x'; args.body];
    Ok(requests)
}

/// Opens the flows of both sides and registers the callees.
fn calls(args: &LoadArgs, driver: &mut Driver) -> io::Result<Calls> {
    let transport = args.target.transport;
    let callee_transport = args.callee_transport.map_or(transport, Transport::from);
    let caller_flows = driver.open(transport, args.flows(transport))?;
    let callee_flows = driver.open(callee_transport, args.flows(callee_transport))?;
    let callees = (1..driver.users.len()).step_by(2);
    let flows = Flows::Persistent(callee_flows.clone());
    let mut register = Requests::new(Kind::Register, callee_transport, flows, callees);
    register.digest = args.digest;
    let work = Work {
        operations: Some(register.members() as u64),
        duration: None,
        rate: None,
    };
    let summary = driver.run(&mut register, work)?.summary();
    if summary.succeeded < summary.operations {
        let text = format!("not all callees could register:\n{summary}");
        return Err(io::Error::other(text));
    }
    let mut calls = Calls::new((transport, caller_flows), (callee_transport, callee_flows));
    calls.digest = args.digest != Digest::None;
    calls.ring_us = args.ring * 1000;
    calls.hold_us = args.hold * 1000;
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_may_name_transport_and_port_and_need_not() {
        let target = |text: &str| text.parse::<Target>().unwrap();
        assert_eq!(
            target("127.0.0.1").address,
            "127.0.0.1:5060".parse().unwrap()
        );
        let tcp = target("tcp://[::1]:5070");
        assert_eq!(tcp.address, "[::1]:5070".parse().unwrap());
        assert_eq!((tcp.transport, &*tcp.host), (Transport::Tcp, "[::1]"));
        assert_eq!(target("::1").address, "[::1]:5060".parse().unwrap());
        assert!("127.0.0.1:x".parse::<Target>().is_err());
    }
}
