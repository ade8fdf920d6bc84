use super::Core;
use super::request::Request;
use crate::ours::{Host, Meaning};
use crate::resolve::ResolveRequest;
use crate::token::Token;
use crate::{Destination, Now, Sink, Stage};
use location::{Binding, BindingParts, Flow, Transport};
use sip_wire::{Method, Name, NameAddr, Scheme, Uri, Value};
use smallvec::SmallVec;
use std::net::SocketAddr;

/// A request after the preprocessing of RFC 3261 section 16.4.
pub(super) struct Routed<'a> {
    /// The Request-URI, or what it was before a strict router put ours there.
    pub(super) uri: Uri<'a>,
    /// What its host is to us.
    pub(super) host: Host,
    /// A strict router before us: the last Route value has become the Request-URI.
    pub(super) is_strict: bool,
    /// So many leading Route values named us.
    pub(super) own_routes: u8,
    /// The first Route value that does not.
    pub(super) next_route: Option<NameAddr<'a>>,
    /// What the token of the dialog opens, when the Route carries one.
    pub(super) passage: Passage,
}

/// What a request inside a dialog may do without credentials.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// Nothing: no token, or it is of no use to who sends this.
    Closed,
    /// Go where it says: both sides are ours, or the sender is and was seen on this flow. The other side's flow, where its contact does not do.
    Open(Option<Flow>),
    /// Go to our side of the dialog over this flow, whatever else it says: from a stranger.
    OnlyTo(Flow),
}

/// One place that a request may go to.
#[derive(Clone)]
pub(super) struct Target {
    /// The Request-URI it gets; empty: unchanged.
    pub(super) uri: Box<[u8]>,
    /// Route values to put before (RFC 3327); empty: none.
    pub(super) path: Box<[u8]>,
    pub(super) hop: Hop,
    /// Preference, 0 to 1000.
    pub(super) q: u16,
    /// How the callee is reached later in the dialog, when its Contact would not do.
    pub(super) flow: Option<Flow>,
    /// A phone registered here.
    pub(super) is_ours: bool,
    /// A message too large for a datagram may try TCP.
    pub(super) may_use_tcp: bool,
    /// Its share of Max-Breadth; `None`: not written (ACK).
    pub(super) breadth: Option<u32>,
}

/// How a request gets to its target.
#[derive(Clone)]
pub(super) enum Hop {
    Direct(Destination),
    Name(ResolveRequest),
}

/// Why a request has no target.
pub(super) type NoTarget = (u16, &'static str);

pub(super) type Targets = SmallVec<[Target; 1]>;

impl Core {
    /// Takes our own Route values off (RFC 3261 section 16.4).
    ///
    /// Departures: `maddr` in the Request-URI is not looked at.
    pub(super) fn route<'a>(&self, request: &Request<'a>) -> Routed<'a> {
        let mut routed = Routed {
            uri: request.uri,
            host: Host::Foreign,
            is_strict: false,
            own_routes: 0,
            next_route: None,
            passage: Passage::Closed,
        };
        let mut token = None;
        if request.message.header(Name::Route).is_some() {
            token = self.take_routes(request, &mut routed);
        }
        routed.passage = token.map_or(Passage::Closed, |token| self.passage(request, &token));
        // A new request for one of our names is for us whatever the port; inside a dialog it names a contact.
        let meaning = if token.is_some() {
            Meaning::Place
        } else {
            Meaning::Person
        };
        routed.host = match routed.uri.scheme {
            // A number without a domain is one of ours or nobody's: there is no gateway to give it to.
            Scheme::Tel => Host::Alias,
            _ => self.ours.host(
                &routed.uri,
                meaning,
                request.flow.local,
                &self.shared.subscribers,
            ),
        };
        routed
    }

    fn take_routes<'a>(&self, request: &Request<'a>, routed: &mut Routed<'a>) -> Option<Token> {
        let mut found = None;
        let values: SmallVec<[Value<'a>; 4]> = request.message.values(Name::Route).collect();
        let mut values = &values[..];
        if let Some(token) = self.token(request, &request.uri)
            && let Some((last, rest)) = values.split_last()
            && let Some(uri) = NameAddr::parse(last.text)
                .ok()
                .and_then(|last| last.uri().ok())
        {
            (routed.is_strict, routed.uri, found) = (true, uri, Some(token));
            values = rest;
        }
        for value in values {
            let Ok(route) = NameAddr::parse(value.text) else {
                return found;
            };
            let Ok(uri) = route.uri() else { return found };
            let token = self.token(request, &uri);
            let is_ours = token.is_some()
                || self.ours.host(
                    &uri,
                    Meaning::Place,
                    request.flow.local,
                    &self.shared.subscribers,
                ) != Host::Foreign;
            if !is_ours {
                routed.next_route = Some(route);
                return found;
            }
            routed.own_routes = routed.own_routes.saturating_add(1);
            found = found.or(token);
        }
        found
    }

    /// Who sends a request with this token, as far as it can be known, and what that opens.
    fn passage(&self, request: &Request<'_>, token: &Token) -> Passage {
        let (sender, receiver) = token.sides(&self.keyed, request.sender_tag());
        let is_seen = sender
            .flow
            .is_some_and(|flow| same_source(&flow, &request.flow));
        match receiver.flow {
            flow if sender.is_ours && (receiver.is_ours || is_seen) => Passage::Open(flow),
            Some(flow) if receiver.is_ours && !sender.is_ours => Passage::OnlyTo(flow),
            _ => Passage::Closed,
        }
    }

    fn token(&self, request: &Request<'_>, uri: &Uri<'_>) -> Option<Token> {
        Token::read(&self.keyed, request.call_id, uri.user?)
    }

    /// Where the request goes (RFC 3261 section 16.5), best first.
    pub(super) fn targets(
        &self,
        now: Now,
        request: &Request<'_>,
        routed: &Routed<'_>,
        sink: &mut impl Sink,
    ) -> Result<Targets, NoTarget> {
        let mut uri = Box::default();
        if routed.is_strict {
            uri = routed.uri.text.into();
        }
        let flow = match routed.passage {
            Passage::OnlyTo(flow) => {
                let flow = Some(flow).filter(|flow| is_usable(flow, sink));
                let flow = flow.or_else(|| self.flow_of_person(now, request, sink));
                return Ok(single(Target::over(&flow.ok_or((480, ""))?, uri)));
            }
            Passage::Open(flow) => flow,
            Passage::Closed => None,
        };
        if let Some(route) = &routed.next_route {
            let uri = route.uri().map_err(|_| (400, "Malformed Route"))?;
            return Ok(single(Target::new(hop_to(&uri)?)));
        }
        if let Some(flow) = flow.filter(|flow| is_usable(flow, sink)) {
            return Ok(single(Target::over(&flow, uri)));
        }
        if routed.host != Host::Foreign {
            return self.bindings(now, request, &routed.uri, routed.host, sink);
        }
        // The connection of the dialog is gone, and the phone may have registered again since.
        if let Some(gone) = flow {
            if let Some(flow) = self.flow_of_person(now, request, sink) {
                return Ok(single(Target::over(&flow, uri)));
            }
            // A contact that is not where the phone was is behind a NAT: at that address of ours somebody else may be.
            if routed.uri.host_ip() != Some(gone.peer.ip()) {
                return Err((480, ""));
            }
        }
        Ok(single(Target {
            uri,
            may_use_tcp: true,
            ..Target::new(hop_to(&routed.uri)?)
        }))
    }

    /// The targets of an address-of-record.
    fn bindings(
        &self,
        now: Now,
        request: &Request<'_>,
        uri: &Uri<'_>,
        host: Host,
        sink: &mut impl Sink,
    ) -> Result<Targets, NoTarget> {
        if uri.user.is_none() {
            return Err((404, "No User In Request-URI"));
        }
        let mut aor = Vec::with_capacity(64);
        self.ours.write_aor(uri, host, &mut aor);
        if request.method == Method::Publish
            || request.method == Method::Subscribe && self.is_own(request, &aor)
        {
            return Err((489, "")); // There is no event state here, and the phone's own subscription must not come back to it.
        }
        sink.stage(Stage::LookUp);
        let mut targets = self.shared.location.read(&aor, now.wall, |bindings| {
            let targets = bindings
                .iter()
                .filter_map(|binding| target_of(&binding.parts(), sink));
            targets
                .take(self.settings.fork_branches_max)
                .collect::<Targets>()
        });
        sink.stage(Stage::LookedUp);
        if targets.is_empty() {
            let is_known = self.shared.subscribers.exists(&aor);
            return Err(if is_known { (480, "") } else { (404, "") });
        }
        if targets.len() > 1 {
            targets.sort_by_key(|target| std::cmp::Reverse(target.q));
        }
        Ok(targets)
    }

    fn is_own(&self, request: &Request<'_>, aor: &[u8]) -> bool {
        let from = &request.from_uri;
        let mut own = Vec::with_capacity(64);
        self.ours
            .write_aor(from, self.person(from, request), &mut own);
        own == aor
    }

    /// The open flow of the person in To, for a request inside a dialog: that of the binding with the contact in the
    /// Request-URI, or of the only one with its user and host (the phone has registered again from another port).
    fn flow_of_person(
        &self,
        now: Now,
        request: &Request<'_>,
        sink: &mut impl Sink,
    ) -> Option<Flow> {
        let to = &request.to_uri;
        let host = self.person(to, request);
        if host == Host::Foreign {
            return None;
        }
        let mut aor = Vec::with_capacity(64);
        self.ours.write_aor(to, host, &mut aor);
        let wanted = &request.uri;
        let is_phone =
            |uri: &Uri<'_>| uri.user == wanted.user && uri.host.eq_ignore_ascii_case(wanted.host);
        sink.stage(Stage::LookUp);
        let flow = self.shared.location.read(&aor, now.wall, |bindings| {
            let contact = |binding: &Binding| {
                Uri::parse(binding.parts().contact)
                    .ok()
                    .map(|uri| (uri.equals(wanted), is_phone(&uri)))
            };
            let exact = bindings
                .iter()
                .find(|binding| matches!(contact(binding), Some((true, _))));
            let mut moved = bindings
                .iter()
                .filter(|binding| matches!(contact(binding), Some((_, true))));
            let binding = exact.or_else(|| moved.next().filter(|_| moved.next().is_none()))?;
            Some(binding.parts().flow).filter(|flow| sink.is_open(flow))
        });
        sink.stage(Stage::LookedUp);
        flow
    }
}

impl Target {
    fn new(hop: Hop) -> Self {
        Self {
            uri: Box::default(),
            path: Box::default(),
            hop,
            q: 1000,
            flow: None,
            is_ours: false,
            may_use_tcp: false,
            breadth: None,
        }
    }

    /// Over a flow of the dialog.
    fn over(flow: &Flow, uri: Box<[u8]>) -> Self {
        let is_address = flow.transport.is_reliable() && flow.connection == 0;
        let to = if is_address {
            Destination::Address {
                transport: flow.transport,
                peer: flow.peer,
            }
        } else {
            Destination::Flow(*flow)
        };
        Self {
            uri,
            ..Self::new(Hop::Direct(to))
        }
    }
}

/// Whether something can be sent over it. One without a connection names an address to connect to.
fn is_usable(flow: &Flow, sink: &mut impl Sink) -> bool {
    !flow.transport.is_reliable() || flow.connection == 0 || sink.is_open(flow)
}

/// Whether both name the same peer on the same way.
fn same_source(a: &Flow, b: &Flow) -> bool {
    (a.transport, a.connection, a.peer) == (b.transport, b.connection, b.peer)
}

fn single(target: Target) -> Targets {
    let mut targets = Targets::new();
    targets.push(target);
    targets
}

/// How a binding is reached: over its flow; when its connection is gone, by its contact if that is where it registered from.
fn target_of(binding: &BindingParts<'_>, sink: &mut impl Sink) -> Option<Target> {
    let flow = binding.flow;
    let is_kept = flow.transport.is_reliable() || binding.behind_nat;
    let mut target = Target {
        uri: binding.contact.into(),
        q: binding.q,
        path: binding.path.into(),
        is_ours: true,
        ..Target::new(Hop::Direct(Destination::Flow(flow)))
    };
    if !binding.path.is_empty() {
        let first = sip_wire::first_value(binding.path);
        let uri = NameAddr::parse(first).ok()?.uri().ok()?;
        target.hop = hop_to(&uri).ok()?;
    } else if flow.transport.is_reliable() && !sink.is_open(&flow) {
        let contact = Uri::parse(binding.contact).ok()?;
        if contact.host_ip() != Some(flow.peer.ip()) {
            return None;
        }
        let peer = SocketAddr::new(flow.peer.ip(), contact.port.unwrap_or(5060));
        target.hop = Hop::Direct(Destination::Address {
            transport: flow.transport,
            peer,
        });
    } else {
        // An old phone may register from another port than it listens on.
        if !is_kept && let Some(peer) = address_of(binding.contact) {
            target.hop = Hop::Direct(Destination::Flow(Flow { peer, ..flow }));
        }
        target.flow = is_kept.then_some(flow);
        target.may_use_tcp = !is_kept;
    }
    Some(target)
}

/// The address that a contact names, where it names one.
fn address_of(contact: &[u8]) -> Option<SocketAddr> {
    let uri = Uri::parse(contact).ok()?;
    let port = if uri.scheme == Scheme::Sips {
        5061
    } else {
        5060
    };
    Some(SocketAddr::new(uri.host_ip()?, uri.port.unwrap_or(port)))
}

/// The way to a URI of another host (RFC 3263 section 4).
fn hop_to(uri: &Uri<'_>) -> Result<Hop, NoTarget> {
    let transport = match uri.params.value("transport") {
        None => None,
        Some(name) if name.eq_ignore_ascii_case(b"udp") => Some(Transport::Udp),
        Some(name) if name.eq_ignore_ascii_case(b"tcp") => Some(Transport::Tcp),
        Some(_) => return Err((480, "Transport Not Available Here")),
    };
    match uri.scheme {
        Scheme::Sip => {}
        Scheme::Sips => return Err((480, "SIPS Not Available Here")),
        Scheme::Tel | Scheme::Other => return Err((416, "")),
    }
    let host = uri.params.value("maddr").unwrap_or(uri.host);
    let host = std::str::from_utf8(host).map_err(|_| (400, "Malformed Host"))?;
    if let Ok(ip) = host.trim_start_matches('[').trim_end_matches(']').parse() {
        let peer = SocketAddr::new(ip, uri.port.unwrap_or(5060));
        return Ok(Hop::Direct(Destination::Address {
            transport: transport.unwrap_or(Transport::Udp),
            peer,
        }));
    }
    Ok(Hop::Name(ResolveRequest {
        host: host.to_ascii_lowercase(),
        port: uri.port,
        transport,
        secure: false,
        response: false,
    }))
}
