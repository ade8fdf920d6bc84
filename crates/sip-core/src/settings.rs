use sip_wire::Limits;

/// What a core goes by; made by the configuration, swapped whole on reload.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Domains served.
    pub domains: Domains,
    /// Host to name in Via and Record-Route instead of the address a message leaves from.
    pub advertise: Option<String>,
    /// Digest for REGISTER and for requests of local users. Off only for benchmarks and closed networks.
    pub auth: bool,
    /// Shortest registration taken, seconds; shorter is refused 423.
    pub expires_min_s: u32,
    /// Longest; longer is shortened.
    pub expires_max_s: u32,
    /// When the phone names none.
    pub expires_default_s: u32,
    /// A granted expiry is shortened by up to this share, in percent, so that phones do not refresh together.
    pub expires_jitter_percent: u8,
    /// Bindings of one address-of-record.
    pub bindings_per_aor_max: usize,
    /// Contacts in one REGISTER.
    pub contacts_per_register_max: usize,
    /// Branches of one fork.
    pub fork_branches_max: usize,
    /// Transactions of each kind in one worker; beyond it 503.
    pub transactions_max: usize,
    /// Timers.
    pub timers: Timers,
    /// Message limits.
    pub limits: Limits,
    /// Requests beyond this many bytes leave by TCP rather than UDP (RFC 3261 section 18.1.1).
    pub udp_bytes_max: usize,
    /// Seconds that a nonce is good for.
    pub nonce_lifetime_s: u32,
    /// Challenge with SHA-256 beside MD5. Answers with either are taken.
    pub digest_sha256: bool,
    /// Text of the Server header; empty: none.
    pub server: String,
    /// Domains are also those of the subscribers.
    pub subscriber_domains: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            domains: Domains::default(),
            advertise: None,
            auth: true,
            expires_min_s: 60,
            expires_max_s: 7200,
            expires_default_s: 3600,
            expires_jitter_percent: 10,
            bindings_per_aor_max: 10,
            contacts_per_register_max: 16,
            fork_branches_max: 16,
            transactions_max: 500_000,
            timers: Timers::default(),
            limits: Limits::default(),
            udp_bytes_max: 1300,
            nonce_lifetime_s: 300,
            digest_sha256: false,
            server: String::from("sipolis"),
            subscriber_domains: true,
        }
    }
}

/// Domains served. All in lower case.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    /// The domain that stands for our own addresses: `alice@192.0.2.1` is `alice@primary`.
    pub primary: String,
    /// All of them, the primary one too.
    pub names: Vec<String>,
    /// Names and addresses that mean the primary domain: the host's own.
    pub aliases: Vec<String>,
    /// Ports that we listen on: a URI with our name and another port is not ours.
    pub ports: Vec<u16>,
}

/// Timers of RFC 3261 (table 4), milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Timers {
    pub t1_ms: u32,
    pub t2_ms: u32,
    pub t4_ms: u32,
    /// Timer C: how long a phone may ring without a sign of life.
    pub c_ms: u32,
    /// Timer D for datagrams.
    pub d_ms: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            t1_ms: 500,
            t2_ms: 4000,
            t4_ms: 5000,
            c_ms: 181_000,
            d_ms: 32_000,
        }
    }
}

impl Timers {
    /// 64*T1: timers B, F, H, J, L, M.
    #[must_use]
    pub const fn t1_64_ms(&self) -> u32 {
        self.t1_ms * 64
    }
}
