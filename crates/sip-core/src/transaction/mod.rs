//! The four transaction machines (RFC 3261 section 17, RFC 6026), each in its file. A machine holds its state and its
//! deadlines and nothing else: messages, peers and tables belong to [`crate::core`].

mod invite_client;
mod invite_server;
mod non_invite_client;
mod non_invite_server;
#[cfg(test)]
mod script;

pub(crate) use invite_client::InviteClient;
pub(crate) use invite_server::InviteServer;
pub(crate) use non_invite_client::NonInviteClient;
pub(crate) use non_invite_server::NonInviteServer;

use crate::Mono;

/// When a machine sends its message again, and how long it waited for that (timers A, E and G).
#[derive(Clone, Copy)]
struct Resend {
    at: Mono,
    wait_ms: u32,
}

impl Resend {
    /// `None` over a reliable transport.
    fn first(now: Mono, reliable: bool, wait_ms: u32) -> Option<Self> {
        let at = now.after_ms(wait_ms);
        (!reliable).then_some(Self { at, wait_ms })
    }

    fn next(now: Mono, wait_ms: u32) -> Option<Self> {
        Self::first(now, false, wait_ms)
    }
}

/// The earlier of the resend and the end.
fn earlier(resend: Option<Resend>, end: Mono) -> Mono {
    resend.map_or(end, |r| r.at.min(end))
}

fn is_due(resend: Option<Resend>, now: Mono) -> Option<Resend> {
    resend.filter(|r| r.at <= now)
}

/// What happened to a client transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClientInput {
    Provisional,
    Success,
    Failure,
    TransportFailed,
    Deadline,
}

/// What to do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClientEffect {
    Nothing,
    /// Send the request again.
    Resend,
    /// Pass the response up.
    Pass,
    /// Pass the response up, and acknowledge it (INVITE, 300 to 699).
    PassAndAck,
    /// A repeated 300 to 699: acknowledge again.
    Ack,
    /// Timer B or F: tell the user 408.
    TimedOut,
    /// Tell the user 503.
    TransportFailed,
}

/// What happened to a server transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ServerInput {
    /// The request came again.
    Request,
    /// ACK came (INVITE only).
    Ack,
    /// The user answers 1xx, 2xx, 300 to 699.
    Provisional,
    Success,
    Failure,
    Deadline,
}

/// What to do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ServerEffect {
    Nothing,
    /// Send the user's response, and keep it for [`Self::Resend`].
    Send,
    /// Send the last response again.
    Resend,
    /// ACK to a 2xx: for the user.
    PassAck,
    /// Timer H: no ACK came.
    TimedOut,
}
