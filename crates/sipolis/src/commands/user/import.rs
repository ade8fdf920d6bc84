use crate::commands::place::{Address, Place, Server, unexpected};
use crate::csv::{Reader, Row};
use crate::failure::{Failure, Result};
use crate::terminal::{Progress, counted, grouped};
use admin::control::{Request, Response, USERS_PER_REQUEST_MAX, User, hex, unhex};
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

/// Wrong lines that are shown before it is enough.
const SHOWN_MAX: usize = 20;

/// Imports a file: reads it once to find every wrong line, and, when there is none, once more to send the users.
pub(super) fn run(place: &Place, file: &Path) -> Result {
    let started = Instant::now();
    let count = check(file)?;
    if count == 0 {
        return Err(Failure::new(format!("{}: no users in it", file.display())));
    }
    let mut server = place.server_or_database(true)?;
    let (added, replaced) = send(&mut server, file)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} imported in {:.1} s: {} new, {} replaced.",
        counted(added + replaced, "user", "users"),
        started.elapsed().as_secs_f64(),
        grouped(added),
        grouped(replaced)
    )?;
    if !server.is_running() && io::stdout().is_terminal() {
        writeln!(out, "No server runs here; it knows them when it starts.")?;
    }
    Ok(())
}

/// Counts the users; fails with the wrong lines.
fn check(file: &Path) -> Result<u64> {
    let (mut count, mut wrong) = (0, 0);
    let mut progress = Progress::new("lines checked");
    each(file, |line| {
        match line.and_then(|(line, row)| {
            check_row(&row).map_err(|message| crate::csv::LineError { line, message })
        }) {
            Ok(()) => count += 1,
            Err(error) => {
                wrong += 1;
                if wrong <= SHOWN_MAX {
                    progress.clear();
                    eprintln!("{}: {error}", file.display());
                }
            }
        }
        progress.show(count);
        Ok(())
    })?;
    progress.clear();
    match wrong {
        0 => Ok(count),
        _ => Err(Failure::new(format!(
            "{} wrong; nothing was imported",
            counted(wrong as u64, "line is", "lines are")
        ))),
    }
}

fn check_row(row: &Row) -> std::result::Result<(), String> {
    Address::new(&row.user, &row.domain)?;
    if row.password.is_empty() && row.ha1.is_empty() && row.ha1_sha256.is_empty() {
        return Err(format!("{} has neither password nor ha1", row.user));
    }
    if !row.ha1.is_empty() && unhex::<16>(&row.ha1).is_none() {
        return Err(String::from("ha1 has to be 32 hex digits"));
    }
    if !row.ha1_sha256.is_empty() && unhex::<32>(&row.ha1_sha256).is_none() {
        return Err(String::from("ha1_sha256 has to be 64 hex digits"));
    }
    Ok(())
}

/// Sends all users; how many were new, how many replaced.
fn send(server: &mut Server, file: &Path) -> Result<(u64, u64)> {
    let (mut added, mut replaced) = (0, 0);
    let mut progress = Progress::new("users");
    let mut batch = Vec::with_capacity(USERS_PER_REQUEST_MAX);
    let mut flush = |batch: &mut Vec<User>| -> Result {
        let request = Request::UsersPut {
            users: std::mem::take(batch),
            replace: true,
        };
        match server.call(request)? {
            Response::Put {
                added: new,
                replaced: old,
            } => {
                added += new;
                replaced += old;
            }
            other => return Err(unexpected(other)),
        }
        progress.show(added + replaced);
        Ok(())
    };
    each(file, |line| {
        let user = line
            .map_err(|e| e.to_string())
            .and_then(|(line, row)| user(&row).map_err(|e| format!("line {line}: {e}")))
            .map_err(|e| {
                Failure::new(format!("{} changed while it was read: {e}", file.display()))
            })?;
        batch.push(user);
        if batch.len() == USERS_PER_REQUEST_MAX {
            flush(&mut batch)?;
        }
        Ok(())
    })?;
    if !batch.is_empty() {
        flush(&mut batch)?;
    }
    progress.clear();
    Ok((added, replaced))
}

/// Hashes of the password where there is one, otherwise those given.
fn user(row: &Row) -> std::result::Result<User, String> {
    check_row(row)?;
    let address = Address::new(&row.user, &row.domain)?;
    let (ha1, ha1_sha256) = match row.password.as_str() {
        "" => (row.ha1.clone(), row.ha1_sha256.clone()),
        password => {
            let hashes = sip_core::ha1(&address.user, &address.domain, password);
            (hex(&hashes.md5), hex(&hashes.sha256))
        }
    };
    Ok(User {
        aor: address.aor,
        ha1,
        ha1_sha256,
    })
}

type Line = std::result::Result<(u64, Row), crate::csv::LineError>;

fn each(file: &Path, mut f: impl FnMut(Line) -> Result) -> Result {
    let failed = |error: &dyn std::fmt::Display| Failure::during(file.display(), error);
    let input = File::open(file).map_err(|e| failed(&e))?;
    let mut reader =
        Reader::new(BufReader::with_capacity(1 << 16, input)).map_err(|e| failed(&e))?;
    while let Some(line) = reader.next_row() {
        f(line)?;
    }
    Ok(())
}
