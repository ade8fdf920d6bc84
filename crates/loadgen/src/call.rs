//! Calls through the server, caller and callee both played here.
//!
//! ```text
//! caller      server      callee
//!   |--INVITE-->|            |
//!   |<---100----|--INVITE--->|
//!   |<---180----|<---180-----|
//!   |<---200----|<---200-----|
//!   |----ACK--->|----ACK---->|
//!   |----BYE--->|----BYE---->|
//!   |<---200----|<---200-----|
//! ```
//! Thirteen messages at the server; sixteen when the INVITE is challenged and acknowledged first.
//! The caller sends every request to the target, as a phone does with an outbound proxy, whatever
//! its first Route names (RFC 3261 section 12.2.1.1 allows it).

use net::Source;

use crate::{
    cause::{Cause, Outcome},
    digest::{ANSWERS_MAX, Account, Challenge},
    distribution::Distribution,
    driver::Driver,
    message::{self, Id, Put},
    operation::Lane,
    plan::CallPlan,
    requests::Digest,
    scenario::Scenario,
    timers::{Due, T1_US, T2_US},
    uas,
};

/// The calls of one driver: user 2i calls user 2i+1.
pub(crate) struct Calls {
    /// Whether challenges are answered.
    pub(crate) digest: bool,
    /// How long the callee rings, microseconds.
    pub(crate) ring_us: u64,
    /// How long the call lasts.
    pub(crate) hold_us: u64,
    next: usize,
    calls: Vec<Call>,
}

/// A call, both sides of it.
#[derive(Default)]
struct Call {
    pair: usize,
    account: Account,
    /// ACKs of the INVITE's finals, by the step of the INVITE; sent again when the final comes again.
    acks: [Vec<u8>; INVITES_MAX],
    /// The dialog as the caller sees it: Request-URI, Route lines and To of its requests.
    target: Vec<u8>,
    routes: Vec<u8>,
    to: Vec<u8>,
    callee: Callee,
}

/// The callee's side.
#[derive(Default)]
struct Callee {
    /// Where the INVITE came from.
    came_from: Option<Source>,
    /// The response sent last; sent again when the INVITE comes again.
    answer: Vec<u8>,
    /// The 200, as soon as the INVITE is there.
    ok: Vec<u8>,
    wait_us: u64,
    /// The 200 was sent and no ACK has come.
    unacknowledged: bool,
}

/// INVITEs of one call: the first steps of its operation.
const INVITES_MAX: usize = 1 + ANSWERS_MAX as usize;

impl Calls {
    /// Between the users of a driver in pairs.
    pub(crate) fn new(plan: &CallPlan) -> Self {
        // TODO(scenarios): distributions, shares
        let constant = |d| match d {
            Distribution::Constant(us) | Distribution::Uniform(us, _) => us,
            Distribution::Exponential(us) => us,
        };
        Self {
            digest: plan.digest != Digest::None,
            ring_us: constant(plan.ring),
            hold_us: constant(plan.talk),
            next: 0,
            calls: Vec::new(),
        }
    }

    fn invite(&mut self, driver: &mut Driver, id: Id) {
        let call = &mut self.calls[id.slot as usize];
        let Some(flow) = driver.next_flow(id.slot, 2 * call.pair) else {
            return;
        };
        let mut out = std::mem::take(&mut driver.operations[id.slot as usize].main.request);
        let caller = driver.users.get(2 * call.pair);
        let callee = driver.users.get(2 * call.pair + 1);
        let uri = [b"sip:", &*callee.name, b"@", &*callee.domain].concat();
        let host = driver.host(flow);
        out.clear();
        out.put(&[b"INVITE ", &uri, b" SIP/2.0\r\n"]);
        driver.put_via(driver.flows.transport(), host, id, &mut out);
        put_dialog(driver, call.pair, id, &mut out);
        out.put(&[b"To: <", &uri, b">\r\nCSeq: "]);
        out.put_number(u64::from(id.step) + 1);
        out.put(&[b" INVITE\r\nContact: <sip:", &caller.name, b"@"]);
        out.put(&[host.as_bytes(), uas::contact_end(driver.flows.transport())]);
        let account = &mut call.account;
        account.answer(
            b"Proxy-Authorization",
            &caller.name,
            b"INVITE",
            &uri,
            &mut out,
        );
        out.put(&[b"User-Agent: sipolis load\r\n"]);
        put_session(&mut out);
        driver.operations[id.slot as usize].main.request = out;
        driver.transact(id.slot, Lane::Main);
    }

    /// Acknowledges a final that is not a 2xx, within the INVITE's transaction (RFC 3261 section
    /// 17.1.1.3).
    fn acknowledge_refusal(&mut self, driver: &mut Driver, id: Id, message: &[u8]) {
        let call = &mut self.calls[id.slot as usize];
        let callee = driver.users.get(2 * call.pair + 1);
        let flow = driver.operations[id.slot as usize].flow;
        let ack = &mut call.acks[id.step as usize];
        ack.clear();
        ack.put(&[b"ACK sip:", &callee.name, b"@", &callee.domain]);
        ack.put(&[b" SIP/2.0\r\n"]);
        driver.put_via(driver.flows.transport(), driver.host(flow), id, ack);
        put_dialog(driver, call.pair, id, ack);
        let to = message::field(message, message::TO).unwrap_or_default();
        ack.put(&[b"To: ", to, b"\r\nCSeq: "]);
        ack.put_number(u64::from(id.step) + 1);
        ack.put(&[b" ACK\r\nContent-Length: 0\r\n\r\n"]);
        driver.io.send(flow, driver.target, ack);
    }

    /// Makes the dialog of a 2xx and acknowledges it (RFC 3261 sections 12.1.2 and 13.2.2.4).
    fn answered_well(&mut self, driver: &mut Driver, id: Id, message: &[u8]) {
        let call = &mut self.calls[id.slot as usize];
        call.take_dialog(message);
        let mut ack = std::mem::take(&mut call.acks[id.step as usize]);
        ack.clear();
        let ack_id = driver.next_id(id.slot);
        self.put_in_dialog(driver, ack_id, b"ACK", u64::from(id.step) + 1, &mut ack);
        let flow = driver.operations[id.slot as usize].flow;
        driver.io.send(flow, driver.target, &ack);
        self.calls[id.slot as usize].acks[id.step as usize] = ack;
        driver.record_latency(id.slot);
        if self.hold_us == 0 {
            self.hang_up(driver, id.slot);
        } else {
            driver.arm(self.hold_us, ack_id, Due::Continue);
        }
    }

    fn hang_up(&mut self, driver: &mut Driver, slot: u32) {
        let user = 2 * self.calls[slot as usize].pair;
        if driver.next_flow(slot, user).is_none() {
            return;
        }
        let id = driver.next_id(slot);
        let mut bye = std::mem::take(&mut driver.operations[slot as usize].main.request);
        bye.clear();
        self.put_in_dialog(driver, id, b"BYE", INVITES_MAX as u64 + 1, &mut bye);
        driver.operations[slot as usize].main.request = bye;
        driver.transact(slot, Lane::Main);
    }

    fn put_in_dialog(
        &self,
        driver: &Driver,
        id: Id,
        method: &[u8],
        sequence: u64,
        out: &mut Vec<u8>,
    ) {
        let call = &self.calls[id.slot as usize];
        let flow = driver.operations[id.slot as usize].flow;
        out.put(&[method, b" ", &call.target, b" SIP/2.0\r\n"]);
        driver.put_via(driver.flows.transport(), driver.host(flow), id, out);
        out.put(&[&call.routes]);
        put_dialog(driver, call.pair, id, out);
        out.put(&[b"To: ", &call.to, b"\r\nCSeq: "]);
        out.put_number(sequence);
        out.put(&[b" ", method, b"\r\nContent-Length: 0\r\n\r\n"]);
    }

    /// The callee gets an INVITE: it rings, and answers at once or later.
    fn invited(&mut self, driver: &mut Driver, id: Id, from: &Source, message: &[u8]) {
        let call = &mut self.calls[id.slot as usize];
        if call.callee.came_from.is_some() {
            return driver.io.reply(from, &call.callee.answer);
        }
        let user = driver.users.get(2 * call.pair + 1);
        let flow = driver.flows.callee(2 * call.pair + 1);
        let callee = &mut call.callee;
        callee.came_from = Some(*from);
        for (status, out) in [
            (&b"180 Ringing"[..], &mut callee.answer),
            (b"200 OK", &mut callee.ok),
        ] {
            out.clear();
            uas::respond(message, status, &driver.tag, out);
            out.put(&[b"Contact: <sip:", &user.name, b"@"]);
            out.put(&[driver.host(flow).as_bytes()]);
            out.put(&[uas::contact_end(driver.flows.callee_transport())]);
        }
        callee.answer.put(&[b"Content-Length: 0\r\n\r\n"]);
        put_session(&mut callee.ok);
        driver.io.reply(from, &callee.answer);
        let id = Id { step: 0, ..id };
        if self.ring_us == 0 {
            self.pick_up(driver, id);
        } else {
            driver.arm(self.ring_us, id, Due::Answer);
        }
    }

    fn pick_up(&mut self, driver: &mut Driver, id: Id) {
        let callee = &mut self.calls[id.slot as usize].callee;
        let Some(from) = callee.came_from else {
            return;
        };
        std::mem::swap(&mut callee.answer, &mut callee.ok);
        callee.unacknowledged = true;
        callee.wait_us = T1_US;
        driver.io.reply(&from, &callee.answer);
        driver.arm(T1_US, id, Due::AnswerAgain);
    }

    fn answer_again(&mut self, driver: &mut Driver, id: Id) {
        let callee = &mut self.calls[id.slot as usize].callee;
        let (true, Some(from)) = (callee.unacknowledged, callee.came_from) else {
            return;
        };
        driver.io.reply(&from, &callee.answer);
        driver.statistics.retransmissions += 1;
        callee.wait_us = (callee.wait_us * 2).min(T2_US);
        driver.arm(callee.wait_us, id, Due::AnswerAgain);
    }
}

impl Call {
    /// Remote target, route set and remote tag (RFC 3261 section 12.1.2), and how they are written
    /// into requests (section 12.2.1.1): with a strict router first, it becomes the Request-URI.
    fn take_dialog(&mut self, message: &[u8]) {
        let contact = message::field(message, message::CONTACT).unwrap_or_default();
        self.to.clear();
        let to = message::field(message, message::TO).unwrap_or_default();
        self.to.put(&[to]);
        self.target.clear();
        self.routes.clear();
        let recorded = message::values(message, message::RECORD_ROUTE);
        let routes: Vec<&[u8]> = recorded.flat_map(message::comma_separated).collect();
        let mut routes = routes.into_iter().rev().peekable();
        let strict = routes.peek().map(|r| message::uri(r)).filter(|uri| {
            let mut parameters = uri.split(|b| *b == b';').skip(1);
            !parameters.any(|p| p.eq_ignore_ascii_case(b"lr") || p.starts_with(b"lr="))
        });
        if let Some(uri) = strict {
            self.target.put(&[uri]);
            routes.next();
        } else {
            self.target.put(&[message::uri(contact)]);
        }
        for route in routes {
            self.routes.put(&[b"Route: ", route, b"\r\n"]);
        }
        if strict.is_some() {
            let contact = message::uri(contact);
            self.routes.put(&[b"Route: <", contact, b">\r\n"]);
        }
    }
}

/// Call-ID and From of the caller's requests.
fn put_dialog(driver: &Driver, pair: usize, id: Id, out: &mut Vec<u8>) {
    let caller = driver.users.get(2 * pair);
    out.put(&[b"From: <sip:", &caller.name, b"@", &caller.domain]);
    out.put(&[b">;tag=", &driver.tag, b"\r\nCall-ID: "]);
    Id { step: 0, ..id }.put(&driver.tag, out);
    out.put(&[b"\r\n"]);
}

/// Content-Type, Content-Length and a session description as a phone's.
fn put_session(out: &mut Vec<u8>) {
    const BODY: &[u8] = b"v=0\r\no=- 3884 3884 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\n\
        t=0 0\r\nm=audio 40000 RTP/AVP 8 0 101\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\n\
        a=rtpmap:101 telephone-event/8000\r\na=sendrecv\r\n";
    out.put(&[b"Content-Type: application/sdp\r\nContent-Length: "]);
    out.put_number(BODY.len() as u64);
    out.put(&[b"\r\n\r\n", BODY]);
}

impl Scenario for Calls {
    fn begin(&mut self, driver: &mut Driver, slot: u32) {
        self.calls
            .resize_with(driver.operations.len(), Call::default);
        let pair = self.next;
        self.next = (self.next + 1) % (driver.users.len() / 2);
        let call = &mut self.calls[slot as usize];
        call.pair = pair;
        call.account = Account::default();
        call.callee.came_from = None;
        call.callee.unacknowledged = false;
        self.invite(driver, driver.id(slot));
    }

    fn answered(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]) {
        let well = (200..300).contains(&code);
        if !driver.operations[id.slot as usize].main.invite {
            let outcome = match well {
                true => Outcome::Good,
                false => Outcome::Failed(Cause::Response),
            };
            return driver.end(id.slot, outcome); // the BYE
        }
        if well {
            return self.answered_well(driver, id, message);
        }
        self.acknowledge_refusal(driver, id, message);
        let challenge = message::values(message, message::PROXY_AUTHENTICATE)
            .chain(message::values(message, message::WWW_AUTHENTICATE))
            .find_map(Challenge::parse);
        match challenge {
            Some(challenge)
                if self.digest
                    && matches!(code, 401 | 407)
                    && (id.step == 0 || challenge.stale && id.step < ANSWERS_MAX) =>
            {
                let call = &mut self.calls[id.slot as usize];
                let caller = driver.users.get(2 * call.pair);
                let account = &mut call.account;
                account.challenged(challenge, &caller.name, &caller.password());
                let id = driver.next_id(id.slot);
                self.invite(driver, id);
            }
            _ => {
                let cause = match code {
                    401 | 407 => Cause::Credentials,
                    503 => Cause::Refused,
                    _ => Cause::Response,
                };
                driver.end(id.slot, Outcome::Failed(cause));
            }
        }
    }

    fn answered_again(&mut self, driver: &mut Driver, id: Id, _: u16, message: &[u8]) {
        let cseq = message::field(message, message::CSEQ).unwrap_or_default();
        let acks = &self.calls[id.slot as usize].acks;
        if let (true, Some(ack)) = (cseq.ends_with(b"INVITE"), acks.get(id.step as usize)) {
            let flow = driver.operations[id.slot as usize].flow;
            driver.io.send(flow, driver.target, ack);
        }
    }

    fn request(&mut self, driver: &mut Driver, id: Id, from: &Source, message: &[u8]) {
        let callee = &mut self.calls[id.slot as usize].callee;
        match message::method(message) {
            b"INVITE" => self.invited(driver, id, from, message),
            b"ACK" => callee.unacknowledged = false,
            method => {
                callee.unacknowledged &= method != b"BYE";
                uas::refuse(driver, from, message);
            }
        }
    }

    fn due(&mut self, driver: &mut Driver, id: Id, due: Due) {
        match due {
            Due::Request | Due::RingAgain | Due::Cancel => {}
            Due::Answer => self.pick_up(driver, id),
            Due::AnswerAgain => self.answer_again(driver, id),
            Due::Continue => self.hang_up(driver, id.slot),
        }
    }
}
