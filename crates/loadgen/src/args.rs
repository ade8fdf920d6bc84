//! The command line of `sipolis load`, and the plan that it makes.

use std::{io, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use net::source_address;

use crate::{
    distribution::Distribution,
    driver::Work,
    io::Transport,
    pace::{Pace, Rate},
    plan::{CallPlan, Connections, Kind, Lifetime, PartPlan, Plan},
    requests::Digest,
    stop::Stop,
    target::Target,
    users::Users,
};

/// Puts load on a SIP server and measures what comes back.
#[derive(Args, Clone, Debug)]
pub struct LoadArgs {
    /// What to do, over and over.
    #[arg(value_enum)]
    pub(crate) scenario: Scenario,
    /// The server: HOST[:PORT], udp://HOST[:PORT] or tcp://HOST[:PORT].
    pub(crate) target: Target,
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
    pub(crate) expect_success: f64,
    /// Write the figures as JSON.
    #[arg(long)]
    pub(crate) json: bool,
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

impl LoadArgs {
    pub(crate) fn work(&self) -> Work {
        let seconds = self.duration.or(self.count.is_none().then_some(10.0));
        Work {
            operations: self.count,
            duration: seconds.map(Duration::from_secs_f64),
        }
    }

    /// The whole load.
    ///
    /// # Errors
    /// A file can't be read, or the words contradict each other.
    pub(crate) fn plan(&self) -> io::Result<Plan> {
        let domain = self.domain.as_deref().unwrap_or(&self.target.host);
        let users = match &self.users_file {
            Some(file) => Users::from_csv(file, domain)?,
            None => Users::numbered(0, self.users, domain, &self.password),
        };
        if users.len() < 2 {
            return Err(io::Error::other("at least two users are needed"));
        }
        let transport = self.target.transport;
        let default = match transport {
            Transport::Udp => 1,
            Transport::Tcp => 100,
        };
        let lifetime = match self.connection_each {
            true => Lifetime::Transaction,
            false => Lifetime::Persistent,
        };
        Ok(Plan {
            target: self.target.clone(),
            parts: vec![PartPlan {
                name: self.scenario.name().to_owned(),
                users: 0..users.len(),
                kind: self.kind(),
                pace: match self.rate {
                    Some(rate) => Pace::Open {
                        rate: Rate::Constant(rate),
                        poisson: false,
                    },
                    None => Pace::Outstanding(self.outstanding.max(1)),
                },
            }],
            connections: Connections {
                transport,
                callee_transport: self.callee_transport.map_or(transport, Transport::from),
                lifetime,
                count: self.connections.unwrap_or(default).max(1),
                sources: vec![source_address(self.target.address)?],
            },
            count: self.work().operations,
            duration: self.work().duration,
            timeout: Duration::from_secs_f64(self.timeout.max(0.1)),
            outstanding_max: 100_000,
            threads: 1,
            warm_up: 0,
            stop: Stop::default(),
            users,
        })
    }

    fn kind(&self) -> Kind {
        match self.scenario {
            Scenario::Register => Kind::Register {
                digest: self.digest,
                expires_s: self.expires,
                first: false,
            },
            Scenario::Options => Kind::Options { body: self.body },
            Scenario::Call => Kind::Call(CallPlan {
                digest: self.digest,
                ring: Distribution::Constant(self.ring * 1000),
                talk: Distribution::Constant(self.hold * 1000),
                prack: 0.0,
                update: 0.0,
                reinvite: 0.0,
                cancel: 0.0,
                busy: 0.0,
            }),
        }
    }
}

impl Scenario {
    fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Options => "options",
            Self::Call => "call",
        }
    }
}
