//! `sipolis demo`: the server, two phones that call each other through it, and each message shown.

mod credentials;
mod ladder;
mod phone;
mod wire;

use crate::failure::{Failure, Result};
use crate::password;
use crate::serve::{self, Running, Setup, Source};
use crate::terminal::Paint;
use credentials::Login;
use ladder::{Ladder, Side};
use phone::Phone;
use sip_core::ha1;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::Wire;

/// Shows the server at work: two phones register and call each other
///
/// Runs the server of `sipolis serve` on a data directory of its own, makes two users, and lets two built-in phones register with
/// digest and call each other through it: alice over UDP, bob over TCP. Then it stays up for a phone of yours.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sipolis demo")]
pub(crate) struct Arguments {
    /// Ends after the call; the exit status says whether it went well
    #[arg(long)]
    once: bool,
    /// Port for UDP and TCP; 0: any free one [default: 5060, or the next free one]
    #[arg(long)]
    port: Option<u16>,
}

/// The domain of the demo (RFC 2606 keeps `example` for such things).
const DOMAIN: &str = "demo.example";

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let paint = Paint::stdout();
    let data = Temporary::make()?;
    let port = choose_port(arguments.port)?;
    let source = Source::new(serve::Arguments {
        data: Some(data.0.clone()),
        listen: config::Listen::everywhere(port),
        domain: vec![config::Domain(String::from(DOMAIN))],
        ..serve::Arguments::default()
    });
    let mut running = Setup::new(source)?.start()?;
    let (alice, bob) = (password::make()?, password::make()?);
    for (user, password) in [("alice", &alice), ("bob", &bob)] {
        let aor = format!("{user}@{DOMAIN}");
        let added = running
            .subscribers()
            .put(aor.as_bytes(), ha1(user, DOMAIN, password));
        added.map_err(|error| Failure::new(error.to_string()))?;
    }

    println!("{}", paint.bold("sipolis demo"));
    println!("  A server on UDP and TCP port {port}, for the domain {DOMAIN}, and its two users:");
    println!("    alice   password {}", paint.bold(&alice));
    println!("    bob     password {}", paint.bold(&bob));
    let ladder = Arc::new(Ladder::new(paint));
    let login = |user: &str, password: &str| Login {
        user: user.to_owned(),
        password: password.to_owned(),
    };
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let phone = |login, wire, side| Phone::new(login, DOMAIN, wire, side, Arc::clone(&ladder));
    let mut first = phone(login("alice", &alice), Wire::udp(server)?, Side::Left)?;
    let mut second = phone(login("bob", &bob), Wire::tcp(server)?, Side::Right)?;
    call(&ladder, &mut first, &mut second)?;
    println!(
        "\n{}",
        paint.good("Both phones are registered, and the call went through.")
    );
    if !arguments.once {
        stay(
            paint,
            port,
            &alice,
            &ladder,
            &mut first,
            &mut second,
            &mut running,
        )?;
    }
    running.stop()
}

/// Registers both phones; one calls the other, which answers, and hangs up.
fn call(ladder: &Ladder, alice: &mut Phone, bob: &mut Phone) -> Result {
    let titled = |title: &str| ladder.begin(title, "alice (UDP)", "bob (TCP)");
    titled("Two phones register");
    alice.sign_on()?;
    bob.sign_on()?;
    titled("alice calls bob");
    let mut dialog = alice.invite("bob")?;
    let invite = bob.expect_request("INVITE")?;
    bob.respond(&invite, 180, "bobs-phone")?;
    alice.ringing(&dialog)?;
    bob.respond(&invite, 200, "bobs-phone")?;
    alice.answered(&mut dialog)?;
    bob.expect_request("ACK")?;
    alice.bye(&mut dialog)?;
    let bye = bob.expect_request("BYE")?;
    bob.respond(&bye, 200, "")?;
    alice.hung_up(&dialog)
}

/// Leaves alice's place to the reader's phone; bob answers, until Ctrl-C.
fn stay(
    paint: Paint,
    port: u16,
    password: &str,
    ladder: &Ladder,
    alice: &mut Phone,
    bob: &mut Phone,
    running: &mut Running,
) -> Result {
    ladder.begin(
        "alice's phone leaves its place to yours",
        "alice (UDP)",
        "bob (TCP)",
    );
    alice.register(0)?;
    println!("\n{}", paint.bold("Now your own phone"));
    println!("  Type into it:");
    for (what, value) in [
        ("server, domain", reachable(port)),
        ("user name", String::from("alice")),
        ("password", password.to_owned()),
        ("transport", String::from("UDP or TCP")),
    ] {
        println!("    {what:<16}{}", paint.bold(value));
    }
    println!(
        "  Then call {}: the built-in phone answers, and shows what it sends and gets.",
        paint.bold("bob")
    );
    println!("  {}", paint.dim("Look around from another terminal:"));
    for command in ["status", "bindings", "user list"] {
        println!(
            "    {}",
            paint.dim(format!(
                "sipolis {command} --data {}",
                running.data().display()
            ))
        );
    }
    println!(
        "  {}",
        paint.dim("Ctrl-C ends the demo and removes its data.")
    );
    ladder.begin("Calls to bob", "", "bob (TCP)");
    let mut refresh = Instant::now() + Duration::from_secs(240);
    while !running.asked_to_stop() {
        bob.attend(Duration::from_millis(250))?;
        if refresh <= Instant::now() {
            bob.sign_on()?;
            refresh = Instant::now() + Duration::from_secs(240);
        }
    }
    println!();
    Ok(())
}

/// The server's address as a phone in the same network would reach it.
fn reachable(port: u16) -> String {
    let addresses = net::local_addresses().unwrap_or_default();
    let ip = addresses
        .iter()
        .find(|ip| ip.is_ipv4() && !ip.is_loopback())
        .map_or_else(|| Ipv4Addr::LOCALHOST.to_string(), ToString::to_string);
    match port {
        5060 => ip,
        port => format!("{ip}:{port}"),
    }
}

/// A port that is free for UDP and TCP.
fn choose_port(wanted: Option<u16>) -> Result<u16> {
    match wanted {
        Some(0) => return any_port(),
        Some(port) => return Ok(port),
        None => {}
    }
    let port = [5060, 5070, 5080, 5090]
        .into_iter()
        .find(|port| is_free(*port))
        .ok_or_else(|| {
            Failure::new("ports 5060, 5070, 5080 and 5090 are in use; choose another with --port")
        })?;
    if port != 5060 {
        println!("Port 5060 is in use; this is port {port}.");
    }
    Ok(port)
}

/// One that the system has given for UDP, and that is free for TCP.
fn any_port() -> Result<u16> {
    for _ in 0..100 {
        let port = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?
            .local_addr()?
            .port();
        if is_free(port) {
            return Ok(port);
        }
    }
    Err(Failure::new("no free port was found"))
}

fn is_free(port: u16) -> bool {
    let address = (Ipv4Addr::UNSPECIFIED, port);
    UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
}

/// A directory that goes with the demo.
struct Temporary(PathBuf);

impl Temporary {
    fn make() -> Result<Self> {
        let mut random = [0; 4];
        password::fill(&mut random)?;
        let name = format!("sipolis-demo-{}", admin::control::hex(&random));
        Ok(Self(std::env::temp_dir().join(name)))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            let _ = writeln!(io::stderr(), "{} is left: {error}", self.0.display());
        }
    }
}
