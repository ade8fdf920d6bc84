//! SIPp, with scenarios written in one line.

use crate::phone::Transport;
use crate::server::{DOMAIN, PASSWORD};
use crate::{Case, Peer};
use std::fmt::Write as _;
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
        if script == "uac" {
            command.args(["-sn", "uac"]);
        } else {
            let scenario = self.case.write(&self.file("caller", "xml"), &xml(script));
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

    /// Registers, and then plays the scenario for every call that comes, until dropped.
    ///
    /// # Panics
    /// When it cannot register.
    #[must_use]
    pub fn answers(&self, script: &str) -> Answering<'_> {
        let register = "> REGISTER | < 401! | > REGISTER+ | < 200 | wait 600000";
        let scenario = self
            .case
            .write(&self.file("register", "xml"), &xml(register));
        let mut command = self.command("callee", register);
        command.args(["-m", "1"]).arg("-sf").arg(scenario);
        if script == "uas" {
            command.args(["-oocsn", "uas"]);
        } else {
            let scenario = self.case.write(&self.file("callee", "xml"), &xml(script));
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

/// The scenario as SIPp reads it.
fn xml(script: &str) -> String {
    let mut writer = Writer::default();
    for step in script.split(" | ") {
        writer.step(step);
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- {} -->\n<scenario name=\"{}\">\n{}</scenario>\n",
        script.replace("--", ""),
        script.replace(['<', '>', '"', '&'], ""),
        writer.xml
    )
}

/// What the steps so far have come to.
#[derive(Default)]
struct Writer {
    xml: String,
    /// Number of the next message: SIPp derives branches from it.
    index: usize,
    /// Of the last INVITE sent, and its CSeq.
    invite_at: usize,
    invite_cseq: u32,
    cseq: u32,
    /// A response with a To tag came for our INVITE.
    dialog: bool,
    /// An INVITE came: the other side began the dialog.
    called: bool,
    /// The last request that came was an INVITE.
    invite_last: bool,
    /// The last final response was no 2xx.
    failed: bool,
    /// The call is not set up yet, so requests but PRACK and UPDATE repeat the INVITE's.
    answered: bool,
}

impl Writer {
    fn step(&mut self, step: &str) {
        let (kind, rest) = step.split_once(' ').unwrap_or((step, ""));
        match (kind, rest) {
            ("wait", time) => {
                let _ = writeln!(self.xml, "<pause milliseconds=\"{time}\"/>");
            }
            ("<", rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                self.receive_response(rest)
            }
            ("<", method) => self.receive_request(method),
            (">", rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                self.send_response(rest)
            }
            (">", method) => self.send_request(method),
            _ => panic!("no such step: {step}"),
        }
        self.index += 1;
    }

    fn receive_response(&mut self, rest: &str) {
        let status = &rest[..3];
        let attributes = match &rest[3..] {
            "?" => " optional=\"true\"",
            "!" => " auth=\"true\"",
            _ => "",
        };
        // SIPp keeps the first route set it is told to: that of the response that makes the dialog.
        let makes_dialog = !self.dialog && (status == "183" || status.starts_with('2'));
        let routes = if makes_dialog { " rrs=\"true\"" } else { "" };
        let _ = writeln!(
            self.xml,
            "<recv response=\"{status}\"{routes}{attributes}/>"
        );
        self.failed = status >= "300";
        self.answered |= status.starts_with('2') && self.invite_cseq == self.cseq;
        self.dialog |= self.answered || status == "183";
    }

    fn receive_request(&mut self, method: &str) {
        self.invite_last = method == "INVITE";
        let first = self.invite_last && !self.called;
        self.called |= first;
        self.xml += &if first {
            FIRST_INVITE.to_owned()
        } else {
            format!("<recv request=\"{method}\"/>\n")
        };
    }

    fn send_response(&mut self, rest: &str) {
        let (status, invite) = rest
            .split_once(' ')
            .map_or((rest, false), |(status, _)| (status, true));
        let reason = reason(status);
        let tag = ";tag=[pid]callee[call_number]";
        let mut text = format!("SIP/2.0 {status} {reason}\n");
        if invite {
            let _ = writeln!(
                text,
                "[$via]\n[$from]\n[$to]{tag}\n[$cseq]\n[$route]\nCall-ID: [call_id]"
            );
        } else {
            let tag = if self.answered { "" } else { tag };
            let _ = writeln!(
                text,
                "[last_Via:]\n[last_From:]\n[last_To:]{tag}\n[last_CSeq:]\n[last_Record-Route:]\n[last_Call-ID:]"
            );
        }
        match status {
            "183" => text += "Require: 100rel\nRSeq: 1\n",
            "302" => text += "Contact: <sip:[redirect_to]@[domain]>\n",
            _ => {}
        }
        if status != "302" {
            text += "Contact: <sip:[user]@[local_ip]:[local_port];transport=[transport]>\n";
        }
        text += if matches!(status, "200" | "183") {
            SDP
        } else {
            "Content-Length: 0\n\n"
        };
        // SIPp sends it again until the next message comes, which for an INVITE is the ACK.
        let final_to_invite = !status.starts_with('1') && (invite || self.invite_last);
        let again = if final_to_invite {
            " retrans=\"500\""
        } else {
            ""
        };
        let _ = writeln!(self.xml, "<send{again}><![CDATA[\n\n{text}\n]]></send>");
        self.answered |= status.starts_with('2') && self.called;
        self.dialog |= self.called;
    }

    fn send_request(&mut self, method: &str) {
        let (method, credentials) = match method.strip_suffix('+') {
            Some(method) => (method, "[authentication]\n"),
            None => (method, ""),
        };
        let text = match method {
            "ACK" if self.failed => self.ack_of_failure(),
            "CANCEL" => self.cancel(),
            "REGISTER" => self.register(credentials),
            _ if self.dialog && self.called => self.callee_request(method),
            _ if self.dialog => self.dialog_request(method),
            _ => self.first_request(method, credentials),
        };
        let again = if method == "ACK" {
            ""
        } else {
            " retrans=\"500\""
        };
        let _ = writeln!(self.xml, "<send{again}><![CDATA[\n\n{text}\n]]></send>");
    }

    fn first_request(&mut self, method: &str, credentials: &str) -> String {
        self.cseq += 1;
        self.mark_invite(method);
        let body = if method == "INVITE" {
            SDP
        } else {
            "Content-Length: 0\n\n"
        };
        format!(
            "{method} sip:[service]@[domain] SIP/2.0\n{VIA};branch=[branch]\n{FROM}\nTo: <sip:[service]@[domain]>\n\
             {}{credentials}Supported: 100rel\n{CONTACT}\n{body}",
            common(self.cseq, method)
        )
    }

    fn dialog_request(&mut self, method: &str) -> String {
        let ack = method == "ACK";
        if !ack {
            self.cseq += 1;
            self.mark_invite(method);
        }
        let cseq = if ack { self.invite_cseq } else { self.cseq };
        let rack = if method == "PRACK" {
            format!("RAck: 1 {} INVITE\n", self.invite_cseq)
        } else {
            String::new()
        };
        let body = if method == "INVITE" {
            SDP
        } else {
            "Content-Length: 0\n\n"
        };
        format!(
            "{method} [next_url] SIP/2.0\n{VIA};branch=[branch]\n{FROM}\n\
             To: <sip:[service]@[domain]>[peer_tag_param]\n[routes]\n{}{rack}{CONTACT}\n{body}",
            common(cseq, method)
        )
    }

    /// SIPp numbers all calls that come outside of its main scenario 0, so the branch is made from the caller's tag.
    fn callee_request(&mut self, method: &str) -> String {
        self.cseq += 1;
        format!(
            "{method} [next_url] SIP/2.0\n{VIA};branch=z9hG4bK[$caller_tag]-{}\nFrom:[$to_value];tag=[pid]callee[call_number]\n\
             To:[$from_value]\n[routes]\n{}{CONTACT}\nContent-Length: 0\n\n",
            self.index,
            common(self.cseq, method)
        )
    }

    /// ACK to a final response that is no 2xx: the INVITE's branch (RFC 3261 section 17.1.1.3).
    fn ack_of_failure(&self) -> String {
        format!(
            "ACK sip:[service]@[domain] SIP/2.0\n{VIA};branch=[branch-{}]\n{FROM}\n\
             To: <sip:[service]@[domain]>[peer_tag_param]\n{}Content-Length: 0\n\n",
            self.index - self.invite_at,
            common(self.invite_cseq, "ACK")
        )
    }

    /// CANCEL: the INVITE's branch and To (RFC 3261 section 9.1).
    fn cancel(&self) -> String {
        format!(
            "CANCEL sip:[service]@[domain] SIP/2.0\n{VIA};branch=[branch-{}]\n{FROM}\nTo: <sip:[service]@[domain]>\n\
             {}Content-Length: 0\n\n",
            self.index - self.invite_at,
            common(self.invite_cseq, "CANCEL")
        )
    }

    fn register(&mut self, credentials: &str) -> String {
        self.cseq += 1;
        format!(
            "REGISTER sip:[domain] SIP/2.0\n{VIA};branch=[branch]\n{FROM}\nTo: <sip:[user]@[domain]>\n\
             {}{credentials}Contact: <sip:[user]@[local_ip]:[local_port];transport=[transport]>[contact_params]\n\
             Expires: 600\nContent-Length: 0\n\n",
            common(self.cseq, "REGISTER")
        )
    }

    fn mark_invite(&mut self, method: &str) {
        if method == "INVITE" {
            (self.invite_at, self.invite_cseq) = (self.index, self.cseq);
        }
    }
}

fn common(cseq: u32, method: &str) -> String {
    format!("Call-ID: [call_id]\nCSeq: {cseq} {method}\nMax-Forwards: 70\n")
}

fn reason(status: &str) -> &'static str {
    match status {
        "180" => "Ringing",
        "183" => "Session Progress",
        "200" => "OK",
        "302" => "Moved Temporarily",
        "486" => "Busy Here",
        "487" => "Request Terminated",
        "603" => "Decline",
        _ => "As Told",
    }
}

/// The callee's first INVITE, with what later answers to it and the callee's own requests are made from.
/// `last_` would still be the message before in an action of the `<recv>` itself.
const FIRST_INVITE: &str = r#"<recv request="INVITE" rrs="true"><action>
<ereg regexp=".*" search_in="hdr" header="From:" assign_to="from_value"/>
<ereg regexp=".*" search_in="hdr" header="To:" assign_to="to_value"/>
<ereg regexp="tag=([^;]*)" search_in="hdr" header="From:" assign_to="caller_parameter,caller_tag"/>
</action></recv>
<nop><action>
<assignstr assign_to="via" value="[last_Via:]"/>
<assignstr assign_to="from" value="[last_From:]"/>
<assignstr assign_to="to" value="[last_To:]"/>
<assignstr assign_to="cseq" value="[last_CSeq:]"/>
<assignstr assign_to="route" value="[last_Record-Route:]"/>
</action></nop>
<Reference variables="via,from,to,cseq,route,from_value,to_value,caller_parameter,caller_tag"/>
"#;
const VIA: &str = "Via: SIP/2.0/[transport] [local_ip]:[local_port];rport";
const FROM: &str = "From: <sip:[user]@[domain]>;tag=[pid]caller[call_number]";
const CONTACT: &str = "Contact: <sip:[user]@[local_ip]:[local_port];transport=[transport]>";
const SDP: &str = "Content-Type: application/sdp\nContent-Length: [len]\n\nv=0\no=user 1 1 IN IP4 [local_ip]\ns=-\n\
                   c=IN IP4 [media_ip]\nt=0 0\nm=audio [media_port] RTP/AVP 0\na=rtpmap:0 PCMU/8000\n";
