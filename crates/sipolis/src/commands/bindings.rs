//! `sipolis bindings`: who is registered, and where.

use super::place::{Address, Place, Server, unexpected};
use crate::failure::{Failure, Result};
use crate::terminal::{Paint, counted, duration, safe, table};
use admin::control::{AorView, Request, Response};
use std::io::{self, BufWriter, Write};

/// Shows the phones that are registered, or removes their bindings
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Only this address-of-record, such as alice@example.com
    aor: Option<String>,
    /// Removes all bindings of the address-of-record
    #[arg(long, requires = "aor")]
    remove: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sipolis bindings                               all
  sipolis bindings alice@example.com             one user's phones
  sipolis bindings alice@example.com --remove    forgets them until they register again";

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let address = match &arguments.aor {
        Some(aor) => Some(Address::parse(aor).map_err(Failure::new)?),
        None => None,
    };
    let mut server = arguments.place.server()?;
    match address {
        Some(address) if arguments.remove => remove(&mut server, &address, arguments.json),
        Some(address) => one(&mut server, address, arguments.json),
        None => all(&mut server, arguments.json),
    }
}

fn remove(server: &mut Server, address: &Address, json: bool) -> Result {
    let aor = address.aor.clone();
    match server.call(Request::BindingsRemove { aor })? {
        Response::Removed { count } if json => {
            let value = serde_json::json!({"aor": address.aor, "removed": count});
            writeln!(io::stdout(), "{value}")?;
        }
        Response::Removed { count } => writeln!(
            io::stdout(),
            "{} of {} removed.",
            counted(count, "binding", "bindings"),
            address.aor
        )?,
        other => return Err(unexpected(other)),
    }
    Ok(())
}

fn one(server: &mut Server, address: Address, json: bool) -> Result {
    let aor = address.aor.clone();
    let aors = match server.call(Request::BindingsShow { aor })? {
        Response::Bindings { aors, .. } => aors,
        other => return Err(unexpected(other)),
    };
    if aors.is_empty() && !json {
        writeln!(io::stdout(), "No phone of {} is registered.", address.aor)?;
        return Ok(());
    }
    print(&aors, json, true)
}

fn all(server: &mut Server, json: bool) -> Result {
    let mut page = Some(0);
    let (mut aors, mut bindings) = (0, 0);
    while let Some(this) = page {
        let (list, next) = match server.call(Request::BindingsList { page: this })? {
            Response::Bindings { aors, next } => (aors, next),
            other => return Err(unexpected(other)),
        };
        let is_first = aors == 0;
        aors += list.len() as u64;
        bindings += list
            .iter()
            .map(|aor| aor.bindings.len() as u64)
            .sum::<u64>();
        if !list.is_empty() {
            print(&list, json, is_first)?;
        }
        page = next;
    }
    if !json {
        let text = match bindings {
            0 => String::from("No phone is registered."),
            _ => format!(
                "{} of {}",
                counted(bindings, "binding", "bindings"),
                counted(aors, "address-of-record", "addresses-of-record")
            ),
        };
        writeln!(io::stdout(), "{}", Paint::stdout().dim(text))?;
    }
    Ok(())
}

/// Prints a page; `heads`: with the heads of the columns.
fn print(aors: &[AorView], json: bool, heads: bool) -> Result {
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        for aor in aors {
            serde_json::to_writer(&mut out, aor).map_err(|e| Failure::new(e.to_string()))?;
            writeln!(out)?;
        }
    } else {
        let rows: Vec<_> = aors.iter().flat_map(rows).collect();
        let head = [
            "address-of-record",
            "contact",
            "from",
            "expires in",
            "phone",
        ];
        table(&mut out, heads.then(Paint::stdout), &head, &rows)?;
    }
    out.flush()?;
    Ok(())
}

fn rows(aor: &AorView) -> impl Iterator<Item = Vec<String>> {
    aor.bindings.iter().map(|binding| {
        vec![
            safe(&aor.aor),
            safe(&binding.contact),
            format!("{} {}", binding.transport, binding.peer),
            duration(binding.expires_s.into()),
            safe(&binding.user_agent),
        ]
    })
}
