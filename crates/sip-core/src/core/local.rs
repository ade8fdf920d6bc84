use super::Core;
use super::fork::reindex;
use super::request::Request;
use crate::ours::{Host, Meaning};
use crate::registrar::{self, Refusal};
use crate::{Now, Sink, Stage};
use location::TicketState;
use sip_wire::{Method, Name, Response, Scheme};

/// Methods that are proxied by name; what OPTIONS says.
const ABILITIES: &[u8] = b"Allow: INVITE, ACK, CANCEL, BYE, REGISTER, OPTIONS, INFO, PRACK, UPDATE, SUBSCRIBE, NOTIFY, REFER, MESSAGE\r\n\
    Accept: */*\r\nAccept-Encoding: identity\r\nAccept-Language: en\r\nSupported: path\r\n";

impl Core {
    /// The request is for the server itself and not for one of its users. One with a Route is looked at after its Routes.
    pub(super) fn is_for_server(&self, request: &Request<'_>) -> bool {
        (request.method == Method::Register || request.uri.user.is_none())
            && request.uri.scheme == Scheme::Sip
            && request.first_route().is_none()
            && self.ours.host(
                &request.uri,
                Meaning::Person,
                request.flow.local,
                &self.shared.subscribers,
            ) != Host::Foreign
    }

    /// Answers a request for the server itself, without a transaction: each of these gives the same answer when it comes again.
    pub(super) fn serve(&mut self, now: Now, request: &Request<'_>, sink: &mut impl Sink) {
        if self.ending {
            return self.answer(
                request,
                503,
                "Server Is Shutting Down",
                b"Retry-After: 5\r\n",
                sink,
            );
        }
        if request.method == Method::Register {
            return self.register(now, request, sink);
        }
        if request.message.header(Name::Require).is_some() {
            return self.refuse_extensions(request, Name::Require, sink);
        }
        match request.method {
            Method::Options => self.answer(request, 200, "", ABILITIES, sink),
            Method::Notify => self.answer(request, 200, "", b"", sink),
            Method::Subscribe | Method::Publish => self.answer(request, 489, "", b"", sink),
            Method::Other => self.answer(request, 501, "", ABILITIES, sink),
            _ if request.has_to_tag() => self.answer(request, 481, "", b"", sink),
            Method::Invite | Method::Message | Method::Refer => {
                self.answer(request, 404, "No User In Request-URI", b"", sink)
            }
            _ => self.answer(request, 405, "", ABILITIES, sink),
        }
    }

    /// 420 with the option tags that we do not know, which are all of this header's.
    pub(super) fn refuse_extensions(
        &mut self,
        request: &Request<'_>,
        header: Name,
        sink: &mut impl Sink,
    ) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        lines.extend_from_slice(b"Unsupported: ");
        for (i, value) in request.message.values(header).enumerate() {
            if i > 0 {
                lines.extend_from_slice(b", ");
            }
            lines.extend_from_slice(value.text);
        }
        lines.extend_from_slice(b"\r\n");
        self.answer(request, 420, "", &lines, sink);
        self.lines = lines;
    }

    /// REGISTER (RFC 3261 section 10.3).
    fn register(&mut self, now: Now, request: &Request<'_>, sink: &mut impl Sink) {
        let to = &request.to_uri;
        let host = match to.scheme {
            Scheme::Sip | Scheme::Sips => self.person(to, request),
            _ => Host::Foreign,
        };
        if host == Host::Foreign || to.user.is_none() {
            return self.refuse_registration(
                request,
                &Refusal {
                    code: 404,
                    reason: "Not A User Of This Server",
                },
                b"",
                sink,
            );
        }
        let mut aor = Vec::with_capacity(64);
        self.ours.write_aor(to, host, &mut aor);
        if self.settings.auth {
            let realm = self.realm(to, host);
            let Some(user) = self.authenticate(now, request, Name::Authorization, &realm, sink)
            else {
                return;
            };
            if user != aor {
                return self.refuse_registration(
                    request,
                    &Refusal {
                        code: 403,
                        reason: "Not Your Address-Of-Record",
                    },
                    b"",
                    sink,
                );
            }
        }
        let random = self.random.draw();
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        sink.stage(Stage::LookUp);
        let outcome = registrar::register(
            &request.message,
            &request.flow,
            &aor,
            now,
            &self.shared.location,
            &self.settings,
            random,
            &mut lines,
        );
        sink.stage(Stage::LookedUp);
        match outcome {
            Ok(ticket) => self.accept_registration(request, ticket, &lines, sink),
            Err(refusal) => self.refuse_registration(request, &refusal, &lines, sink),
        }
        self.lines = lines;
    }

    /// The 200 leaves when what it promises is on disk.
    fn accept_registration(
        &mut self,
        request: &Request<'_>,
        ticket: location::Ticket,
        lines: &[u8],
        sink: &mut impl Sink,
    ) {
        self.counters.registrations_accepted += 1;
        let state = self.shared.location.ticket_state(ticket);
        if state == TicketState::Failed {
            return self.refuse_registration(
                request,
                &Refusal {
                    code: 503,
                    reason: "Registration Could Not Be Stored",
                },
                b"Retry-After: 30\r\n",
                sink,
            );
        }
        if state == TicketState::Durable {
            return self.answer(request, 200, "", lines, sink);
        }
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.write_answer(request, 200, "", lines, &mut out);
        self.counters.responses_sent += 1;
        sink.send_when_durable(ticket, &request.reply.flow, &out);
        self.out = out;
    }

    /// A 200 that was to leave once its ticket was durable, and whose batch failed: becomes a 503.
    pub fn durability_failed(
        &mut self,
        flow: &location::Flow,
        message: &[u8],
        sink: &mut impl Sink,
    ) {
        let mut index = std::mem::take(&mut self.index_stored);
        if let Some(request) = reindex(message, &mut index) {
            let mut out = std::mem::take(&mut self.out);
            out.clear();
            let reason = "Registration Could Not Be Stored";
            Response {
                request,
                code: 503,
                reason,
                source: None,
                to_tag: b"",
            }
            .write(b"Retry-After: 30\r\n", b"", &mut out);
            sink.send(&crate::Destination::Flow(*flow), None, &out);
            self.out = out;
        }
        self.index_stored = index;
    }

    fn refuse_registration(
        &mut self,
        request: &Request<'_>,
        refusal: &Refusal,
        lines: &[u8],
        sink: &mut impl Sink,
    ) {
        self.counters.registrations_refused += 1;
        self.answer(request, refusal.code, refusal.reason, lines, sink);
    }
}
