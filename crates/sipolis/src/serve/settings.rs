//! From the configuration to what each crate takes.

use admin::DnsOptions;
use config::{Config, ListenTransport};
use location::{Transport, WriterOptions};
use net::SocketOptions;
use net::limits::Wanted;
use sip_core::{Domains, Settings, Timers};
use std::thread::available_parallelism;
use std::time::Duration;

/// What the cores go by.
pub(super) fn core(config: &Config, domains: Domains) -> Settings {
    let Config {
        server,
        registrar,
        digest,
        proxy,
        ..
    } = config;
    Settings {
        domains,
        advertise: server.advertise.as_ref().map(|host| host.0.clone()),
        auth: server.auth,
        expires_min_s: registrar.expires_min_s,
        expires_max_s: registrar.expires_max_s,
        expires_default_s: registrar.expires_default_s,
        expires_jitter_percent: registrar.expires_jitter_percent,
        bindings_per_aor_max: size(registrar.bindings_per_aor_max),
        contacts_per_register_max: size(registrar.contacts_per_register_max),
        fork_branches_max: size(proxy.fork_branches_max),
        transactions_max: size(proxy.transactions_max),
        timers: Timers {
            t1_ms: config.timers.t1_ms,
            t2_ms: config.timers.t2_ms,
            t4_ms: config.timers.t4_ms,
            c_ms: proxy.timer_c_s * 1000,
            d_ms: config.timers.d_ms,
        },
        limits: limits(config),
        udp_bytes_max: size(proxy.udp_bytes_max),
        nonce_lifetime_s: digest.nonce_lifetime_s,
        digest_sha256: digest.sha256,
        server: proxy.server_header.clone(),
        subscriber_domains: true,
    }
}

fn limits(config: &Config) -> sip_wire::Limits {
    let limits = &config.limits;
    sip_wire::Limits {
        message_bytes_max: size(limits.message_bytes_max),
        head_bytes_max: size(limits.head_bytes_max),
        header_count_max: size(limits.header_count_max),
        header_bytes_max: size(limits.header_bytes_max),
        via_count_max: size(limits.via_count_max),
    }
}

/// What the workers go by.
pub(super) fn edge(config: &Config, seed: u64) -> edge::Options {
    let Config {
        server,
        connections,
        datagrams,
        ..
    } = config;
    let workers = match server.workers {
        0 => available_parallelism().map_or(1, |n| u8::try_from(n.get()).unwrap_or(128).min(128)),
        n => n,
    };
    edge::Options {
        listen: server.listen.iter().map(listen).collect(),
        workers,
        net: net::Options {
            connections_max: size(connections.per_worker_max),
            first_message_ms: connections.first_message_s * 1000,
            half_message_ms: connections.half_message_s * 1000,
            pushed_back_ms: connections.pushed_back_s * 1000,
            idle_ms: connections.idle_s * 1000,
            unacknowledged_ms: connections.unacknowledged_s * 1000,
            connect_ms: connections.connect_ms,
            pushed_back_bytes_max: size(connections.pushed_back_bytes_max),
            held_bytes_max: size64(connections.held_bytes_max),
            datagram_bytes_max: size(datagrams.waiting_bytes_max),
            limits: limits(config),
            stage_times: server.stage_times,
            ..net::Options::default()
        },
        sockets: SocketOptions {
            shared: true,
            take_back: false,
            backlog: i32::try_from(connections.backlog).unwrap_or(i32::MAX),
            buffer_bytes: size(datagrams.buffer_bytes),
        },
        seed,
        ..edge::Options::default()
    }
}

fn listen(listen: &config::Listen) -> edge::Listen {
    edge::Listen {
        transport: match listen.transport {
            ListenTransport::Udp => Transport::Udp,
            ListenTransport::Tcp => Transport::Tcp,
        },
        address: listen.address,
    }
}

/// What the machine should give.
pub(crate) fn wanted(config: &Config) -> Wanted {
    Wanted {
        backlog: config.connections.backlog.into(),
        buffer_bytes: config.datagrams.buffer_bytes.into(),
        ..Wanted::default()
    }
}

/// What the bindings go by.
pub(super) fn location(config: &Config, hash_key: [u64; 2]) -> location::Options {
    location::Options {
        hash_key,
        waiting_bytes_max: size64(config.journal.waiting_bytes_max),
        aor_count_max: size64(config.journal.aor_count_max),
    }
}

/// What the journal goes by.
pub(super) fn writer(config: &Config) -> WriterOptions {
    WriterOptions {
        journal_len_min: config.journal.snapshot_bytes_min,
        commit_interval: Duration::from_millis(config.journal.commit_interval_ms.into()),
        ..WriterOptions::default()
    }
}

/// What the resolver goes by.
pub(super) fn dns(config: &Config, seed: u64) -> DnsOptions {
    let dns = &config.dns;
    DnsOptions {
        nameservers: dns.nameservers.iter().map(|server| server.0).collect(),
        budget: Duration::from_millis(dns.budget_ms.into()),
        requests_max: size(dns.lookups_max),
        cache_entries_max: dns.cache_entries_max.into(),
        available: vec![Transport::Udp, Transport::Tcp],
        seed,
    }
}

fn size(number: u32) -> usize {
    number as usize
}

fn size64(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crates below have defaults, too, for tests and simulations; what runs is what was tested.
    #[test]
    fn the_defaults_of_the_configuration_are_those_of_the_crates() {
        let config = Config::default();
        let shown = |value: &dyn std::fmt::Debug| format!("{value:?}");
        let core_default = Settings::default();
        assert_eq!(
            shown(&core(&config, Domains::default())),
            shown(&core_default)
        );
        let edge = edge(&config, 0);
        assert_eq!(shown(&edge.net), shown(&net::Options::default()));
        assert_eq!(shown(&edge.sockets), shown(&SocketOptions::default()));
        assert_eq!(shown(&writer(&config)), shown(&WriterOptions::default()));
        assert_eq!(shown(&dns(&config, 0)), shown(&DnsOptions::default()));
    }
}
