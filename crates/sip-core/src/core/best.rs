use super::Core;
use super::fork::{Fork, is_invite, reindex, reread};
use crate::slab::Handle;
use crate::{Now, Sink};
use sip_wire::{Index, Message, Name};

/// How a branch ended.
#[derive(Clone, Copy)]
pub(super) enum Outcome<'a> {
    Response(u16, Message<'a>),
    /// Without a response: as if it were this one.
    Local(u16, &'static str),
}

/// The best response so far.
pub(super) struct Best {
    code: u16,
    /// As received; `None`: ours to write, with this reason.
    message: Option<Box<[u8]>>,
    reason: &'static str,
}

impl Fork {
    pub(super) fn best_code(&self) -> u16 {
        self.best.as_ref().map_or(0, |best| best.code)
    }

    /// Keeps the better response (RFC 3261 section 16.7 item 6) and gathers challenges.
    pub(super) fn consider(&mut self, outcome: Outcome<'_>) {
        let (code, reason) = match outcome {
            Outcome::Response(code, message) => {
                if matches!(code, 401 | 407) {
                    self.gather_challenges(&message);
                }
                (code, "")
            }
            Outcome::Local(code, reason) => (code, reason),
        };
        if self
            .best
            .as_ref()
            .is_some_and(|best| rank(best.code) <= rank(code))
        {
            return;
        }
        let message = match outcome {
            Outcome::Response(_, message) => Some(message.bytes().into()),
            Outcome::Local(..) => None,
        };
        self.best = Some(Best {
            code,
            message,
            reason,
        });
    }

    /// The first challenged branch's header fields leave with its response; those of the others are added.
    fn gather_challenges(&mut self, message: &Message<'_>) {
        if self
            .best
            .as_ref()
            .is_none_or(|best| !matches!(best.code, 401 | 407))
        {
            return;
        }
        for name in [Name::WwwAuthenticate, Name::ProxyAuthenticate] {
            for header in message.headers(name) {
                let field = &message.bytes()[header.field_span.range()];
                if self.challenges.len() + field.len() <= CHALLENGES_LEN_MAX {
                    self.challenges.extend_from_slice(field);
                }
            }
        }
    }
}

/// Smaller is better: 6xx first, then the lowest class, and in it what the caller can do most about. What says
/// nothing of the person called is last of the 4xx: 482 (the same phone twice) and 408.
fn rank(code: u16) -> u32 {
    match code {
        600.. => u32::from(code) - 600,
        401 | 407 => 4000,
        415 | 420 | 484 => 4001,
        482 => 4994,
        408 => 4995,
        503 => 5995,
        _ => u32::from(code) * 10,
    }
}

impl Core {
    /// Sends the best response (RFC 3261 section 16.7 items 6 and 7).
    pub(super) fn finish(&mut self, now: Now, server: Handle, fork: &Fork, sink: &mut impl Sink) {
        let mut index = std::mem::take(&mut self.index_stored);
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let code = self.write_final(fork, &mut index, &mut out);
        self.index_stored = index;
        match code {
            Some(code) => {
                self.counters.calls_failed += u64::from(is_invite(&fork.request));
                self.respond(now, server, code, &out, sink);
            }
            // RFC 4320 section 4.2: a 408 to anything but INVITE comes too late to do good.
            None => self.close_server(server),
        }
        self.out = out;
    }

    fn write_final(&mut self, fork: &Fork, index: &mut Index, out: &mut Vec<u8>) -> Option<u16> {
        let best = fork.best.as_ref();
        let code = best.map_or(408, |best| best.code);
        // RFC 4320 section 4.2: nor one that a phone has sent.
        if code == 408 && !is_invite(&fork.request) {
            return None;
        }
        if let Some(received) = best.and_then(|best| best.message.as_deref())
            && code != 503
            && let Some(message) = reindex(received, index)
        {
            self.edit_response(
                &message,
                if matches!(code, 401 | 407) {
                    &fork.challenges
                } else {
                    b""
                },
                out,
            );
            return Some(code);
        }
        let request = reread(&fork.request, &fork.flow, index)?;
        let (code, reason) = match code {
            _ if fork.is_cancelled => (487, ""),
            // RFC 3261 section 16.7 item 6: our 503 would speak for this server.
            503 => (500, best.map_or("", |best| best.reason)),
            code => (code, best.map_or("", |best| best.reason)),
        };
        self.write_answer(&request, code, reason, b"", out);
        Some(code)
    }

    /// A response to be passed upstream: without our Via, with further header lines.
    pub(super) fn edit_response(&mut self, message: &Message<'_>, lines: &[u8], out: &mut Vec<u8>) {
        self.edits.clear();
        let mut vias = message.values(Name::Via);
        if let Some(first) = vias.next() {
            let span = match vias.next() {
                Some(second) if !first.last => sip_wire::Span {
                    start: first.span.start,
                    end: second.span.start,
                },
                _ => first.header.field_span,
            };
            self.edits.replace(span, b"");
        }
        if !lines.is_empty() {
            self.edits.replace(
                sip_wire::Span {
                    start: message.head_end(),
                    end: message.head_end(),
                },
                lines,
            );
        }
        self.edits.write(message, out);
    }

    /// Passes a 1xx or 2xx upstream at once (RFC 3261 section 16.7 item 5).
    pub(super) fn pass_response(
        &mut self,
        now: Now,
        server: Handle,
        code: u16,
        message: &Message<'_>,
        sink: &mut impl Sink,
    ) {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.edit_response(message, b"", &mut out);
        self.respond(now, server, code, &out, sink);
        self.out = out;
    }
}

/// Bytes of challenges gathered from all branches.
const CHALLENGES_LEN_MAX: usize = 4096;
