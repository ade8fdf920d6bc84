use crate::Settings;
use hashbrown::HashSet;
use location::Subscribers;
use sip_wire::Uri;
use std::net::{IpAddr, SocketAddr};

/// Which hosts mean this server: made from [`Settings`] once, asked for every request.
pub(crate) struct Ours {
    names: HashSet<Box<[u8]>>,
    aliases: HashSet<Box<[u8]>>,
    addresses: HashSet<IpAddr>,
    ports: Vec<u16>,
    primary: Box<[u8]>,
    subscriber_domains: bool,
}

/// What a host is to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Host {
    /// A domain served: addresses-of-record keep it.
    Domain,
    /// Our own name or address: addresses-of-record get the primary domain instead.
    Alias,
    Foreign,
}

/// What a URI stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// Where to send: a port that we do not listen on is somebody else's, also on this machine.
    Place,
    /// Who somebody is (From, To, the target of a new request): the port of a domain says nothing, and an address of ours without one is us.
    Person,
}

/// Longest domain name (RFC 1035 section 2.3.4).
const NAME_LEN_MAX: usize = 255;

impl Ours {
    pub(crate) fn new(settings: &Settings) -> Self {
        let lower = |name: &String| name.to_ascii_lowercase().into_bytes().into_boxed_slice();
        let domains = &settings.domains;
        let bare = |name: &str| {
            name.trim_start_matches('[')
                .trim_end_matches(']')
                .parse::<IpAddr>()
                .ok()
        };
        let (addresses, aliases): (Vec<_>, Vec<_>) = domains
            .aliases
            .iter()
            .chain(&settings.advertise)
            .partition(|name| bare(name).is_some());
        Self {
            names: domains.names.iter().map(lower).collect(),
            aliases: aliases.into_iter().map(lower).collect(),
            addresses: addresses
                .into_iter()
                .filter_map(|name| bare(name))
                .collect(),
            ports: domains.ports.clone(),
            primary: lower(&domains.primary),
            subscriber_domains: settings.subscriber_domains,
        }
    }

    /// The domain that our own addresses stand for.
    pub(crate) fn primary(&self) -> &[u8] {
        &self.primary
    }

    /// What the host of a URI is to us, for a request that came to `local`.
    pub(crate) fn host(
        &self,
        uri: &Uri<'_>,
        meaning: Meaning,
        local: SocketAddr,
        subscribers: &Subscribers,
    ) -> Host {
        if let Some(ip) = uri.host_ip() {
            let port = match meaning {
                Meaning::Place => Some(uri.port.unwrap_or(5060)),
                Meaning::Person => uri.port,
            };
            let ours = ip == local.ip() || self.addresses.contains(&ip);
            return if ours && port.is_none_or(|port| self.is_port(port, local)) {
                Host::Alias
            } else {
                Host::Foreign
            };
        }
        let mut buffer = [0; NAME_LEN_MAX];
        let Some(name) = buffer.get_mut(..uri.host.len()) else {
            return Host::Foreign;
        };
        name.copy_from_slice(uri.host);
        name.make_ascii_lowercase();
        if meaning == Meaning::Place && uri.port.is_some_and(|port| !self.is_port(port, local)) {
            return Host::Foreign;
        }
        if self.names.contains(&*name) || self.subscriber_domains && subscribers.serves_domain(name)
        {
            Host::Domain
        } else if self.aliases.contains(&*name) {
            Host::Alias
        } else {
            Host::Foreign
        }
    }

    /// Whether credentials for this realm are for us.
    pub(crate) fn is_realm(&self, realm: &[u8], subscribers: &Subscribers) -> bool {
        *realm == *self.primary
            || self.names.contains(realm)
            || self.subscriber_domains && subscribers.serves_domain(realm)
    }

    fn is_port(&self, port: u16, local: SocketAddr) -> bool {
        port == local.port() || self.ports.contains(&port)
    }

    /// Appends the address-of-record of a URI whose host is `host`.
    pub(crate) fn write_aor(&self, uri: &Uri<'_>, host: Host, out: &mut Vec<u8>) {
        if host == Host::Alias {
            uri.write_user(out);
            out.push(b'@');
            out.extend_from_slice(&self.primary);
        } else {
            uri.write_aor(out);
        }
    }
}
