//! What is compared: one row each of the published table.

/// One kind of work.
pub(super) struct Row {
    /// As the table has it.
    pub(super) name: &'static str,
    /// Transport and arguments of `sipolis load`.
    pub(super) load: &'static str,
    /// The echo server's work: arguments, and how many such exchanges have as many messages as one
    /// operation of this row.
    pub(super) echo: (&'static str, f64),
    /// Operations counted in one run.
    pub(super) operations: u64,
    /// Operations done before the count begins.
    pub(super) warm_up: u64,
    /// Whether the servers ask for digest credentials.
    pub(super) digest: bool,
    /// Kamailio does the same work.
    pub(super) rival: bool,
    /// Share of Kamailio's time that sipolis is to reach.
    pub(super) reach: f64,
}

const OPTIONS_UDP: &str = "udp options --outstanding 1000";
const REGISTER_UDP: &str = "udp register --outstanding 1000";
const REGISTER_TCP_100: &str = "tcp register --outstanding 100 --connections 100";
const REGISTER_TCP_1_000: &str = "tcp register --outstanding 100 --connections 1000";
const REGISTER_TCP_10_000: &str = "tcp register --outstanding 100 --connections 10000";
const REGISTER_EACH: &str = "tcp register --lifetime transaction";
/// As large as the messages of a call are on average; as many under way as calls are.
const ECHO_CALL_UDP: &str = "udp options --body 200";
const ECHO_CALL_TCP: &str = "tcp options --body 200 --connections 200";

/// All rows, in the table's order. A call's thirteen messages are six and a half exchanges, its
/// sixteen with digest eight.
pub(super) const ROWS: [Row; 11] = [
    row("OPTIONS-200, UDP", OPTIONS_UDP, (OPTIONS_UDP, 1.0), 0.5),
    row(
        "REGISTER-200, UDP, no digest (sipolis: on disk before the 200)",
        REGISTER_UDP,
        (REGISTER_UDP, 1.0),
        0.5,
    ),
    Row {
        digest: true,
        operations: 100_000,
        ..row(
            "REGISTER-401-REGISTER-200, credentials cached, UDP",
            REGISTER_UDP,
            (REGISTER_UDP, 2.0),
            0.5,
        )
    },
    row(
        "REGISTER-200, 100 persistent TCP connections",
        REGISTER_TCP_100,
        (REGISTER_TCP_100, 1.0),
        0.5,
    ),
    row(
        "REGISTER-200, 1,000 persistent TCP connections",
        REGISTER_TCP_1_000,
        (REGISTER_TCP_1_000, 1.0),
        0.5,
    ),
    row(
        "REGISTER-200, 10,000 persistent TCP connections",
        REGISTER_TCP_10_000,
        (REGISTER_TCP_10_000, 1.0),
        0.5,
    ),
    Row {
        operations: 50_000,
        ..row(
            "REGISTER-200, a TCP connection each",
            REGISTER_EACH,
            (REGISTER_EACH, 1.0),
            0.7,
        )
    },
    call(
        "call (13 messages), record-routed, UDP",
        "udp call",
        (ECHO_CALL_UDP, 6.5),
    ),
    call(
        "call (13 messages), record-routed, TCP",
        "tcp call",
        (ECHO_CALL_TCP, 6.5),
    ),
    Row {
        digest: true,
        ..call(
            "call with digest on INVITE (16 messages), UDP",
            "udp call",
            (ECHO_CALL_UDP, 8.0),
        )
    },
    Row {
        digest: true,
        ..call(
            "call with digest on INVITE (16 messages), TCP",
            "tcp call",
            (ECHO_CALL_TCP, 8.0),
        )
    },
];

/// The calls whose memory is counted: as many as end well within five seconds, after which Kamailio
/// begins to forget them.
pub(super) const HELD: Row = Row {
    operations: 20_000,
    ..call(
        "memory held per finished call",
        "udp call",
        (ECHO_CALL_UDP, 0.0),
    )
};

const fn row(name: &'static str, load: &'static str, echo: (&'static str, f64), reach: f64) -> Row {
    Row {
        name,
        load,
        echo,
        operations: 200_000,
        warm_up: 10_000, // each user once: what is counted are refreshes
        digest: false,
        rival: true,
        reach,
    }
}

const fn call(name: &'static str, load: &'static str, echo: (&'static str, f64)) -> Row {
    Row {
        operations: 30_000,
        warm_up: 1_000,
        ..row(name, load, echo, 0.45)
    }
}
