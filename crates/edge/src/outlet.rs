use crate::durable::Durable;
use crate::log::Voice;
use crate::ways::Ways;
use crate::{Mail, Post, Resolver};
use location::{Flow, Location, Ticket, TicketState, Transport};
use net::{ConnectionId, Io, Stage, Tag};
use sip_core::{Destination, Event, Mono, Origin, ResolveId, ResolveRequest, Sink};
use std::net::SocketAddr;
use std::sync::Arc;

/// Where the effects of a worker's core go: to its sockets, to other workers, to the control plane, to the log.
pub(crate) struct Outlet<'a> {
    pub(crate) io: &'a mut Io,
    pub(crate) state: &'a mut State,
}

/// What a worker has beside its core and its sockets.
pub(crate) struct State {
    pub(crate) worker: u8,
    pub(crate) now: Mono,
    pub(crate) ways: Ways,
    pub(crate) post: Post,
    pub(crate) location: Arc<Location>,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) durable: Durable,
    pub(crate) voice: Voice,
    /// Sends that failed at once; the core is told after the call that it is in.
    pub(crate) failed: Vec<Origin>,
    /// Questions that the resolver did not take; the same.
    pub(crate) unresolved: Vec<ResolveId>,
    /// Answers that can't be kept until they are durable, or never will be; the same.
    pub(crate) refused: Vec<(Flow, Box<[u8]>)>,
    pub(crate) answers_refused: u64,
}

impl Sink for Outlet<'_> {
    fn send(&mut self, to: &Destination, origin: Option<Origin>, message: &[u8]) {
        let sent = match *to {
            Destination::Flow(ref flow) => self.send_on(flow, origin, message),
            Destination::Address { transport, peer } => {
                self.send_to(transport, peer, origin, message)
            }
        };
        if !sent {
            self.state.failed.extend(origin);
        }
    }

    fn send_when_durable(&mut self, ticket: Ticket, to: &Flow, message: &[u8]) {
        let state = &mut *self.state;
        let kept = match state.location.ticket_state(ticket) {
            TicketState::Durable => {
                self.send_on(to, None, message);
                return;
            }
            TicketState::Failed => false,
            TicketState::Waiting => state.durable.push(state.now, ticket, to, message),
        };
        if !kept {
            state.refused.push((*to, message.into()));
        }
    }

    fn local_address(&mut self, to: &Destination) -> Option<SocketAddr> {
        let state = &mut *self.state;
        let now = state.now;
        match *to {
            Destination::Address { transport, peer } => state.ways.local(transport, peer, now),
            // A connection that we opened leaves from a port of its own; what is named is where we listen.
            Destination::Flow(flow) if flow.listener == u16::MAX => {
                let listens = state.ways.local(flow.transport, flow.peer, now)?;
                Some(SocketAddr::new(flow.local.ip(), listens.port()))
            }
            Destination::Flow(flow) if flow.local.ip().is_unspecified() => {
                state.ways.local(flow.transport, flow.peer, now)
            }
            Destination::Flow(flow) => Some(flow.local),
        }
    }

    fn is_open(&mut self, flow: &Flow) -> bool {
        let id = ConnectionId(flow.connection);
        match flow.transport {
            Transport::Udp => true,
            _ if id == ConnectionId::NONE => false,
            _ if id.worker() == self.state.worker => self.io.is_open(id),
            _ => self.state.post.is_open(id),
        }
    }

    fn resolve(&mut self, id: ResolveId, request: &ResolveRequest) {
        let state = &mut *self.state;
        if state
            .resolver
            .ask(state.worker, id, request.clone())
            .is_err()
        {
            state.unresolved.push(id);
        }
    }

    fn hand_over(&mut self, worker: u8, flow: &Flow, message: &[u8]) {
        let mail = Mail::HandedOver {
            flow: *flow,
            bytes: message.into(),
        };
        // When the mailbox is full the message is lost, and counted, as a datagram would be.
        self.state.post.send(worker, mail);
    }

    fn event(&mut self, event: &Event<'_>) {
        self.state.voice.event(self.state.now, event);
    }

    fn stage(&mut self, stage: sip_core::Stage) {
        let stages = self.io.stages();
        let begun = match stage {
            sip_core::Stage::Parse => Stage::Parse,
            sip_core::Stage::Decide => Stage::Decide,
            sip_core::Stage::LookUp => Stage::LookUp,
            sip_core::Stage::LookedUp => {
                stages.back_to(Stage::Decide);
                return;
            }
        };
        stages.enter(begun);
    }
}

impl Outlet<'_> {
    /// Sends along a flow. `false`: it can't be, and nobody else will say so.
    pub(crate) fn send_on(&mut self, flow: &Flow, origin: Option<Origin>, message: &[u8]) -> bool {
        let tag = self.tag(origin);
        let id = ConnectionId(flow.connection);
        match flow.transport {
            Transport::Udp if self.state.ways.is(flow.listener, Transport::Udp) => {
                let local = Some(flow.local.ip());
                self.io
                    .send_datagram(flow.listener, local, flow.peer, tag, message);
                true
            }
            // A flow from before a restart with other listeners.
            Transport::Udp => self.send_to(Transport::Udp, flow.peer, origin, message),
            _ if id == ConnectionId::NONE => false,
            _ if id.worker() == self.state.worker => {
                self.io.send(id, tag, message);
                true
            }
            _ => {
                let origin = origin.map(|origin| (self.state.worker, origin));
                let (flow, bytes) = (*flow, message.into());
                let mail = Mail::Send {
                    flow,
                    origin,
                    bytes,
                };
                self.state.post.send(id.worker(), mail)
            }
        }
    }

    fn send_to(
        &mut self,
        transport: Transport,
        peer: SocketAddr,
        origin: Option<Origin>,
        message: &[u8],
    ) -> bool {
        let tag = self.tag(origin);
        let (ways, now) = (&mut self.state.ways, self.state.now);
        match transport {
            Transport::Udp => {
                let Some(listener) = ways.listener(transport, peer, now) else {
                    return false;
                };
                self.io.send_datagram(listener, None, peer, tag, message);
                true
            }
            Transport::Tcp => {
                let id = match self.io.connection_to(peer) {
                    Some(id) => id,
                    None => match self.io.connect(peer, ways.bind_to(transport, peer, now)) {
                        Ok(id) => id,
                        Err(_) => return false,
                    },
                };
                self.io.send(id, tag, message);
                true
            }
            Transport::Tls | Transport::Ws | Transport::Wss | Transport::Sctp => false,
        }
    }

    fn tag(&self, origin: Option<Origin>) -> Option<Tag> {
        origin.map(|origin| Tag {
            owner: self.state.worker,
            value: origin.0,
        })
    }
}
