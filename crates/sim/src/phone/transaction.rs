//! The phone's own transactions: RFC 3261 section 17 in the simplest form that a user agent can have.

use super::text::{Request, response, text};
use super::{Effects, Phone, Timer};
use location::Transport;
use sip_wire::{Message, Method, Name};

pub(super) const T1_MS: u64 = 500;
pub(super) const T2_MS: u64 = 4000;
pub(super) const GIVE_UP_MS: u64 = 64 * T1_MS;

/// The number in the branch, and whether it is the CANCEL of that branch.
pub(crate) type TransactionId = (u32, bool);

/// A request that this phone has sent.
pub(super) struct Client {
    pub(super) method: &'static str,
    pub(super) purpose: Purpose,
    pub(super) call_id: String,
    pub(super) since_ms: u64,
    pub(super) request: Vec<u8>,
    pub(super) provisional: bool,
    /// The final response.
    pub(super) code: Option<u16>,
    /// The ACK to a final response of 300 to 699.
    ack: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    Register,
    Message { attempt: u8 },
    Invite { leg: usize },
    ReInvite { leg: usize },
    Info { leg: usize },
    Bye { leg: usize },
    Cancel { leg: usize },
}

/// A request that this phone has been sent.
pub(super) struct Served {
    pub(super) request: Vec<u8>,
    pub(super) method: Method,
    pub(super) tag: String,
    last: Vec<u8>,
    pub(super) code: Option<u16>,
    pub(super) acknowledged: bool,
    pub(super) leg: Option<usize>,
}

impl Served {
    pub(super) fn new(request: &Message<'_>, random: u64) -> Self {
        Self {
            request: request.bytes().to_vec(),
            method: request.method().unwrap_or(Method::Other),
            tag: format!("{random:x}"),
            last: Vec::new(),
            code: None,
            acknowledged: false,
            leg: None,
        }
    }
}

/// What tells the transactions of requests apart (RFC 3261 section 17.2.3).
pub(super) fn key(request: &Message<'_>, method: Method) -> Vec<u8> {
    let via = request
        .values(Name::Via)
        .next()
        .map(|v| v.text)
        .unwrap_or_default();
    let branch = request.top_via().map(|v| v.branch()).unwrap_or_default();
    let sent_by = via.split(|b| *b == b';').next().unwrap_or_default();
    [
        branch,
        sent_by,
        if method == Method::Cancel {
            b"CANCEL"
        } else {
            b""
        },
    ]
    .concat()
}

/// What a request is made of besides what the phone knows of itself.
pub(super) struct Draft<'a> {
    pub(super) method: &'static str,
    pub(super) uri: &'a str,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) call_id: &'a str,
    pub(super) cseq: u32,
    pub(super) routes: &'a [String],
    pub(super) headers: &'a str,
    pub(super) body: &'a str,
}

impl Phone {
    pub(super) fn branch(&self, number: u32) -> String {
        format!("z9hG4bK{}p{number}", self.id)
    }

    pub(super) fn write(&self, draft: &Draft<'_>, branch: u32) -> Vec<u8> {
        let branch = self.branch(branch);
        Request {
            method: draft.method,
            uri: draft.uri,
            transport: self.transport,
            sent_by: self.believed,
            branch: &branch,
            from: draft.from,
            to: draft.to,
            call_id: draft.call_id,
            cseq: draft.cseq,
            routes: draft.routes,
            headers: draft.headers,
            body: draft.body,
        }
        .write()
    }

    /// Sends a request under a branch of its own and returns the branch's number.
    pub(super) fn send(
        &mut self,
        now_ms: u64,
        purpose: Purpose,
        draft: &Draft<'_>,
        fx: &mut Effects,
    ) -> u32 {
        self.branches += 1;
        let number = self.branches;
        let request = self.write(draft, number);
        self.start(now_ms, (number, false), purpose, draft, request, fx);
        number
    }

    pub(super) fn start(
        &mut self,
        now_ms: u64,
        id: TransactionId,
        purpose: Purpose,
        draft: &Draft<'_>,
        request: Vec<u8>,
        fx: &mut Effects,
    ) {
        fx.messages.push(request.clone());
        if self.transport == Transport::Udp {
            fx.timers
                .push((T1_MS, Timer::Resend { id, wait_ms: T1_MS }));
        }
        fx.timers.push((GIVE_UP_MS, Timer::TimeOut { id }));
        let client = Client {
            method: draft.method,
            purpose,
            call_id: draft.call_id.to_string(),
            since_ms: now_ms,
            request,
            provisional: false,
            code: None,
            ack: Vec::new(),
        };
        self.clients.insert(id, client);
    }

    pub(super) fn resend(&mut self, id: TransactionId, wait_ms: u64, fx: &mut Effects) {
        let Some(client) = self.clients.get(&id) else {
            return;
        };
        let invite = client.method == "INVITE";
        if client.code.is_some() || (invite && client.provisional) {
            return;
        }
        fx.messages.push(client.request.clone());
        let wait_ms = match (invite, client.provisional) {
            (true, _) => wait_ms * 2,
            (false, true) => T2_MS,
            (false, false) => (wait_ms * 2).min(T2_MS),
        };
        fx.timers.push((wait_ms, Timer::Resend { id, wait_ms }));
    }

    pub(super) fn time_out(&mut self, now_ms: u64, id: TransactionId, fx: &mut Effects) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.code.is_some() || (client.method == "INVITE" && client.provisional) {
            return;
        }
        client.code = Some(408);
        let what = format!(
            "phone {}: no answer to {} ({:?})",
            self.id, client.method, client.purpose
        );
        fx.complain(&client.call_id, client.since_ms, what);
        match client.purpose {
            Purpose::Register => self.on_register_failed(now_ms, fx),
            Purpose::Message { .. } | Purpose::Cancel { .. } | Purpose::Info { .. } => {}
            Purpose::Invite { leg } | Purpose::ReInvite { leg } | Purpose::Bye { leg } => {
                self.end(leg)
            }
        }
    }

    pub(super) fn on_response(
        &mut self,
        now_ms: u64,
        response: &Message<'_>,
        code: u16,
        fx: &mut Effects,
    ) {
        let branch = response
            .top_via()
            .map(|via| text(via.branch()).to_string())
            .unwrap_or_default();
        let cancel = response.cseq().is_ok_and(|c| c.method == Method::Cancel);
        let prefix = format!("z9hG4bK{}p", self.id);
        let number = branch
            .strip_prefix(&prefix)
            .and_then(|n| n.parse::<u32>().ok());
        let id = (number.unwrap_or_default(), cancel);
        let Some(client) = self.clients.get_mut(&id) else {
            return fx.fault(format!(
                "phone {} got a response to nothing it sent: {branch}",
                self.id
            ));
        };
        if response.values(Name::Via).count() != 1 {
            fx.fault(format!(
                "phone {} got a response with somebody else's Via",
                self.id
            ));
        }
        let purpose = client.purpose;
        if code < 200 {
            client.provisional = true;
            if let Purpose::Invite { leg } = purpose {
                self.on_provisional(now_ms, leg, fx);
            }
            return;
        }
        let before = client.code.replace(code);
        if let Some(before) = before.filter(|before| *before != code && *before != 408) {
            // What is answered without state, and served anew when it comes again, may be answered otherwise then.
            let is_stateless = matches!(client.method, "REGISTER" | "MESSAGE")
                || matches!((before, code), (401 | 407, _) | (_, 401 | 407));
            if !is_stateless {
                let what = format!(
                    "phone {}: {} answered {before} and then {code}",
                    self.id, client.method
                );
                fx.complain(&client.call_id, client.since_ms, what);
            }
            client.code = Some(before);
            if code >= 300 || before >= 300 {
                return;
            }
        }
        if client.method == "INVITE" && code >= 300 {
            if client.ack.is_empty() {
                client.ack = ack_of(&client.request, response);
            }
            fx.messages.push(client.ack.clone());
        }
        let first = before.is_none();
        match purpose {
            Purpose::Invite { leg } | Purpose::ReInvite { leg } if code < 300 => {
                self.on_success(now_ms, leg, purpose, response, fx);
            }
            _ if !first => {}
            Purpose::Invite { leg } => self.on_failure(now_ms, leg, code, response, fx),
            Purpose::ReInvite { leg } => self.on_re_invite_failed(leg, code, fx),
            Purpose::Register => self.on_register_response(now_ms, id, response, code, fx),
            Purpose::Message { attempt } => {
                self.on_message_response(now_ms, attempt, response, code, fx)
            }
            Purpose::Info { leg } => self.on_info_response(leg, code, fx),
            Purpose::Bye { leg } => self.on_bye_response(leg, code, fx),
            Purpose::Cancel { .. } if code != 200 => self.on_cancel_refused(id, code, fx),
            Purpose::Cancel { .. } => {}
        }
    }

    /// Answers a request, and keeps the answer for when it comes again.
    pub(super) fn respond(
        &mut self,
        now_ms: u64,
        served: usize,
        request: &Message<'_>,
        code: u16,
        fx: &mut Effects,
    ) {
        let invite = request.method() == Some(Method::Invite);
        let contact = if invite && code < 300 && code > 100 {
            format!("Contact: <{}>\r\n", self.contact())
        } else {
            String::new()
        };
        let body = if invite && code == 200 {
            super::call::SDP
        } else {
            ""
        };
        let content = if body.is_empty() {
            ""
        } else {
            "Content-Type: application/sdp\r\n"
        };
        let entry = &mut self.served[served];
        entry.last = response(
            request,
            code,
            &entry.tag,
            &format!("{contact}{content}"),
            body,
        );
        fx.messages.push(entry.last.clone());
        if code < 200 {
            return;
        }
        entry.code = Some(code);
        // A 2xx to INVITE is repeated whatever carries it (RFC 3261 section 13.3.1.4).
        if invite && (code < 300 || self.transport == Transport::Udp) {
            let until_ms = now_ms + GIVE_UP_MS;
            fx.timers.push((
                T1_MS,
                Timer::Repeat {
                    served,
                    wait_ms: T1_MS,
                    until_ms,
                },
            ));
        }
    }

    /// The same request has come again.
    pub(super) fn again(&mut self, served: usize, fx: &mut Effects) {
        let entry = &self.served[served];
        let success = entry.method == Method::Invite && entry.code.is_some_and(|c| c < 300);
        if !entry.last.is_empty() && !success {
            fx.messages.push(entry.last.clone());
        }
    }

    pub(super) fn repeat(
        &mut self,
        now_ms: u64,
        served: usize,
        wait_ms: u64,
        until_ms: u64,
        fx: &mut Effects,
    ) {
        let entry = &self.served[served];
        if entry.acknowledged {
            return;
        }
        if now_ms >= until_ms {
            return self.not_acknowledged(now_ms, served, fx);
        }
        fx.messages.push(entry.last.clone());
        let wait_ms = (wait_ms * 2).min(T2_MS);
        let wait_ms = wait_ms.min(until_ms - now_ms);
        fx.timers.push((
            wait_ms,
            Timer::Repeat {
                served,
                wait_ms,
                until_ms,
            },
        ));
    }
}

/// The ACK to a failure (RFC 3261 section 17.1.1.3): the INVITE's own lines, To of the response, no body.
fn ack_of(invite: &[u8], response: &Message<'_>) -> Vec<u8> {
    let to = response
        .header(Name::To)
        .map(|to| text(to.value))
        .unwrap_or_default();
    let mut ack = String::new();
    let head = text(invite).split("\r\n\r\n").next().unwrap_or_default();
    for (number, line) in head.split("\r\n").enumerate() {
        let name = line.split(':').next().unwrap_or_default();
        match name {
            _ if number == 0 => ack.push_str(&line.replacen("INVITE", "ACK", 1)),
            "Via" | "Max-Forwards" | "Route" | "From" | "Call-ID" => ack.push_str(line),
            "To" => ack.push_str(&format!("To: {to}")),
            "CSeq" => ack.push_str(&line.replacen("INVITE", "ACK", 1)),
            _ => continue,
        }
        ack.push_str("\r\n");
    }
    ack.push_str("Content-Length: 0\r\n\r\n");
    ack.into_bytes()
}
