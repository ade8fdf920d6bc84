use super::{Source, domains, process, settings};
use admin::control::{self, StageTime, StageTimes, Status};
use config::Config;
use edge::{Listen, Log, Post, WorkerStatus};
use location::Subscribers;
use signal_hook::iterator::Handle;
use sip_core::Settings;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The running process, as the control socket and the signals see it.
pub(crate) struct Host {
    pub(super) source: Source,
    pub(super) data: PathBuf,
    pub(super) listeners: Vec<Listen>,
    pub(super) post: Post,
    pub(super) log: Log,
    pub(super) subscribers: Arc<Subscribers>,
    pub(super) started: Instant,
    /// Closed: the server is to end.
    pub(super) signals: Handle,
    /// What the workers go by now. Held while a new configuration is made, so that two of them do not overtake each other.
    pub(super) present: Mutex<Present>,
}

/// A configuration, and what was made of it.
pub(crate) struct Present {
    pub(crate) config: Config,
    pub(crate) settings: Arc<Settings>,
}

impl Host {
    /// Configuration and settings of now.
    pub(crate) fn present(&self) -> std::sync::MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the settings anew and gives them to the workers.
    fn apply(&self, present: &mut Present) {
        let domains = domains::domains(
            &present.config,
            &self.data,
            &self.subscribers,
            &self.listeners,
        );
        present.settings = Arc::new(settings::core(&present.config, domains));
        self.post.set_settings(&present.settings);
    }

    /// Reads the configuration again, and says in the log what came of it.
    fn read_again(&self) -> Result<Vec<String>, String> {
        let mut present = self.present();
        let new = self.source.read().map_err(|failure| failure.to_string())?;
        let (config, restart) = present.config.reloaded(&new);
        present.config = config;
        self.apply(&mut present);
        drop(present);
        self.subscribers.reload().map_err(|error| {
            format!("the settings are taken over, but the users can't be read again: {error}")
        })?;
        Ok(restart)
    }
}

impl control::Host for Host {
    fn status(&self) -> Status {
        let workers = self.post.status(Duration::from_secs(2));
        let mut core = sip_core::Counters::default();
        let mut net = net::Counters::default();
        let mut counters = BTreeMap::new();
        let mut add =
            |name: &str, value: u64| *counters.entry(name.to_owned()).or_insert(0) += value;
        for worker in &workers {
            core.add(&worker.core);
            net.add(&worker.net);
            add("mail_dropped", worker.mail_dropped);
            add("answers_waiting", worker.answers_waiting);
            add("answers_refused", worker.answers_refused);
            add("stun_ignored", worker.stun_ignored);
            add("log_lines_suppressed", worker.lines_suppressed);
        }
        core.each(&mut add);
        net.each(&mut add);
        let present = self.present();
        let domains = &present.settings.domains;
        let others = domains
            .names
            .iter()
            .filter(|name| **name != domains.primary);
        let mut names = vec![domains.primary.clone()];
        names.extend(others.cloned());
        for domain in self.subscribers.domains() {
            let domain = String::from_utf8_lossy(&domain).into_owned();
            if !names.contains(&domain) {
                names.push(domain);
            }
        }
        Status {
            version: String::from(env!("CARGO_PKG_VERSION")),
            pid: std::process::id(),
            uptime_s: self.started.elapsed().as_secs(),
            workers: self.post.workers().into(),
            auth: present.settings.auth,
            listen: self.listeners.iter().map(ToString::to_string).collect(),
            domains: names,
            connections: BTreeMap::from([(String::from("tcp"), net.connections_open)]),
            queue_delay_us: workers.iter().map(|w| w.delay_us_max).max().unwrap_or(0),
            memory_bytes: process::memory_bytes(),
            cpu_ms: process::cpu_ms(),
            counters,
            stage_times: stage_times(&workers),
            ..Status::default()
        }
    }

    fn reload(&self) -> Result<Vec<String>, String> {
        let done = self.read_again();
        match &done {
            Ok(restart) if restart.is_empty() => {
                self.log.line(String::from("configuration reloaded"));
            }
            Ok(restart) => self.log.line(format!(
                "configuration reloaded; these keep their old value until the next start: {}",
                restart.join(", ")
            )),
            Err(why) => self.log.line(format!(
                "configuration not reloaded, the old one stays:\n{why}"
            )),
        }
        done
    }

    fn shut_down(&self) {
        self.signals.close();
    }

    fn subscribers_changed(&self) {
        let mut present = self.present();
        // Only a domain chosen by the users can change with them; the workers ask for the others themselves.
        if present.config.server.domains.is_empty() {
            let primary = present.settings.domains.primary.clone();
            if !self.subscribers.serves_domain(primary.as_bytes()) {
                self.apply(&mut present);
            }
        }
    }
}

/// Those of all workers together.
fn stage_times(workers: &[WorkerStatus]) -> Option<StageTimes> {
    let mut all = workers.iter().filter_map(|worker| worker.stages);
    let mut sum = all.next()?;
    all.for_each(|more| sum.add(&more));
    let waits = workers.iter().map(|worker| worker.disk_waits).sum();
    let wait_us: u64 = workers.iter().map(|worker| worker.disk_wait_us).sum();
    Some(StageTimes {
        stages: sum
            .each
            .iter()
            .map(|of| StageTime::new(of.stage.name(), of.calls, of.nanoseconds))
            .collect(),
        disk: StageTime::new("disk", waits, wait_us * 1000),
        clock_nanoseconds: (sum.switch_ps + 500) / 1000,
    })
}
