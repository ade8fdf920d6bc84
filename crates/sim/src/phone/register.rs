use super::credentials::Challenge;
use super::text::text;
use super::transaction::{Draft, Purpose, TransactionId};
use super::{Effects, Phone, Report, Role, Timer};
use crate::rng::Rng;
use sip_wire::{Message, Name, NameAddr};

/// The phone's registration.
pub(super) struct Registration {
    call_id: String,
    from_tag: String,
    cseq: u32,
    expires_s: u32,
    /// Prefers SHA-256.
    sha256: bool,
    /// Keeps the nonce and sends credentials unasked.
    preemptive: bool,
    instance: Option<String>,
    q: &'static str,
    challenge: Option<Challenge>,
    attempts: u8,
    /// A REGISTER is under way, for this Contact.
    pending: Option<String>,
    /// Another one is wanted when it is done: the address has changed.
    again: bool,
    promise: Option<Promise>,
    /// A REGISTER that may have changed the promised binding was sent and not answered 200.
    unsure: bool,
    /// Since when calls have to reach it.
    pub(super) stable_since_ms: Option<u64>,
    /// When the next REGISTER is due; timers that come up before are of an older plan.
    pub(super) due_ms: u64,
}

/// What the server has promised with a 200.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Promise {
    pub(crate) contact: String,
    pub(crate) call_id: String,
    pub(crate) cseq: u32,
    /// The binding ends then at the earliest, milliseconds of the run. 0: it is gone.
    pub(crate) until_ms: u64,
}

impl Registration {
    pub(super) fn new(id: usize, rng: &mut Rng) -> Self {
        Self {
            call_id: format!("r{id}-{:x}", rng.next()),
            from_tag: format!("{:x}", rng.next()),
            cseq: rng.range(0, 1000) as u32,
            expires_s: *rng.pick(&[60, 120, 300, 600]),
            sha256: rng.per_mille(400),
            preemptive: rng.per_mille(500),
            instance: rng
                .per_mille(600)
                .then(|| format!("urn:uuid:00000000-0000-4000-8000-{id:012x}")),
            q: *rng.pick::<&str>(&["", "", "", ";q=0.5", ";q=1.0"]),
            challenge: None,
            attempts: 0,
            pending: None,
            again: false,
            promise: None,
            unsure: false,
            stable_since_ms: None,
            due_ms: 0,
        }
    }
}

impl Phone {
    /// What the server has promised and not yet been asked to change.
    pub(crate) fn promise(&self) -> Option<&Promise> {
        self.registration
            .promise
            .as_ref()
            .filter(|_| !self.registration.unsure)
    }

    /// Since when calls have to reach it.
    pub(crate) fn stable_since_ms(&self) -> Option<u64> {
        self.registration.stable_since_ms
    }

    pub(super) fn register(&mut self, now_ms: u64, fx: &mut Effects) {
        if self.quiet || self.role != Role::Subscriber || now_ms < self.registration.due_ms {
            return;
        }
        if self.registration.pending.is_some() {
            self.registration.again = true;
            return;
        }
        self.registration.attempts = 0;
        let expires_s = self.registration.expires_s;
        self.send_register(now_ms, expires_s, fx);
    }

    /// The phone is switched off in order: it takes its binding away.
    pub(crate) fn unregister(&mut self, now_ms: u64, fx: &mut Effects) {
        if self.role == Role::Subscriber && self.registration.pending.is_none() {
            self.registration.stable_since_ms = None;
            self.registration.expires_s = 0;
            self.registration.attempts = 0;
            self.send_register(now_ms, 0, fx);
        }
    }

    fn send_register(&mut self, now_ms: u64, expires_s: u32, fx: &mut Effects) {
        let uri = format!("sip:{}", self.world.domain);
        let contact = self.contact().to_string();
        let aor = self.aor();
        let (user, password) = (self.user.clone(), self.password.clone());
        let r = &mut self.registration;
        r.cseq += 1;
        r.unsure |= expires_s == 0 || r.promise.as_ref().is_none_or(|p| p.contact != contact);
        r.pending = Some(contact.clone());
        let instance = r
            .instance
            .as_ref()
            .map_or(String::new(), |i| format!(";+sip.instance=\"<{i}>\""));
        let mut headers = format!(
            "Contact: <{contact}>;expires={expires_s}{instance}{}\r\n",
            r.q
        );
        if let Some(challenge) = &mut r.challenge {
            headers.push_str(&challenge.answer(&user, &password, "REGISTER", &uri));
        }
        let (from, call_id, cseq) = (
            format!("<{aor}>;tag={}", r.from_tag),
            r.call_id.clone(),
            r.cseq,
        );
        let draft = Draft {
            method: "REGISTER",
            uri: &uri,
            from: &from,
            to: &format!("<{aor}>"),
            call_id: &call_id,
            cseq,
            routes: &[],
            headers: &headers,
            body: "",
        };
        self.send(now_ms, Purpose::Register, &draft, fx);
    }

    pub(super) fn on_register_response(
        &mut self,
        now_ms: u64,
        id: TransactionId,
        response: &Message<'_>,
        code: u16,
        fx: &mut Effects,
    ) {
        let since_ms = self.clients[&id].since_ms;
        match code {
            200 => self.on_registered(now_ms, since_ms, response, fx),
            401 => self.on_register_challenged(now_ms, since_ms, response, fx),
            _ => {
                if code == 503 {
                    fx.reports.push(Report::Refused503);
                } else {
                    fx.fault(format!("phone {}: REGISTER refused with {code}", self.id));
                }
                self.on_register_failed(now_ms, fx);
            }
        }
    }

    fn on_register_challenged(
        &mut self,
        now_ms: u64,
        since_ms: u64,
        response: &Message<'_>,
        fx: &mut Effects,
    ) {
        let r = &mut self.registration;
        let had_credentials = r.challenge.is_some();
        let challenge = Challenge::of(response, r.sha256);
        let Some(challenge) = challenge.filter(|_| r.attempts < 3) else {
            fx.complain(
                &r.call_id,
                since_ms,
                format!("phone {}: challenged over and over", self.id),
            );
            return self.on_register_failed(now_ms, fx);
        };
        if had_credentials && !challenge.stale {
            let what = format!("phone {}: right credentials called wrong", self.id);
            fx.complain(&r.call_id, since_ms, what);
        }
        r.attempts += 1;
        r.challenge = Some(challenge);
        let expires_s = r.expires_s;
        self.send_register(now_ms, expires_s, fx);
    }

    fn on_registered(
        &mut self,
        now_ms: u64,
        since_ms: u64,
        response: &Message<'_>,
        fx: &mut Effects,
    ) {
        let r = &mut self.registration;
        let contact = r.pending.take().unwrap_or_default();
        let mine = response.values(Name::Contact).find_map(|value| {
            let address = NameAddr::parse(value.text).ok()?;
            let expires = address
                .params
                .value("expires")
                .and_then(|e| text(e).parse::<u32>().ok());
            (text(address.uri) == contact).then_some(expires.unwrap_or_default())
        });
        let gone = r.expires_s == 0;
        if mine.is_some() == gone {
            let what = format!(
                "phone {}: 200 to REGISTER, and its Contact is {mine:?}",
                self.id
            );
            fx.complain(&r.call_id, since_ms, what);
        }
        let granted_s = mine.unwrap_or_default();
        // Up to a tenth less than asked for; what comes again later is told what is left of it.
        let waited_s = ((now_ms - since_ms) / 1000) as u32 + 1;
        if !gone && (granted_s + waited_s < r.expires_s * 9 / 10 || granted_s > r.expires_s) {
            fx.fault(format!(
                "phone {}: asked for {} s, got {granted_s}",
                self.id, r.expires_s
            ));
        }
        let until_ms = if gone {
            0
        } else {
            since_ms + u64::from(granted_s) * 1000
        };
        r.promise = Some(Promise {
            contact,
            call_id: r.call_id.clone(),
            cseq: r.cseq,
            until_ms,
        });
        r.unsure = false;
        if !gone && r.stable_since_ms.is_none() {
            r.stable_since_ms = Some(now_ms);
        }
        if !r.preemptive {
            r.challenge = None;
        }
        fx.reports.push(Report::Registered);
        if gone {
            return;
        }
        let refresh_ms = u64::from(granted_s) * self.rng.range(400, 800);
        let wait_ms = if std::mem::take(&mut self.registration.again) {
            10
        } else {
            refresh_ms
        };
        self.register_in(now_ms, wait_ms, fx);
    }

    fn register_in(&mut self, now_ms: u64, wait_ms: u64, fx: &mut Effects) {
        self.registration.due_ms = now_ms + wait_ms;
        fx.timers.push((wait_ms, Timer::Register));
    }

    pub(super) fn on_register_failed(&mut self, now_ms: u64, fx: &mut Effects) {
        self.registration.pending = None;
        self.registration.again = false;
        self.registration.challenge = None;
        self.registration.stable_since_ms = None;
        let wait_ms = self.rng.range(2_000, 15_000);
        self.register_in(now_ms, wait_ms, fx);
    }
}
