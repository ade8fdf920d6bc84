//! The calling side of a call.

use crate::{
    call::{Call, Calls, End, failure, put_session},
    cause::Outcome,
    digest::ANSWERS_MAX,
    driver::Driver,
    io::FlowId,
    message::{self, Id, Put},
    operation::Lane,
    requests::Digest,
    timers::{Due, T1_US},
    uas,
};

/// A caller's request that begins a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Request {
    #[default]
    Invite,
    /// Of a reliable provisional response (RFC 3262).
    Prack,
    Cancel,
    /// In the dialog, without a session description (RFC 3311).
    Update,
    /// An INVITE in the dialog.
    Reinvite,
    Bye,
}

impl Request {
    fn method(self) -> &'static [u8] {
        match self {
            Self::Invite | Self::Reinvite => b"INVITE",
            Self::Prack => b"PRACK",
            Self::Cancel => b"CANCEL",
            Self::Update => b"UPDATE",
            Self::Bye => b"BYE",
        }
    }

    fn lane(self) -> Lane {
        match self {
            Self::Prack | Self::Cancel => Lane::Side,
            _ => Lane::Main,
        }
    }
}

/// What the caller knows of its call.
#[derive(Default)]
pub(crate) struct Caller {
    /// What the operation's two lanes are about.
    main: Request,
    side: Request,
    /// CSeq of the last request that has one of its own, and of the INVITE.
    sequence: u32,
    invite_sequence: u32,
    /// Challenges of the request under way that have been answered, and whether it has credentials.
    challenges: u32,
    has_credentials: bool,
    /// The reliable provisional response that was acknowledged (RFC 3262); 0: none.
    acknowledged: u32,
    /// The time to give up is set; has come, and the CANCEL waits for the PRACK's answer; it is sent.
    cancel: Cancel,
    /// It waits for [`Due::Continue`].
    pub(crate) rests: bool,
    /// How the call ends as soon as nothing is under way.
    pub(crate) outcome: Option<Outcome>,
    acks: [Ack; ACKS],
    dialog: Dialog,
}

/// An ACK that was sent, and is again when the final response comes again.
#[derive(Default)]
struct Ack {
    /// Step of its INVITE.
    step: u32,
    bytes: Vec<u8>,
}

/// ACKs that are kept: an INVITE and two more with credentials, and one in the dialog.
const ACKS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
enum Cancel {
    #[default]
    No,
    /// It is due some time after a 100.
    SetByTrying,
    /// It is due some time after another provisional response.
    Set,
    Waits,
    Sent,
}

/// The dialog as the caller sees it (RFC 3261 section 12.1.2): Request-URI, Route lines and To of its requests.
#[derive(Default)]
struct Dialog {
    target: Vec<u8>,
    routes: Vec<u8>,
    to: Vec<u8>,
}

impl Caller {
    /// Begins anew for another call.
    pub(crate) fn renew(&mut self, has_credentials: bool) {
        let acks = std::mem::take(&mut self.acks).map(|mut ack| {
            ack.bytes.clear();
            ack
        });
        *self = Self {
            acks,
            dialog: std::mem::take(&mut self.dialog),
            has_credentials,
            ..Self::default()
        };
    }
}

impl Calls {
    /// Sends a request for the first time.
    pub(crate) fn send(&mut self, driver: &mut Driver, slot: u32, request: Request) {
        let caller = &mut self.calls[slot as usize].caller;
        caller.challenges = 0;
        if request != Request::Invite {
            caller.has_credentials = false;
        }
        self.transact(driver, slot, request);
    }

    fn transact(&mut self, driver: &mut Driver, slot: u32, request: Request) {
        let call = &mut self.calls[slot as usize];
        let lane = request.lane();
        // What is beside the INVITE goes where that went.
        let flow = match lane {
            Lane::Main => driver.next_flow(slot, 2 * call.pair),
            Lane::Side => Some(driver.operations[slot as usize].main.flow),
        };
        let Some(flow) = flow else {
            return;
        };
        let invite = Id {
            step: driver.operations[slot as usize].main.step,
            ..driver.id(slot)
        };
        let id = match request {
            Request::Invite if call.caller.sequence == 0 => driver.id(slot),
            Request::Cancel => invite,
            _ => driver.next_id(slot),
        };
        call.caller.count(request);
        let mut out = std::mem::take(&mut driver.operations[slot as usize].lane(lane).request);
        out.clear();
        self.write(driver, id, flow, request, &mut out);
        driver.operations[slot as usize].lane(lane).request = out;
        match request {
            Request::Cancel => driver.cancel(slot),
            _ => driver.transact(slot, lane),
        }
    }

    fn write(
        &mut self,
        driver: &Driver,
        id: Id,
        flow: FlowId,
        request: Request,
        out: &mut Vec<u8>,
    ) {
        let call = &mut self.calls[id.slot as usize];
        let (method, caller) = (request.method(), driver.users.get(2 * call.pair));
        let sequence = match request {
            Request::Cancel => call.caller.invite_sequence,
            _ => call.caller.sequence,
        };
        let in_dialog = !matches!(request, Request::Invite | Request::Cancel);
        let uri = call.put_request(driver, id, flow, (method, sequence), in_dialog, out);
        if call.caller.has_credentials {
            let mut line = Vec::with_capacity(256);
            self.accounts
                .answer(2 * call.pair, &caller.name, method, &out[uri], &mut line);
            out.put(&[&line]);
        }
        if matches!(
            request,
            Request::Invite | Request::Reinvite | Request::Update
        ) {
            let transport = driver.flows.transport();
            out.put(&[b"Contact: <sip:", &caller.name, b"@"]);
            out.put(&[driver.host(flow).as_bytes(), uas::contact_end(transport)]);
        }
        if request == Request::Prack {
            out.put(&[b"RAck: "]);
            out.put_number(u64::from(call.caller.acknowledged));
            out.put(&[b" "]);
            out.put_number(u64::from(call.caller.invite_sequence));
            out.put(&[b" INVITE\r\n"]);
        }
        if request == Request::Invite {
            out.put(&[call.fate.abilities()]);
        }
        out.put(&[b"User-Agent: sipolis load\r\n"]);
        match request {
            Request::Invite | Request::Reinvite => put_session(out),
            _ => out.put(&[b"Content-Length: 0\r\n\r\n"]),
        }
    }

    /// A provisional response to the INVITE.
    pub(crate) fn rings(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]) {
        let call = &mut self.calls[id.slot as usize];
        if call.caller.main != Request::Invite
            || driver.operations[id.slot as usize].main.step != id.step
        {
            return;
        }
        if call.fate.end == End::Cancel {
            let (set, wait_us) = match code {
                // The 180 may have been lost.
                100 => (Cancel::SetByTrying, call.fate.ring_us + T1_US),
                _ => (Cancel::Set, call.fate.ring_us),
            };
            if call.caller.cancel < set {
                call.caller.cancel = set;
                if wait_us > 0 {
                    driver.arm(wait_us, id, Due::Cancel);
                }
            }
        }
        let number = message::reliable(message).unwrap_or(0);
        if number > 0 && call.caller.acknowledged == 0 {
            call.caller.acknowledged = number;
            call.caller.dialog.take(message);
            self.send(driver, id.slot, Request::Prack);
        }
        let call = &self.calls[id.slot as usize];
        if call.caller.cancel == Cancel::Set && call.fate.ring_us == 0 {
            self.cancel(driver, id.slot);
        }
    }

    /// It is time to give up.
    pub(crate) fn cancel(&mut self, driver: &mut Driver, slot: u32) {
        let operation = &driver.operations[slot as usize];
        let caller = &mut self.calls[slot as usize].caller;
        if caller.main != Request::Invite
            || !operation.main.unanswered
            || caller.cancel == Cancel::Sent
        {
            return;
        }
        if operation.side.unanswered {
            caller.cancel = Cancel::Waits;
            return;
        }
        caller.cancel = Cancel::Sent;
        self.send(driver, slot, Request::Cancel);
    }

    /// A final response to one of the caller's requests.
    pub(crate) fn finally(&mut self, driver: &mut Driver, id: Id, code: u16, message: &[u8]) {
        let slot = id.slot;
        let is_side = driver.operations[slot as usize].side.step == id.step;
        let caller = &self.calls[slot as usize].caller;
        let request = if is_side { caller.side } else { caller.main };
        let well = (200..300).contains(&code);
        if matches!(request, Request::Invite | Request::Reinvite) {
            self.acknowledge(driver, id, well, message);
        }
        if matches!(code, 401 | 407) && self.challenged(driver, slot, request, message) {
            return;
        }
        match request {
            Request::Invite => self.invite_answered(driver, slot, code),
            Request::Bye => self.hung_up(driver, slot, code),
            _ if !well => driver.end(slot, failure(code)),
            Request::Prack if self.calls[slot as usize].caller.cancel == Cancel::Waits => {
                self.cancel(driver, slot);
            }
            Request::Update | Request::Reinvite => self.rest(driver, slot),
            // What waited for nothing else goes on.
            Request::Prack | Request::Cancel => self.go_on(driver, slot),
        }
    }

    /// Answers the challenge to a request by sending it again, if that may help.
    fn challenged(
        &mut self,
        driver: &mut Driver,
        slot: u32,
        request: Request,
        message: &[u8],
    ) -> bool {
        let call = &mut self.calls[slot as usize];
        let user = 2 * call.pair;
        if self.plan.digest == Digest::None || call.caller.challenges >= ANSWERS_MAX {
            return false;
        }
        let Some(stale) = self
            .accounts
            .challenged(user, &driver.users.get(user), message)
        else {
            return false;
        };
        if std::mem::replace(&mut call.caller.has_credentials, true) && !stale {
            return false;
        }
        call.caller.challenges += 1;
        self.transact(driver, slot, request);
        true
    }

    /// Acknowledges a final response to an INVITE: a 2xx in the dialog that it makes (RFC 3261 section 13.2.2.4), another
    /// within the INVITE's transaction (section 17.1.1.3).
    fn acknowledge(&mut self, driver: &mut Driver, id: Id, well: bool, message: &[u8]) {
        let call = &mut self.calls[id.slot as usize];
        let first = call.caller.main == Request::Invite;
        if first && well {
            call.caller.dialog.take(message);
        }
        let ack_id = if well { driver.next_id(id.slot) } else { id };
        let flow = driver.operations[id.slot as usize].main.flow;
        call.caller.acks.rotate_right(1);
        let mut ack = std::mem::take(&mut call.caller.acks[0].bytes);
        ack.clear();
        let line = (&b"ACK"[..], call.caller.invite_sequence);
        if !well {
            // The tag of the To is the response's.
            let to = message::field(message, message::TO).unwrap_or_default();
            call.caller.refused_by(to, first);
        }
        call.put_request(driver, ack_id, flow, line, well || !first, &mut ack);
        ack.put(&[b"Content-Length: 0\r\n\r\n"]);
        driver.io.send(flow, driver.target, &ack);
        call.caller.acks[0] = Ack {
            step: id.step,
            bytes: ack,
        };
    }

    /// A final response came again: so does its ACK.
    pub(crate) fn acknowledge_again(&mut self, driver: &mut Driver, id: Id) {
        let acks = &self.calls[id.slot as usize].caller.acks;
        let ack = acks
            .iter()
            .find(|a| a.step == id.step && !a.bytes.is_empty());
        if let Some(ack) = ack {
            let flow = driver.operations[id.slot as usize].flow;
            driver.io.send(flow, driver.target, &ack.bytes);
        }
    }
}

impl Caller {
    /// Takes note of a request that is about to be written.
    fn count(&mut self, request: Request) {
        match request.lane() {
            Lane::Main => self.main = request,
            Lane::Side => self.side = request,
        }
        if request != Request::Cancel {
            self.sequence += 1;
        }
        if matches!(request, Request::Invite | Request::Reinvite) {
            self.invite_sequence = self.sequence;
        }
    }

    /// To of the ACK of a refusal. In a dialog it is known already.
    fn refused_by(&mut self, to: &[u8], first: bool) {
        if first {
            self.dialog.to.clear();
            self.dialog.to.put(&[to]);
        }
    }
}

impl Call {
    /// Writes a request of the caller up to its CSeq. Returns where its Request-URI stands. `in_dialog`: to the dialog's remote
    /// target, by its route set; otherwise to the callee's address-of-record.
    fn put_request(
        &self,
        driver: &Driver,
        id: Id,
        flow: FlowId,
        (method, sequence): (&[u8], u32),
        in_dialog: bool,
        out: &mut Vec<u8>,
    ) -> std::ops::Range<usize> {
        let dialog = &self.caller.dialog;
        let caller = driver.users.get(2 * self.pair);
        let callee = driver.users.get(2 * self.pair + 1);
        out.put(&[method, b" "]);
        let start = out.len();
        match in_dialog {
            true => out.put(&[&dialog.target]),
            false => out.put(&[b"sip:", &callee.name, b"@", callee.domain]),
        }
        let uri = start..out.len();
        out.put(&[b" SIP/2.0\r\n"]);
        driver.put_via(driver.flows.transport(), driver.host(flow), id, out);
        if in_dialog {
            out.put(&[&dialog.routes]);
        }
        out.put(&[b"From: <sip:", &caller.name, b"@", caller.domain]);
        out.put(&[b">;tag=", &driver.tag, b"\r\nCall-ID: "]);
        Id { step: 0, ..id }.put(&driver.tag, out);
        match in_dialog || method == b"ACK" {
            true => out.put(&[b"\r\nTo: ", &dialog.to]),
            false => out.put(&[b"\r\nTo: <sip:", &callee.name, b"@", callee.domain, b">"]),
        }
        out.put(&[b"\r\nCSeq: "]);
        out.put_number(u64::from(sequence));
        out.put(&[b" ", method, b"\r\n"]);
        uri
    }
}

impl Dialog {
    /// Remote target, route set and remote tag from a response (RFC 3261 section 12.1.2), and how they are written
    /// into requests (section 12.2.1.1): with a strict router first, it becomes the Request-URI.
    fn take(&mut self, message: &[u8]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(record_routes: &str) -> (String, String) {
        let response = format!(
            "SIP/2.0 200 OK\r\n{record_routes}To: <sip:b@h>;tag=t\r\nContact: <sip:b@1.2.3.4:5;x=y>\r\n\r\n"
        );
        let mut dialog = Dialog::default();
        dialog.take(response.as_bytes());
        assert_eq!(dialog.to, b"<sip:b@h>;tag=t");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(dialog.target), text(dialog.routes))
    }

    #[test]
    fn a_loose_route_set_is_reversed_and_the_contact_is_the_request_uri() {
        let (target, routes) =
            dialog("Record-Route: <sip:p2;lr>, <sip:p1;lr=on>\r\nRecord-Route: <sip:p0;lr>\r\n");
        assert_eq!(target, "sip:b@1.2.3.4:5;x=y");
        assert_eq!(
            routes,
            "Route: <sip:p0;lr>\r\nRoute: <sip:p1;lr=on>\r\nRoute: <sip:p2;lr>\r\n"
        );
    }

    #[test]
    fn a_strict_router_is_the_request_uri_and_the_contact_the_last_route() {
        let (target, routes) = dialog("Record-Route: <sip:p2;lr>\r\nRecord-Route: <sip:p1>\r\n");
        assert_eq!(target, "sip:p1");
        assert_eq!(
            routes,
            "Route: <sip:p2;lr>\r\nRoute: <sip:b@1.2.3.4:5;x=y>\r\n"
        );
    }

    #[test]
    fn without_a_route_set_requests_go_to_the_contact() {
        assert_eq!(
            dialog(""),
            (String::from("sip:b@1.2.3.4:5;x=y"), String::new())
        );
    }
}
