//! `sipolis user`: subscribers.

mod import;

use super::place::{Address, Place, Server, unexpected};
use crate::failure::{Failure, Result};
use crate::password;
use crate::terminal::{Paint, counted, safe};
use admin::control::{Request, Response, USERS_PER_REQUEST_MAX, User, hex};
use clap::Subcommand;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;

/// Adds, lists and removes users
///
/// Works on the running server, which sees a change at once, or on its database when it does not run.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  sipolis user add alice@example.com                    asks for a password, or makes one
  sipolis user import users.csv                         first line: user,domain,password
  sipolis user export > users.csv                       hashes only: passwords are never stored";

#[derive(Subcommand)]
enum Command {
    /// Adds a user
    #[command(
        after_help = "Example:\n  sipolis user add alice@example.com --password 'correct horse'"
    )]
    Add {
        /// Such as alice@example.com
        address: String,
        /// The password; other users of this machine can see it in the list of processes [default: asks, or makes one and shows it once]
        #[arg(long)]
        password: Option<String>,
    },
    /// Lists all users
    #[command(after_help = "Example:\n  sipolis user list --json | jq -r .aor")]
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Shows a user: which password hashes there are, and the phones registered
    #[command(after_help = "Example:\n  sipolis user show alice@example.com")]
    Show {
        /// Such as alice@example.com
        address: String,
        /// JSON
        #[arg(long)]
        json: bool,
    },
    /// Gives a user another password
    #[command(after_help = "Example:\n  sipolis user passwd alice@example.com")]
    Passwd {
        /// Such as alice@example.com
        address: String,
        /// As for `add`
        #[arg(long)]
        password: Option<String>,
    },
    /// Removes a user, and the bindings of its phones
    #[command(after_help = "Example:\n  sipolis user remove alice@example.com")]
    Remove {
        /// Such as alice@example.com
        address: String,
    },
    /// Adds or replaces the users of a CSV file; all of them, or none when a line is wrong
    #[command(
        after_help = "The first line names the columns: user, domain, and password or ha1 and ha1_sha256, in any order; others are \
                      ignored.\n\nExample:\n  printf 'user,domain,password\\nalice,example.com,secret\\n' > users.csv\n  sipolis user import users.csv"
    )]
    Import {
        /// The file
        file: PathBuf,
    },
    /// Writes all users as CSV that `import` takes, with hashes instead of passwords
    #[command(after_help = "Example:\n  sipolis user export > users.csv")]
    Export,
}

/// Runs it.
pub(crate) fn run(arguments: Arguments) -> Result {
    let Arguments { place, command } = arguments;
    match command {
        Command::Add { address, password } => {
            // The address is checked before anyone types a password.
            let address = Address::parse(&address).map_err(Failure::new)?;
            set(
                &mut place.server_or_database(true)?,
                &address,
                password,
                false,
            )
        }
        Command::Passwd { address, password } => {
            let address = Address::parse(&address).map_err(Failure::new)?;
            let mut server = place.server_or_database(false)?;
            show(&mut server, &address)?;
            set(&mut server, &address, password, true)
        }
        Command::List { json } => list(&mut place.server_or_database(false)?, json),
        Command::Show { address, json } => {
            let address = Address::parse(&address).map_err(Failure::new)?;
            print_user(&mut place.server_or_database(false)?, &address, json)
        }
        Command::Remove { address } => {
            let address = Address::parse(&address).map_err(Failure::new)?;
            remove(&mut place.server_or_database(false)?, &address)
        }
        Command::Import { file } => import::run(&place, &file),
        Command::Export => export(&mut place.server_or_database(false)?),
    }
}

fn set(server: &mut Server, address: &Address, given: Option<String>, replace: bool) -> Result {
    let (password, made) = choose(address, given)?;
    let users = vec![subscriber(address, &password)];
    match server.call(Request::UsersPut { users, replace })? {
        Response::Put { .. } => {}
        other => return Err(unexpected(other)),
    }
    let paint = Paint::stdout();
    let mut out = io::stdout().lock();
    let what = if replace {
        "has a new password"
    } else {
        "is added"
    };
    writeln!(out, "{} {what}.", paint.bold(&address.aor))?;
    if made {
        writeln!(out, "\n  user      {}", address.user)?;
        writeln!(out, "  domain    {}", address.domain)?;
        writeln!(
            out,
            "  password  {}  {}",
            paint.bold(&password),
            paint.dim("(made now, and not shown again)")
        )?;
        writeln!(out)?;
    }
    if !server.is_running() {
        writeln!(
            out,
            "{}",
            paint.dim("No server runs here; it knows the user when it starts.")
        )?;
    } else if let Some(primary) = other_primary(server, address)? {
        writeln!(
            out,
            "{} this machine's addresses stand for {primary}: a phone that says {} is taken for {}@{primary}.",
            paint.warn("But"),
            address.aor,
            address.user
        )?;
    }
    Ok(())
}

/// The primary domain, when the user's domain is an address, which then stands for another.
fn other_primary(server: &mut Server, address: &Address) -> Result<Option<String>> {
    if address
        .domain
        .trim_matches(['[', ']'])
        .parse::<IpAddr>()
        .is_err()
    {
        return Ok(None);
    }
    let primary = match server.call(Request::Status)? {
        Response::Status(status) => status.domains.into_iter().next(),
        other => return Err(unexpected(other)),
    };
    Ok(primary.filter(|primary| *primary != address.domain))
}

/// The password: given, asked for, or made; the second value: whether it was made.
fn choose(address: &Address, given: Option<String>) -> Result<(String, bool)> {
    if let Some(password) = given {
        return Ok((password, false));
    }
    if !io::stdin().is_terminal() {
        return Ok((password::make()?, true));
    }
    let ask = |prompt: String| {
        rpassword::prompt_password(prompt).map_err(|e| Failure::during("no password was read", e))
    };
    let password = ask(format!("Password for {address} (Enter to have one made): "))?;
    if password.is_empty() {
        return Ok((password::make()?, true));
    }
    if ask(String::from("Once more: "))? != password {
        return Err(Failure::new(
            "the two passwords differ; nothing was changed",
        ));
    }
    Ok((password, false))
}

fn subscriber(address: &Address, password: &str) -> User {
    let hashes = sip_core::ha1(&address.user, &address.domain, password);
    User {
        aor: address.aor.clone(),
        ha1: hex(&hashes.md5),
        ha1_sha256: hex(&hashes.sha256),
    }
}

fn show(server: &mut Server, address: &Address) -> Result<User> {
    let aor = address.aor.clone();
    match server.call(Request::UserShow { aor })? {
        Response::Users { users, .. } if !users.is_empty() => Ok(users[0].clone()),
        Response::NotFound => Err(not_found(address)),
        other => Err(unexpected(other)),
    }
}

fn not_found(address: &Address) -> Failure {
    Failure::new(format!(
        "there is no user {}; `sipolis user list` shows those there are",
        address.aor
    ))
}

fn print_user(server: &mut Server, address: &Address, json: bool) -> Result {
    let user = show(server, address)?;
    let aor = user.aor.clone();
    let bindings = match server.is_running() {
        true => match server.call(Request::BindingsShow { aor })? {
            Response::Bindings { aors, .. } => aors,
            other => return Err(unexpected(other)),
        },
        false => Vec::new(),
    };
    let mut out = io::stdout().lock();
    let has = |hash: &str| if hash.is_empty() { "no" } else { "yes" };
    if json {
        let value = serde_json::json!({
            "aor": user.aor,
            "md5": !user.ha1.is_empty(),
            "sha256": !user.ha1_sha256.is_empty(),
            "bindings": bindings.first().map(|aor| &aor.bindings),
        });
        writeln!(out, "{value}")?;
        return Ok(());
    }
    let paint = Paint::stdout();
    writeln!(out, "{}", paint.bold(&user.aor))?;
    writeln!(out, "  password hash, MD5      {}", has(&user.ha1))?;
    writeln!(out, "  password hash, SHA-256  {}", has(&user.ha1_sha256))?;
    match (server.is_running(), bindings.first()) {
        (false, _) => writeln!(
            out,
            "  phones                  unknown: no server runs here"
        )?,
        (true, None) => writeln!(out, "  phones                  none registered")?,
        (true, Some(aor)) => {
            for binding in &aor.bindings {
                writeln!(
                    out,
                    "  phone                   {} at {}, for another {} s",
                    safe(&binding.contact),
                    binding.peer,
                    binding.expires_s
                )?;
            }
        }
    }
    Ok(())
}

/// Walks all users, page by page.
fn each(server: &mut Server, mut f: impl FnMut(&User) -> io::Result<()>) -> Result<u64> {
    let mut after = String::new();
    loop {
        let request = Request::UsersList {
            after: after.clone(),
            limit: USERS_PER_REQUEST_MAX,
        };
        let (users, total) = match server.call(request)? {
            Response::Users { users, total } => (users, total),
            other => return Err(unexpected(other)),
        };
        let Some(last) = users.last() else {
            return Ok(total);
        };
        after.clone_from(&last.aor);
        for user in &users {
            f(user)?;
        }
    }
}

fn list(server: &mut Server, json: bool) -> Result {
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        each(server, |user| {
            let value = serde_json::json!({
                "aor": user.aor,
                "md5": !user.ha1.is_empty(),
                "sha256": !user.ha1_sha256.is_empty(),
            });
            writeln!(out, "{value}")
        })?;
    } else {
        let total = each(server, |user| writeln!(out, "{}", user.aor))?;
        out.flush()?;
        // The count is for people; programs count the lines.
        if io::stdout().is_terminal() {
            let text = match total {
                0 => {
                    String::from("No users yet; add one with `sipolis user add alice@example.com`.")
                }
                n => counted(n, "user", "users"),
            };
            writeln!(out, "{}", Paint::stdout().dim(text))?;
        }
    }
    out.flush()?;
    Ok(())
}

fn export(server: &mut Server) -> Result {
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "user,domain,ha1,ha1_sha256")?;
    each(server, |user| {
        let (name, domain) = user.aor.rsplit_once('@').unwrap_or((&user.aor, ""));
        let name = match name.contains([',', '"']) {
            true => format!("\"{}\"", name.replace('"', "\"\"")),
            false => name.to_owned(),
        };
        writeln!(out, "{name},{domain},{},{}", user.ha1, user.ha1_sha256)
    })?;
    out.flush()?;
    Ok(())
}

fn remove(server: &mut Server, address: &Address) -> Result {
    let aor = address.aor.clone();
    match server.call(Request::UserRemove { aor })? {
        Response::Done => {
            let paint = Paint::stdout();
            writeln!(io::stdout(), "{} is removed.", paint.bold(&address.aor))?;
            Ok(())
        }
        Response::NotFound => Err(not_found(address)),
        other => Err(unexpected(other)),
    }
}
