use location::Flow;
use sip_wire::{Essentials, Message, Method, Name, ParseError, Via};
use std::net::SocketAddr;

/// A request that has passed [`Message::check`], with what every step needs of it.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) message: Message<'a>,
    pub(super) method: Method,
    essentials: Essentials<'a>,
    from_tag: &'a [u8],
    to_tag: Option<&'a [u8]>,
    /// The flow it came on.
    pub(super) flow: Flow,
    pub(super) reply: Reply,
}

impl<'a> std::ops::Deref for Request<'a> {
    type Target = Essentials<'a>;

    fn deref(&self) -> &Essentials<'a> {
        &self.essentials
    }
}

impl<'a> Request<'a> {
    pub(super) fn read(
        message: Message<'a>,
        method: Method,
        flow: &Flow,
    ) -> Result<Self, ParseError> {
        let essentials = message.essentials()?;
        Ok(Self {
            message,
            method,
            essentials,
            from_tag: essentials.from.tag().unwrap_or_default(),
            to_tag: essentials.to.tag(),
            flow: *flow,
            reply: Reply::new(flow, &essentials.via),
        })
    }

    pub(super) fn sender_tag(&self) -> &'a [u8] {
        self.from_tag
    }

    pub(super) fn recipient_tag(&self) -> Option<&'a [u8]> {
        self.to_tag
    }

    pub(super) fn has_to_tag(&self) -> bool {
        self.to_tag.is_some()
    }

    /// May make a dialog, or stands outside one: what needs credentials, and what gets a Record-Route.
    pub(super) fn forms_dialog(&self) -> bool {
        !self.has_to_tag()
            && matches!(
                self.method,
                Method::Invite | Method::Subscribe | Method::Refer | Method::Notify
            )
    }

    pub(super) fn max_forwards(&self) -> Option<u8> {
        self.message.max_forwards().ok().flatten()
    }

    pub(super) fn first_route(&self) -> Option<&'a [u8]> {
        self.message
            .values(Name::Route)
            .next()
            .map(|value| value.text)
    }
}

/// Where responses go (RFC 3261 section 18.2.2, RFC 3581).
#[derive(Clone, Copy)]
pub(super) struct Reply {
    pub(super) flow: Flow,
    /// Port of the Via, for a connection that is gone.
    pub(super) via_port: u16,
}

impl Reply {
    /// Over datagrams without `rport`, to the source's address and the Via's port.
    ///
    /// Departures: `maddr` of a Via is not followed: it would let anybody aim our responses at a third party.
    pub(super) fn new(flow: &Flow, via: &Via<'_>) -> Self {
        let via_port = via.port.unwrap_or(5060);
        let mut flow = *flow;
        if !flow.transport.is_reliable() && !via.params.has("rport") {
            flow.peer.set_port(via_port);
        }
        Self { flow, via_port }
    }

    /// Where a new connection would have to go.
    pub(super) fn via_address(&self) -> SocketAddr {
        SocketAddr::new(self.flow.peer.ip(), self.via_port)
    }
}
