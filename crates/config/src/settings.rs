//! The definition of all settings. The first line of a key's doc is what it is; then `= default, bounds, unit, cost when raised`, and whether
//! a running server takes it over (`Hup`) or the next start does (`Restart`).

use crate::define::{Key, Reload, Section, dotted, settings};
use crate::value::{Bounds, Value};
use crate::{Domain, Listen, Nameserver};
use Bounds::{Any, Within};
use std::path::PathBuf;
use toml::de::DeValue;

settings! {
    /// Keys before the first table.
    server: Server = "" {
        /// Where to listen. The default is UDP and TCP on port 5060 of all addresses, IPv4 and IPv6.
        listen: Vec<Listen> = Listen::everywhere(5060), Any, unit "list of addresses",
            cost "a socket in every worker for each", Restart;
        /// Directory of the journal, the snapshot, the subscribers, the keys and the control socket. Made when it is not there.
        data: PathBuf = PathBuf::from("sipolis-data"), Any, unit "path",
            cost "none", Restart;
        /// Domains served. The first is the primary one, which also stands for the machine's own addresses. Without any, the primary domain is that of
        /// the first subscriber, otherwise the name of the host. The domains of the subscribers are always served.
        domains: Vec<Domain> = Vec::new(), Any, unit "list of names",
            cost "none", Hup;
        /// Host that Via and Record-Route name, for a server behind a NAT or in a cloud. Not set: the address that the message leaves from.
        advertise: Option<Domain> = None, Any, unit "host",
            cost "none", Hup;
        /// Worker threads, each with its own sockets, timers and transactions. 0: one for every core.
        workers: u8 = 0, Within(0, 128), unit "threads",
            cost "some 2 MB each; more than cores gain nothing", Restart;
        /// Digest authentication of REGISTER and of requests of local users. Off is for benchmarks and closed networks only: everyone can
        /// register as anyone, and a call to the world needs no password.
        auth: bool = true, Any, unit "switch",
            cost "two more messages for each call, and for each registration with a new nonce", Hup;
        /// Measure how long each worker is in each stage of its work (read, classify, parse, look up, decide, write); `sipolis status` shows it.
        stage_times: bool = false, Any, unit "switch",
            cost "some 0.3 us for each message", Restart;
    }

    /// Registrations (RFC 3261 section 10).
    registrar: Registrar = "registrar" {
        /// Shortest registration accepted; a shorter one is refused with 423.
        expires_min_s: u32 = 60, Within(1, 86_400), unit "seconds",
            cost "none; lowered: more REGISTER requests", Hup;
        /// Longest registration; a longer one is shortened to this.
        expires_max_s: u32 = 7200, Within(1, 2_592_000), unit "seconds",
            cost "phones that are gone are remembered longer", Hup;
        /// Registration of a phone that asks for no particular time.
        expires_default_s: u32 = 3600, Within(1, 2_592_000), unit "seconds",
            cost "as for expires_max_s", Hup;
        /// A granted time is shortened by up to this share, at random, so that phones do not come back together.
        expires_jitter_percent: u8 = 10, Within(0, 50), unit "percent",
            cost "half as many percent more REGISTER requests", Hup;
        /// Bindings (phones) of one address-of-record.
        bindings_per_aor_max: u32 = 10, Within(1, 1000), unit "bindings",
            cost "some 300 bytes each, and a longer 200 to every REGISTER", Hup;
        /// Contacts in one REGISTER.
        contacts_per_register_max: u32 = 16, Within(1, 1000), unit "contacts",
            cost "work that one request can cause", Hup;
    }

    /// Digest authentication (RFC 7616, RFC 8760).
    digest: Digest = "digest" {
        /// How long a nonce is good for; then the phone gets a new one with `stale=true`, and no one is asked for a password.
        nonce_lifetime_s: u32 = 300, Within(10, 86_400), unit "seconds",
            cost "a stolen response can be tried for longer", Hup;
        /// Offer SHA-256 beside MD5 in challenges. Off: some phones that know only MD5 do not register at all when they see another
        /// algorithm. Credentials with either are taken, and subscribers have hashes for both.
        sha256: bool = false, Any, unit "switch",
            cost "some 150 bytes in each challenge", Hup;
        /// Nonces whose use is remembered, so that a response can't be played again. Rounded up to a power of two.
        nonces_max: u32 = 262_144, Within(1024, 268_435_456), unit "nonces",
            cost "36 bytes each", Restart;
    }

    /// Forwarding of requests and responses (RFC 3261 section 16).
    proxy: Proxy = "proxy" {
        /// Phones that one call may ring.
        fork_branches_max: u32 = 16, Within(1, 100), unit "branches",
            cost "messages that one request can cause", Hup;
        /// Transactions of each kind in one worker; beyond it new requests get 503.
        transactions_max: u32 = 500_000, Within(100, 10_000_000), unit "transactions",
            cost "some 1 to 2 KiB each while they last", Hup;
        /// Timer C: how long a called phone may ring without a sign of life.
        timer_c_s: u32 = 181, Within(181, 3600), unit "seconds",
            cost "calls that nobody answers are remembered longer", Hup;
        /// Larger requests leave by TCP instead of UDP (RFC 3261 section 18.1.1).
        udp_bytes_max: u32 = 1300, Within(500, 65_000), unit "bytes",
            cost "datagrams in fragments, which some networks drop", Hup;
        /// Text of the Server header; empty: none is sent.
        server_header: String = String::from("sipolis"), Any, unit "text",
            cost "as many bytes in each response", Hup;
    }

    /// Timers of RFC 3261 (table 4). The defaults are those of the RFC; other values are for special networks.
    timers: Timers = "timers" {
        /// T1, the estimated round trip. A transaction is given up after 64 times this.
        t1_ms: u32 = 500, Within(50, 10_000), unit "milliseconds",
            cost "losses are repaired later, failures are noticed later", Hup;
        /// T2, the longest time between two retransmissions.
        t2_ms: u32 = 4000, Within(100, 60_000), unit "milliseconds",
            cost "losses are repaired later", Hup;
        /// T4, how long a message can stay in the network.
        t4_ms: u32 = 5000, Within(100, 60_000), unit "milliseconds",
            cost "finished transactions are kept longer", Hup;
        /// Timer D, how long the end of a failed INVITE is remembered over UDP.
        d_ms: u32 = 32_000, Within(1000, 120_000), unit "milliseconds",
            cost "finished transactions are kept longer", Hup;
    }

    /// What a message may be at most. More is answered 513 or 400, and never stored.
    limits: Limits = "limits" {
        /// A whole message on a connection.
        message_bytes_max: u32 = 131_072, Within(4096, 1_048_576), unit "bytes",
            cost "as much memory for each connection that sends slowly", Hup;
        /// Start line and header fields together.
        head_bytes_max: u32 = 81_920, Within(2048, 1_048_576), unit "bytes",
            cost "work that one message can cause", Hup;
        /// Header fields of one message.
        header_count_max: u32 = 256, Within(32, 4096), unit "fields",
            cost "work that one message can cause", Hup;
        /// One header field, folded lines included.
        header_bytes_max: u32 = 8192, Within(512, 65_536), unit "bytes",
            cost "work that one message can cause", Hup;
        /// Via values, that is servers on the way.
        via_count_max: u32 = 71, Within(2, 255), unit "values",
            cost "longer loops", Hup;
    }

    /// Connections (TCP). Times are kept to a tenth of a second.
    connections: Connections = "connections" {
        /// Connections of one worker; beyond it new ones wait in the kernel's backlog.
        per_worker_max: u32 = 1_000_000, Within(16, 10_000_000), unit "connections",
            cost "some 130 bytes, a socket of the kernel and a descriptor each", Restart;
        /// A connection is closed when nothing has happened on it for so long.
        idle_s: u32 = 7200, Within(30, 86_400), unit "seconds",
            cost "phones that are gone hold their connection longer", Restart;
        /// A new connection is closed when its first whole message has not come after so long.
        first_message_s: u32 = 32, Within(1, 3600), unit "seconds",
            cost "strangers hold a connection longer", Restart;
        /// A connection is closed when a message that has begun is not whole after so long.
        half_message_s: u32 = 30, Within(1, 3600), unit "seconds",
            cost "a peer that sends a byte a second holds memory longer", Restart;
        /// A connection is closed when bytes sent on it are not acknowledged by the peer's machine after so long.
        unacknowledged_s: u32 = 30, Within(5, 3600), unit "seconds",
            cost "calls to a phone that lost its network fail later", Restart;
        /// How long to try to open a connection.
        connect_ms: u32 = 8000, Within(100, 60_000), unit "milliseconds",
            cost "calls to a dead server fail later", Restart;
        /// A connection is closed when the peer has taken nothing for so long while something waits for it.
        pushed_back_s: u32 = 30, Within(1, 3600), unit "seconds",
            cost "a peer that does not read holds memory longer", Restart;
        /// Bytes that may wait for a peer that reads slowly; a message beyond it fails as if the peer were gone.
        pushed_back_bytes_max: u32 = 262_144, Within(65_536, 16_777_216), unit "bytes",
            cost "as much memory for each peer that does not read", Restart;
        /// Bytes of all half-received and waiting messages of one worker together.
        held_bytes_max: u64 = 268_435_456, Within(1_048_576, 68_719_476_736), unit "bytes",
            cost "as much memory, under attack", Restart;
        /// Connections that may wait to be accepted by one worker; cut by the system's `net.core.somaxconn`.
        backlog: u32 = 4096, Within(16, 65_535), unit "connections",
            cost "in a storm, phones wait longer instead of trying again", Restart;
    }

    /// Datagrams (UDP).
    datagrams: Datagrams = "datagrams" {
        /// Kernel buffer of each worker's socket, each way; cut by the system's `net.core.rmem_max` and `net.core.wmem_max`.
        buffer_bytes: u32 = 8_388_608, Within(65_536, 1_073_741_824), unit "bytes",
            cost "as much kernel memory for each, and longer waits in a storm", Restart;
        /// Bytes that may wait for one socket when the kernel takes no more; beyond it datagrams are dropped and counted.
        waiting_bytes_max: u32 = 4_194_304, Within(65_536, 1_073_741_824), unit "bytes",
            cost "as much memory for each, and longer waits", Restart;
    }

    /// Finding other servers (RFC 3263).
    dns: Dns = "dns" {
        /// DNS servers to ask. Empty: those of the system.
        nameservers: Vec<Nameserver> = Vec::new(), Any, unit "list of addresses",
            cost "none", Restart;
        /// Time for all questions about one destination together.
        budget_ms: u32 = 3000, Within(100, 30_000), unit "milliseconds",
            cost "calls to a name that does not resolve fail later", Restart;
        /// Answers kept until their time to live has passed.
        cache_entries_max: u32 = 8192, Within(0, 1_000_000), unit "answers",
            cost "some 500 bytes each", Restart;
        /// Destinations being looked up at once; beyond it requests get 503.
        lookups_max: u32 = 4096, Within(1, 100_000), unit "destinations",
            cost "some 2 KiB each while they last", Restart;
    }

    /// Registrations on disk.
    journal: Journal = "journal" {
        /// Time from one flush to the next under load, so that more registrations share it; the first after a pause is flushed at once.
        commit_interval_ms: u32 = 2, Within(0, 100), unit "milliseconds",
            cost "a REGISTER waits as much longer for its 200", Restart;
        /// Bytes that may wait for the disk; beyond it registrations are refused with 503.
        waiting_bytes_max: u64 = 67_108_864, Within(1_048_576, 4_294_967_296), unit "bytes",
            cost "as much memory, and longer waits, when the disk is slow", Restart;
        /// A journal that is larger than this, and than twice the last snapshot, is folded into a new snapshot.
        snapshot_bytes_min: u64 = 67_108_864, Within(1_048_576, 68_719_476_736), unit "bytes",
            cost "as much disk, and a slower start", Restart;
        /// Addresses-of-record with a binding; beyond it new ones are refused with 503.
        aor_count_max: u64 = 10_000_000, Within(1, 1_000_000_000), unit "addresses",
            cost "some 400 bytes each", Restart;
    }
}
