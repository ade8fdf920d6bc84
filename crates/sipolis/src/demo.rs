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
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::Wire;

/// Prints a line; that nobody reads it is no fault.
macro_rules! say {
    ($($text:tt)*) => {{
        let _ = writeln!(io::stdout(), $($text)*);
    }};
}

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
    // Dropped last: the directory goes when the server has ended.
    let data = Temporary::make()?;
    let mut demo = Demo::start(paint, choose_port(arguments.port)?, &data.0)?;
    demo.call()?;
    say!(
        "\n{}",
        paint.good("Both phones are registered, and the call went through.")
    );
    if !arguments.once {
        demo.stay()?;
    }
    demo.running.stop()
}

/// The server, and the two phones.
struct Demo {
    paint: Paint,
    port: u16,
    /// alice's, for the reader.
    password: String,
    ladder: Arc<Ladder>,
    alice: Phone,
    bob: Phone,
    running: Running,
}

impl Demo {
    fn start(paint: Paint, port: u16, data: &Path) -> Result<Self> {
        let source = Source::new(serve::Arguments {
            data: Some(data.to_owned()),
            listen: config::Listen::everywhere(port),
            domain: vec![config::Domain(String::from(DOMAIN))],
            ..serve::Arguments::default()
        });
        let running = Setup::new(source)?.start()?;
        say!("{}", paint.bold("sipolis demo"));
        say!("  A server on UDP and TCP port {port}, for the domain {DOMAIN}, and its two users:");
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let ladder = Arc::new(Ladder::new(paint));
        let phone = |user: &str, wire, side| {
            let login = add_user(&running, user)?;
            say!("    {user:<7} password {}", paint.bold(&login.password));
            let password = login.password.clone();
            let phone = Phone::new(login, DOMAIN, wire, side, Arc::clone(&ladder))?;
            Ok::<_, Failure>((phone, password))
        };
        let (alice, password) = phone("alice", Wire::udp(server)?, Side::Left)?;
        let (bob, _) = phone("bob", Wire::tcp(server)?, Side::Right)?;
        Ok(Self {
            paint,
            port,
            password,
            ladder,
            alice,
            bob,
            running,
        })
    }

    /// Registers both phones; one calls the other, which answers, and hangs up.
    fn call(&mut self) -> Result {
        let Self {
            ladder, alice, bob, ..
        } = self;
        ladder.begin("Two phones register", ALICE, BOB);
        alice.sign_on()?;
        bob.sign_on()?;
        ladder.begin("alice calls bob", ALICE, BOB);
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
    fn stay(&mut self) -> Result {
        let title = "alice's phone leaves its place to yours";
        self.ladder.begin(title, ALICE, BOB);
        self.alice.register(0)?;
        self.instruct();
        self.ladder.begin("Calls to bob", "", BOB);
        let mut refresh = Instant::now() + REFRESH;
        while !self.running.asked_to_stop() {
            self.bob.attend(Duration::from_millis(250))?;
            if refresh <= Instant::now() {
                self.bob.sign_on()?;
                refresh = Instant::now() + REFRESH;
            }
        }
        say!();
        Ok(())
    }

    /// What to type into a phone, and where else to look.
    fn instruct(&self) {
        let paint = self.paint;
        say!("\n{}", paint.bold("Now your own phone"));
        say!("  Type into it:");
        for (what, value) in [
            ("server, domain", reachable(self.port)),
            ("user name", String::from("alice")),
            ("password", self.password.clone()),
            ("transport", String::from("UDP or TCP")),
        ] {
            say!("    {what:<16}{}", paint.bold(value));
        }
        say!(
            "  Then call {}: the built-in phone answers, and shows what it sends and gets.",
            paint.bold("bob")
        );
        say!("  {}", paint.dim("Look around from another terminal:"));
        let data = self.running.data().display();
        for command in ["status", "bindings", "user list"] {
            let text = format!("    sipolis {command} --data {data}");
            say!("{}", paint.dim(text));
        }
        let end = "Ctrl-C ends the demo and removes its data.";
        say!("  {}", paint.dim(end));
    }
}

/// Heads of the columns.
const ALICE: &str = "alice (UDP)";
const BOB: &str = "bob (TCP)";

/// How often bob registers anew.
const REFRESH: Duration = Duration::from_secs(240);

/// Adds a user with a password made for it.
fn add_user(running: &Running, user: &str) -> Result<Login> {
    let password = password::make()?;
    let aor = format!("{user}@{DOMAIN}");
    running
        .subscribers()
        .put(aor.as_bytes(), ha1(user, DOMAIN, &password))
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(Login {
        user: user.to_owned(),
        password,
    })
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
        say!("Port 5060 is in use; this is port {port}.");
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
