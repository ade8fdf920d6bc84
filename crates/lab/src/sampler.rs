//! What a server used: processor, memory, kernel memory, sockets, energy.

use std::{
    collections::BTreeMap,
    fs, io,
    time::{Duration, Instant},
};

use loadgen::CpuTime;

use crate::{record::ServerUse, servers::Server};

/// Everything that is read of the machine and of one server at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    at: Instant,
    /// Of all the server's threads.
    pub(crate) cpu: CpuTime,
    /// Of all the server's processes, bytes; what they share counts once.
    pub(crate) memory: u64,
    /// Bytes of the objects in use, by slab cache, of the whole machine. Empty where it can't be read.
    pub(crate) slab: BTreeMap<String, u64>,
    pub(crate) sockets: Sockets,
    energy: Option<Energy>,
}

impl Reading {
    /// Takes one now.
    pub(crate) fn of(server: &Server) -> Self {
        let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
        Self {
            at: Instant::now(),
            cpu: server.cpu(),
            memory: server.memory(),
            slab: slab(&text("/proc/slabinfo")),
            sockets: Sockets::read(&text("/proc/net/sockstat")),
            energy: Energy::read().ok(),
        }
    }

    /// What the server used since an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> ServerUse {
        let cpu = self.cpu.since(earlier.cpu);
        let energy = self.energy.as_ref().zip(earlier.energy.as_ref());
        ServerUse {
            cpu_us: cpu.total.as_secs_f64() * 1e6,
            user_us: cpu.user.as_secs_f64() * 1e6,
            busy_percent: self.busy_percent(earlier),
            memory_bytes: self.memory,
            slab_bytes: self.slab_since(earlier),
            tcp_sockets: self.sockets.tcp,
            tcp_time_wait: self.sockets.time_wait,
            tcp_buffer_bytes: self.sockets.tcp_buffer_bytes,
            joules: energy.map(|(now, then)| now.joules_since(then)),
            stages: Vec::new(),
        }
    }

    /// The server's share of one core since an earlier reading, percent.
    pub(crate) fn busy_percent(&self, earlier: &Self) -> f64 {
        let wall = (self.at - earlier.at).max(Duration::from_millis(1));
        100.0 * self.cpu.since(earlier.cpu).total.as_secs_f64() / wall.as_secs_f64()
    }

    /// Growth of the slab caches since an earlier reading; those that grew.
    pub(crate) fn slab_since(&self, earlier: &Self) -> BTreeMap<String, i64> {
        let growth = self.slab.iter().filter_map(|(name, bytes)| {
            let before = earlier.slab.get(name).copied().unwrap_or(0);
            let grown = bytes.checked_sub(before).filter(|grown| *grown > 0)?;
            Some((name.clone(), i64::try_from(grown).ok()?))
        });
        growth.collect()
    }
}

/// Bytes of the objects in use by cache, of `/proc/slabinfo` 2.1: name, objects in use, objects, size of one.
fn slab(text: &str) -> BTreeMap<String, u64> {
    let cache = |line: &str| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?;
        let in_use: u64 = fields.next()?.parse().ok()?;
        let size: u64 = fields.nth(1)?.parse().ok()?;
        Some((name.to_owned(), in_use * size))
    };
    text.lines().filter_map(cache).collect()
}

/// Sockets of the whole machine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sockets {
    /// TCP over IPv4, those in TIME_WAIT not among them.
    pub(crate) tcp: u64,
    pub(crate) time_wait: u64,
    pub(crate) tcp_buffer_bytes: u64,
}

/// `mem` in `/proc/net/sockstat` counts pages; all that Linux has by default on x86-64 and most of ARM64.
const PAGE: u64 = 4096;

impl Sockets {
    fn read(sockstat: &str) -> Self {
        let line = sockstat.lines().find_map(|l| l.strip_prefix("TCP: "));
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let value = |name: &str| {
            let found = words.chunks(2).find(|pair| pair[0] == name);
            found
                .and_then(|pair| pair.get(1)?.parse().ok())
                .unwrap_or(0)
        };
        Self {
            tcp: value("alloc"),
            time_wait: value("tw"),
            tcp_buffer_bytes: value("mem") * PAGE,
        }
    }
}

/// Counters of the processor's packages (RAPL), microjoules.
#[derive(Clone, PartialEq, Debug)]
struct Energy {
    /// By package: the count, and where it begins anew.
    packages: BTreeMap<String, (u64, u64)>,
}

impl Energy {
    /// # Errors
    /// No such counters, or not for this user to read.
    fn read() -> io::Result<Self> {
        let mut packages = BTreeMap::new();
        for entry in fs::read_dir("/sys/class/powercap")? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // `intel-rapl:0` is a package, `intel-rapl:0:1` a part of it.
            if !name.contains("rapl:") || name.matches(':').count() != 1 {
                continue;
            }
            let number = |file: &str| {
                let text = fs::read_to_string(entry.path().join(file))?;
                text.trim().parse().map_err(io::Error::other)
            };
            let counter = (number("energy_uj")?, number("max_energy_range_uj")?);
            packages.insert(name, counter);
        }
        if packages.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { packages })
    }

    fn joules_since(&self, earlier: &Self) -> f64 {
        let used = |(name, (now, range)): (&String, &(u64, u64))| {
            let (then, _) = *earlier.packages.get(name)?;
            Some(now.checked_sub(then).unwrap_or(range - then + now))
        };
        self.packages.iter().filter_map(used).sum::<u64>() as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLABINFO: &str = "\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
TCPv6                 26     26   2496   13    8 : tunables    0    0    0 : slabdata      2      2      0
TCP                  100    130   2368   13    8 : tunables    0    0    0 : slabdata     10     10      0
filp                 500    512    256   16    1 : tunables    0    0    0 : slabdata     32     32      0
";

    fn reading(slabinfo: &str) -> Reading {
        Reading {
            at: Instant::now(),
            cpu: CpuTime::default(),
            memory: 0,
            slab: slab(slabinfo),
            sockets: Sockets::default(),
            energy: None,
        }
    }

    #[test]
    fn slab_caches_count_by_their_objects_in_use_and_the_title_lines_do_not() {
        let caches = slab(SLABINFO);
        assert_eq!(caches.len(), 3);
        assert_eq!(caches["TCP"], 236_800);
    }

    #[test]
    fn only_caches_that_grew_are_kept() {
        let before = reading(SLABINFO);
        let grown = SLABINFO
            .replace("TCP                  100", "TCP                  110")
            .replace("filp                 500", "filp                 400");
        let growth = reading(&grown).slab_since(&before);
        assert_eq!(growth, BTreeMap::from([("TCP".to_owned(), 23_680)]));
    }

    #[test]
    fn sockets_are_read_by_name_and_pages_become_bytes() {
        let text = "sockets: used 12\nTCP: inuse 1 orphan 0 tw 7 alloc 15003 mem 417\nUDP: inuse 0 mem 88\n";
        let expected = Sockets {
            tcp: 15_003,
            time_wait: 7,
            tcp_buffer_bytes: 417 * 4096,
        };
        assert_eq!(Sockets::read(text), expected);
        assert_eq!(Sockets::read(""), Sockets::default());
    }

    #[test]
    fn an_energy_counter_that_began_anew_still_counts() {
        let energy = |count| Energy {
            packages: BTreeMap::from([("intel-rapl:0".to_owned(), (count, 10_000_000))]),
        };
        let used = energy(2_000_000).joules_since(&energy(9_000_000));
        assert!((used - 3.0).abs() < 1e-9, "{used}");
    }
}
