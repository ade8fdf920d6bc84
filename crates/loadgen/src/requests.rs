//! REGISTER, OPTIONS, NOTIFY and MESSAGE: one request, or two where the first is challenged.

use std::ops::Range;

use net::Source;

use crate::{
    call::failure,
    cause::Outcome,
    digest::{ANSWERS_MAX, Accounts},
    driver::Driver,
    io::Transport,
    message::{Id, Put},
    operation::Lane,
    scenario::Scenario,
    uas,
};

/// Which request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Binds a user to the flow it comes on.
    Register {
        expires_s: u32,
        /// Each with a Call-ID of its own.
        first: bool,
    },
    /// Asks the server itself.
    Options,
    /// Keeps a translator's binding alive: any answer that the server is there will do.
    Notify,
    /// From user 2i to user 2i+1, who answers.
    Message,
}

/// What is done about challenges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Digest {
    /// A challenge is a failure.
    None,
    /// Each first request is sent without credentials, and its challenge is answered.
    Answer,
    /// The nonce of the last challenge is used, with its count going up, until it is refused.
    Reuse,
}

/// What is asked, by whom, and how.
pub(crate) struct Requests {
    kind: Kind,
    digest: Digest,
    body: Vec<u8>,
    /// Indices of the users, in turn.
    users: Range<usize>,
    /// From each to the next but so many.
    step: usize,
    next: usize,
    /// The odd ones of these are callees of this driver, who register over flows of their own.
    callees: Range<usize>,
    /// The odd ones of these are callees of some driver: another's are left to it.
    all_callees: Range<usize>,
    /// All bindings of a user are removed before it registers.
    clears: bool,
    /// Before the user in the Call-ID of a REGISTER.
    series: &'static [u8],
    /// The last refresh of each user; by its place in `users`.
    refreshes: Vec<Refresh>,
    accounts: Accounts,
    at_work: Vec<AtWork>,
}

/// A user's last REGISTER with the Call-ID that all its refreshes have.
#[derive(Clone, Copy, Default)]
struct Refresh {
    sequence: u32,
    /// Its operation.
    slot: u32,
    generation: u32,
}

/// An operation under way.
#[derive(Clone, Copy, Default)]
struct AtWork {
    user: usize,
    /// CSeq of its last request.
    sequence: u32,
    has_credentials: bool,
    /// It has the Call-ID of the user's refreshes, not one of its own.
    refreshes: bool,
    /// Challenges answered.
    challenges: u32,
    /// A callee's bindings of earlier runs are removed first: calls would be forked to them.
    clears: bool,
}

impl Requests {
    /// For the users of that range, over and over; MESSAGE is sent by every other one.
    pub(crate) fn new(kind: Kind, digest: Digest, body: usize, users: &Range<usize>) -> Self {
        let (users, step) = match kind {
            Kind::Message => (2 * users.start.div_ceil(2)..users.end / 2 * 2, 2),
            _ => (users.clone(), 1),
        };
        Self {
            kind,
            digest,
            body: vec![b'x'; body],
            next: users.start,
            step,
            users,
            callees: 0..0,
            all_callees: 0..0,
            clears: false,
            series: b"-",
            refreshes: Vec::new(),
            accounts: Accounts::default(),
            at_work: Vec::new(),
        }
    }

    /// Registers the callees among those users, once each, as the only binding that they have.
    pub(crate) fn of_callees(digest: Digest, callees: &Range<usize>) -> Self {
        let kind = Kind::Register {
            expires_s: EXPIRES_S,
            first: false,
        };
        let mut requests = Self::new(kind, digest, 0, &(callees.start | 1..callees.end));
        requests.step = 2;
        requests.series = b"-on-";
        requests.clears = true;
        requests.callees = callees.clone();
        requests
    }

    /// Says which users are callees, if they are odd: of this driver, and of all.
    pub(crate) fn with_callees(mut self, own: &Range<usize>, all: &Range<usize>) -> Self {
        self.callees = own.clone();
        self.all_callees = all.clone();
        self
    }

    /// How many users there are.
    pub(crate) fn members(&self) -> usize {
        self.users.len().div_ceil(self.step)
    }

    fn is_callee(&self, user: usize) -> bool {
        user % 2 == 1 && self.callees.contains(&user)
    }

    /// The user whose turn it is.
    fn next_user(&mut self) -> usize {
        let is_register = matches!(self.kind, Kind::Register { .. });
        let user = self.next;
        self.next = match user + self.step {
            end if end >= self.users.end => self.users.start,
            next => next,
        };
        let of_another = user % 2 == 1 && self.all_callees.contains(&user);
        if is_register && of_another && !self.is_callee(user) && self.users.len() > 1 {
            return self.next_user(); // an even one
        }
        user
    }

    fn method(&self) -> &'static [u8] {
        match self.kind {
            Kind::Register { .. } => b"REGISTER",
            Kind::Options => b"OPTIONS",
            Kind::Notify => b"NOTIFY",
            Kind::Message => b"MESSAGE",
        }
    }

    /// Writes the operation's next request and sends it.
    fn send(&mut self, driver: &mut Driver, id: Id) {
        let slot = id.slot as usize;
        let user = self.at_work[slot].user;
        let is_register = matches!(self.kind, Kind::Register { .. });
        let transport = if is_register && self.is_callee(user) {
            driver.callee_flow(id.slot, user);
            driver.flows.callee_transport()
        } else if driver.next_flow(id.slot, user).is_some() {
            driver.flows.transport()
        } else {
            return;
        };
        self.at_work[slot].sequence = self.sequence(slot);
        let mut request = std::mem::take(&mut driver.operations[slot].main.request);
        request.clear();
        self.write(driver, id, transport, &mut request);
        driver.operations[slot].main.request = request;
        driver.transact(id.slot, Lane::Main);
    }

    /// CSeq of the next request: one more than before with the same Call-ID.
    fn sequence(&mut self, slot: usize) -> u32 {
        let work = self.at_work[slot];
        if !work.refreshes {
            return work.sequence + 1;
        }
        let refresh = &mut self.refreshes[work.user - self.users.start];
        refresh.sequence += 1;
        refresh.sequence
    }

    /// Whether a user's operation is a refresh. It is not while the one before is under way: that could overtake it, with the
    /// lower CSeq, and would be refused (RFC 3261 section 10.3). No phone does that, and neither is it the server's failure.
    fn refreshes(&mut self, driver: &Driver, user: usize, slot: u32) -> bool {
        if !matches!(self.kind, Kind::Register { first: false, .. }) {
            return false;
        }
        self.refreshes.resize(self.users.len(), Refresh::default());
        let refresh = &mut self.refreshes[user - self.users.start];
        let last = &driver.operations[refresh.slot as usize];
        if refresh.slot != slot && last.busy && last.generation == refresh.generation {
            return false;
        }
        refresh.slot = slot;
        refresh.generation = driver.id(slot).generation;
        true
    }

    fn write(&mut self, driver: &Driver, id: Id, transport: Transport, out: &mut Vec<u8>) {
        let work = self.at_work[id.slot as usize];
        let method = self.method();
        let user = driver.users.get(work.user);
        let host = driver.host(driver.operations[id.slot as usize].flow);
        out.put(&[method, b" "]);
        let start = out.len();
        match self.kind {
            Kind::Message => {
                let peer = driver.users.get(work.user + 1);
                out.put(&[b"sip:", &peer.name, b"@", peer.domain]);
            }
            _ => out.put(&[b"sip:", user.domain]),
        }
        let uri = start..out.len();
        out.put(&[b" SIP/2.0\r\n"]);
        driver.put_via(transport, host, id, out);
        out.put(&[b"From: <sip:", &user.name, b"@", user.domain]);
        out.put(&[b">;tag=", &driver.tag, b"\r\nTo: <"]);
        match self.kind {
            Kind::Register { .. } => out.put(&[b"sip:", &user.name, b"@", user.domain]),
            _ => out.extend_from_within(uri.clone()),
        }
        out.put(&[b">\r\nCall-ID: "]);
        match work.refreshes {
            true => out.put(&[&driver.tag, self.series, &user.name]),
            false => Id { step: 0, ..id }.put(&driver.tag, out),
        }
        out.put(&[b"\r\nCSeq: "]);
        out.put_number(u64::from(work.sequence));
        out.put(&[b" ", method, b"\r\n"]);
        if work.clears {
            out.put(&[b"Contact: *\r\n"]);
        } else if self.kind != Kind::Message {
            // A callee keeps the connection that it registers over.
            let listening = driver
                .flows
                .listening()
                .filter(|_| !self.is_callee(work.user));
            let host = listening.unwrap_or(host);
            out.put(&[b"Contact: <sip:", &user.name, b"@", host.as_bytes()]);
            out.put(&[uas::contact_end(transport)]);
        }
        if work.has_credentials {
            let mut line = Vec::with_capacity(256);
            let accounts = &mut self.accounts;
            accounts.answer(work.user, &user.name, method, &out[uri], &mut line);
            out.put(&[&line]);
        }
        self.put_rest(work.clears, out);
    }

    /// What depends on the request only.
    fn put_rest(&self, clears: bool, out: &mut Vec<u8>) {
        match self.kind {
            Kind::Register { expires_s, .. } => {
                out.put(&[b"Expires: "]);
                out.put_number(if clears { 0 } else { u64::from(expires_s) });
                out.put(&[b"\r\n"]);
            }
            // As phones do: there is no subscription (RFC 6665 would have one).
            Kind::Notify => out.put(&[b"Event: keep-alive\r\n"]),
            Kind::Message => out.put(&[b"Content-Type: text/plain\r\n"]),
            Kind::Options => {}
        }
        out.put(&[b"User-Agent: sipolis load\r\nContent-Length: "]);
        out.put_number(self.body.len() as u64);
        out.put(&[b"\r\n\r\n", &self.body]);
    }

    /// Answers a challenge by sending the request again, if that may help.
    fn challenged(&mut self, driver: &mut Driver, id: Id, message: &[u8]) -> bool {
        let work = &mut self.at_work[id.slot as usize];
        if self.digest == Digest::None || work.challenges >= ANSWERS_MAX {
            return false;
        }
        let user = driver.users.get(work.user);
        let Some(stale) = self.accounts.challenged(work.user, &user, message) else {
            return false;
        };
        if std::mem::replace(&mut work.has_credentials, true) && !stale {
            return false;
        }
        work.challenges += 1;
        let id = driver.next_id(id.slot);
        self.send(driver, id);
        true
    }

    /// Whether that final response is what the request was for.
    fn is_success(&self, code: u16) -> bool {
        match (self.kind, code) {
            (_, 200..300) => true,
            // For a phone, a server that refuses its keep-alive is as alive as one that likes it, unless it says that it
            // fails (5xx) or gave no answer of its own (408). 501 is that it does not know NOTIFY. A challenge says no more than
            // that, where it is not to be answered.
            (Kind::Notify, 401 | 407) => self.digest == Digest::None,
            (Kind::Notify, 408) => false,
            (Kind::Notify, 400..=499 | 501 | 600..) => true,
            _ => false,
        }
    }
}

/// Seconds that a callee is registered for: longer than a run.
const EXPIRES_S: u32 = 3600;

impl Scenario for Requests {
    fn begin(&mut self, driver: &mut Driver, slot: u32) {
        let work = AtWork::default();
        self.at_work.resize(driver.operations.len(), work);
        let user = self.next_user();
        self.at_work[slot as usize] = AtWork {
            user,
            has_credentials: self.digest == Digest::Reuse && self.accounts.are_challenged(user),
            refreshes: self.refreshes(driver, user, slot),
            clears: self.clears,
            ..AtWork::default()
        };
        self.send(driver, driver.id(slot));
    }

    fn answered(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]) {
        if matches!(code, 401 | 407) && self.challenged(driver, id, message) {
            return;
        }
        let work = &mut self.at_work[id.slot as usize];
        if std::mem::take(&mut work.clears) {
            // Whether there was anything to remove or not.
            work.challenges = 0;
            work.has_credentials = false;
            let id = driver.next_id(id.slot);
            return self.send(driver, id);
        }
        if !self.is_success(code) {
            return driver.end(id.slot, failure(code));
        }
        driver.record_latency(id.slot);
        driver.end(id.slot, Outcome::Good);
    }

    fn request(&mut self, driver: &mut Driver, id: Id, from: &Source, message: &[u8]) {
        let _ = id;
        uas::refuse(driver, from, message); // a MESSAGE gets its 200
    }
}
