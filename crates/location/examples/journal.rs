//! How many refreshes a second get on disk, and what one costs in CPU time.
//!
//! ```text
//! cargo run --release -p location --example journal [-- DIRECTORY [SECONDS]]
//! ```
//! The directory (default: one under `target`) should be on the disk that shall be measured. A worker refreshes 10,000
//! addresses-of-record in turn, at most WINDOW of them on their way to disk at a time, as a server does whose
//! 200 waits for its ticket.

#![allow(clippy::print_stdout, reason = "it is what this is for")]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs};

use location::{
    Binding, BindingParts, FileDisk, Flow, Hooks, Location, Options, Ticket, TicketState,
    Transport, Wall, Writer, WriterOptions,
};

const AOR_COUNT: usize = 10_000;

fn main() {
    let mut args = env::args().skip(1);
    let dir = args
        .next()
        .map_or("target/journal-example".into(), PathBuf::from);
    let seconds = args
        .next()
        .map_or(3, |s| s.parse().expect("a number of seconds"));
    println!(
        "{AOR_COUNT} addresses-of-record, refreshed in turn; journal in {}",
        dir.display()
    );
    println!("CPU in microseconds for each acknowledged update");
    println!(
        "{:>8} {:>12} {:>12} {:>10} {:>10} {:>10}",
        "window", "acknowledged", "updates per", "CPU", "CPU", "longest"
    );
    println!(
        "{:>8} {:>12} {:>12} {:>10} {:>10} {:>10}",
        "", "a second", "flush", "update", "journal", "wait ms"
    );
    println!(
        "{:>8} {:>12} {:>12} {:>10.2} {:>10} {:>10}",
        "-",
        "-",
        "-",
        update_alone(),
        "-",
        "-"
    );
    for window in [1, 10, 100, 1000, AOR_COUNT] {
        measure(&dir, window, Duration::from_secs(seconds));
    }
}

/// Without a disk: microseconds for each update, with its record in the queue.
fn update_alone() -> f64 {
    let location = Location::new(options());
    let aors = register_all(&location);
    let rounds = 50;
    let mut cpu = Duration::ZERO;
    for round in 0..rounds {
        let before = Cpu::now();
        for aor in &aors {
            refresh(&location, aor, round);
        }
        cpu += Cpu::now().main - before.main;
        let batch = location.take_batch().expect("all were changed");
        location.batch_written(batch);
    }
    cpu.as_secs_f64() * 1e6 / f64::from(rounds) / AOR_COUNT as f64
}

fn measure(dir: &Path, window: usize, time: Duration) {
    let _ = fs::remove_dir_all(dir);
    let location = Arc::new(Location::new(options()));
    let disk = FileDisk::open(dir).expect("a writable directory");
    let (writer, _) = Writer::open(
        Arc::clone(&location),
        disk,
        WriterOptions::default(),
        wall_now(),
    )
    .expect("an empty directory");
    let aors = register_all(&location);
    let (wake, woken) = sync_channel::<()>(1);
    let commits = Arc::new(AtomicU64::new(0));
    let thread = writer
        .spawn(Hooks {
            on_commit: Box::new({
                let commits = Arc::clone(&commits);
                move || {
                    commits.fetch_add(1, Ordering::Relaxed);
                    let _ = wake.try_send(());
                }
            }),
            on_notice: Box::new(|notice| println!("{notice}")),
        })
        .expect("a thread");
    let commits_before = commits.load(Ordering::Relaxed);
    let before = Cpu::now();
    let started = Instant::now();
    let (count, wait_max) = refresh_until(&location, &aors, window, started + time, &woken);
    let elapsed = started.elapsed().as_secs_f64();
    let cpu = Cpu::now();
    let per_update = |cpu: Duration| cpu.as_secs_f64() * 1e6 / count as f64;
    println!(
        "{window:>8} {:>12.0} {:>12.1} {:>10.2} {:>10.2} {:>10.1}",
        count as f64 / elapsed,
        count as f64 / (commits.load(Ordering::Relaxed) - commits_before) as f64,
        per_update(cpu.main - before.main),
        per_update(cpu.journal - before.journal),
        wait_max.as_secs_f64() * 1e3,
    );
    drop(thread);
    let _ = fs::remove_dir_all(dir);
}

/// Updates that were acknowledged, and the longest that one waited.
fn refresh_until(
    location: &Location,
    aors: &[Vec<u8>],
    window: usize,
    end: Instant,
    woken: &Receiver<()>,
) -> (u64, Duration) {
    let mut waiting: VecDeque<(Ticket, Instant)> = VecDeque::with_capacity(window);
    let mut acknowledged = 0;
    let mut wait_max = Duration::ZERO;
    let mut next = 0;
    let mut now = Instant::now();
    while now < end {
        while waiting.len() < window {
            let ticket = refresh(
                location,
                &aors[next % aors.len()],
                (next / aors.len()) as u32,
            );
            waiting.push_back((ticket, now));
            next += 1;
        }
        woken.recv().expect("the writer lives");
        now = Instant::now();
        while let Some(&(ticket, since)) = waiting.front() {
            match location.ticket_state(ticket) {
                TicketState::Durable => {}
                TicketState::Waiting => break,
                TicketState::Failed => panic!("the disk fails"),
            }
            wait_max = wait_max.max(now - since);
            waiting.pop_front();
            acknowledged += 1;
        }
    }
    (acknowledged, wait_max)
}

fn refresh(location: &Location, aor: &[u8], round: u32) -> Ticket {
    let refreshed = location.update(aor, START, |bindings| {
        let flow = bindings.list()[0].parts().flow;
        let expires = START.after_s(3600 + round);
        bindings
            .at(0)
            .refresh(b"0a5f8c3e92d14b7ba6c1e83d", round, expires, flow);
    });
    refreshed.expect("the disk keeps up").1
}

fn register_all(location: &Location) -> Vec<Vec<u8>> {
    let register = |number| {
        let aor = format!("user{number}@example.com").into_bytes();
        let contact = format!("sip:user{number}@192.0.2.10:5060;transport=tcp");
        let binding = Binding::new(&BindingParts {
            contact: contact.as_bytes(),
            params: b";+sip.instance=\"<urn:uuid:00000000-0000-1000-8000-000a95a0e128>\"",
            instance: b"<urn:uuid:00000000-0000-1000-8000-000a95a0e128>",
            reg_id: 1,
            q: 1000,
            call_id: b"0a5f8c3e92d14b7ba6c1e83d",
            cseq: 1,
            expires: START.after_s(3600),
            flow: Flow {
                transport: Transport::Tcp,
                listener: 0,
                connection: number as u64,
                local: "192.0.2.1:5060".parse().expect("an address"),
                peer: "198.51.100.7:49152".parse().expect("an address"),
            },
            behind_nat: false,
            path: b"",
            user_agent: b"Phone/1.0.2",
        });
        location
            .update(&aor, START, |b| b.push(binding))
            .expect("room");
        aor
    };
    let aors = (0..AOR_COUNT).map(register).collect();
    if let Some(batch) = location.take_batch() {
        location.batch_written(batch);
    }
    aors
}

fn options() -> Options {
    Options {
        hash_key: [1, 2],
        waiting_bytes_max: 256 << 20,
        aor_count_max: 2_000_000,
    }
}

/// Registrations must not expire while this runs, whatever the clock says.
const START: Wall = Wall(u32::MAX as u64 * 1000);

fn wall_now() -> Wall {
    let since_1970 = SystemTime::UNIX_EPOCH
        .elapsed()
        .expect("a clock that is set");
    Wall(since_1970.as_millis() as u64)
}

/// CPU time of the journal's thread, and of this one.
struct Cpu {
    journal: Duration,
    main: Duration,
}

impl Cpu {
    fn now() -> Self {
        let mut cpu = Self {
            journal: Duration::ZERO,
            main: Duration::ZERO,
        };
        for task in fs::read_dir("/proc/self/task").expect("Linux") {
            let task = task.expect("a task");
            let read = |file| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            let on_cpu = read("schedstat");
            let on_cpu = on_cpu.split(' ').next().and_then(|ns| ns.parse().ok());
            let on_cpu = Duration::from_nanos(on_cpu.unwrap_or(0));
            if task.file_name().to_str() == Some(&std::process::id().to_string()) {
                cpu.main = on_cpu;
            } else if read("comm").trim() == "journal" {
                cpu.journal = on_cpu;
            }
        }
        cpu
    }
}
