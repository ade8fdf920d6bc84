//! `sipolis check`: is the configuration right, and what of the machine limits the server.

use super::place::{Place, read_config};
use crate::failure::{Failure, Result};
use crate::serve;
use crate::terminal::Paint;
use admin::control::Client;
use config::{Config, Listen, ListenTransport};
use net::limits::{self, Limit};
use std::io::{self, Write};
use std::net::{TcpListener, UdpSocket};

/// Checks the configuration and the machine
///
/// Ends with status 1 when the server would not start. What only limits it is a warning, with the command that lifts it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// JSON
    #[arg(long)]
    json: bool,
    /// Prints the reference page of all settings, and nothing else
    #[arg(long)]
    reference: bool,
}

const EXAMPLES: &str = "\
Examples:
  sipolis check --config /etc/sipolis.toml
  sipolis check --reference > docs/configuration.md";

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result {
    if arguments.reference {
        write!(io::stdout(), "{}", config::reference_page())?;
        return Ok(());
    }
    let mut findings = Vec::new();
    let config = configuration(arguments, &mut findings);
    if !data(arguments, &config, &mut findings) {
        findings.extend(config.server.listen.iter().map(listener));
    }
    if !config.server.auth {
        let text = String::from("off: everyone can register as anyone and call anywhere");
        findings.push(Finding {
            cure: String::from("set auth = \"on\""),
            ..Finding::new("digest", Level::Warn, text)
        });
    }
    let limits = limits::probe(&serve::wanted(&config));
    findings.extend(limits.into_iter().map(machine));
    report(&findings, arguments.json)
}

/// Reads the configuration; the defaults when it is wrong, so that the machine is looked at all the same.
fn configuration(arguments: &Arguments, findings: &mut Vec<Finding>) -> Config {
    let file = arguments.place.config.as_deref();
    match read_config(file) {
        Ok(config) => {
            let text = file.map_or_else(
                || String::from("no file: all defaults"),
                |file| format!("{} is right", file.display()),
            );
            findings.push(Finding::good("configuration", text));
            config
        }
        Err(failure) => {
            findings.push(Finding::bad("configuration", failure.to_string()));
            Config::default()
        }
    }
}

/// Looks at the data directory; whether a server runs on it.
fn data(arguments: &Arguments, config: &Config, findings: &mut Vec<Finding>) -> bool {
    let given = arguments.place.data.as_ref();
    let data = given.unwrap_or(&config.server.data);
    let runs = matches!(Client::connect(data), Ok(Some(_)));
    let name = data.display();
    findings.push(match (runs, data.exists()) {
        (true, _) => Finding::good("data", format!("a server runs on {name}")),
        (false, true) => Finding::good("data", format!("{name}; no server runs on it")),
        (false, false) => Finding::good("data", format!("{name} will be made")),
    });
    runs
}

/// What was found about one thing.
struct Finding {
    what: String,
    level: Level,
    text: String,
    /// What that means; empty: it says so itself.
    effect: String,
    /// What to do about it; empty: nothing.
    cure: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Good,
    Warn,
    Bad,
}

impl Finding {
    fn new(what: &str, level: Level, text: String) -> Self {
        Self {
            what: what.to_owned(),
            level,
            text,
            effect: String::new(),
            cure: String::new(),
        }
    }
    fn good(what: &str, text: String) -> Self {
        Self::new(what, Level::Good, text)
    }
    fn bad(what: &str, text: String) -> Self {
        Self::new(what, Level::Bad, text)
    }
}

/// Whether a listener's port is free.
fn listener(listen: &Listen) -> Finding {
    let bound = match listen.transport {
        ListenTransport::Udp => UdpSocket::bind(listen.address).map(drop),
        // The server's sockets are for IPv6 only where they are IPv6; one of the two is tried alone here, too.
        ListenTransport::Tcp => TcpListener::bind(listen.address).map(drop),
    };
    match bound {
        Ok(()) => Finding::good("listen", format!("{listen} is free")),
        Err(error) if without_ipv6(listen, &error) => {
            let text = format!("{listen} is left out: this machine has no IPv6");
            Finding::new("listen", Level::Warn, text)
        }
        Err(error) => Finding {
            cure: format!(
                "stop what uses it (`ss -lntup` shows it), or listen elsewhere: --listen {}",
                elsewhere(listen)
            ),
            ..Finding::bad("listen", format!("{listen}: {error}"))
        },
    }
}

/// The server does without "all IPv6 addresses" where there are none.
fn without_ipv6(listen: &Listen, error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    listen.address.is_ipv6()
        && listen.address.ip().is_unspecified()
        && (error.raw_os_error() == Some(EAFNOSUPPORT)
            || error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// A place to try instead.
fn elsewhere(listen: &Listen) -> Listen {
    let mut other = *listen;
    other
        .address
        .set_port(listen.address.port().wrapping_add(10).max(1024));
    other
}

fn machine(limit: Limit) -> Finding {
    if limit.enough {
        return Finding::good(limit.name, limit.value);
    }
    let text = format!("{}, better {}", limit.value, limit.wanted);
    Finding {
        effect: limit.effect,
        cure: limit.command,
        ..Finding::new(limit.name, Level::Warn, text)
    }
}

fn report(findings: &[Finding], json: bool) -> Result {
    let paint = Paint::stdout();
    let mut out = io::stdout().lock();
    let wrong = findings.iter().any(|f| f.level == Level::Bad);
    if json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| {
                let level = match f.level {
                    Level::Good => "good",
                    Level::Warn => "warning",
                    Level::Bad => "error",
                };
                serde_json::json!({"what": f.what, "level": level, "text": f.text, "effect": f.effect, "cure": f.cure})
            })
            .collect();
        writeln!(
            out,
            "{}",
            serde_json::json!({"starts": !wrong, "findings": list})
        )?;
    } else {
        for finding in findings {
            let mark = match finding.level {
                Level::Good => paint.good("ok     "),
                Level::Warn => paint.warn("warning"),
                Level::Bad => paint.bad("error  "),
            };
            writeln!(
                out,
                "{mark}  {}: {}",
                paint.bold(&finding.what),
                finding.text
            )?;
            if !finding.effect.is_empty() {
                writeln!(out, "         {}", finding.effect)?;
            }
            if !finding.cure.is_empty() {
                writeln!(out, "         {}", paint.dim(&finding.cure))?;
            }
        }
    }
    match wrong {
        true => Err(Failure::silent()),
        false => Ok(()),
    }
}
