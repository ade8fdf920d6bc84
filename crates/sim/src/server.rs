use crate::phone::Names;
use crate::plan::Plan;
use location::{
    Flow, Ha1, Location, MemoryDisk, Options, Subscribers, Ticket, Transport, Wall, Writer,
    WriterOptions,
};
use sip_core::{
    Core, Destination, Digest, Domains, Event, Mono, Now, Origin, ResolveId, ResolveRequest,
    Settings, Shared, Sink,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The server from one start to the next: its workers' cores, and the writer of the journal.
pub(crate) struct Server {
    pub(crate) cores: Vec<Core>,
    pub(crate) location: Arc<Location>,
    pub(crate) writer: Writer<MemoryDisk>,
    /// When each worker is to be woken, microseconds.
    pub(crate) wake_us: Vec<Option<u64>>,
    /// Responses that wait for the disk.
    pub(crate) waiting: Vec<Waiting>,
    /// Counts the starts: what was meant for the one before comes to nobody.
    pub(crate) start: u32,
}

pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    pub(crate) to: Flow,
    pub(crate) message: Vec<u8>,
    /// Whose response it is.
    pub(crate) worker: usize,
}

/// What a core wants done.
pub(crate) enum Effect {
    Send {
        to: Destination,
        origin: Option<Origin>,
        message: Vec<u8>,
    },
    Wait(Waiting),
    Resolve {
        id: ResolveId,
        request: ResolveRequest,
    },
    HandOver {
        worker: u8,
        flow: Flow,
        message: Vec<u8>,
    },
}

/// The server's side of TCP connections, by the number in their flows.
pub(crate) type Connections = BTreeMap<u64, Connection>;

pub(crate) struct Connection {
    pub(crate) flow: Flow,
    pub(crate) phone: usize,
    /// Bytes still go through.
    pub(crate) whole: bool,
    /// The server has not noticed otherwise.
    pub(crate) open: bool,
    /// When the last message arrives, each way: a stream keeps its order.
    pub(crate) to_server_us: u64,
    pub(crate) to_phone_us: u64,
}

/// Wall-clock time at the start of a run.
const WALL_MS: u64 = 1_800_000_000_000;

impl Server {
    pub(crate) fn start(
        plan: &Plan,
        names: &Names,
        subscribers: &[(String, Ha1)],
        disk: &MemoryDisk,
        start: u32,
        now: Now,
    ) -> Result<Self, String> {
        let options = Options {
            hash_key: [plan.seed, 7],
            waiting_bytes_max: 1 << 20,
            aor_count_max: 100_000,
        };
        let location = Arc::new(Location::new(options));
        // Small, so that segments and snapshots follow one another within a run.
        let options = WriterOptions {
            segment_len_max: 20_000,
            journal_len_min: 60_000,
            ..WriterOptions::default()
        };
        let (writer, _) = Writer::open(Arc::clone(&location), disk.clone(), options, now.wall)
            .map_err(|error| format!("the server does not start again: {error}"))?;
        let known = Subscribers::in_memory([plan.seed, 11]);
        for (aor, ha1) in subscribers {
            known.insert_in_memory(aor.as_bytes(), *ha1);
        }
        let mut key = [0; 16];
        key[..8].copy_from_slice(&plan.seed.to_le_bytes());
        let token_key = key;
        key[8..12].copy_from_slice(&start.to_le_bytes());
        let shared = Arc::new(Shared {
            location: Arc::clone(&location),
            subscribers: Arc::new(known),
            digest: Digest::new(key, 4096, now.wall),
            token_key,
        });
        let settings = Arc::new(settings(plan, names));
        let core = |worker| {
            let seed = plan.seed ^ (u64::from(start) << 32) ^ (u64::from(worker) << 56);
            Core::new(
                worker,
                plan.workers,
                Arc::clone(&shared),
                Arc::clone(&settings),
                seed,
                now,
            )
        };
        Ok(Self {
            cores: (0..plan.workers).map(core).collect(),
            location,
            writer,
            wake_us: vec![None; usize::from(plan.workers)],
            waiting: Vec::new(),
            start,
        })
    }
}

fn settings(plan: &Plan, names: &Names) -> Settings {
    Settings {
        domains: Domains {
            primary: names.domain.clone(),
            names: vec![names.domain.clone()],
            aliases: names
                .server
                .iter()
                .map(|server| server.ip().to_string())
                .collect(),
            ports: vec![5060],
        },
        auth: plan.auth,
        // A phone that moves leaves one behind each time.
        bindings_per_aor_max: 50,
        fork_branches_max: 50,
        ..Settings::default()
    }
}

pub(crate) fn now_at(now_us: u64) -> Now {
    Now {
        mono: Mono(now_us + 1_000_000),
        wall: Wall(WALL_MS + now_us / 1000),
    }
}

/// A time of the wall clock in milliseconds of the run.
pub(crate) fn run_ms(wall: Wall) -> u64 {
    wall.0.saturating_sub(WALL_MS)
}

/// The time of the run, microseconds, at which the core wants to be woken.
pub(crate) fn wake_us(mono: Mono) -> u64 {
    mono.0.saturating_sub(1_000_000)
}

/// A worker's [`Sink`]: writes down what is to be done, answers what is asked.
pub(crate) struct Port<'a> {
    pub(crate) names: &'a Names,
    pub(crate) connections: &'a Connections,
    pub(crate) worker: usize,
    pub(crate) effects: Vec<Effect>,
}

impl Sink for Port<'_> {
    fn send(&mut self, to: &Destination, origin: Option<Origin>, message: &[u8]) {
        self.effects.push(Effect::Send {
            to: *to,
            origin,
            message: message.to_vec(),
        });
    }

    fn send_when_durable(&mut self, ticket: Ticket, to: &Flow, message: &[u8]) {
        let (worker, message) = (self.worker, message.to_vec());
        self.effects.push(Effect::Wait(Waiting {
            ticket,
            to: *to,
            message,
            worker,
        }));
    }

    fn local_address(&mut self, to: &Destination) -> Option<SocketAddr> {
        let peer = match to {
            Destination::Flow(flow) => flow.peer,
            Destination::Address { peer, .. } => *peer,
        };
        Some(self.names.server_for(peer))
    }

    fn is_open(&mut self, flow: &Flow) -> bool {
        flow.transport == Transport::Udp
            || self
                .connections
                .get(&flow.connection)
                .is_some_and(|c| c.open)
    }

    fn resolve(&mut self, id: ResolveId, request: &ResolveRequest) {
        self.effects.push(Effect::Resolve {
            id,
            request: request.clone(),
        });
    }

    fn hand_over(&mut self, worker: u8, flow: &Flow, message: &[u8]) {
        self.effects.push(Effect::HandOver {
            worker,
            flow: *flow,
            message: message.to_vec(),
        });
    }

    fn event(&mut self, event: &Event<'_>) {
        let _ = event;
    }
}
