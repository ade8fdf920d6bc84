use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// What a listener speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum ListenTransport {
    Udp,
    Tcp,
}

/// A place to listen at: `udp://0.0.0.0:5060`, `tcp://[::]:5060`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Listen {
    /// What it speaks.
    pub transport: ListenTransport,
    /// Where.
    pub address: SocketAddr,
}

impl Listen {
    /// UDP and TCP on `port` of all addresses, IPv4 and IPv6.
    #[must_use]
    pub fn everywhere(port: u16) -> Vec<Self> {
        use ListenTransport::{Tcp, Udp};
        let addresses = [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ];
        let with = |transport| {
            addresses.map(|ip| Self {
                transport,
                address: SocketAddr::new(ip, port),
            })
        };
        [with(Udp), with(Tcp)].concat()
    }
}

impl FromStr for Listen {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a place to listen at; write `udp://ADDRESS:PORT` or `tcp://ADDRESS:PORT`, \
                 for example `udp://0.0.0.0:5060` or `tcp://[::]:5060`"
            )
        };
        let (scheme, address) = text.split_once("://").ok_or_else(wrong)?;
        let transport = match scheme.to_ascii_lowercase().as_str() {
            "udp" => ListenTransport::Udp,
            "tcp" => ListenTransport::Tcp,
            "tls" | "ws" | "wss" | "sctp" => {
                return Err(format!(
                    "`{scheme}` is not supported yet; listen on udp:// or tcp://"
                ));
            }
            _ => return Err(wrong()),
        };
        let address = address
            .parse()
            .or_else(|_| address.parse().map(|ip: IpAddr| SocketAddr::new(ip, 5060)))
            .map_err(|_| wrong())?;
        Ok(Self { transport, address })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.transport {
            ListenTransport::Udp => "udp",
            ListenTransport::Tcp => "tcp",
        };
        write!(f, "{scheme}://{}", self.address)
    }
}

/// A domain that is served, in lower case; a name or an IP address.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Domain(pub String);

impl FromStr for Domain {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = !text.is_empty()
            && text.len() <= 253
            && text.split('.').all(|label| {
                !label.is_empty()
                    && label.len() <= 63
                    && label
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            });
        let is_v6 = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
        if is_name || is_v6 {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(format!(
                "`{text}` is not a host; write a name like `example.com`, without scheme, user or port"
            ))
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A DNS server: `192.0.2.53` or `[2001:db8::53]:5353`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Nameserver(pub SocketAddr);

impl FromStr for Nameserver {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .or_else(|_| text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 53)))
            .map(Self)
            .map_err(|_| {
                format!("`{text}` is not a DNS server; write an IP address, with or without a port")
            })
    }
}

impl fmt::Display for Nameserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_a_transport_and_an_address_and_5060_unless_said() {
        for (text, shown) in [
            ("udp://0.0.0.0:5060", "udp://0.0.0.0:5060"),
            ("tcp://[::]:5070", "tcp://[::]:5070"),
            ("UDP://127.0.0.1", "udp://127.0.0.1:5060"),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), shown);
        }
        for text in ["5060", "udp://host:5060", "0.0.0.0:5060", "http://1.2.3.4"] {
            assert!(
                text.parse::<Listen>().unwrap_err().contains("udp://"),
                "{text}"
            );
        }
        assert!(
            "tls://0.0.0.0:5061"
                .parse::<Listen>()
                .unwrap_err()
                .contains("not supported yet")
        );
    }

    #[test]
    fn a_domain_has_no_scheme_user_or_port() {
        assert_eq!(
            "Example.COM".parse::<Domain>().unwrap().0,
            "example.com".to_owned()
        );
        assert!("192.0.2.1".parse::<Domain>().is_ok());
        assert!("[2001:db8::1]".parse::<Domain>().is_ok());
        for text in ["sip:example.com", "a@b", "b:5060", "", "a..b", "a b"] {
            assert!(text.parse::<Domain>().is_err(), "{text}");
        }
    }
}
