//! Ono and Schulzrinne, figures 3 and 4: what a held connection costs in memory.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    chart::each,
    experiment::{Experiment, Stop},
    lab::Lab,
    record::{
        Agreement, Axis, Bar, Chart, Curve, Finding, Group, Measured, Point, Ratio, Sample, Table,
        Who,
    },
    report::readable,
    sample::{median, servers},
    sampler::Reading,
    servers::Features,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "connections-memory",
    title: "Memory against the number of connections held",
    paper: "Ono and Schulzrinne, figures 3 and 4: one process holds 520,000 connections with 1.2 GB of kernel memory, \
            2.3 KB of slab caches each, and less than 20 MB of socket buffers; a SIP server needs no more than an echo server",
    how: "Connections are opened, one request goes over each, and they are kept while memory is read: the objects in use in the kernel's \
          slab caches of sockets and files, and what the server's processes have themselves. Both ends of a connection over loopback live in this one kernel, \
          so what the kernel's caches grew by is halved.",
    run,
};

/// Slab bytes of a connection.
const PAPER_SLAB: f64 = 2_300.0;
/// Bytes of socket buffers that the paper's server stayed below.
const PAPER_BUFFERS: f64 = 20e6;
const MIB: f64 = 1_048_576.0;
/// Of fewer connections the kernel's growth is mostly of other things.
const COUNTED: f64 = 1_000.0;
/// Caches that the table names; the others are a line.
const CACHES: usize = 7;
/// What the kernel keeps for a connection: those of other things grow and shrink with whatever else runs.
const OF_A_CONNECTION: [&str; 17] = [
    "TCP",
    "TCPv6",
    "sock_inode_cache",
    "filp",
    "lsm_file_cache",
    "lsm_inode_cache",
    "dentry",
    "eventpoll_epi",
    "eventpoll_pwq",
    "ep_head",
    "tcp_bind_bucket",
    "tcp_bind2_bucket",
    "request_sock_TCP",
    "request_sock_TCPv6",
    "skbuff_head_cache",
    "skbuff_small_head",
    "skbuff_fclone_cache",
];

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let most = lab.holdable();
    let counts: Vec<usize> = [0.0, 0.1, 0.33, 0.67, 1.0]
        .map(|share| (most as f64 * share) as usize)
        .into();
    let mut samples = Vec::new();
    for repeat in 0..lab.repeats {
        for who in lab.who() {
            for count in &counts {
                samples.push(held(lab, who, *count, repeat)?);
            }
        }
    }
    Ok(conclude(samples))
}

/// One server with so many connections.
fn held(lab: &mut Lab, who: Who, count: usize, repeat: u32) -> Result<Sample, Stop> {
    let server = lab.start(who, Features::default())?;
    let idle = Reading::of(&server);
    let (end, load) = if count == 0 {
        (Reading::of(&server), Value::Null)
    } else {
        let held = lab.hold(&server, who, count)?;
        let end = Reading::of(&server);
        (end, held.finish().map_err(Stop::Fail)?)
    };
    let used = end.since(&idle);
    lab.progress(&format!(
        "{} holds {count}: {:.1} MiB itself, {} sockets in the kernel",
        who.name(),
        used.memory_bytes as f64 / MIB,
        used.tcp_sockets
    ));
    Ok(Sample {
        who,
        at: [("connections".to_owned(), count as f64)].into(),
        of: BTreeMap::new(),
        repeat,
        load,
        server: used,
    })
}

fn conclude(samples: Vec<Sample>) -> Measured {
    let result = Held { samples };
    let findings = vec![
        result.grows_linearly(),
        result.size(),
        result.no_more_than_echo(),
        result.buffers(),
        result.most_held(),
    ];
    Measured {
        charts: vec![result.over_connections(), result.by_cache_chart()],
        tables: vec![result.by_cache_table()],
        findings,
        ratios: vec![result.own_over_kernel()],
        samples: result.samples,
    }
}

struct Held {
    samples: Vec<Sample>,
}

fn connections(sample: &Sample) -> Option<f64> {
    sample.at("connections")
}

/// Growth of the caches that connections live in, by cache.
fn caches_of(sample: &Sample) -> impl Iterator<Item = (&str, f64)> {
    let caches = sample.server.slab_bytes.iter();
    let of_connections = caches.filter(|(name, _)| OF_A_CONNECTION.contains(&name.as_str()));
    of_connections.map(|(name, bytes)| (name.as_str(), *bytes as f64))
}

/// Kernel memory of the server's ends.
fn kernel(sample: &Sample) -> f64 {
    caches_of(sample).map(|(_, bytes)| bytes).sum::<f64>() / 2.0
}

impl Held {
    fn who(&self) -> Vec<Who> {
        servers(&self.samples)
    }

    fn of(&self, who: Who) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |s| s.who == who)
    }

    fn most(&self) -> f64 {
        self.samples
            .iter()
            .filter_map(connections)
            .fold(0.0, f64::max)
    }

    /// Median of the samples of a server with the most connections.
    fn at_most(&self, who: Who, value: impl Fn(&Sample) -> f64) -> Option<f64> {
        let most = self.most();
        let full = self
            .of(who)
            .filter(|s| most > 0.0 && connections(s) == Some(most));
        median(full.map(value))
    }

    /// Kernel memory of one connection, bytes.
    fn slab_each(&self, who: Who) -> Option<f64> {
        Some(self.at_most(who, kernel)? / self.most())
    }

    /// What the server itself needs for one connection, bytes.
    fn own_each(&self, who: Who) -> Option<f64> {
        let memory = |s: &Sample| s.server.memory_bytes as f64;
        let none = self
            .of(who)
            .filter(|s| connections(s) == Some(0.0))
            .map(memory);
        Some((self.at_most(who, memory)? - median(none)?) / self.most())
    }

    fn over_connections(&self) -> Chart {
        let mut curves = Vec::new();
        for who in self.who() {
            let of = |label, y: fn(&Sample) -> f64| {
                Curve::of(who, label, self.of(who), connections, |s| Some(y(s) / MIB))
            };
            curves.push(of("kernel, slab caches", kernel));
            curves.push(of("the server's processes", |s| {
                s.server.memory_bytes as f64
            }));
        }
        let most = self.most();
        curves.push(Curve {
            who: Who::Paper,
            label: "kernel, slab caches".to_owned(),
            points: vec![
                Point::exact(0.0, 0.0),
                Point::exact(most, most * PAPER_SLAB / MIB),
            ],
        });
        let title = "Memory against connections held (figure 3)";
        Chart::lines(
            "memory",
            title,
            Axis::linear("connections held"),
            Axis::linear("memory, MiB"),
            curves,
        )
    }

    /// Bytes of one connection by cache, those that are largest for any server first; the last is of all others.
    fn by_cache(&self) -> Vec<(String, BTreeMap<Who, f64>)> {
        let mut caches: BTreeMap<&str, BTreeMap<Who, f64>> = BTreeMap::new();
        for (name, _) in self.samples.iter().flat_map(caches_of) {
            let of = caches.entry(name).or_default();
            for who in self.who() {
                let bytes = |s: &Sample| {
                    caches_of(s)
                        .find(|(n, _)| *n == name)
                        .map_or(0.0, |(_, bytes)| bytes / 2.0)
                };
                if let Some(bytes) = self.at_most(who, bytes) {
                    of.insert(who, bytes / self.most());
                }
            }
        }
        let largest = |of: &BTreeMap<Who, f64>| of.values().copied().fold(0.0, f64::max);
        let mut caches: Vec<_> = caches
            .into_iter()
            .map(|(name, of)| (name.to_owned(), of))
            .collect();
        caches.sort_by(|a, b| {
            largest(&b.1)
                .total_cmp(&largest(&a.1))
                .then_with(|| a.0.cmp(&b.0))
        });
        let mut others: BTreeMap<Who, f64> = BTreeMap::new();
        for (_, of) in caches.split_off(CACHES.min(caches.len())) {
            for (who, bytes) in of {
                *others.entry(who).or_default() += bytes;
            }
        }
        caches.push(("all others".to_owned(), others));
        caches
    }

    fn by_cache_chart(&self) -> Chart {
        let caches = self.by_cache();
        let bar = |who: Who| {
            let parts: Vec<(&str, f64)> = caches
                .iter()
                .map(|(name, of)| (name.as_str(), of.get(&who).copied().unwrap_or(0.0)))
                .collect();
            Bar::stacked(who, &parts)
        };
        let mut bars: Vec<Bar> = self.who().into_iter().map(bar).collect();
        bars.push(Bar::stacked(
            Who::Paper,
            &[("all, a kernel of 32 bits", PAPER_SLAB)],
        ));
        let axis = Axis::linear("slab caches, bytes for a connection");
        let group = Group::new(&format!("{} connections", readable(self.most())), bars);
        Chart::bars(
            "slab",
            "Kernel memory of one connection by slab cache (figure 4)",
            axis,
            vec![group],
        )
    }

    fn by_cache_table(&self) -> Table {
        let who = self.who();
        let name = |who: &Who| who.name().to_owned();
        let columns = ["cache".to_owned()].into_iter().chain(who.iter().map(name));
        let mut rows: Vec<Vec<String>> = Vec::new();
        let row = |name: &str, of: &dyn Fn(Who) -> Option<f64>| {
            let cells = who
                .iter()
                .map(|who| of(*who).map_or_else(|| "–".to_owned(), |b| format!("{b:.0}")));
            [name.to_owned()].into_iter().chain(cells).collect()
        };
        for (name, of) in self.by_cache() {
            rows.push(row(&name, &|who| of.get(&who).copied()));
        }
        rows.push(row("in all", &|who| self.slab_each(who)));
        rows.push(row("in the server's own processes", &|who| {
            self.own_each(who)
        }));
        Table {
            title: format!(
                "Bytes for one of {} connections, one end of it; the paper: 2,300 in all",
                readable(self.most())
            ),
            columns: columns.collect(),
            rows,
        }
    }

    fn grows_linearly(&self) -> Finding {
        let range = |who| {
            let medians = Curve::of(who, "", self.of(who), connections, |s| Some(kernel(s)));
            let counted = medians.points.iter().filter(|p| p.x >= COUNTED);
            counted.fold((f64::INFINITY, 0.0_f64), |(low, high), p| {
                (low.min(p.y / p.x), high.max(p.y / p.x))
            })
        };
        let who = || {
            self.who()
                .into_iter()
                .map(|who| (who, range(who)))
                .filter(|(_, (low, _))| low.is_finite())
        };
        Finding::new(
            "kernel memory grows in proportion to the connections",
            each(who().map(|(who, (low, high))| (who, between(low, high)))),
            Agreement::of(who().map(|(_, (low, high))| high < low * 1.2)),
        )
    }

    fn size(&self) -> Finding {
        let of = || {
            self.who()
                .into_iter()
                .filter_map(|who| Some((who, self.slab_each(who)?)))
        };
        Finding::new(
            "2.3 KB of slab caches for a connection, on a kernel of 32 bits",
            format!(
                "{} for one end of it, on this kernel of {} bits",
                each(of().map(|(who, bytes)| (who, format!("{:.2} KB", bytes / 1_000.0)))),
                usize::BITS
            ),
            Agreement::of(of().map(|(_, bytes)| (0.9..1.1).contains(&(bytes / PAPER_SLAB)))),
        )
    }

    fn no_more_than_echo(&self) -> Finding {
        let echo = self.slab_each(Who::Echo);
        let others = || {
            let others = self.who().into_iter().filter(|who| *who != Who::Echo);
            others.filter_map(|who| Some((who, self.slab_each(who)? / echo?)))
        };
        Finding::new(
            "a SIP server needs no more kernel memory for a connection than an echo server",
            each(
                others().map(|(who, ratio)| {
                    (who, format!("{:.0} % of the echo server's", 100.0 * ratio))
                }),
            ),
            Agreement::of(others().map(|(_, ratio)| ratio < 1.1)),
        )
    }

    fn buffers(&self) -> Finding {
        let of = || {
            let buffers = |s: &Sample| s.server.tcp_buffer_bytes as f64;
            self.who()
                .into_iter()
                .filter_map(move |who| Some((who, self.at_most(who, buffers)?)))
        };
        Finding::new(
            "socket buffers stay below 20 MB with 520,000 connections",
            format!(
                "{} of socket buffers with {} connections",
                each(of().map(|(who, bytes)| (who, format!("{:.1} MB", bytes / 1e6)))),
                readable(self.most())
            ),
            // The same share of it for as many connections as are held here.
            Agreement::of(of().map(|(_, bytes)| bytes < PAPER_BUFFERS)),
        )
    }

    fn most_held(&self) -> Finding {
        let held = |who| self.of(who).filter_map(connections).fold(0.0, f64::max);
        Finding::new(
            "one process holds 520,000 connections; kernel memory is what ends it",
            format!(
                "{}; the limit of descriptors is what ends it here",
                each(
                    self.who()
                        .into_iter()
                        .map(|who| (who, format!("{} held", readable(held(who)))))
                )
            ),
            Agreement::NotComparable,
        )
    }

    fn own_over_kernel(&self) -> Ratio {
        let of = |who| Some((who, self.own_each(who)? / self.slab_each(who)?));
        Ratio::new(
            "memory of a connection in the server's processes / in the kernel",
            self.who().into_iter().filter_map(of),
        )
    }
}

fn between(low: f64, high: f64) -> String {
    let [low, high] = [low, high].map(|bytes| readable(bytes.round()));
    if low == high {
        format!("{low} bytes each")
    } else {
        format!("{low} to {high} bytes each")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;

    fn sample(who: Who, connections: f64, slab: &[(&str, i64)], memory_bytes: u64) -> Sample {
        Sample {
            who,
            at: [("connections".to_owned(), connections)].into(),
            of: BTreeMap::new(),
            repeat: 0,
            load: Value::Null,
            server: ServerUse {
                memory_bytes,
                slab_bytes: slab
                    .iter()
                    .map(|(name, bytes)| ((*name).to_owned(), *bytes))
                    .collect(),
                ..ServerUse::default()
            },
        }
    }

    fn held() -> Held {
        Held {
            samples: vec![
                sample(Who::Echo, 0.0, &[], 1_000),
                sample(Who::Echo, 1_000.0, &[("TCP", 4_400_000)], 2_000),
                sample(
                    Who::Echo,
                    10_000.0,
                    &[("TCP", 40_000_000), ("filp", 6_000_000)],
                    1_001_000,
                ),
                sample(Who::Sipolis, 0.0, &[], 5_000),
                sample(
                    Who::Sipolis,
                    10_000.0,
                    &[("TCP", 40_000_000), ("filp", 4_000_000)],
                    30_000,
                ),
            ],
        }
    }

    #[test]
    fn one_end_of_a_connection_is_half_of_what_the_kernel_grew_by() {
        let held = held();
        assert_eq!(held.slab_each(Who::Echo), Some(2_300.0));
        assert_eq!(held.slab_each(Who::Sipolis), Some(2_200.0));
        assert_eq!(held.slab_each(Who::Kamailio), None);
        assert_eq!(held.own_each(Who::Echo), Some(100.0));
        assert_eq!(held.size().agrees, Agreement::Yes);
        assert_eq!(held.no_more_than_echo().agrees, Agreement::Yes);
        assert_eq!(held.grows_linearly().agrees, Agreement::Yes);
    }

    #[test]
    fn caches_beyond_the_largest_are_one_line_and_all_add_up() {
        let sizes = OF_A_CONNECTION
            .iter()
            .zip(1..)
            .map(|(name, i)| (*name, i * 200));
        let mut slab: Vec<(&str, i64)> = sizes.collect();
        slab.push(("proc_inode_cache", 1_000_000));
        let held = Held {
            samples: vec![sample(Who::Echo, 100.0, &slab, 0)],
        };
        let caches = held.by_cache();
        assert_eq!(caches.len(), CACHES + 1);
        assert_eq!(caches[0].0, "skbuff_fclone_cache");
        let sum: f64 = caches.iter().map(|(_, of)| of[&Who::Echo]).sum();
        assert!((sum - held.slab_each(Who::Echo).unwrap()).abs() < 1e-9);
    }

    #[test]
    fn nothing_measured_concludes_nothing() {
        let measured = conclude(Vec::new());
        assert!(
            measured
                .findings
                .iter()
                .all(|f| f.agrees == Agreement::NotComparable)
        );
    }
}
