use super::credentials::{Challenge, Login};
use super::ladder::{Ladder, Side, Way};
use super::wire::{Incoming, Wire};
use crate::failure::{Failure, Result};
use crate::password;
use admin::control::hex;
use sip_wire::{Message, Name, Response, reason_phrase};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a phone of the demo waits for what has to come.
const WAIT: Duration = Duration::from_secs(5);

/// Seconds that it asks its registration to last.
const EXPIRES: u32 = 600;

/// A small phone: registers, calls, answers. Shows each message in the ladder.
pub(crate) struct Phone {
    login: Login,
    domain: String,
    wire: Wire,
    side: Side,
    ladder: Arc<Ladder>,
    /// Call-ID and tag of its registration.
    registration: (String, String),
    cseq: u32,
    /// The call that it answered and whose ACK has not come: the 200, and when to send it again.
    unacknowledged: Option<(Vec<u8>, Instant, Duration)>,
}

/// A dialog (RFC 3261 section 12), as the caller has it.
pub(crate) struct Dialog {
    call_id: String,
    from: String,
    to: String,
    target: String,
    routes: Vec<String>,
    cseq: u32,
}

/// A request that is being sent.
struct Outgoing<'a> {
    method: &'a str,
    uri: &'a str,
    from: &'a str,
    to: &'a str,
    call_id: &'a str,
    cseq: u32,
    routes: &'a [String],
    /// Further header lines.
    headers: &'a str,
    body: &'a str,
}

impl Phone {
    pub(crate) fn new(
        login: Login,
        domain: &str,
        wire: Wire,
        side: Side,
        ladder: Arc<Ladder>,
    ) -> Result<Self> {
        Ok(Self {
            login,
            domain: domain.to_owned(),
            wire,
            side,
            ladder,
            registration: (unique()?, unique()?),
            cseq: 0,
            unacknowledged: None,
        })
    }

    /// Registers, or, with 0 seconds, takes the registration back.
    pub(crate) fn register(&mut self, expires: u32) -> Result {
        let (call_id, tag) = self.registration.clone();
        let to = format!("<{}>", self.address());
        let from = format!("{to};tag={tag}");
        let uri = format!("sip:{}", self.domain);
        let contact = format!("Contact: {}\r\nExpires: {expires}\r\n", self.contact()?);
        self.cseq += 1;
        let mut request = Outgoing {
            method: "REGISTER",
            uri: &uri,
            from: &from,
            to: &to,
            call_id: &call_id,
            cseq: self.cseq,
            routes: &[],
            headers: &contact,
            body: "",
        };
        let (code, mut response) = self.transact(&request)?;
        if code == 401 {
            let credentials = self.credentials(&response.message(), "REGISTER", &uri)?;
            let headers = format!("{contact}{credentials}");
            self.cseq += 1;
            request.cseq = self.cseq;
            request.headers = &headers;
            response = self.transact(&request)?.1;
        }
        expect(&response, "REGISTER", 200)
    }

    /// Registers for as long as the demo's phones do.
    pub(crate) fn sign_on(&mut self) -> Result {
        self.register(EXPIRES)
    }

    /// Calls somebody, as far as the first sign that the server takes the call.
    pub(crate) fn invite(&mut self, user: &str) -> Result<Dialog> {
        let uri = format!("sip:{user}@{}", self.domain);
        let mut dialog = Dialog {
            call_id: unique()?,
            from: format!("<{}>;tag={}", self.address(), unique()?),
            to: format!("<{uri}>"),
            target: uri,
            routes: Vec::new(),
            cseq: 1,
        };
        let offer = self.sdp()?;
        let contact = format!(
            "Contact: {}\r\nContent-Type: application/sdp\r\n",
            self.contact()?
        );
        let branch = self.send(&dialog.request("INVITE", &contact, &offer), None)?;
        let response = self.response(&dialog.call_id, |code| code > 100)?;
        expect(&response, "INVITE without credentials", 407)?;
        // The ACK of a refusal belongs to the INVITE's transaction (RFC 3261 section 17.1.1.3).
        let to = header(&response.message(), Name::To);
        let mut ack = dialog.request("ACK", "", "");
        ack.to = &to;
        self.send(&ack, Some(branch))?;
        let credentials = self.credentials(&response.message(), "INVITE", &dialog.target)?;
        dialog.cseq += 1;
        let headers = format!("{contact}{credentials}");
        self.send(&dialog.request("INVITE", &headers, &offer), None)?;
        let response = self.response(&dialog.call_id, |_| true)?;
        expect(&response, "INVITE", 100)?;
        Ok(dialog)
    }

    /// Waits for the answer to the INVITE that stands out, and acknowledges it.
    pub(crate) fn answered(&mut self, dialog: &mut Dialog) -> Result {
        let response = self.response(&dialog.call_id, |code| code >= 200)?;
        expect(&response, "INVITE", 200)?;
        dialog.establish(&response.message())?;
        self.send(&dialog.request("ACK", "", ""), None)?;
        Ok(())
    }

    /// Waits until the called phone rings.
    pub(crate) fn ringing(&mut self, dialog: &Dialog) -> Result {
        let response = self.response(&dialog.call_id, |code| code >= 180)?;
        expect(&response, "INVITE", 180)
    }

    /// Hangs up; the answer is [`Phone::hung_up`].
    pub(crate) fn bye(&mut self, dialog: &mut Dialog) -> Result {
        dialog.cseq += 1;
        self.send(&dialog.request("BYE", "", ""), None)?;
        Ok(())
    }

    /// Waits for the answer to the BYE.
    pub(crate) fn hung_up(&mut self, dialog: &Dialog) -> Result {
        let response = self.response(&dialog.call_id, |code| code >= 200)?;
        expect(&response, "BYE", 200)
    }

    /// Waits for a request of that method and shows it; others are served meanwhile.
    pub(crate) fn expect_request(&mut self, method: &str) -> Result<Incoming> {
        let give_up = Instant::now() + WAIT;
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let incoming = self.incoming(left.max(Duration::from_millis(1)))?;
            match incoming {
                Some(incoming) if is_request(&incoming, method) => return Ok(incoming),
                Some(incoming) => self.serve(&incoming)?,
                None if left.is_zero() => {
                    return Err(self.missed(&format!("{method} did not come")));
                }
                None => {}
            }
        }
    }

    /// Responds to a request.
    pub(crate) fn respond(&mut self, request: &Incoming, code: u16, tag: &str) -> Result<Vec<u8>> {
        let message = request.message();
        let method = text(message.method_text());
        let (mut headers, mut body) = (String::new(), String::new());
        if method == "INVITE" {
            let _ = write!(headers, "Contact: {}\r\n", self.contact()?);
            if code == 200 {
                headers.push_str("Content-Type: application/sdp\r\n");
                body = self.sdp()?;
            }
        }
        let mut bytes = Vec::new();
        Response {
            request: message,
            code,
            reason: "",
            source: None,
            to_tag: tag.as_bytes(),
        }
        .write(headers.as_bytes(), body.as_bytes(), &mut bytes);
        let label = format!("{code} {}", reason_phrase(code));
        self.ladder.message(self.side, Way::Sent, &label);
        self.wire.send(&bytes)?;
        Ok(bytes)
    }

    /// Serves whatever comes for a while: rings and answers at once, until the caller hangs up.
    pub(crate) fn attend(&mut self, wait: Duration) -> Result {
        match self.incoming(wait)? {
            Some(incoming) => self.serve(&incoming)?,
            None => self.repeat_answer()?,
        }
        Ok(())
    }

    fn serve(&mut self, incoming: &Incoming) -> Result {
        let message = incoming.message();
        if message.code().is_some() {
            return Ok(());
        }
        match message.method_text() {
            b"INVITE" => {
                let tag = unique()?;
                self.respond(incoming, 180, &tag)?;
                let answer = self.respond(incoming, 200, &tag)?;
                let wait = Duration::from_millis(500);
                self.unacknowledged = Some((answer, Instant::now() + wait, wait));
            }
            b"ACK" => self.unacknowledged = None,
            b"BYE" | b"CANCEL" | b"OPTIONS" | b"MESSAGE" | b"INFO" | b"UPDATE" => {
                self.respond(incoming, 200, "")?;
            }
            _ => drop(self.respond(incoming, 501, "")?),
        }
        Ok(())
    }

    /// The 200 to an INVITE is sent until its ACK comes (RFC 3261 section 13.3.1.4), up to 64*T1.
    fn repeat_answer(&mut self) -> Result {
        let Some((answer, at, wait)) = &mut self.unacknowledged else {
            return Ok(());
        };
        if *wait > Duration::from_secs(16) {
            self.unacknowledged = None;
        } else if *at <= Instant::now() {
            *wait *= 2;
            *at = Instant::now() + *wait;
            self.ladder.message(self.side, Way::Sent, "200 OK, again");
            let answer = answer.clone();
            self.wire.send(&answer)?;
        }
        Ok(())
    }

    /// Sends a request and waits for its final response.
    fn transact(&mut self, request: &Outgoing<'_>) -> Result<(u16, Incoming)> {
        self.send(request, None)?;
        let response = self.response(request.call_id, |code| code >= 200)?;
        Ok((response.message().code().unwrap_or(0), response))
    }

    /// Waits for a response that fits; shows all that comes.
    fn response(&mut self, call_id: &str, fits: impl Fn(u16) -> bool) -> Result<Incoming> {
        let give_up = Instant::now() + WAIT;
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            let Some(incoming) = self.incoming(left.max(Duration::from_millis(1)))? else {
                if left.is_zero() {
                    return Err(self.missed("no answer came"));
                }
                continue;
            };
            let message = incoming.message();
            match message.code() {
                Some(code) => {
                    if message.call_id() == Ok(call_id.as_bytes()) && fits(code) {
                        return Ok(incoming);
                    }
                }
                None => self.serve(&incoming)?,
            }
        }
    }

    fn missed(&self, what: &str) -> Failure {
        Failure::new(format!(
            "{}'s phone: {what} within {} s",
            self.login.user,
            WAIT.as_secs()
        ))
    }

    /// The next message, shown.
    fn incoming(&mut self, wait: Duration) -> Result<Option<Incoming>> {
        let incoming = self.wire.receive(wait)?;
        if let Some(incoming) = &incoming {
            let message = incoming.message();
            let label = match message.code() {
                Some(code) => format!("{code} {}", reason_phrase(code)),
                None => text(message.method_text()),
            };
            self.ladder.message(self.side, Way::Received, &label);
        }
        Ok(incoming)
    }

    /// Sends a request, shows it, and gives its branch; `branch`: that of the transaction it belongs to.
    fn send(&mut self, request: &Outgoing<'_>, branch: Option<String>) -> Result<String> {
        let branch = match branch {
            Some(branch) => branch,
            None => format!("z9hG4bK{}", unique()?),
        };
        let mut text = format!(
            "{} {} SIP/2.0\r\nVia: SIP/2.0/{} {};rport;branch={branch}\r\nMax-Forwards: 70\r\n",
            request.method,
            request.uri,
            self.wire.name(),
            self.wire.local()?
        );
        for route in request.routes {
            let _ = write!(text, "Route: {route}\r\n");
        }
        let _ = write!(
            text,
            "From: {}\r\nTo: {}\r\nCall-ID: {}\r\nCSeq: {} {}\r\n{}User-Agent: sipolis demo\r\nContent-Length: {}\r\n\r\n{}",
            request.from,
            request.to,
            request.call_id,
            request.cseq,
            request.method,
            request.headers,
            request.body.len(),
            request.body
        );
        let label = match request.headers.contains("uthorization: ") {
            true => format!("{} + credentials", request.method),
            false => request.method.to_owned(),
        };
        self.ladder.message(self.side, Way::Sent, &label);
        self.wire.send(text.as_bytes())?;
        Ok(branch)
    }

    /// The header line that answers the challenge in a response.
    fn credentials(&self, response: &Message<'_>, method: &str, uri: &str) -> Result<String> {
        let (ask, answer) = match response.code() {
            Some(401) => (Name::WwwAuthenticate, "Authorization"),
            _ => (Name::ProxyAuthenticate, "Proxy-Authorization"),
        };
        let challenge = Challenge::strongest(response.headers(ask).map(|header| header.value))?;
        let value = self.login.answer(&challenge, method, uri, &unique()?);
        Ok(format!("{answer}: {value}\r\n"))
    }

    fn address(&self) -> String {
        format!("sip:{}@{}", self.login.user, self.domain)
    }

    fn contact(&self) -> Result<String> {
        let transport = match self.wire {
            Wire::Udp(_) => "",
            Wire::Tcp(..) => ";transport=tcp",
        };
        let local = self.wire.local()?;
        Ok(format!("<sip:{}@{local}{transport}>", self.login.user))
    }

    /// A call without sound: this phone has no ear.
    fn sdp(&self) -> Result<String> {
        let local = self.wire.local()?.ip();
        let family = if local.is_ipv4() { "IP4" } else { "IP6" };
        Ok(format!(
            "v=0\r\no=- 1 1 IN {family} {local}\r\ns=-\r\nc=IN {family} {local}\r\nt=0 0\r\n\
             m=audio 9 RTP/AVP 0\r\na=inactive\r\n"
        ))
    }
}

impl Dialog {
    fn request<'a>(&'a self, method: &'a str, headers: &'a str, body: &'a str) -> Outgoing<'a> {
        Outgoing {
            method,
            uri: &self.target,
            from: &self.from,
            to: &self.to,
            call_id: &self.call_id,
            cseq: self.cseq,
            routes: &self.routes,
            headers,
            body,
        }
    }

    /// Takes To, remote target and route set from the 200 (RFC 3261 section 12.1.2).
    fn establish(&mut self, response: &Message<'_>) -> Result {
        self.to = header(response, Name::To);
        let contact = response.values(Name::Contact).next();
        let contact = contact.and_then(|value| sip_wire::NameAddr::parse(value.text).ok());
        let contact = contact.ok_or_else(|| Failure::new("the 200 has no Contact"))?;
        self.target = text(contact.uri);
        let mut routes: Vec<_> = response
            .values(Name::RecordRoute)
            .map(|value| text(value.text))
            .collect();
        routes.reverse();
        self.routes = routes;
        Ok(())
    }
}

fn expect(response: &Incoming, method: &str, code: u16) -> Result {
    match response.message().code() {
        Some(got) if got == code => Ok(()),
        got => Err(Failure::new(format!(
            "the answer to {method} is {}, and not {code}",
            got.unwrap_or(0)
        ))),
    }
}

fn is_request(incoming: &Incoming, method: &str) -> bool {
    let message = incoming.message();
    message.code().is_none() && message.method_text() == method.as_bytes()
}

fn header(message: &Message<'_>, name: Name) -> String {
    message
        .header(name)
        .map(|h| text(h.value))
        .unwrap_or_default()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A token that nobody else has.
fn unique() -> Result<String> {
    let mut random = [0; 8];
    password::fill(&mut random)?;
    Ok(hex(&random))
}
