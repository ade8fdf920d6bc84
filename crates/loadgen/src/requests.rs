//! REGISTER and OPTIONS: one request, or two where the first is challenged.

use crate::{
    cause::{Cause, Outcome},
    digest::{ANSWERS_MAX, Account, Challenge},
    driver::Driver,
    io::Transport,
    message::{self, Id, Put},
    operation::Lane,
    scenario::Scenario,
    uas,
};

/// Which request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Binds a user to the flow it comes on.
    Register,
    /// Asks the server itself.
    Options,
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
    pub(crate) kind: Kind,
    pub(crate) digest: Digest,
    /// Over the callees' flows instead of the callers'.
    pub(crate) as_callees: bool,
    pub(crate) expires_s: u32,
    /// Bytes of body in an OPTIONS.
    pub(crate) body: Vec<u8>,
    members: Vec<Member>,
    next: usize,
    /// The user of each operation, and whether its credentials were sent.
    at_work: Vec<(usize, bool)>,
}

struct Member {
    user: usize,
    sequence: u32,
    account: Account,
}

impl Requests {
    /// For the users of those indices, in that order, over and over.
    pub(crate) fn new(kind: Kind, users: impl Iterator<Item = usize>) -> Self {
        let member = |user| Member {
            user,
            sequence: 0,
            account: Account::default(),
        };
        Self {
            kind,
            digest: Digest::None,
            as_callees: false,
            expires_s: 3600,
            body: Vec::new(),
            members: users.map(member).collect(),
            next: 0,
            at_work: Vec::new(),
        }
    }

    /// How many users there are.
    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    fn transport(&self, driver: &Driver) -> Transport {
        match self.as_callees {
            true => driver.flows.callee_transport(),
            false => driver.flows.transport(),
        }
    }

    fn method(&self) -> &'static [u8] {
        match self.kind {
            Kind::Register => b"REGISTER",
            Kind::Options => b"OPTIONS",
        }
    }

    /// Writes the operation's next request and sends it.
    fn send(&mut self, driver: &mut Driver, id: Id, with_credentials: bool) {
        let slot = id.slot as usize;
        let (member, _) = self.at_work[slot];
        self.at_work[slot].1 = with_credentials;
        let user = self.members[member].user;
        if self.as_callees {
            driver.callee_flow(id.slot, user);
        } else if driver.next_flow(id.slot, user).is_none() {
            return;
        }
        let mut request = std::mem::take(&mut driver.operations[slot].main.request);
        request.clear();
        self.write(driver, id, member, with_credentials, &mut request);
        driver.operations[slot].main.request = request;
        driver.transact(id.slot, Lane::Main);
    }

    fn write(
        &mut self,
        driver: &Driver,
        id: Id,
        member: usize,
        with_credentials: bool,
        out: &mut Vec<u8>,
    ) {
        let (method, transport) = (self.method(), self.transport(driver));
        let member = &mut self.members[member];
        let user = driver.users.get(member.user);
        let host = driver.host(driver.operations[id.slot as usize].flow);
        member.sequence += 1;
        out.put(&[method, b" sip:", &user.domain, b" SIP/2.0\r\n"]);
        driver.put_via(transport, host, id, out);
        out.put(&[b"From: <sip:", &user.name, b"@", &user.domain]);
        out.put(&[b">;tag=", &driver.tag, b"\r\n"]);
        match self.kind {
            Kind::Register => {
                out.put(&[b"To: <sip:", &user.name, b"@", &user.domain, b">\r\n"]);
            }
            Kind::Options => out.put(&[b"To: <sip:", &user.domain, b">\r\n"]),
        }
        out.put(&[b"Call-ID: ", &driver.tag, b"-", &user.name, b"\r\nCSeq: "]);
        out.put_number(u64::from(member.sequence));
        out.put(&[b" ", method, b"\r\n"]);
        out.put(&[b"Contact: <sip:", &user.name, b"@", host.as_bytes()]);
        out.put(&[uas::contact_end(transport)]);
        if with_credentials {
            let uri = [b"sip:", &*user.domain].concat();
            let account = &mut member.account;
            account.answer(b"Authorization", &user.name, method, &uri, out);
        }
        if self.kind == Kind::Register {
            out.put(&[b"Expires: "]);
            out.put_number(u64::from(self.expires_s));
            out.put(&[b"\r\n"]);
        }
        out.put(&[b"User-Agent: sipolis load\r\nContent-Length: "]);
        let body: &[u8] = if self.kind == Kind::Options {
            &self.body
        } else {
            b""
        };
        out.put_number(body.len() as u64);
        out.put(&[b"\r\n\r\n", body]);
    }

    /// Takes the challenge of a response, if there is one to answer; whether it is `stale`.
    fn take_challenge(&mut self, driver: &Driver, slot: u32, message: &[u8]) -> Option<bool> {
        let challenge = message::values(message, message::WWW_AUTHENTICATE)
            .chain(message::values(message, message::PROXY_AUTHENTICATE))
            .find_map(Challenge::parse)?;
        let stale = challenge.stale;
        let member = &mut self.members[self.at_work[slot as usize].0];
        let user = driver.users.get(member.user);
        let account = &mut member.account;
        account.challenged(challenge, &user.name, &user.password());
        Some(stale)
    }
}

impl Scenario for Requests {
    fn begin(&mut self, driver: &mut Driver, slot: u32) {
        self.at_work.resize(driver.operations.len(), (0, false));
        let member = self.next;
        self.next = (self.next + 1) % self.members.len();
        self.at_work[slot as usize] = (member, false);
        let reuses = self.digest == Digest::Reuse && self.members[member].account.is_challenged();
        self.send(driver, driver.id(slot), reuses);
    }

    fn answered(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]) {
        if matches!(code, 401 | 407) && self.digest != Digest::None {
            let stale = self.take_challenge(driver, id.slot, message);
            let first = !self.at_work[id.slot as usize].1;
            if stale.is_some_and(|stale| first || stale) && id.step < ANSWERS_MAX {
                let id = driver.next_id(id.slot);
                return self.send(driver, id, true);
            }
        }
        let outcome = match code {
            200..300 => Outcome::Good,
            401 | 407 => Outcome::Failed(Cause::Credentials),
            503 => Outcome::Failed(Cause::Refused),
            _ => Outcome::Failed(Cause::Response),
        };
        if outcome == Outcome::Good {
            driver.record_latency(id.slot);
        }
        driver.end(id.slot, outcome);
    }
}
