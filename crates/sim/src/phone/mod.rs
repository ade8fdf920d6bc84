//! A simulated phone: a user agent with transactions, registration and calls of its own, written apart from the server's
//! machines so that the two check each other.

mod call;
pub(crate) mod credentials;
mod register;
mod text;
mod transaction;

use crate::rng::Rng;
use call::Leg;
use credentials::Challenge;
use location::Transport;
use register::Registration;
use sip_wire::{Framing, Index, Limits, Message, Method, Name};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use text::text;
use transaction::{Client, Served, TransactionId};

/// A user agent. Times in milliseconds of the run.
pub(crate) struct Phone {
    pub(crate) id: usize,
    pub(crate) user: String,
    password: String,
    pub(crate) role: Role,
    pub(crate) transport: Transport,
    /// Where the network finds it.
    pub(crate) address: SocketAddr,
    /// What it takes for its address; another one behind a NAT.
    believed: SocketAddr,
    pub(crate) world: Rc<Names>,
    rng: Rng,
    registration: Registration,
    proxy_challenge: Option<Challenge>,
    clients: BTreeMap<TransactionId, Client>,
    served: Vec<Served>,
    served_by_key: BTreeMap<Vec<u8>, usize>,
    legs: Vec<Leg>,
    /// Every Contact it has ever given.
    contacts: Vec<String>,
    /// Last number of a branch.
    branches: u32,
    /// No new calls, no refreshes.
    quiet: bool,
    index: Index,
}

/// What a phone does by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A subscriber: registers, calls and is called.
    Subscriber,
    /// A user agent of another domain, reached by its address: calls subscribers and is called.
    Abroad,
}

/// Names that everybody knows.
pub(crate) struct Names {
    pub(crate) domain: String,
    /// The server's addresses, IPv4 and IPv6.
    pub(crate) server: [SocketAddr; 2],
    /// Subscribers' user names.
    pub(crate) users: Vec<String>,
    /// Addresses-of-record of the other domain.
    pub(crate) abroad: Vec<String>,
}

impl Names {
    /// The server's address for a peer of this family.
    pub(crate) fn server_for(&self, peer: SocketAddr) -> SocketAddr {
        self.server[usize::from(peer.is_ipv6())]
    }
}

/// What a phone wants done.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) messages: Vec<Vec<u8>>,
    /// In so many milliseconds.
    pub(crate) timers: Vec<(u64, Timer)>,
    pub(crate) reports: Vec<Report>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    Register,
    NewCall,
    NewMessage,
    Resend {
        id: TransactionId,
        wait_ms: u64,
    },
    TimeOut {
        id: TransactionId,
    },
    /// Sends a final response to an INVITE again, until it is acknowledged.
    Repeat {
        served: usize,
        wait_ms: u64,
        until_ms: u64,
    },
    Ring {
        served: usize,
    },
    Answer {
        served: usize,
    },
    StopRinging {
        served: usize,
    },
    Cancel {
        leg: usize,
    },
    CancelIgnored {
        leg: usize,
    },
    GiveUp {
        leg: usize,
    },
    ReInvite {
        leg: usize,
    },
    Info {
        leg: usize,
    },
    HangUp {
        leg: usize,
    },
}

/// What the world has to judge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Report {
    /// Must never happen.
    Fault(String),
    /// Must not happen unless the network, a crash or a move explains it.
    Complaint {
        call_id: String,
        since_ms: u64,
        what: String,
    },
    /// This call is explained: its phone has moved or lost its connection.
    Excuse {
        call_id: String,
    },
    /// A phone gave this final response to the INVITE of a call.
    Answered {
        call_id: String,
        code: u16,
    },
    /// The caller got it; `user` was called.
    Outcome {
        call_id: String,
        since_ms: u64,
        user: String,
        code: u16,
        cancelled: bool,
    },
    /// REGISTER was refused with 503.
    Refused503,
    Registered,
}

impl Effects {
    pub(crate) fn fault(&mut self, what: impl Into<String>) {
        self.reports.push(Report::Fault(what.into()));
    }

    fn complain(&mut self, call_id: &str, since_ms: u64, what: impl Into<String>) {
        let call_id = call_id.to_string();
        self.reports.push(Report::Complaint {
            call_id,
            since_ms,
            what: what.into(),
        });
    }
}

impl Phone {
    pub(crate) fn new(
        id: usize,
        user: String,
        role: Role,
        transport: Transport,
        world: Rc<Names>,
        seed: u64,
    ) -> Self {
        let mut rng = Rng::new(seed, 1000 + id as u64);
        let registration = Registration::new(id, &mut rng);
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            id,
            password: format!("secret of {user}"),
            user,
            role,
            transport,
            address: nowhere,
            believed: nowhere,
            world,
            rng,
            registration,
            proxy_challenge: None,
            clients: BTreeMap::new(),
            served: Vec::new(),
            served_by_key: BTreeMap::new(),
            legs: Vec::new(),
            contacts: Vec::new(),
            branches: 0,
            quiet: false,
            index: Index::new(),
        }
    }

    pub(crate) fn password(&self) -> &str {
        &self.password
    }

    /// It has a new address, and takes `believed` for it.
    pub(crate) fn settle(&mut self, address: SocketAddr, believed: SocketAddr) {
        self.address = address;
        self.believed = believed;
        let parameter = if self.transport == Transport::Tcp {
            ";transport=tcp"
        } else {
            ""
        };
        let contact = format!("sip:{}@{believed}{parameter}", self.user);
        if self.contacts.last() != Some(&contact) {
            self.contacts.push(contact);
        }
    }

    /// Its address changed or its connection broke: what it has under way may be lost.
    pub(crate) fn uprooted(&mut self, fx: &mut Effects) {
        self.registration.stable_since_ms = None;
        self.registration.due_ms = 0;
        let open = self
            .legs
            .iter()
            .filter(|leg| !leg.has_ended())
            .map(|leg| leg.call_id.clone());
        let waiting = self
            .clients
            .values()
            .filter(|c| c.code.is_none())
            .map(|c| c.call_id.clone());
        fx.reports.extend(
            open.chain(waiting)
                .map(|call_id| Report::Excuse { call_id }),
        );
    }

    /// From now on it only finishes what it has begun.
    pub(crate) fn calm_down(&mut self) {
        self.quiet = true;
    }

    /// The legs that are not over, for the last check: Call-ID, since when, and state.
    pub(crate) fn open_legs(&self) -> impl Iterator<Item = (&str, u64, String)> {
        self.legs
            .iter()
            .filter(|l| !l.has_ended())
            .map(|l| (l.call_id.as_str(), l.since_ms, format!("{:?}", l.state)))
    }

    /// Calls that it has made before then and that have got a provisional response but no final one, and since when.
    pub(crate) fn calls_in_setup(&self, before_ms: u64) -> impl Iterator<Item = (&str, u64)> {
        let in_setup = move |leg: &&Leg| leg.is_in_setup() && leg.since_ms < before_ms;
        self.legs
            .iter()
            .filter(in_setup)
            .map(|leg| (leg.call_id.as_str(), leg.since_ms))
    }

    pub(crate) fn on_timer(&mut self, now_ms: u64, timer: Timer, fx: &mut Effects) {
        match timer {
            Timer::Register => self.register(now_ms, fx),
            Timer::NewCall => self.new_call(now_ms, fx),
            Timer::NewMessage => self.new_message(now_ms, fx),
            Timer::Resend { id, wait_ms } => self.resend(id, wait_ms, fx),
            Timer::TimeOut { id } => self.time_out(now_ms, id, fx),
            Timer::Repeat {
                served,
                wait_ms,
                until_ms,
            } => self.repeat(now_ms, served, wait_ms, until_ms, fx),
            Timer::Ring { served } => self.ring(served, fx),
            Timer::Answer { served } => self.answer(now_ms, served, fx),
            Timer::StopRinging { served } => self.stop_ringing(now_ms, served, fx),
            Timer::Cancel { leg } => self.cancel(now_ms, leg, fx),
            Timer::CancelIgnored { leg } => self.cancel_ignored(leg, fx),
            Timer::GiveUp { leg } => self.give_up(leg, fx),
            Timer::ReInvite { leg } => self.re_invite(now_ms, leg, fx),
            Timer::Info { leg } => self.info(now_ms, leg, fx),
            Timer::HangUp { leg } => self.hang_up(now_ms, leg, fx),
        }
    }

    pub(crate) fn on_message(&mut self, now_ms: u64, bytes: &[u8], fx: &mut Effects) {
        let framing = if self.transport.is_reliable() {
            Framing::Stream
        } else {
            Framing::Datagram
        };
        let mut index = std::mem::take(&mut self.index);
        let parsed = index.parse(bytes, framing, &Limits::default());
        let message = index.message(bytes);
        match parsed.and_then(|()| message.check()) {
            Err(error) => fx.fault(format!(
                "phone {} got what is no message ({error}):\n{}",
                self.id,
                text(bytes)
            )),
            Ok(()) => match message.code() {
                Some(code) => self.on_response(now_ms, &message, code, fx),
                None => self.on_request(now_ms, &message, fx),
            },
        }
        self.index = index;
    }

    fn on_request(&mut self, now_ms: u64, request: &Message<'_>, fx: &mut Effects) {
        let uri = text(request.request_uri().0);
        let is_mine = self.contacts.iter().any(|c| c == uri);
        let is_abroad = self.role == Role::Abroad && uri == self.aor();
        if !is_mine && !is_abroad {
            let what = format!("phone {} got a request for somebody else: {uri}", self.id);
            let in_dialog = request.to().is_ok_and(|to| to.tag().is_some());
            let of_same_user = uri.starts_with(&format!("sip:{}@", self.user));
            match request.call_id() {
                // The way of a dialog is gone, and its user has another phone.
                Ok(call_id) if in_dialog && of_same_user => {
                    fx.complain(text(call_id), now_ms, what)
                }
                _ => fx.fault(what),
            }
        }
        let method = request.method().unwrap_or(Method::Other);
        // The server's own: CANCEL, and ACK to a failure.
        let is_of_one_hop = matches!(method, Method::Ack | Method::Cancel);
        let hops = request.max_forwards().ok().flatten();
        if !is_of_one_hop && hops.is_none_or(|hops| hops >= 70) {
            fx.fault(format!(
                "phone {}: Max-Forwards was not counted down",
                self.id
            ));
        }
        if method == Method::Ack {
            return self.on_ack(request, fx);
        }
        let key = transaction::key(request, method);
        if let Some(&served) = self.served_by_key.get(&key) {
            return self.again(served, fx);
        }
        let served = self.served.len();
        self.served_by_key.insert(key, served);
        self.served.push(Served::new(request, self.rng.next()));
        let to_tag = request.to().ok().and_then(|to| to.tag());
        match method {
            Method::Invite if to_tag.is_none() => self.on_invite(now_ms, served, request, fx),
            Method::Invite => self.on_re_invite(now_ms, served, request, fx),
            Method::Cancel => self.on_cancel(now_ms, served, request, fx),
            Method::Bye => self.on_bye(served, request, fx),
            _ => self.respond(now_ms, served, request, 200, fx),
        }
    }

    /// The present Contact's URI.
    fn contact(&self) -> &str {
        self.contacts.last().map_or("", String::as_str)
    }

    fn aor(&self) -> String {
        match self.role {
            Role::Subscriber => format!("sip:{}@{}", self.user, self.world.domain),
            Role::Abroad => format!("sip:{}", self.world.abroad[0]),
        }
    }
}

/// Values of a header, in order.
fn values(message: &Message<'_>, name: Name) -> Vec<String> {
    message
        .values(name)
        .map(|v| text(v.text).to_string())
        .collect()
}

/// The URI of the first Contact.
fn contact_uri(message: &Message<'_>) -> String {
    let value = message.values(Name::Contact).next();
    let address = value.and_then(|v| sip_wire::NameAddr::parse(v.text).ok());
    address.map_or(String::new(), |a| text(a.uri).to_string())
}
