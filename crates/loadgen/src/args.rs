//! The command line of `sipolis load`.

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, ValueEnum};

use crate::{
    distribution::Distribution, expect::Expectation, io::Transport, nearest::nearest, pace::Rate,
    plan::Lifetime, quantity, requests::Digest, sources::Sources, target::Target,
};

/// Puts load on a SIP server and measures what comes back.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct LoadArgs {
    /// register, call, options, notify, message, echo; a mix, city or itsp; or the FILE.toml of one.
    pub(crate) scenario: Scenario,
    /// The server: HOST[:PORT], udp://HOST[:PORT] or tcp://HOST[:PORT].
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    #[command(flatten)]
    pub(crate) users: UserArgs,
    #[command(flatten)]
    pub(crate) connections: ConnectionArgs,
    #[command(flatten)]
    pub(crate) calls: CallArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  sipolis load options 10.0.0.5                           ten seconds, 64 under way
  sipolis load register tcp://10.0.0.5 --rate 2000        2,000 a second
  sipolis load call 10.0.0.5 --rate 50..500 --duration 60 more and more calls
  sipolis load city tcp://10.0.0.5 --scale 0.01           a hundredth of a city

  What is the highest rate that it sustains?
  sipolis load register 10.0.0.5 --find-max --within 'p99<20ms'

  More connections than one process may have:
  sipolis load register tcp://10.0.0.5 --connections 60000 --processes 4

  In a script, with an exit status:
  sipolis load options 10.0.0.5 --rate 500 --expect 'success>=99.9%' --expect 'p99<50ms'

Latency counts from when an operation was due, whether or not it could begin then.
Exit status: 0 all bounds held, 1 a bound was missed, 2 it could not run.";

/// When operations begin and how many.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Pace")]
pub(crate) struct PaceArgs {
    /// Closed loop: so many under way, one begins when another ends; 64 unless there is a rate.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "find_max"])]
    pub(crate) outstanding: Option<usize>,
    /// Open loop: operations a second; A..B from one to the other over the run, A,B,C in steps.
    #[arg(
        long,
        value_name = "RATE",
        conflicts_with = "find_max",
        allow_hyphen_values = true
    )]
    pub(crate) rate: Option<Rate>,
    /// Gaps between operations are exponentially distributed instead of equal; with a rate.
    #[arg(long, conflicts_with = "outstanding")]
    pub(crate) poisson: bool,
    /// Search the highest rate that is sustained: every operation succeeds --within the bound.
    #[arg(long, value_name = "LO..HI", num_args = 0..=1, value_parser = quantity::rates)]
    pub(crate) find_max: Option<Option<(f64, f64)>>,
    /// What a rate that is sustained must hold, with --find-max.
    #[arg(
        long,
        value_name = "BOUND",
        default_value = "p99<50ms",
        requires = "find_max"
    )]
    pub(crate) within: Expectation,
    /// Length of one trial of --find-max.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = quantity::some_time)]
    pub(crate) trial: Duration,
    /// Operations under way at most, with a rate; more that are due count as failed, `not_begun`.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = at_least_one)]
    pub(crate) outstanding_max: usize,
    /// Operations begun before it ends.
    #[arg(long, value_name = "N", conflicts_with = "find_max")]
    pub(crate) count: Option<u64>,
    /// Time after which no operation begins; 10 s unless --count is given.
    #[arg(long, value_name = "SECONDS", conflicts_with = "find_max", value_parser = quantity::some_time)]
    pub(crate) duration: Option<Duration>,
    /// Operations done in preparation and not counted.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warm_up: u64,
    /// All rates and users of a mix times this.
    #[arg(long, value_name = "FACTOR", value_parser = quantity::above_zero)]
    pub(crate) scale: Option<f64>,
    /// Time that one transaction may take.
    #[arg(long, value_name = "SECONDS", default_value = "32", value_parser = quantity::some_time)]
    pub(crate) timeout: Duration,
}

/// Who registers and calls.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Users")]
pub(crate) struct UserArgs {
    /// Users user00000, user00001, ...; calls are made by every other one to the next [10000]
    #[arg(long = "users", id = "users", value_name = "N")]
    pub(crate) count: Option<usize>,
    /// Users from a file instead: its first line names the columns user, password and domain.
    #[arg(
        long = "users-file",
        id = "users-file",
        value_name = "FILE",
        conflicts_with = "users"
    )]
    pub(crate) file: Option<PathBuf>,
    /// Password of each user; {user} stands for the user's name.
    #[arg(long, default_value = "{user}")]
    pub(crate) password: String,
    /// Domain of the users, the target's host unless given.
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// What to do about challenges.
    #[arg(long, value_enum, default_value = "answer")]
    pub(crate) digest: Digest,
    /// Each REGISTER is a first one, with a Call-ID of its own, not a refresh.
    #[arg(long)]
    pub(crate) first: bool,
    /// Time that a registration is asked for.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub(crate) expires: u32,
}

/// How the server is reached.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionArgs {
    /// TCP connections or UDP sockets: 100 or 1 unless given. Callees have as many again.
    #[arg(long = "connections", id = "connections", value_name = "N", value_parser = at_least_one)]
    pub(crate) count: Option<usize>,
    /// persistent: opened before the run. persistent-open: when a user's first operation is due,
    /// within its latency. N: closed after N operations. dialog: one each. transaction: one for
    /// each transaction.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "persistent",
        conflicts_with = "connection_each"
    )]
    pub(crate) lifetime: Lifetime,
    /// `--lifetime transaction`.
    #[arg(long, hide = true)]
    pub(crate) connection_each: bool,
    /// Local addresses used in turn: ADDR, ADDR-ADDR or ADDR/BITS, with commas between.
    #[arg(long, value_name = "ADDRESSES")]
    pub(crate) source: Option<Sources>,
    /// Transport of the callees, the callers' unless given.
    #[arg(long, value_enum, value_name = "TRANSPORT")]
    pub(crate) callee_transport: Option<TransportName>,
    /// Threads of one process.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) threads: usize,
    /// Processes, each with its share of users, connections and rate.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) processes: usize,
    /// One of the processes: NUMBER/PROCESSES.
    #[arg(long, value_name = "N/N", hide = true, value_parser = place)]
    pub(crate) child: Option<(usize, usize)>,
}

/// What happens in calls and in other operations. Shares are percent; an option alone is 100 %.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Calls and messages")]
pub(crate) struct CallArgs {
    /// How long a callee rings: 0, 4s, 200ms, 1s..5s (evenly), exp:180s (exponentially).
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) ring: Distribution,
    /// How long a call lasts.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0",
        conflicts_with = "hold"
    )]
    pub(crate) talk: Distribution,
    /// `--talk` in milliseconds.
    #[arg(long, value_name = "MS", hide = true)]
    pub(crate) hold: Option<u64>,
    /// Calls whose 180 is reliable and acknowledged by a PRACK.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "100", default_value = "0", value_parser = quantity::percent, hide_default_value = true)]
    pub(crate) prack: f64,
    /// Calls with an UPDATE.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "100", default_value = "0", value_parser = quantity::percent, hide_default_value = true)]
    pub(crate) update: f64,
    /// Calls with a second INVITE in their dialog.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "100", default_value = "0", value_parser = quantity::percent, hide_default_value = true)]
    pub(crate) reinvite: f64,
    /// Calls that the caller cancels while it rings; they succeed with a 487.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "100", default_value = "0", value_parser = quantity::percent, hide_default_value = true)]
    pub(crate) cancel: f64,
    /// Calls whose callee is busy; they succeed with a 486.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "100", default_value = "0", value_parser = quantity::percent, hide_default_value = true)]
    pub(crate) busy: f64,
    /// Body of an OPTIONS, a MESSAGE or an echoed request.
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = body)]
    pub(crate) body: usize,
}

/// What is shown.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The figures as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// A bound that must hold: NAME, one of >= <= > < ==, VALUE. Names: success, rate, failures,
    /// retransmissions, p50, p90, p99, p999, max. May be repeated [success>=100%]
    #[arg(long, value_name = "BOUND")]
    pub(crate) expect: Vec<Expectation>,
    /// `--expect 'success>=PERCENT'`.
    #[arg(long, value_name = "PERCENT", hide = true, value_parser = quantity::percent)]
    pub(crate) expect_success: Option<f64>,
    /// A line every two seconds instead of the live screen.
    #[arg(long)]
    pub(crate) no_screen: bool,
    /// Prepare, print `sipolis load: ready` on standard error, begin when a line comes on standard input.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Keep the connections open after the run, until standard input ends.
    #[arg(long)]
    pub(crate) stay: bool,
}

/// What an operation is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scenario {
    Register,
    Call,
    Options,
    Notify,
    Message,
    Echo,
    /// Several of them: the name of a built-in mix, or a file.
    Mix(String),
}

/// Scenarios of one part.
const PLAIN: [(&str, Scenario); 6] = [
    ("register", Scenario::Register),
    ("call", Scenario::Call),
    ("options", Scenario::Options),
    ("notify", Scenario::Notify),
    ("message", Scenario::Message),
    ("echo", Scenario::Echo),
];
/// Mixes that are built in.
const MIXES: [&str; 2] = ["city", "itsp"];

impl Scenario {
    /// As it is typed.
    pub(crate) fn name(&self) -> &str {
        let plain = PLAIN.iter().find(|(_, scenario)| scenario == self);
        match (self, plain) {
            (Self::Mix(name), _) => name,
            (_, Some((name, _))) => name,
            _ => "",
        }
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, scenario)) = PLAIN.iter().find(|(name, _)| *name == text) {
            return Ok(scenario.clone());
        }
        if MIXES.contains(&text) || text.ends_with(".toml") {
            return Ok(Self::Mix(text.to_owned()));
        }
        let names: Vec<&str> = PLAIN.iter().map(|(name, _)| *name).chain(MIXES).collect();
        Err(match nearest(text, names.iter().copied()) {
            Some(near) => format!("there is no scenario {text:?}; {near} perhaps"),
            None => format!(
                "there is no scenario {text:?}; {} and FILE.toml are",
                names.join(", ")
            ),
        })
    }
}

/// A transport by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TransportName {
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

impl FromStr for Lifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const NAMES: [(&str, Lifetime); 4] = [
            ("persistent", Lifetime::Persistent),
            ("persistent-open", Lifetime::PersistentOpen),
            ("dialog", Lifetime::Dialog),
            ("transaction", Lifetime::Transaction),
        ];
        if let Some((_, lifetime)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*lifetime);
        }
        match text.parse() {
            Ok(0) => Err(String::from("a connection carries one operation at least")),
            Ok(operations) => Ok(Self::Operations(operations)),
            Err(_) => Err(match nearest(text, NAMES.iter().map(|(name, _)| *name)) {
                Some(near) => format!("{near} perhaps"),
                None => String::from(
                    "persistent, persistent-open, dialog, transaction and a number are lifetimes",
                ),
            }),
        }
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(String::from("must be a whole number above 0")),
        Ok(number) => Ok(number),
    }
}

/// A body that fits a datagram, and the buffers of servers.
const BODY_MAX: usize = 60_000;

fn body(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes @ 0..=BODY_MAX) => Ok(bytes),
        _ => Err(format!("must be a number of bytes up to {BODY_MAX}")),
    }
}

fn place(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').map(|(n, of)| (n.parse(), of.parse()));
    match numbers {
        Some((Ok(number), Ok(processes))) if number < processes => Ok((number, processes)),
        _ => Err(String::from("must be NUMBER/PROCESSES")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_that_is_not_there_is_told_with_the_nearest() {
        assert_eq!("call".parse(), Ok(Scenario::Call));
        assert_eq!("city".parse(), Ok(Scenario::Mix(String::from("city"))));
        let fault = |text: &str| text.parse::<Scenario>().expect_err("is refused");
        assert!(fault("regster").contains("register perhaps"));
        assert!(fault("zzzzzzzzzz").contains("options, notify"));
    }

    #[test]
    fn lifetimes_are_names_or_numbers_of_operations() {
        assert_eq!("50".parse(), Ok(Lifetime::Operations(50)));
        assert_eq!("persistent-open".parse(), Ok(Lifetime::PersistentOpen));
        assert!("0".parse::<Lifetime>().is_err());
        assert!(
            "persistant"
                .parse::<Lifetime>()
                .is_err_and(|e| e == "persistent perhaps")
        );
    }
}
