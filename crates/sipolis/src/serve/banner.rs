use super::{Running, wanted};
use crate::failure::Result;
use crate::terminal::{Paint, counted};
use net::limits::{self, Wanted};
use std::io::{self, Write};

/// What a person should know when the server has started.
pub(super) fn print(running: &Running) -> Result {
    let paint = Paint::stdout();
    let mut out = io::stdout().lock();
    let host = running.host();
    let present = host.present();
    writeln!(
        out,
        "{} {} is ready. Ctrl-C ends it.",
        paint.bold("sipolis"),
        env!("CARGO_PKG_VERSION")
    )?;
    let mut line =
        |name: &str, text: String| writeln!(out, "  {} {text}", paint.dim(format!("{name:<11}")));
    let listen: Vec<_> = host.listeners.iter().map(ToString::to_string).collect();
    line("listens on", listen.join("  "))?;
    let domains = &present.settings.domains;
    let mut names = vec![paint.bold(&domains.primary)];
    names.extend(
        domains
            .names
            .iter()
            .filter(|n| **n != domains.primary)
            .cloned(),
    );
    line(
        "domains",
        format!(
            "{}, and those of the users; this machine's addresses stand for {}",
            names.join(", "),
            domains.primary
        ),
    )?;
    let users = running.subscribers().count();
    let users = match users {
        0 => String::from("none yet"),
        n => counted(n, "user", "users"),
    };
    line("users", users)?;
    let (recovery, took) = &running.recovered;
    let bindings = match recovery.bindings {
        0 => String::from("none yet"),
        _ => format!("{recovery}, in {:.1} s", took.as_secs_f64()),
    };
    line("phones", bindings)?;
    line("workers", host.post.workers().to_string())?;
    line("data", running.data().display().to_string())?;
    let settings = match host.source.file() {
        Some(file) => file.display().to_string(),
        None => String::from("defaults; docs/configuration.md has every key"),
    };
    line("settings", settings)?;
    let example = format!(
        "sipolis user add alice@{}{}",
        domain_to_add(&domains.primary),
        data_flag(running)
    );
    line("add a user", paint.bold(example))?;
    let wanted = wanted(&present.config);
    drop(present);
    limits(&mut out, paint, &wanted)?;
    warnings(&mut out, paint, running)?;
    out.flush()?;
    Ok(())
}

/// A domain to show in the example: an address or a bare host name is nothing that users would have.
fn domain_to_add(primary: &str) -> &str {
    let is_domain = primary.contains('.') && primary.parse::<std::net::IpAddr>().is_err();
    if is_domain { primary } else { "example.com" }
}

fn data_flag(running: &Running) -> String {
    let data = running.data();
    match data == config::Config::default().server.data {
        true => String::new(),
        false => format!(" --data {}", data.display()),
    }
}

fn limits(out: &mut impl Write, paint: Paint, wanted: &Wanted) -> Result {
    let limits = limits::probe(wanted);
    let short: Vec<_> = limits.iter().filter(|limit| !limit.enough).collect();
    if !short.is_empty() {
        writeln!(
            out,
            "\n  What of this machine limits it, and the command that lifts it:"
        )?;
    }
    for limit in short {
        writeln!(out, "  {} {}", paint.warn("-"), limit.effect)?;
        writeln!(out, "      {}", paint.dim(&limit.command))?;
    }
    Ok(())
}

fn warnings(out: &mut impl Write, paint: Paint, running: &Running) -> Result {
    if !running.host().present().settings.auth {
        writeln!(
            out,
            "\n{} digest authentication is off: everyone who can reach this server can register as anyone and call anywhere \
             through it. Only for benchmarks and closed networks.",
            paint.bad("Warning:")
        )?;
    }
    if !running.left_out.is_empty() {
        let left_out: Vec<_> = running.left_out.iter().map(ToString::to_string).collect();
        writeln!(
            out,
            "\n{} this machine has no IPv6, so it does not listen on {}.",
            paint.warn("Warning:"),
            left_out.join(" and ")
        )?;
    }
    if let Some(text) = &running.dns_warning {
        writeln!(out, "\n{} {text}", paint.warn("Warning:"))?;
    }
    for damage in &running.recovered.0.damage {
        writeln!(out, "\n{} {damage}", paint.bad("Warning:"))?;
    }
    Ok(())
}
