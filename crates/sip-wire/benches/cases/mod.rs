//! The work that the benchmark times and that `examples/instructions.rs` repeats, so that both measure the same.

use sip_wire::{
    Edits, Frame, Framer, Framing, Index, Limits, Message, Name, NameAddr, Response, Span,
};
use std::hint::black_box;

/// An INVITE as a phone sends it through a proxy that it has a route for.
pub(crate) const INVITE: &[u8] = b"INVITE sip:bob@example.com SIP/2.0\r\n\
    Via: SIP/2.0/UDP 192.0.2.10:5062;branch=z9hG4bK776asdhds8f3k2;rport\r\n\
    Max-Forwards: 70\r\n\
    Route: <sip:proxy.example.com;lr>\r\n\
    To: \"Bob\" <sip:bob@example.com>\r\n\
    From: \"Alice\" <sip:alice@example.com>;tag=1928301774\r\n\
    Call-ID: a84b4c76e66710@pc33.example.com\r\n\
    CSeq: 314159 INVITE\r\n\
    Contact: <sip:alice@192.0.2.10:5062>\r\n\
    Allow: INVITE, ACK, CANCEL, BYE, OPTIONS\r\n\
    User-Agent: Phone/1.0\r\n\
    Content-Type: application/sdp\r\n\
    Content-Length: 132\r\n\
    \r\n\
    v=0\r\n\
    o=alice 53655765 2353687637 IN IP4 192.0.2.10\r\n\
    s=-\r\n\
    c=IN IP4 192.0.2.10\r\n\
    t=0 0\r\n\
    m=audio 49170 RTP/AVP 0\r\n\
    a=rtpmap:0 PCMU/8000\r\n";

/// One case, done once.
pub(crate) type Work = fn(&mut State);

/// Name and work of each case.
pub(crate) const CASES: [(&str, Work); 6] = [
    ("parse", parse),
    ("parse_routing", parse_routing),
    ("parse_check", parse_check),
    ("forward_edit", forward_edit),
    ("response", response),
    ("frame", frame),
];

/// What a worker keeps between messages.
pub(crate) struct State {
    index: Index,
    /// Already parsed, for the cases that begin there.
    parsed: Index,
    edits: Edits,
    out: Vec<u8>,
    limits: Limits,
}

impl State {
    pub(crate) fn new() -> Self {
        let mut parsed = Index::new();
        let limits = Limits::default();
        parsed
            .parse(INVITE, Framing::Datagram, &limits)
            .expect("the INVITE is well formed");
        let invite = parsed.message(INVITE);
        invite.check().expect("the INVITE has all it needs");
        Self {
            index: Index::new(),
            parsed,
            edits: Edits::new(),
            out: Vec::with_capacity(2048),
            limits,
        }
    }

    fn parse(&mut self) -> Message<'_> {
        let parsed = self
            .index
            .parse(black_box(INVITE), Framing::Datagram, &self.limits);
        assert!(parsed.is_ok());
        self.index.message(INVITE)
    }
}

/// Parse and index.
fn parse(state: &mut State) {
    black_box(state.parse().header(Name::CallId));
}

/// Parse, and read what routing a request needs.
fn parse_routing(state: &mut State) {
    let message = state.parse();
    black_box(message.top_via().map(|via| via.branch()).ok());
    black_box(message.from().ok().and_then(|from| from.tag()));
    black_box(message.to().ok().and_then(|to| to.tag()));
    black_box(message.call_id().ok());
    black_box(message.cseq().ok());
    black_box(message.uri().ok());
    for route in message.values(Name::Route) {
        black_box(NameAddr::parse(route.text).ok());
    }
    black_box(message.body().len());
}

/// Parse, and check all that a request must have.
fn parse_check(state: &mut State) {
    black_box(state.parse().check().is_ok());
}

/// The edits of a proxy: Via and Record-Route added, Route removed, Max-Forwards and Request-URI replaced.
fn forward_edit(state: &mut State) {
    let message = state.parsed.message(black_box(INVITE));
    let edits = &mut state.edits;
    edits.clear();
    state.out.clear();
    edits.replace(message.request_uri().1, b"sip:bob@198.51.100.7:5060");
    let top = message.head_start();
    edits.replace_parts(
        Span {
            start: top,
            end: top,
        },
        &[
            b"Via: SIP/2.0/UDP 203.0.113.1;branch=",
            b"z9hG4bK4b43c2ff8.1",
            b"\r\nRecord-Route: <sip:203.0.113.1;lr>\r\n",
        ],
    );
    if let Some(header) = message.header(Name::MaxForwards) {
        edits.replace(header.value_span, b"69");
    }
    if let Some(header) = message.header(Name::Route) {
        edits.remove(header.field_span);
    }
    edits.write(&message, &mut state.out);
    black_box(&state.out);
}

/// A 180 with `received` and `rport`.
fn response(state: &mut State) {
    state.out.clear();
    let response = Response {
        request: state.parsed.message(black_box(INVITE)),
        code: 180,
        reason: "",
        source: Some(([192, 0, 2, 10], 5062).into()),
        to_tag: b"a6c85cf",
    };
    response.write(b"", b"", &mut state.out);
    black_box(&state.out);
}

/// Cut out of a stream in which it arrived whole.
fn frame(state: &mut State) {
    let frame = Framer::default().next(black_box(INVITE), &state.limits);
    assert_eq!(frame, Frame::Message { len: INVITE.len() });
}
