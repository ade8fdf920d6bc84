use std::net::SocketAddr;

/// Wall-clock time in milliseconds since 1970. There is no `now()`: only the event loop and the simulator can make one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Wall(pub u64);

impl Wall {
    /// That many seconds later.
    #[must_use]
    pub const fn after_s(self, seconds: u32) -> Self {
        Self(self.0 + seconds as u64 * 1000)
    }

    /// Whole seconds from `earlier` until this, rounded up; 0 when it is not later.
    #[must_use]
    pub const fn seconds_since(self, earlier: Self) -> u32 {
        let s = self.0.saturating_sub(earlier.0).div_ceil(1000);
        if s > u32::MAX as u64 {
            u32::MAX
        } else {
            s as u32
        }
    }
}

/// What carries messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Transport {
    Udp = 0,
    Tcp = 1,
    Tls = 2,
    Ws = 3,
    Wss = 4,
    Sctp = 5,
}

impl Transport {
    pub(crate) const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Udp,
            1 => Self::Tcp,
            2 => Self::Tls,
            3 => Self::Ws,
            4 => Self::Wss,
            5 => Self::Sctp,
            _ => return None,
        })
    }

    /// Whether it retransmits by itself, so that SIP does not.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::Udp)
    }
}

/// A flow (RFC 5626 section 2): the way between one of our sockets and a peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flow {
    /// What carries it.
    pub transport: Transport,
    /// Which of the configured listeners it came by; `u16::MAX`: a connection that we opened.
    pub listener: u16,
    /// The connection: worker in the top 8 bits, generation in the next 24 bits, slot in the low 32. 0 for datagrams, and for a
    /// connection that did not survive a restart.
    pub connection: u64,
    /// Our address on it, the one that the peer sees.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
}
