//! SIPp, with scenarios written in one line.

use crate::phone::Transport;
use crate::server::{DOMAIN, PASSWORD};
use crate::{Case, Peer, scenario};
use std::process::Command;

/// One SIPp process.
///
/// A scenario is steps with ` | ` between them, seen from this peer:
///
/// | step | means |
/// | --- | --- |
/// | `> INVITE` | sends the request; in the dialog, once there is one |
/// | `> INVITE+` | the same with the credentials that the challenge before asked for |
/// | `> 200` | answers the request that came last |
/// | `> 487 INVITE` | answers the INVITE, whatever came since |
/// | `< INVITE`, `< 200` | waits for it; anything else fails the call |
/// | `< 100?` | takes it when it comes |
/// | `< 407!` | waits for a challenge |
/// | `wait 50` | milliseconds |
/// | `uas` or `uac` alone | the scenario that SIPp has built in |
pub struct Sipp<'a> {
    case: &'a Case,
    /// Which address of the case it has.
    party: u8,
    transport: Transport,
    user: String,
    password: String,
    callee: String,
    contact_params: String,
    redirect_to: String,
    calls: u32,
    rate: u32,
    measures: bool,
}

impl<'a> Sipp<'a> {
    /// A peer at the case's address `party`.
    #[must_use]
    pub fn new(case: &'a Case, party: u8, transport: Transport, user: &str) -> Self {
        Self {
            case,
            party,
            transport,
            user: user.to_owned(),
            password: PASSWORD.to_owned(),
            callee: String::from("bob"),
            contact_params: String::new(),
            redirect_to: String::new(),
            calls: 20,
            rate: 50,
            measures: false,
        }
    }

    /// Which user of our domain it calls, and how often.
    #[must_use]
    pub fn calls(mut self, callee: &str, calls: u32) -> Self {
        callee.clone_into(&mut self.callee);
        self.calls = calls;
        self
    }

    /// Calls a second.
    #[must_use]
    pub fn rate(mut self, rate: u32) -> Self {
        self.rate = rate;
        self
    }

    /// Another password than the right one.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        password.clone_into(&mut self.password);
        self
    }

    /// Parameters of the Contact that it registers: `;q=0.5`.
    #[must_use]
    pub fn contact_params(mut self, params: &str) -> Self {
        params.clone_into(&mut self.contact_params);
        self
    }

    /// The user that its 302 names.
    #[must_use]
    pub fn redirect_to(mut self, user: &str) -> Self {
        user.clone_into(&mut self.redirect_to);
        self
    }

    /// Plays the scenario to its end.
    ///
    /// # Panics
    /// When a call failed, or the end does not come.
    pub fn plays(&self, script: &str) {
        let mut command = self.command("caller", script);
        command.args(["-m", &self.calls.to_string(), "-r", &self.rate.to_string()]);
        command.args(["-timeout", "60", "-timeout_error"]);
        if self.measures {
            let file = self.case.path(&self.file("caller", "csv"));
            command.args(["-trace_stat", "-fd", "1", "-stf"]).arg(file);
        }
        if script == "uac" {
            command.args(["-sn", "uac"]);
        } else {
            let scenario = self
                .case
                .write(&self.file("caller", "xml"), &scenario::xml(script));
            command.arg("-sf").arg(scenario);
        }
        let mut sipp = Peer::start(&mut command, self.case.path(&self.file("caller", "out")));
        let ended = sipp.ends(90);
        assert!(
            ended.success(),
            "SIPp `{script}` at party {}: {ended}\n{}\n{}",
            self.party,
            self.read("caller", "err"),
            last_screen(&sipp.said()),
        );
    }

    /// Calls a second that it began, as it says itself, from its start until its end.
    ///
    /// # Panics
    /// Before [`plays`](Self::plays) was called with [`with_statistics`](Self::with_statistics).
    #[must_use]
    pub fn rate_achieved(&self) -> f64 {
        let table = self.read("caller", "csv");
        let mut lines = table.lines();
        let names = lines.next().expect("the names of the columns");
        let column = names.split(';').position(|name| name == "CallRate(C)");
        let mut last = lines.last().expect("a line of figures").split(';');
        let rate = last.nth(column.expect("a column of the rate"));
        rate.and_then(|rate| rate.parse().ok()).expect("a number")
    }

    /// Has it write its figures.
    #[must_use]
    pub fn with_statistics(mut self) -> Self {
        self.measures = true;
        self
    }

    /// Registers, and then plays the scenario for every call that comes, until dropped.
    ///
    /// # Panics
    /// When it cannot register.
    #[must_use]
    pub fn answers(&self, script: &str) -> Answering<'_> {
        let register = "> REGISTER | < 401! | > REGISTER+ | < 200 | wait 600000";
        let scenario = self
            .case
            .write(&self.file("register", "xml"), &scenario::xml(register));
        let mut command = self.command("callee", register);
        command.args(["-m", "1"]).arg("-sf").arg(scenario);
        if script == "uas" {
            command.args(["-oocsn", "uas"]);
        } else {
            let scenario = self
                .case
                .write(&self.file("callee", "xml"), &scenario::xml(script));
            command.arg("-oocsf").arg(scenario);
        }
        let peer = Peer::start(&mut command, self.case.path(&self.file("callee", "out")));
        let mut answering = Answering { sipp: self, peer };
        answering.is_registered();
        answering
    }

    fn command(&self, role: &str, script: &str) -> Command {
        let registers = script.starts_with("> REGISTER");
        let uri = if registers {
            DOMAIN.to_owned()
        } else {
            format!("{}@{DOMAIN}", self.callee)
        };
        let case = self.case;
        let local = case.address(self.party);
        let mut command = Command::new("sipp");
        command.arg(case.address(1).to_string());
        command.args([
            "-i",
            &local.ip().to_string(),
            "-p",
            &local.port().to_string(),
        ]);
        command.args([
            "-mi",
            &local.ip().to_string(),
            "-nostdin",
            "-recv_timeout",
            "20000",
        ]);
        command.args([
            "-t",
            if self.transport == Transport::Udp {
                "u1"
            } else {
                "t1"
            },
        ]);
        command.args(["-s", &self.callee, "-au", &self.user, "-ap", &self.password]);
        command.args(["-auth_uri", &uri]);
        command.args(["-key", "domain", DOMAIN, "-key", "user", &self.user]);
        command.args(["-key", "contact_params", &self.contact_params]);
        command.args(["-key", "redirect_to", &self.redirect_to]);
        for (flag, name, file) in [
            ("-trace_err", "-error_file", "err"),
            ("-trace_msg", "-message_file", "msg"),
        ] {
            command
                .arg(flag)
                .arg(name)
                .arg(case.path(&self.file(role, file)));
        }
        command
    }

    fn file(&self, role: &str, extension: &str) -> String {
        format!("{role}{}.{extension}", self.party)
    }

    fn read(&self, role: &str, extension: &str) -> String {
        crate::case::text(&self.case.path(&self.file(role, extension)))
    }
}

/// A registered SIPp that takes calls.
pub struct Answering<'a> {
    sipp: &'a Sipp<'a>,
    peer: Peer,
}

impl Answering<'_> {
    /// How often a message with this start line came in.
    #[must_use]
    pub fn received(&self, start: &str) -> usize {
        let messages = self.sipp.read("callee", "msg");
        let mut received = messages.split("message received").skip(1);
        let starts = |part: &&str| {
            let text = part.split("-----").next().unwrap_or_default();
            let line = text.lines().skip(1).find(|line| !line.trim().is_empty());
            line.is_some_and(|line| line.starts_with(start))
        };
        received.by_ref().filter(starts).count()
    }

    /// Ends it and makes sure that every call went as its scenario says.
    ///
    /// # Panics
    /// When a message came that the scenario does not know, or one did not come.
    pub fn ends(mut self) {
        self.peer.kill();
        let errors = self.sipp.read("callee", "err");
        for word in [
            "unexpected",
            "Unexpected",
            "Aborting",
            "timed out",
            "timeout",
        ] {
            assert!(
                !errors.contains(word),
                "SIPp callee at party {}:\n{errors}",
                self.sipp.party
            );
        }
    }

    fn is_registered(&mut self) {
        let Self { sipp, peer } = self;
        crate::within(20, "the registration of a SIPp callee", || {
            assert!(
                peer.ended().is_none(),
                "SIPp ended:\n{}\n{}",
                sipp.read("callee", "err"),
                peer.said()
            );
            sipp.read("callee", "msg")
                .contains("SIP/2.0 200")
                .then_some(())
        });
    }
}

/// The end of what SIPp drew: its last screen.
fn last_screen(said: &str) -> &str {
    let at = said.rfind("Statistics Screen").unwrap_or(0);
    said.get(at..).unwrap_or(said)
}
