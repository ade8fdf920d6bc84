use crate::{Name, Params, ParseError, Span, scan};

/// Transport named in a Via.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum ViaTransport {
    Udp,
    Tcp,
    Tls,
    Ws,
    Wss,
    Sctp,
    TlsSctp,
    Other,
}

impl ViaTransport {
    /// The transport of this token, any case.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        const ALL: [(&[u8], ViaTransport); 7] = [
            (b"UDP", ViaTransport::Udp),
            (b"TCP", ViaTransport::Tcp),
            (b"TLS", ViaTransport::Tls),
            (b"WS", ViaTransport::Ws),
            (b"WSS", ViaTransport::Wss),
            (b"SCTP", ViaTransport::Sctp),
            (b"TLS-SCTP", ViaTransport::TlsSctp),
        ];
        ALL.iter()
            .find(|(name, _)| text.eq_ignore_ascii_case(name))
            .map_or(Self::Other, |&(_, transport)| transport)
    }

    /// The port that sent-by means without one (RFC 3261 section 18.2.2, RFC 7118 section 5.2.2).
    #[must_use]
    pub const fn port_default(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp | Self::Sctp | Self::Other => 5060,
            Self::Tls | Self::TlsSctp => 5061,
            Self::Ws => 80,
            Self::Wss => 443,
        }
    }
}

/// One Via value (RFC 3261 section 20.42).
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Via<'a> {
    pub transport: ViaTransport,
    /// IPv6 references keep their brackets.
    pub host: &'a [u8],
    pub port: Option<u16>,
    pub params: Params<'a>,
    /// This value in the message it was taken from (without the comma behind it).
    pub span: Span,
}

impl<'a> Via<'a> {
    /// Parses one value; `offset` is where `text` begins in its message.
    /// # Errors
    /// Malformed.
    pub fn parse(text: &'a [u8], offset: u32) -> Result<Self, ParseError> {
        Self::parts(text, offset).ok_or(ParseError::Malformed(Name::Via))
    }

    /// `sent-protocol LWS sent-by *( SEMI via-params )`. The protocol's name and version are tokens
    /// here, so that the answer to a SIP/7.0 request can find its way.
    fn parts(text: &'a [u8], offset: u32) -> Option<Self> {
        let name_end = token(text, scan::skip_space(text, 0))?;
        let version_end = token(text, slash(text, name_end)?)?;
        let transport = slash(text, version_end)?;
        let transport_end = token(text, transport)?;
        let host = scan::skip_space(text, transport_end);
        if host == transport_end {
            return None;
        }
        let host_end = host + scan::host_end(&text[host..])?;
        let mut at = scan::skip_space(text, host_end);
        let mut port = None;
        if text.get(at) == Some(&b':') {
            let start = scan::skip_space(text, at + 1);
            at = start;
            while at < text.len() && text[at].is_ascii_digit() {
                at += 1;
            }
            port = Some(scan::port(&text[start..at])?);
        }
        let params = Params::new(&text[at..]);
        params.well_formed().then_some(Self {
            transport: ViaTransport::of(&text[transport..transport_end]),
            host: &text[host..host_end],
            port,
            params,
            span: Span {
                start: offset,
                end: offset + text.len() as u32,
            },
        })
    }

    /// The branch, empty when absent.
    #[must_use]
    pub fn branch(&self) -> &'a [u8] {
        self.params.value("branch").unwrap_or_default()
    }

    /// `rport` is there without a value (RFC 3581).
    #[must_use]
    pub fn wants_rport(&self) -> bool {
        self.params
            .param("rport")
            .is_some_and(|param| param.value.is_none_or(<[u8]>::is_empty))
    }

    /// The host as an address, where it is one.
    #[must_use]
    pub fn host_ip(&self) -> Option<std::net::IpAddr> {
        scan::host_ip(self.host)
    }

    /// The address of `received`, with or without brackets (RFC 5118 section 4.5).
    #[must_use]
    pub fn received(&self) -> Option<std::net::IpAddr> {
        let text = self.params.value("received")?;
        let text = text.strip_prefix(b"[").unwrap_or(text);
        let text = text.strip_suffix(b"]").unwrap_or(text);
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    /// The value of `rport`, where it has one.
    #[must_use]
    pub fn rport(&self) -> Option<u16> {
        scan::port(self.params.value("rport")?)
    }

    /// The sent-by that a transaction is matched by, together with branch and method (RFC 3261 section 17.2.3): host as written,
    /// to be compared in any case, and port.
    #[must_use]
    pub fn sent_by(&self) -> (&'a [u8], u16) {
        (self.host, self.port_or_default())
    }

    /// The port of sent-by, or the transport's default.
    #[must_use]
    pub fn port_or_default(&self) -> u16 {
        self.port.unwrap_or(self.transport.port_default())
    }
}

fn token(text: &[u8], at: usize) -> Option<usize> {
    let end = scan::skip_token(text, at);
    (end > at).then_some(end)
}

fn slash(text: &[u8], at: usize) -> Option<usize> {
    let at = scan::skip_space(text, at);
    (text.get(at) == Some(&b'/')).then(|| scan::skip_space(text, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_may_stand_around_every_separator() {
        let text =
            b"SIP  / 2.0\r\n /\tTCP    spindle.example.com : 5070  ;\r\n branch  =  z9 ; rport";
        let via = Via::parse(text, 10).unwrap();
        assert_eq!(via.transport, ViaTransport::Tcp);
        assert_eq!(via.host, b"spindle.example.com");
        assert_eq!(via.port, Some(5070));
        assert_eq!(via.sent_by(), (&b"spindle.example.com"[..], 5070));
        assert_eq!(via.branch(), b"z9");
        assert!(via.wants_rport());
        assert_eq!(via.span.range(), 10..10 + text.len());
    }

    #[test]
    fn ipv6_hosts_keep_their_brackets_and_received_may_have_them() {
        let via = Via::parse(b"SIP/2.0/UDP [::1]:7;received=[2001:db8::1];rport=9", 0).unwrap();
        assert_eq!(via.host, b"[::1]");
        assert_eq!(via.host_ip(), Some("::1".parse().unwrap()));
        assert_eq!(via.received(), Some("2001:db8::1".parse().unwrap()));
        assert_eq!(via.rport(), Some(9));
        assert!(!via.wants_rport());
    }

    #[test]
    fn malformed_vias_are_refused() {
        for bad in [
            "",
            "SIP/2.0/UDP",
            "SIP/2.0/UDP ",
            "SIP/2.0 host",
            "SIP/2.0/UDPhost",
            "SIP/2.0/UDP h:",
            "SIP/2.0/UDP h:65536",
            "SIP/2.0/UDP h:x",
            "SIP/2.0/UDP [::1",
            "SIP/2.0/UDP [::g]",
            "SIP/2.0/UDP h;;",
            "SIP/2.0/UDP h x",
        ] {
            assert!(Via::parse(bad.as_bytes(), 0).is_err(), "{bad}");
        }
    }
}
