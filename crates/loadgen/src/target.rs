//! Where the server is.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    str::FromStr,
};

use crate::io::Transport;

/// A server: `HOST[:PORT]`, `udp://HOST[:PORT]`, `tcp://HOST[:PORT]`.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) transport: Transport,
    pub(crate) address: SocketAddr,
    /// As it was written, without the port.
    pub(crate) host: String,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (transport, rest) = if let Some(rest) = text.strip_prefix("tcp://") {
            (Transport::Tcp, rest)
        } else {
            (Transport::Udp, text.strip_prefix("udp://").unwrap_or(text))
        };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = port.parse().map_err(|_| format!("{port:?} is no port"))?;
                (host, port)
            }
            _ => (rest, 5060),
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let mut addresses = (bare, port)
            .to_socket_addrs()
            .map_err(|e| format!("{bare}: {e}"))?;
        Ok(Self {
            transport,
            address: addresses.next().ok_or("has no address")?,
            host: host.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_may_name_transport_and_port_and_need_not() {
        let target = |text: &str| text.parse::<Target>().unwrap();
        assert_eq!(
            target("127.0.0.1").address,
            "127.0.0.1:5060".parse().unwrap()
        );
        let tcp = target("tcp://[::1]:5070");
        assert_eq!(tcp.address, "[::1]:5070".parse().unwrap());
        assert_eq!((tcp.transport, &*tcp.host), (Transport::Tcp, "[::1]"));
        assert_eq!(target("::1").address, "[::1]:5060".parse().unwrap());
        assert!("127.0.0.1:x".parse::<Target>().is_err());
    }
}
