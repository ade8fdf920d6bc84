use crate::{Counters, Digest, Mono, Now, Origin, ResolveId, Settings, Sink, Target};
use location::{Flow, Location, Subscribers};
use std::sync::Arc;

/// What the workers share.
pub struct Shared {
    /// Bindings.
    pub location: Arc<Location>,
    /// Subscribers.
    pub subscribers: Arc<Subscribers>,
    /// Digest.
    pub digest: Digest,
    /// Key of the tokens in Record-Route; kept across restarts, so that calls outlive one.
    pub token_key: [u8; 16],
}

/// The SIP logic of one worker.
///
/// Call [`receive`](Self::receive) for each message, [`advance`](Self::advance) when [`next_deadline`](Self::next_deadline) has come, and
/// the others for what their names say. Early and repeated calls are harmless. Nothing blocks; the effects are in the sink when the call returns.
pub struct Core {}

impl Core {
    /// `worker` is this one's number, `workers` how many there are; `seed` is for branches and tags, and is secret on a real server.
    #[must_use]
    pub fn new(
        worker: u8,
        workers: u8,
        shared: Arc<Shared>,
        settings: Arc<Settings>,
        seed: u64,
        now: Now,
    ) -> Self {
        let _ = (worker, workers, shared, settings, seed, now);
        todo!()
    }
    /// Takes a new configuration.
    pub fn set_settings(&mut self, settings: Arc<Settings>) {
        let _ = settings;
        todo!()
    }
    /// A datagram, or one message cut out of a stream.
    pub fn receive(&mut self, now: Now, flow: &Flow, message: &[u8], sink: &mut impl Sink) {
        let _ = (now, flow, message, sink);
        todo!()
    }
    /// A message that another worker handed over ([`Sink::hand_over`]).
    pub fn receive_handed(&mut self, now: Now, flow: &Flow, message: &[u8], sink: &mut impl Sink) {
        let _ = (now, flow, message, sink);
        todo!()
    }
    /// A stream that can't be followed further: answers what can be answered. The caller closes.
    pub fn receive_broken(
        &mut self,
        now: Now,
        flow: &Flow,
        bytes: &[u8],
        error: sip_wire::ParseError,
        sink: &mut impl Sink,
    ) {
        let _ = (now, flow, bytes, error, sink);
        todo!()
    }
    /// Time has passed.
    pub fn advance(&mut self, now: Now, sink: &mut impl Sink) {
        let _ = (now, sink);
        todo!()
    }
    /// When to call [`Self::advance`] next; may be early.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Mono> {
        todo!()
    }
    /// A message could not be sent.
    pub fn send_failed(&mut self, now: Now, origin: Origin, sink: &mut impl Sink) {
        let _ = (now, origin, sink);
        todo!()
    }
    /// The resolver's answer; empty: none found, or too late.
    pub fn resolved(&mut self, now: Now, id: ResolveId, targets: &[Target], sink: &mut impl Sink) {
        let _ = (now, id, targets, sink);
        todo!()
    }
    /// The server ends: INVITEs without a final response are answered 503 and their branches cancelled; new requests get 503.
    pub fn shut_down(&mut self, now: Now, sink: &mut impl Sink) {
        let _ = (now, sink);
        todo!()
    }
    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        todo!()
    }
}
