//! `sipolis check`: is the configuration right, and what of the machine limits the server.

use super::place::{Place, read_config};
use crate::failure::{Failure, Result};
use crate::terminal::Paint;
use admin::control::Client;
use config::{Config, Listen, ListenTransport};
use net::limits::{self, Limit, Wanted};
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
    let config = match read_config(arguments.place.config.as_deref()) {
        Ok(config) => {
            let name = arguments.place.config.as_ref();
            let text = name.map_or_else(
                || String::from("no file: all defaults"),
                |n| format!("{} is right", n.display()),
            );
            findings.push(Finding::good("configuration", text));
            config
        }
        Err(failure) => {
            findings.push(Finding::bad("configuration", failure.to_string()));
            Config::default()
        }
    };
    let data = arguments
        .place
        .data
        .clone()
        .unwrap_or_else(|| config.server.data.clone());
    let runs = matches!(Client::connect(&data), Ok(Some(_)));
    findings.push(match (runs, data.exists()) {
        (true, _) => Finding::good("data", format!("a server runs on {}", data.display())),
        (false, true) => Finding::good("data", format!("{}; no server runs on it", data.display())),
        (false, false) => Finding::good("data", format!("{} will be made", data.display())),
    });
    if !runs {
        findings.extend(config.server.listen.iter().map(listener));
    }
    if !config.server.auth {
        let text = String::from("off: everyone can register as anyone and call anywhere");
        findings.push(Finding::warn("digest", text, "set auth = \"on\""));
    }
    findings.extend(limits::probe(&Wanted::default()).into_iter().map(machine));
    report(&findings, arguments.json)
}

/// What was found about one thing.
struct Finding {
    what: String,
    level: Level,
    text: String,
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
    fn good(what: &str, text: String) -> Self {
        Self::new(what, Level::Good, text, "")
    }
    fn warn(what: &str, text: String, cure: &str) -> Self {
        Self::new(what, Level::Warn, text, cure)
    }
    fn bad(what: &str, text: String) -> Self {
        Self::new(what, Level::Bad, text, "")
    }
    fn new(what: &str, level: Level, text: String, cure: &str) -> Self {
        Self {
            what: what.to_owned(),
            level,
            text,
            cure: cure.to_owned(),
        }
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
        Err(error) => Finding::new(
            "listen",
            Level::Bad,
            format!("{listen}: {error}"),
            &format!(
                "stop what uses it (`ss -lntup` shows it), or listen elsewhere: --listen {}",
                elsewhere(listen)
            ),
        ),
    }
}

/// A place to try instead.
pub(crate) fn elsewhere(listen: &Listen) -> Listen {
    let mut other = *listen;
    other
        .address
        .set_port(listen.address.port().wrapping_add(10).max(1024));
    other
}

fn machine(limit: Limit) -> Finding {
    let level = if limit.enough {
        Level::Good
    } else {
        Level::Warn
    };
    let text = match limit.enough {
        true => limit.value,
        false => format!("{}, better {}: {}", limit.value, limit.wanted, limit.effect),
    };
    let cure = if limit.enough { "" } else { &limit.command };
    Finding::new(limit.name, level, text, cure)
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
                serde_json::json!({"what": f.what, "level": level, "text": f.text, "cure": f.cure})
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
