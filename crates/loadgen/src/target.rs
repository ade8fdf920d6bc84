//! Where the server is.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    str::FromStr,
};

use crate::{io::Transport, nearest::nearest};

/// A server: `HOST[:PORT]`, `udp://HOST[:PORT]`, `tcp://HOST[:PORT]`.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) transport: Transport,
    pub(crate) address: SocketAddr,
    /// As it was written, without the port.
    pub(crate) host: String,
}

/// Schemes that are not built yet.
const LATER: [&str; 4] = ["tls", "ws", "wss", "sctp"];

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("udp", text));
        let transport = transport(scheme, rest)?;
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port != 0);
                (host, port.ok_or("a port is a number from 1 to 65535")?)
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

fn transport(scheme: &str, rest: &str) -> Result<Transport, String> {
    match scheme {
        "udp" => Ok(Transport::Udp),
        "tcp" => Ok(Transport::Tcp),
        later if LATER.contains(&later) => {
            Err(format!("{later} is not built yet; udp and tcp are"))
        }
        "sip" | "sips" => Err(format!(
            "a target is no URI; write udp://{rest} or tcp://{rest}"
        )),
        other => Err(match nearest(other, ["udp", "tcp"]) {
            Some(near) => format!("{other:?} is no transport; {near}://{rest} perhaps"),
            None => format!("{other:?} is no transport; udp://{rest} and tcp://{rest} are targets"),
        }),
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
    }

    #[test]
    fn what_is_no_target_is_refused_with_what_is() {
        let fault = |text: &str| text.parse::<Target>().expect_err("is refused");
        assert!(fault("127.0.0.1:x").contains("65535"));
        assert!(fault("tls://127.0.0.1").contains("not built yet"));
        assert!(fault("tpc://127.0.0.1").contains("tcp://127.0.0.1 perhaps"));
        assert!(fault("sip:127.0.0.1").contains("65535") || fault("sip://h").contains("no URI"));
    }
}
