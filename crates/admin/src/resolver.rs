//! Name resolution (RFC 3263) on a thread of its own, so that no worker waits for the DNS.

use edge::Busy;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Resolver, ResolverBuilder, TokioResolver};
use location::Transport;
use sip_core::{Answer, Plan, Query, ResolveId, ResolveRequest, Step, Target};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

#[cfg(test)]
mod tests;

/// How names are resolved.
#[derive(Clone, Debug)]
pub struct DnsOptions {
    /// DNS servers; none: those of the system (`/etc/resolv.conf`). Never any other.
    pub nameservers: Vec<SocketAddr>,
    /// Time for one request, all its questions together. When it is over, what was found so far is the answer.
    pub budget: Duration,
    /// Requests that may be under way, and as many that may wait to be taken up; beyond it they are refused.
    pub requests_max: usize,
    /// DNS answers kept, until their TTL is over.
    pub cache_entries_max: u64,
    /// Transports that we speak, the preferred one first.
    pub available: Vec<Transport>,
    /// Decides among SRV weights.
    pub seed: u64,
}

impl Default for DnsOptions {
    fn default() -> Self {
        Self {
            nameservers: Vec::new(),
            budget: Duration::from_secs(3),
            requests_max: 4096,
            cache_entries_max: 8192,
            available: vec![Transport::Udp, Transport::Tcp],
            seed: 0,
        }
    }
}

/// The resolver. Dropping it ends its thread; what is still under way is answered with what was found so far or not at all.
pub struct Dns {
    /// `None` only while it is dropped.
    queue: Option<mpsc::Sender<Ask>>,
    thread: Option<JoinHandle<()>>,
    warning: Option<String>,
}

/// A request of a worker.
struct Ask {
    asker: Asker,
    request: ResolveRequest,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Asker {
    worker: u8,
    id: ResolveId,
}

/// Shortest time that a negative answer is kept, also when it names none: calls to a domain without NAPTR and SRV records
/// ask for them each time otherwise.
const NEGATIVE_MIN_TTL: Duration = Duration::from_secs(5);
/// Longest time that an answer is kept.
const MAX_TTL: Duration = Duration::from_secs(3600);

impl Dns {
    /// Starts the thread. `deliver` is called on it, exactly once for each request that [`edge::Resolver::ask`] took, with an empty list
    /// when nothing was found; it must not block. [`edge::Post::resolved`] is made for it.
    ///
    /// # Errors
    /// The system gives no thread or no poller.
    pub fn start(
        options: DnsOptions,
        deliver: impl Fn(u8, ResolveId, Vec<Target>) + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (client, warning) = client(&options)?;
        let (queue, asks) = mpsc::channel(options.requests_max.max(1));
        let desk = Desk {
            client,
            options: Arc::new(options),
            deliver,
            waiting: HashMap::new(),
            asker_count: 0,
            plan_count: 0,
        };
        let thread = std::thread::Builder::new()
            .name(String::from("resolver"))
            .spawn(move || run(&runtime, desk, asks))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            warning,
        })
    }

    /// Why names will not resolve, and what to do about it, when the system names no DNS server.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

impl edge::Resolver for Dns {
    fn ask(&self, worker: u8, id: ResolveId, request: ResolveRequest) -> Result<(), Busy> {
        let asker = Asker { worker, id };
        let queue = self.queue.as_ref().ok_or(Busy)?;
        queue.try_send(Ask { asker, request }).map_err(|_| Busy)
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.queue = None; // the thread sees that no more will come
        if let Some(thread) = self.thread.take() {
            // A panic there was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct Desk<F> {
    client: TokioResolver,
    options: Arc<DnsOptions>,
    deliver: F,
    /// Who waits for what is being looked up: the same request of several is looked up once.
    waiting: HashMap<ResolveRequest, Vec<Asker>>,
    asker_count: usize,
    /// Plans begun, so that each draws its own weights.
    plan_count: u64,
}

type Found = (ResolveRequest, Vec<Target>);

fn run<F: Fn(u8, ResolveId, Vec<Target>)>(
    runtime: &Runtime,
    mut desk: Desk<F>,
    mut asks: mpsc::Receiver<Ask>,
) {
    runtime.block_on(async {
        let mut lookups = JoinSet::new();
        loop {
            tokio::select! {
                biased; // who asks before an answer is given out shares it
                ask = asks.recv() => match ask {
                    Some(ask) => desk.take(ask, &mut lookups),
                    None => break,
                },
                Some(found) = lookups.join_next() => {
                    if let Ok((request, targets)) = found {
                        desk.give_out(&request, &targets);
                    }
                }
            }
        }
    });
    for request in desk.waiting.keys().cloned().collect::<Vec<_>>() {
        desk.give_out(&request, &[]);
    }
}

impl<F: Fn(u8, ResolveId, Vec<Target>)> Desk<F> {
    fn take(&mut self, ask: Ask, lookups: &mut JoinSet<Found>) {
        if self.asker_count >= self.options.requests_max {
            (self.deliver)(ask.asker.worker, ask.asker.id, Vec::new());
            return;
        }
        self.asker_count += 1;
        if let Some(askers) = self.waiting.get_mut(&ask.request) {
            askers.push(ask.asker);
            return;
        }
        self.waiting.insert(ask.request.clone(), vec![ask.asker]);
        self.plan_count += 1;
        let plan = Plan::new(
            ask.request.clone(),
            &self.options.available,
            self.options.seed.wrapping_add(self.plan_count),
        );
        let (client, budget) = (self.client.clone(), self.options.budget);
        lookups.spawn(async move {
            // A task of its own: should it panic, those who wait are answered all the same.
            let found = tokio::spawn(follow(plan, client, budget)).await;
            (ask.request, found.unwrap_or_default())
        });
    }

    fn give_out(&mut self, request: &ResolveRequest, targets: &[Target]) {
        for asker in self.waiting.remove(request).unwrap_or_default() {
            self.asker_count -= 1;
            (self.deliver)(asker.worker, asker.id, targets.to_vec());
        }
    }
}

/// Follows a plan to its end, or to the end of the time.
async fn follow(mut plan: Plan, client: TokioResolver, budget: Duration) -> Vec<Target> {
    let end = tokio::time::Instant::now() + budget;
    loop {
        match plan.step() {
            Step::Done(targets) => return targets,
            Step::Ask(query) => {
                let answer = tokio::time::timeout_at(end, look_up(&client, query)).await;
                plan.answer(answer.unwrap_or(Answer::Failed));
            }
        }
    }
}

async fn look_up(client: &TokioResolver, query: Query) -> Answer {
    let answer = match query {
        Query::Addresses(host) => addresses(client, &host).await,
        Query::Naptr(name) => records(client, &name, RecordType::NAPTR)
            .await
            .map(|records| Answer::Naptr(records.iter().filter_map(naptr).collect())),
        Query::Srv(name) => records(client, &name, RecordType::SRV)
            .await
            .map(|records| Answer::Srv(records.iter().filter_map(srv).collect())),
    };
    answer.unwrap_or(Answer::Failed)
}

async fn records(
    client: &TokioResolver,
    name: &str,
    kind: RecordType,
) -> Result<Vec<RData>, NetError> {
    let lookup = client.lookup(absolute(name)?, kind).await;
    let lookup = none_is_empty(lookup.map(Some))?;
    Ok(lookup.map_or_else(Vec::new, |lookup| {
        lookup.answers().iter().map(|r| r.data.clone()).collect()
    }))
}

async fn addresses(client: &TokioResolver, host: &str) -> Result<Answer, NetError> {
    // A name without a dot is one of this network: the system's search list applies.
    let name = if host.contains('.') {
        absolute(host)?
    } else {
        Name::from_ascii(host)?
    };
    let lookup = none_is_empty(client.lookup_ip(name).await.map(Some))?;
    let addresses = lookup.map_or_else(Vec::new, |lookup| lookup.iter().collect());
    Ok(Answer::Addresses(addresses))
}

fn absolute(name: &str) -> Result<Name, NetError> {
    let mut name = Name::from_ascii(name)?;
    name.set_fqdn(true);
    Ok(name)
}

/// That a name or a type does not exist is an answer.
fn none_is_empty<T>(answer: Result<Option<T>, NetError>) -> Result<Option<T>, NetError> {
    match answer {
        Err(error) if error.is_no_records_found() || error.is_nx_domain() => Ok(None),
        other => other,
    }
}

fn naptr(data: &RData) -> Option<(u16, u16, String, String, String)> {
    let RData::NAPTR(naptr) = data else {
        return None;
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((
        naptr.order,
        naptr.preference,
        text(&naptr.flags),
        text(&naptr.services),
        plain(&naptr.replacement),
    ))
}

fn srv(data: &RData) -> Option<(u16, u16, u16, String)> {
    let RData::SRV(srv) = data else {
        return None;
    };
    Some((srv.priority, srv.weight, srv.port, plain(&srv.target)))
}

/// Lower case, without the last dot; the root stays a dot.
fn plain(name: &Name) -> String {
    let text = name.to_lowercase().to_ascii();
    match text.strip_suffix('.') {
        Some("") | None => text,
        Some(name) => String::from(name),
    }
}

/// The DNS client, and what there is to say about the system's configuration.
fn client(options: &DnsOptions) -> io::Result<(TokioResolver, Option<String>)> {
    let (mut builder, warning) = if !options.nameservers.is_empty() {
        let servers = options.nameservers.iter().map(server).collect();
        (builder_with(servers), None)
    } else {
        match Resolver::builder(TokioRuntimeProvider::default()) {
            Ok(builder) => (builder, None),
            Err(error) => {
                let warning = format!(
                    "the system names no DNS server ({error}): only addresses and names in /etc/hosts can be called; \
                     name one in /etc/resolv.conf or in the configuration"
                );
                (builder_with(Vec::new()), Some(warning))
            }
        }
    };
    set_options(builder.options_mut(), options);
    let client = builder.build().map_err(io::Error::other)?;
    Ok((client, warning))
}

fn builder_with(servers: Vec<NameServerConfig>) -> ResolverBuilder<TokioRuntimeProvider> {
    let config = ResolverConfig::from_name_servers(servers);
    Resolver::builder_with_config(config, TokioRuntimeProvider::default())
}

fn server(address: &SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()]
        .map(|mut connection| {
            connection.port = address.port();
            connection
        })
        .to_vec();
    NameServerConfig::new(address.ip(), true, connections)
}

fn set_options(dns: &mut ResolverOpts, options: &DnsOptions) {
    dns.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    dns.cache_size = options.cache_entries_max;
    dns.negative_min_ttl = Some(NEGATIVE_MIN_TTL);
    dns.positive_max_ttl = Some(MAX_TTL);
    dns.negative_max_ttl = Some(MAX_TTL);
    dns.max_active_requests = options.requests_max;
    // A lost packet and a dead server must leave time for another try.
    dns.timeout = dns.timeout.min(options.budget / 3);
}
