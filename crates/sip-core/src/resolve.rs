use location::Transport;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

#[cfg(test)]
mod tests;

/// A host to find (RFC 3263).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ResolveRequest {
    /// Name, lower case; IP addresses are never asked for.
    pub host: String,
    /// Port, when the URI had one.
    pub port: Option<u16>,
    /// Transport, when the URI had one, or when the message does not fit UDP.
    pub transport: Option<Transport>,
    /// `sips`.
    pub secure: bool,
    /// A response's Via (section 5), not a request's URI (section 4).
    pub response: bool,
}

/// Where to try, in order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub struct Target {
    pub transport: Transport,
    pub peer: SocketAddr,
}

/// A question to the DNS.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Query {
    Naptr(String),
    Srv(String),
    Addresses(String),
}

/// Its answer; empty when the name or the type does not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Answer {
    /// order, preference, flags, service, replacement
    Naptr(Vec<(u16, u16, String, String, String)>),
    /// priority, weight, port, target
    Srv(Vec<(u16, u16, u16, String)>),
    Addresses(Vec<IpAddr>),
    /// The servers did not answer.
    Failed,
}

/// What the plan wants next.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Step {
    Ask(Query),
    Done(Vec<Target>),
}

/// The decisions of RFC 3263 and RFC 2782 for one request; the caller asks the DNS.
///
/// The first service (NAPTR entry, or transport of ours without one) whose servers have an address decides; its further servers are there
/// to fail over to. A question that fails is like one without an answer: the next possibility is tried. At most 16 questions are
/// asked and 16 targets found, whatever the DNS says.
///
/// Departures:
/// - NAPTR entries without the `s` flag are ignored, since RFC 3263 section 4.1 defines no other use.
/// - Among the addresses of a host, the order is that of the answer.
/// - WS and WSS are never looked up by SRV: browsers come to us (RFC 7118 section 5).
pub struct Plan {
    secure: bool,
    available: Vec<Transport>,
    random: Random,
    asks_naptr: bool,
    /// Names whose SRV records to ask for, best first.
    services: VecDeque<(String, Transport)>,
    /// Hosts whose addresses to ask for, best first; before any further service.
    hosts: VecDeque<Host>,
    /// The host of the request itself, tried when it turns out that it has no SRV records (section 4.2, last paragraph).
    last_resort: Option<Host>,
    queries_left: usize,
    targets: Vec<Target>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Host {
    name: String,
    port: u16,
    transport: Transport,
}

const QUERIES_MAX: usize = 16;
const TARGETS_MAX: usize = 16;

impl Plan {
    /// Starts. `available`: the transports that we speak, the preferred one first. `random` decides among SRV weights.
    #[must_use]
    pub fn new(request: ResolveRequest, available: &[Transport], random: u64) -> Self {
        let mut plan = Self {
            secure: request.secure,
            available: available.to_vec(),
            random: Random(random),
            asks_naptr: false,
            services: VecDeque::new(),
            hosts: VecDeque::new(),
            last_resort: None,
            queries_left: QUERIES_MAX,
            targets: Vec::new(),
        };
        let transport = plan.transport(&request);
        let host = |port| Host {
            name: request.host.clone(),
            port,
            transport,
        };
        let Some(port) = request.port else {
            plan.last_resort = Some(host(default_port(transport)));
            if request.transport.is_some() || request.response {
                plan.push_service(&request.host, transport);
                plan.use_last_resort_if_nothing_else();
            } else {
                plan.asks_naptr = true;
            }
            return plan;
        };
        plan.hosts.push_back(host(port));
        plan
    }

    /// The next step; the same until answered.
    #[must_use]
    pub fn step(&self) -> Step {
        if self.queries_left > 0 && self.targets.len() < TARGETS_MAX {
            if self.asks_naptr {
                return Step::Ask(Query::Naptr(self.domain().to_owned()));
            }
            if let Some(host) = self.hosts.front() {
                return Step::Ask(Query::Addresses(host.name.clone()));
            }
            if self.targets.is_empty()
                && let Some((name, _)) = self.services.front()
            {
                return Step::Ask(Query::Srv(name.clone()));
            }
        }
        Step::Done(self.targets.clone())
    }

    /// Gives the answer to the last question. One of another kind counts as none.
    pub fn answer(&mut self, answer: Answer) {
        let Step::Ask(query) = self.step() else {
            return;
        };
        self.queries_left -= 1;
        match query {
            Query::Naptr(_) => self.take_naptr(answer),
            Query::Srv(_) => self.take_srv(answer),
            Query::Addresses(_) => self.take_addresses(answer),
        }
    }

    /// RFC 3263 section 4.1, first half.
    fn take_naptr(&mut self, answer: Answer) {
        self.asks_naptr = false;
        let domain = self.domain().to_owned();
        if let Answer::Naptr(mut entries) = answer {
            entries.sort_by_key(|entry| (entry.0, entry.1));
            for (_, _, flags, service, replacement) in entries {
                if flags.eq_ignore_ascii_case("s")
                    && let Some(transport) = self.transport_of(&service)
                    && self.services.len() < QUERIES_MAX
                {
                    self.services.push_back((replacement, transport));
                }
            }
        }
        if self.services.is_empty() {
            for transport in self.available.clone() {
                if !self.secure || is_secure(transport) {
                    self.push_service(&domain, transport);
                }
            }
        }
        self.use_last_resort_if_nothing_else();
    }

    /// RFC 2782, "Usage rules".
    fn take_srv(&mut self, answer: Answer) {
        let Some((_, transport)) = self.services.pop_front() else {
            return;
        };
        if let Answer::Srv(mut records) = answer
            && !records.is_empty()
        {
            self.last_resort = None;
            records.retain(|record| !matches!(record.3.as_str(), "" | ".")); // decidedly no such service
            for (_, _, port, name) in in_srv_order(records, &mut self.random) {
                self.hosts.push_back(Host {
                    name,
                    port,
                    transport,
                });
            }
        }
        self.use_last_resort_if_nothing_else();
    }

    fn take_addresses(&mut self, answer: Answer) {
        let Some(host) = self.hosts.pop_front() else {
            return;
        };
        if let Answer::Addresses(addresses) = answer {
            for ip in addresses {
                let target = Target {
                    transport: host.transport,
                    peer: SocketAddr::new(ip, host.port),
                };
                if self.targets.len() < TARGETS_MAX && !self.targets.contains(&target) {
                    self.targets.push(target);
                }
            }
        }
    }

    fn use_last_resort_if_nothing_else(&mut self) {
        if self.services.is_empty() && self.hosts.is_empty() {
            self.hosts.extend(self.last_resort.take());
        }
    }

    /// The transport when neither NAPTR nor SRV decide it (RFC 3263 sections 4.1 and 5).
    fn transport(&self, request: &ResolveRequest) -> Transport {
        let wanted = request.transport.unwrap_or(Transport::Udp);
        match wanted {
            Transport::Ws if self.secure => Transport::Wss,
            Transport::Udp | Transport::Tcp if self.secure => Transport::Tls,
            Transport::Udp if request.transport.is_none() => self.first_unless_available(wanted),
            _ => wanted,
        }
    }

    fn first_unless_available(&self, transport: Transport) -> Transport {
        if self.available.contains(&transport) {
            transport
        } else {
            self.available.first().copied().unwrap_or(transport)
        }
    }

    /// The transport of a NAPTR service, when we speak it and it is good enough for `sips`.
    fn transport_of(&self, service: &str) -> Option<Transport> {
        const SERVICES: [(&str, Transport); 6] = [
            ("SIP+D2U", Transport::Udp),
            ("SIP+D2T", Transport::Tcp),
            ("SIPS+D2T", Transport::Tls),
            ("SIP+D2S", Transport::Sctp),
            ("SIP+D2W", Transport::Ws),
            ("SIPS+D2W", Transport::Wss),
        ];
        let (_, transport) = SERVICES
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(service))?;
        let good = self.available.contains(&transport) && (!self.secure || is_secure(transport));
        good.then_some(transport)
    }

    fn push_service(&mut self, domain: &str, transport: Transport) {
        let prefix = match transport {
            Transport::Udp => "_sip._udp.",
            Transport::Tcp => "_sip._tcp.",
            Transport::Tls => "_sips._tcp.",
            Transport::Sctp => "_sip._sctp.",
            Transport::Ws | Transport::Wss => return,
        };
        self.services
            .push_back((format!("{prefix}{domain}"), transport));
    }

    fn domain(&self) -> &str {
        self.last_resort.as_ref().map_or("", |host| &host.name)
    }
}

/// By priority; within one, each next drawn by weight. Weight 0 is drawn too, but seldom: the RFC's "very small chance" is
/// that of a hundredth of weight 1.
fn in_srv_order(
    mut records: Vec<(u16, u16, u16, String)>,
    random: &mut Random,
) -> Vec<(u16, u16, u16, String)> {
    records.sort_by_key(|record| record.0);
    let weight = |record: &(u16, u16, u16, String)| (u64::from(record.1) * 100).max(1);
    for at in 0..records.len().min(QUERIES_MAX) {
        let same = records[at..].partition_point(|record| record.0 == records[at].0);
        let rest = &mut records[at..at + same];
        let mut drawn = random.below(rest.iter().map(weight).sum());
        let chosen = rest.iter().position(|record| {
            let hit = drawn < weight(record);
            drawn = drawn.saturating_sub(weight(record));
            hit
        });
        rest.swap(0, chosen.unwrap_or(0));
    }
    records.truncate(QUERIES_MAX); // no more hosts will be asked for
    records
}

const fn is_secure(transport: Transport) -> bool {
    matches!(transport, Transport::Tls | Transport::Wss)
}

const fn default_port(transport: Transport) -> u16 {
    match transport {
        Transport::Udp | Transport::Tcp | Transport::Sctp => 5060,
        Transport::Tls => 5061,
        Transport::Ws => 80,
        Transport::Wss => 443,
    }
}

/// SplitMix64: enough to spread load, predictable to whoever knows the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end.max(1)
    }
}
