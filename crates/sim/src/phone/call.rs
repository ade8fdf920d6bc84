use super::credentials::Challenge;
use super::text::text;
use super::transaction::{Draft, GIVE_UP_MS, Purpose, TransactionId};
use super::{Effects, Phone, Report, Role, Timer, contact_uri, values};
use sip_wire::{Framing, Index, Limits, Message, Method, Name};

/// One side of a call: a dialog, or what is to become one.
#[derive(Clone)]
pub(super) struct Leg {
    pub(super) call_id: String,
    pub(super) since_ms: u64,
    pub(super) state: State,
    caller: bool,
    /// User name that was called, on the caller's side.
    called: String,
    /// From of our requests, tag included.
    local: String,
    /// To of our requests; its tag once there is one.
    remote: String,
    remote_tag: String,
    /// Where our requests go: the peer's Contact.
    target: String,
    routes: Vec<String>,
    cseq: u32,
    remote_cseq: u32,
    /// Number of the INVITE's branch.
    invite: u32,
    /// ACKs to 2xx by their CSeq, to be sent again when the 2xx comes again.
    acks: Vec<(u32, Vec<u8>)>,
    attempts: u8,
    ringing: bool,
    cancel: Cancel,
    re_inviting: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Caller: INVITE is out.
    Inviting,
    /// Callee: the INVITE has no final answer yet.
    Offered,
    /// Callee: 2xx is out and the ACK has not come.
    Answered,
    Up,
    /// BYE is out.
    Ending,
    Ended,
}

/// The caller's wish to end a call that is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cancel {
    No,
    /// Until a provisional response comes (RFC 3261 section 9.1).
    Wanted,
    Sent,
}

pub(super) const SDP: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.2\r\ns=-\r\nc=IN IP4 192.0.2.2\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";

/// Longer than timer C and what follows it, for each of a few branches in a row.
const PATIENCE_MAX_MS: u64 = 700_000;
/// A phone stops ringing by itself, long after timer C should have stopped it.
const RINGING_MAX_MS: u64 = 240_000;

impl Leg {
    pub(super) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// The caller has been told that the INVITE is under way.
    pub(super) fn is_in_setup(&self) -> bool {
        self.state == State::Inviting && self.ringing
    }

    /// One side hangs up, and only that one: should its BYE get lost, the other side is seen to be left in the call.
    fn hangs_up(&self) -> bool {
        let sum: u32 = self.call_id.bytes().map(u32::from).sum();
        sum.is_multiple_of(2) == self.caller
    }
}

/// The caller's side.
impl Phone {
    pub(super) fn new_call(&mut self, now_ms: u64, fx: &mut Effects) {
        if self.quiet {
            return;
        }
        fx.timers
            .push((self.rng.range(5_000, 60_000), Timer::NewCall));
        let to = self.somebody();
        let call_id = format!("c{}-{:x}@sim", self.id, self.rng.next());
        let local = format!("<{}>;tag={:x}", self.aor(), self.rng.next());
        let leg = Leg {
            call_id,
            since_ms: now_ms,
            state: State::Inviting,
            caller: true,
            called: to.split('@').next().unwrap_or_default().to_string(),
            local,
            remote: format!("<sip:{to}>"),
            remote_tag: String::new(),
            target: format!("sip:{to}"),
            routes: Vec::new(),
            cseq: self.rng.range(1, 100) as u32,
            remote_cseq: 0,
            invite: 0,
            acks: Vec::new(),
            attempts: 0,
            ringing: false,
            cancel: Cancel::No,
            re_inviting: false,
        };
        let number = self.legs.len();
        self.legs.push(leg);
        self.invite(now_ms, number, fx);
        let patience_ms = match self.rng.range(0, 10) {
            0..2 => self.rng.range(1, 3_000),
            2..9 => self.rng.range(10_000, 60_000),
            _ => PATIENCE_MAX_MS,
        };
        fx.timers.push((patience_ms, Timer::Cancel { leg: number }));
        fx.timers
            .push((PATIENCE_MAX_MS, Timer::GiveUp { leg: number }));
    }

    /// Somebody else's address-of-record.
    fn somebody(&mut self) -> String {
        let world = self.world.clone();
        if self.role == Role::Subscriber && !world.abroad.is_empty() && self.rng.per_mille(60) {
            return self.rng.pick(&world.abroad).clone();
        }
        loop {
            let user = self.rng.pick(&world.users);
            if *user != self.user || world.users.len() == 1 {
                return format!("{user}@{}", world.domain);
            }
        }
    }

    fn invite(&mut self, now_ms: u64, number: usize, fx: &mut Effects) {
        let leg = self.legs[number].clone();
        let contact = self.contact().to_string();
        let credentials = self.proxy_credentials("INVITE", &leg.target);
        let headers =
            format!("Contact: <{contact}>\r\n{credentials}Content-Type: application/sdp\r\n");
        // One phone in eleven offers so much that a datagram should not carry it (RFC 3261 section 18.1.1).
        let lines = if self.id.is_multiple_of(11) { 40 } else { 0 };
        let candidates = "a=candidate:1 1 UDP 1 192.0.2.2 4000\r\n".repeat(lines);
        let body = format!("{SDP}{candidates}");
        let draft = Draft {
            method: "INVITE",
            uri: &leg.target,
            from: &leg.local,
            to: &leg.remote,
            call_id: &leg.call_id,
            cseq: leg.cseq,
            routes: &[],
            headers: &headers,
            body: &body,
        };
        let invite = self.send(now_ms, Purpose::Invite { leg: number }, &draft, fx);
        self.legs[number].invite = invite;
        self.legs[number].ringing = false;
    }

    /// Credentials for a request that is not a REGISTER; a challenge is answered once and forgotten by half of the phones.
    fn proxy_credentials(&mut self, method: &str, uri: &str) -> String {
        let (user, password) = (self.user.clone(), self.password.clone());
        let keep = self.id.is_multiple_of(2);
        let Some(mut challenge) = self.proxy_challenge.take() else {
            return String::new();
        };
        let line = challenge.answer(&user, &password, method, uri);
        self.proxy_challenge = keep.then_some(challenge);
        line
    }

    pub(super) fn on_provisional(&mut self, now_ms: u64, number: usize, fx: &mut Effects) {
        self.legs[number].ringing = true;
        if self.legs[number].cancel == Cancel::Wanted {
            self.send_cancel(now_ms, number, fx);
        }
    }

    pub(super) fn cancel(&mut self, now_ms: u64, number: usize, fx: &mut Effects) {
        let leg = &mut self.legs[number];
        if leg.state != State::Inviting || leg.cancel != Cancel::No {
            return;
        }
        leg.cancel = Cancel::Wanted;
        if leg.ringing {
            self.send_cancel(now_ms, number, fx);
        }
    }

    fn send_cancel(&mut self, now_ms: u64, number: usize, fx: &mut Effects) {
        let leg = &mut self.legs[number];
        leg.cancel = Cancel::Sent;
        let leg = leg.clone();
        let draft = Draft {
            method: "CANCEL",
            uri: &leg.target,
            from: &leg.local,
            to: &leg.remote,
            call_id: &leg.call_id,
            cseq: leg.cseq,
            routes: &[],
            headers: "",
            body: "",
        };
        let request = self.write(&draft, leg.invite);
        self.start(
            now_ms,
            (leg.invite, true),
            Purpose::Cancel { leg: number },
            &draft,
            request,
            fx,
        );
        fx.timers
            .push((GIVE_UP_MS + 8_000, Timer::CancelIgnored { leg: number }));
    }

    pub(super) fn on_cancel_refused(&mut self, id: TransactionId, code: u16, fx: &mut Effects) {
        let client = &self.clients[&id];
        let Purpose::Cancel { leg } = client.purpose else {
            return;
        };
        // The INVITE's final response may have crossed it.
        let crossed = self
            .clients
            .get(&(id.0, false))
            .is_some_and(|invite| invite.code.is_some());
        if !crossed || code != 481 {
            let what = format!("phone {}: CANCEL refused with {code}", self.id);
            fx.complain(&client.call_id, self.legs[leg].since_ms, what);
        }
    }

    /// "If no final response in 64*T1 seconds, the client should consider the transaction cancelled" (RFC 3261 section 9.1).
    pub(super) fn cancel_ignored(&mut self, number: usize, fx: &mut Effects) {
        let leg = &self.legs[number];
        if leg.state == State::Inviting && leg.cancel == Cancel::Sent {
            let what = format!("phone {}: no final response to a cancelled INVITE", self.id);
            fx.complain(&leg.call_id, leg.since_ms, what);
            self.end(number);
        }
    }

    pub(super) fn give_up(&mut self, number: usize, fx: &mut Effects) {
        let leg = &self.legs[number];
        if leg.state == State::Inviting {
            let what = format!("phone {}: an INVITE never got a final response", self.id);
            fx.complain(&leg.call_id, leg.since_ms, what);
            self.end(number);
        }
    }

    pub(super) fn on_failure(
        &mut self,
        now_ms: u64,
        number: usize,
        code: u16,
        response: &Message<'_>,
        fx: &mut Effects,
    ) {
        let leg = &mut self.legs[number];
        if leg.state != State::Inviting {
            return;
        }
        if matches!(code, 401 | 407) && leg.attempts < 3 && leg.cancel == Cancel::No {
            leg.attempts += 1;
            leg.cseq += 1;
            self.proxy_challenge = Challenge::of(response, !self.id.is_multiple_of(3));
            return self.invite(now_ms, number, fx);
        }
        let cancelled = leg.cancel != Cancel::No;
        fx.reports.push(Report::Outcome {
            call_id: leg.call_id.clone(),
            since_ms: leg.since_ms,
            user: leg.called.clone(),
            code,
            cancelled,
        });
        self.end(number);
    }

    /// A 2xx, the first or not: to the INVITE of a call, or of one that is up.
    pub(super) fn on_success(
        &mut self,
        now_ms: u64,
        number: usize,
        purpose: Purpose,
        response: &Message<'_>,
        fx: &mut Effects,
    ) {
        let tag = response
            .to()
            .ok()
            .and_then(|to| to.tag())
            .map(|t| text(t).to_string())
            .unwrap_or_default();
        let cseq = response.cseq().map(|c| c.number).unwrap_or_default();
        let call_id = self.legs[number].call_id.clone();
        let same = |leg: &Leg| leg.caller && leg.call_id == call_id && leg.remote_tag == tag;
        if let Purpose::ReInvite { leg } = purpose {
            self.legs[leg].target = contact_uri(response);
            return self.acknowledge(leg, cseq, fx);
        }
        if let Some(known) = self.legs.iter().position(same) {
            return self.acknowledge(known, cseq, fx);
        }
        let first = self.legs[number].remote_tag.is_empty();
        let established = if first {
            number
        } else {
            // Two phones answered: the second call is ended at once (RFC 3261 section 13.2.2.4).
            self.legs.push(self.legs[number].clone());
            self.legs.len() - 1
        };
        let user_gave_up = self.legs[number].cancel != Cancel::No || self.legs[number].has_ended();
        let leg = &mut self.legs[established];
        leg.remote_tag = tag;
        leg.remote = response
            .header(Name::To)
            .map(|to| text(to.value).to_string())
            .unwrap_or_default();
        leg.target = contact_uri(response);
        leg.routes = values(response, Name::RecordRoute);
        leg.routes.reverse();
        leg.acks.clear();
        leg.state = State::Up;
        self.check_routes(established, fx);
        self.acknowledge(established, cseq, fx);
        if first {
            let leg = &self.legs[number];
            fx.reports.push(Report::Outcome {
                call_id: leg.call_id.clone(),
                since_ms: leg.since_ms,
                user: leg.called.clone(),
                code: 200,
                cancelled: leg.cancel != Cancel::No,
            });
        }
        if !first || user_gave_up {
            self.hang_up(now_ms, established, fx);
        } else {
            self.plan_the_rest(established, fx);
        }
    }

    fn acknowledge(&mut self, number: usize, cseq: u32, fx: &mut Effects) {
        let known = self.legs[number]
            .acks
            .iter()
            .position(|(of, _)| *of == cseq);
        let ack = known.unwrap_or_else(|| {
            self.branches += 1;
            let leg = &self.legs[number];
            let ack = self.write(&leg.draft("ACK", cseq, "", ""), self.branches);
            self.legs[number].acks.push((cseq, ack));
            self.legs[number].acks.len() - 1
        });
        self.legs[number].re_inviting = false;
        fx.messages.push(self.legs[number].acks[ack].1.clone());
    }
}

/// Either side.
impl Phone {
    fn plan_the_rest(&mut self, number: usize, fx: &mut Effects) {
        let lasts_ms = self.rng.range(100, 60_000);
        if self.legs[number].hangs_up() {
            fx.timers.push((lasts_ms, Timer::HangUp { leg: number }));
        }
        if self.rng.per_mille(200) {
            fx.timers.push((lasts_ms / 3, Timer::Info { leg: number }));
        }
        if self.rng.per_mille(200) {
            fx.timers
                .push((lasts_ms / 2, Timer::ReInvite { leg: number }));
        }
    }

    /// The route set has to begin with the server, or the rest of the call goes past it.
    fn check_routes(&self, number: usize, fx: &mut Effects) {
        let leg = &self.legs[number];
        let server = self.world.server_for(self.address).ip().to_string();
        let first = leg.routes.first().map(String::as_str).unwrap_or_default();
        if !first.contains(&server) || !first.contains(";lr") {
            fx.fault(format!(
                "phone {}: the route set of {} is {:?}",
                self.id, leg.call_id, leg.routes
            ));
        }
    }

    pub(super) fn hang_up(&mut self, now_ms: u64, number: usize, fx: &mut Effects) {
        if self.legs[number].state != State::Up {
            return;
        }
        if self.legs[number].re_inviting {
            return fx.timers.push((1_000, Timer::HangUp { leg: number }));
        }
        self.bye(now_ms, number, fx);
    }

    pub(super) fn info(&mut self, now_ms: u64, number: usize, fx: &mut Effects) {
        let leg = &mut self.legs[number];
        if leg.state == State::Up {
            leg.cseq += 1;
            let leg = leg.clone();
            let draft = leg.draft(
                "INFO",
                leg.cseq,
                "Content-Type: application/dtmf-relay\r\n",
                "Signal=5\r\n",
            );
            self.send(now_ms, Purpose::Info { leg: number }, &draft, fx);
        }
    }

    pub(super) fn on_info_response(&mut self, number: usize, code: u16, fx: &mut Effects) {
        if code != 200 {
            let leg = &self.legs[number];
            let what = format!("phone {}: INFO answered {code}", self.id);
            fx.complain(&leg.call_id, leg.since_ms, what);
        }
    }

    fn bye(&mut self, now_ms: u64, number: usize, fx: &mut Effects) {
        let leg = &mut self.legs[number];
        leg.state = State::Ending;
        leg.cseq += 1;
        let leg = leg.clone();
        self.send(
            now_ms,
            Purpose::Bye { leg: number },
            &leg.draft("BYE", leg.cseq, "", ""),
            fx,
        );
    }

    pub(super) fn on_bye_response(&mut self, number: usize, code: u16, fx: &mut Effects) {
        if code != 200 {
            let leg = &self.legs[number];
            let what = format!("phone {}: BYE answered {code}", self.id);
            fx.complain(&leg.call_id, leg.since_ms, what);
        }
        self.end(number);
    }

    pub(super) fn re_invite(&mut self, now_ms: u64, number: usize, fx: &mut Effects) {
        let contact = self.contact().to_string();
        let leg = &mut self.legs[number];
        if leg.state != State::Up || leg.re_inviting {
            return;
        }
        leg.re_inviting = true;
        leg.cseq += 1;
        let leg = leg.clone();
        let headers = format!("Contact: <{contact}>\r\nContent-Type: application/sdp\r\n");
        let draft = leg.draft("INVITE", leg.cseq, &headers, SDP);
        self.send(now_ms, Purpose::ReInvite { leg: number }, &draft, fx);
    }

    pub(super) fn on_re_invite_failed(&mut self, number: usize, code: u16, fx: &mut Effects) {
        let leg = &mut self.legs[number];
        leg.re_inviting = false;
        // Both sides asked at once, or the other one has just hung up and its BYE has to come.
        if !matches!(code, 481 | 491) && !leg.has_ended() {
            let what = format!("phone {}: re-INVITE answered {code}", self.id);
            fx.complain(&leg.call_id, leg.since_ms, what);
        }
    }

    pub(super) fn end(&mut self, number: usize) {
        self.legs[number].state = State::Ended;
    }
}

impl Leg {
    /// A request within the dialog.
    fn draft<'a>(
        &'a self,
        method: &'static str,
        cseq: u32,
        headers: &'a str,
        body: &'a str,
    ) -> Draft<'a> {
        Draft {
            method,
            uri: &self.target,
            from: &self.local,
            to: &self.remote,
            call_id: &self.call_id,
            cseq,
            routes: &self.routes,
            headers,
            body,
        }
    }
}

/// The callee's side.
impl Phone {
    pub(super) fn on_invite(
        &mut self,
        now_ms: u64,
        served: usize,
        request: &Message<'_>,
        fx: &mut Effects,
    ) {
        let call_id = request
            .call_id()
            .map(|id| text(id).to_string())
            .unwrap_or_default();
        let from = request
            .header(Name::From)
            .map(|f| text(f.value).to_string())
            .unwrap_or_default();
        let from_tag = request
            .from()
            .ok()
            .and_then(|f| f.tag())
            .map(|t| text(t).to_string())
            .unwrap_or_default();
        let cseq = request.cseq().map(|c| c.number).unwrap_or_default();
        let merged = |l: &Leg| {
            !l.caller && l.call_id == call_id && l.remote_tag == from_tag && l.remote_cseq == cseq
        };
        if self.legs.iter().any(merged) {
            // The same request by another way (RFC 3261 section 8.2.2.2).
            fx.reports.push(Report::Answered { call_id, code: 482 });
            return self.respond(now_ms, served, request, 482, fx);
        }
        let to = request
            .header(Name::To)
            .map(|f| text(f.value).to_string())
            .unwrap_or_default();
        let number = self.legs.len();
        self.legs.push(Leg {
            call_id,
            since_ms: now_ms,
            state: State::Offered,
            caller: false,
            called: String::new(),
            local: format!("{to};tag={}", self.served[served].tag),
            remote: from,
            remote_tag: from_tag,
            target: contact_uri(request),
            routes: values(request, Name::RecordRoute),
            cseq: self.rng.range(1, 100) as u32,
            remote_cseq: cseq,
            invite: 0,
            acks: Vec::new(),
            attempts: 0,
            ringing: false,
            cancel: Cancel::No,
            re_inviting: false,
        });
        self.check_routes(number, fx);
        self.served[served].leg = Some(number);
        self.decide(now_ms, served, request, fx);
    }

    /// What the phone and the person at it do.
    fn decide(&mut self, now_ms: u64, served: usize, request: &Message<'_>, fx: &mut Effects) {
        fx.timers
            .push((RINGING_MAX_MS, Timer::StopRinging { served }));
        let decision = self.rng.range(0, 100);
        if decision >= 24 && self.id.is_multiple_of(2) {
            self.respond(now_ms, served, request, 100, fx);
        }
        match decision {
            0..10 => self.refuse(now_ms, served, request, 486, fx),
            10..15 => self.refuse(now_ms, served, request, 603, fx),
            15..20 => self.refuse(now_ms, served, request, 480, fx),
            20..24 => self.ignore(served), // as good as dead
            24..40 => fx
                .timers
                .push((self.rng.range(1, 2_000), Timer::Ring { served })),
            40..45 => self.accept(now_ms, served, request, fx),
            _ => {
                let ring_ms = self.rng.range(1, 1_000);
                fx.timers.push((ring_ms, Timer::Ring { served }));
                fx.timers.push((
                    ring_ms + self.rng.range(1, 15_000),
                    Timer::Answer { served },
                ));
            }
        }
    }

    fn refuse(
        &mut self,
        now_ms: u64,
        served: usize,
        request: &Message<'_>,
        code: u16,
        fx: &mut Effects,
    ) {
        self.respond(now_ms, served, request, code, fx);
        if let Some(number) = self.served[served].leg {
            let call_id = self.legs[number].call_id.clone();
            fx.reports.push(Report::Answered { call_id, code });
            self.end(number);
        }
    }

    fn ignore(&mut self, served: usize) {
        if let Some(number) = self.served[served].leg {
            self.end(number);
        }
    }

    fn accept(&mut self, now_ms: u64, served: usize, request: &Message<'_>, fx: &mut Effects) {
        self.respond(now_ms, served, request, 200, fx);
        if let Some(number) = self.served[served].leg {
            let call_id = self.legs[number].call_id.clone();
            fx.reports.push(Report::Answered { call_id, code: 200 });
            self.legs[number].state = State::Answered;
        }
    }

    pub(super) fn ring(&mut self, served: usize, fx: &mut Effects) {
        self.with_request(served, |phone, request| {
            if phone.is_offered(served) {
                phone.respond(0, served, request, 180, fx);
            }
        });
    }

    pub(super) fn answer(&mut self, now_ms: u64, served: usize, fx: &mut Effects) {
        self.with_request(served, |phone, request| {
            if phone.is_offered(served) {
                phone.accept(now_ms, served, request, fx);
            }
        });
    }

    /// Nobody has answered, and no CANCEL came.
    pub(super) fn stop_ringing(&mut self, now_ms: u64, served: usize, fx: &mut Effects) {
        self.with_request(served, |phone, request| {
            if phone.is_offered(served) {
                phone.refuse(now_ms, served, request, 480, fx);
            }
        });
    }

    fn is_offered(&self, served: usize) -> bool {
        self.served[served]
            .leg
            .is_some_and(|leg| self.legs[leg].state == State::Offered)
    }

    fn with_request(&mut self, served: usize, then: impl FnOnce(&mut Self, &Message<'_>)) {
        let bytes = self.served[served].request.clone();
        let mut index = Index::new();
        if index
            .parse(&bytes, Framing::Stream, &Limits::default())
            .is_ok()
        {
            then(self, &index.message(&bytes));
        }
    }

    pub(super) fn on_cancel(
        &mut self,
        now_ms: u64,
        served: usize,
        request: &Message<'_>,
        fx: &mut Effects,
    ) {
        let key = super::transaction::key(request, Method::Invite);
        let Some(&invite) = self.served_by_key.get(&key) else {
            return self.respond(now_ms, served, request, 481, fx);
        };
        self.respond(now_ms, served, request, 200, fx);
        if self.served[invite].code.is_none() {
            self.with_request(invite, |phone, request| {
                phone.refuse(now_ms, invite, request, 487, fx)
            });
        }
    }

    pub(super) fn on_ack(&mut self, request: &Message<'_>, fx: &mut Effects) {
        let key = super::transaction::key(request, Method::Invite);
        let invite = self.served_by_key.get(&key).copied();
        if let Some(invite) = invite.filter(|i| self.served[*i].code.is_some_and(|c| c >= 300)) {
            self.served[invite].acknowledged = true;
            return;
        }
        let Some(number) = self.leg_of(request) else {
            return;
        };
        let cseq = request.cseq().map(|c| c.number).unwrap_or_default();
        for served in &mut self.served {
            let same = served.leg == Some(number) && served.method == Method::Invite;
            if same && served.code.is_some_and(|c| c < 300) && cseq_of(&served.request) == cseq {
                served.acknowledged = true;
            }
        }
        if self.legs[number].state == State::Answered {
            self.legs[number].state = State::Up;
            self.plan_the_rest(number, fx);
        }
    }

    /// No ACK came for a 2xx (RFC 3261 section 13.3.1.4).
    pub(super) fn not_acknowledged(&mut self, now_ms: u64, served: usize, fx: &mut Effects) {
        let code = self.served[served].code.unwrap_or_default();
        let Some(number) = self.served[served].leg else {
            return;
        };
        let leg = &self.legs[number];
        let what = format!("phone {}: no ACK to {code}", self.id);
        fx.complain(&leg.call_id, leg.since_ms, what);
        if code < 300 && matches!(leg.state, State::Answered | State::Up) {
            self.bye(now_ms, number, fx);
        }
    }

    pub(super) fn on_re_invite(
        &mut self,
        now_ms: u64,
        served: usize,
        request: &Message<'_>,
        fx: &mut Effects,
    ) {
        let number = self
            .leg_of(request)
            .filter(|n| matches!(self.legs[*n].state, State::Up | State::Answered));
        let Some(number) = number else {
            return self.respond(now_ms, served, request, 481, fx);
        };
        self.served[served].leg = Some(number);
        let cseq = request.cseq().map(|c| c.number).unwrap_or_default();
        let code = match () {
            () if cseq <= self.legs[number].remote_cseq => 500,
            () if self.legs[number].re_inviting => 491,
            () => 200,
        };
        self.legs[number].remote_cseq = cseq;
        if code == 200 {
            self.legs[number].target = contact_uri(request);
        }
        self.respond(now_ms, served, request, code, fx);
    }

    pub(super) fn on_bye(&mut self, served: usize, request: &Message<'_>, fx: &mut Effects) {
        let Some(number) = self.leg_of(request) else {
            return self.respond(0, served, request, 481, fx);
        };
        self.respond(0, served, request, 200, fx);
        self.end(number);
        for served in self.served.iter_mut().filter(|s| s.leg == Some(number)) {
            served.acknowledged |= served.code.is_some_and(|c| c < 300);
        }
    }

    /// The leg whose dialog this request belongs to.
    fn leg_of(&self, request: &Message<'_>) -> Option<usize> {
        let call_id = text(request.call_id().ok()?);
        let remote_tag = text(request.from().ok()?.tag()?);
        let local_tag = text(request.to().ok()?.tag()?);
        let same = |leg: &Leg| {
            leg.call_id == call_id
                && leg.remote_tag == remote_tag
                && leg.local.rsplit("tag=").next() == Some(local_tag)
        };
        self.legs.iter().position(same)
    }
}

fn cseq_of(request: &[u8]) -> u32 {
    let line = text(request)
        .split("\r\n")
        .find_map(|l| l.strip_prefix("CSeq: "));
    line.and_then(|l| l.split(' ').next())
        .and_then(|n| n.parse().ok())
        .unwrap_or_default()
}

/// Requests outside of calls.
impl Phone {
    pub(super) fn new_message(&mut self, now_ms: u64, fx: &mut Effects) {
        if self.quiet {
            return;
        }
        fx.timers
            .push((self.rng.range(10_000, 100_000), Timer::NewMessage));
        let call_id = format!("m{}-{:x}", self.id, self.rng.next());
        let to = self.somebody();
        self.send_message(now_ms, 0, &call_id, &to, fx);
    }

    fn send_message(
        &mut self,
        now_ms: u64,
        attempt: u8,
        call_id: &str,
        to: &str,
        fx: &mut Effects,
    ) {
        let uri = format!("sip:{to}");
        let from = format!("<{}>;tag=m", self.aor());
        let credentials = self.proxy_credentials("MESSAGE", &uri);
        let draft = Draft {
            method: "MESSAGE",
            uri: &uri,
            from: &from,
            to: &format!("<{uri}>"),
            call_id,
            cseq: 1 + u32::from(attempt),
            routes: &[],
            headers: &format!("{credentials}Content-Type: text/plain\r\n"),
            body: "hello",
        };
        self.send(now_ms, Purpose::Message { attempt }, &draft, fx);
    }

    pub(super) fn on_message_response(
        &mut self,
        now_ms: u64,
        attempt: u8,
        response: &Message<'_>,
        code: u16,
        fx: &mut Effects,
    ) {
        if matches!(code, 401 | 407) && attempt < 3 {
            self.proxy_challenge = Challenge::of(response, !self.id.is_multiple_of(3));
            let call_id = response
                .call_id()
                .map(|c| text(c).to_string())
                .unwrap_or_default();
            let to = response
                .to()
                .map(|to| text(to.uri).to_string())
                .unwrap_or_default();
            let to = to.strip_prefix("sip:").unwrap_or_default().to_string();
            self.send_message(now_ms, attempt + 1, &call_id, &to, fx);
        }
    }
}
