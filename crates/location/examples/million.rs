//! What a million bindings and a million subscribers take: memory, disk, and the time until a server that was killed is up again.
//!
//! ```text
//! cargo run --release -p location --example million [-- DIRECTORY [COUNT]]
//! ```
//! The directory (default: one under `target`) is removed before and after.

#![allow(clippy::print_stdout, reason = "it is what this is for")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs};

use location::{
    Binding, BindingParts, FileDisk, Flow, Ha1, Location, Notice, Options, Recovery, Subscribers,
    Transport, Wall, Writer, WriterOptions,
};

fn main() {
    let mut args = env::args().skip(1);
    let dir = args
        .next()
        .map_or("target/million-example".into(), PathBuf::from);
    let count = args
        .next()
        .map_or(1_000_000, |s| s.parse().expect("a number of users"));
    if let Some(name) = args.next() {
        let (_, phase) = PHASES.iter().find(|(n, _)| *n == name).expect("a phase");
        phase(&dir, count);
        return;
    }
    println!("{count} users, data in {}", dir.display());
    let _ = fs::remove_dir_all(&dir);
    for (name, _) in PHASES {
        // A process each: memory that another has freed would hide what this one takes.
        let program = env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.arg(&dir).arg(count.to_string()).arg(name);
        assert!(command.status().expect("a process").success());
    }
    let _ = fs::remove_dir_all(&dir);
}

type Phase = fn(&Path, u32);

const PHASES: [(&str, Phase); 5] = [
    ("put-subscribers", put_subscribers),
    ("open-subscribers", open_subscribers),
    ("register", register_all),
    ("recover", recover),
    ("recover-again", recover),
];

fn put_subscribers(dir: &Path, count: u32) {
    let ha1 = Ha1 {
        md5: [7; 16],
        sha256: [9; 32],
    };
    let opened = Subscribers::open(dir, KEY).expect("a writable directory");
    let all = (0..count).map(|number| (aor(number), ha1));
    timed("subscribers put, in one transaction", || {
        opened.put_many(all).expect("a working disk")
    });
}

fn open_subscribers(dir: &Path, count: u32) {
    let before = memory();
    let opened = timed("subscribers opened", || {
        Subscribers::open(dir, KEY).expect("a readable directory")
    });
    assert_eq!(opened.count(), u64::from(count));
    tell_memory(before, count);
}

fn register_all(dir: &Path, count: u32) {
    let before = memory();
    let (location, mut writer, _) = open(dir);
    timed("bindings made and journaled", || {
        for number in 0..count {
            register(&location, number);
            if number % 1000 == 999 {
                writer.step(START);
            }
        }
        writer.step(START);
    });
    tell_memory(before, count);
    timed("snapshot finished, in the background", || {
        while !writer
            .take_notices()
            .iter()
            .any(|n| matches!(n, Notice::SnapshotWritten(_)))
        {
            std::thread::sleep(Duration::from_millis(10));
            writer.step(START);
        }
    });
}

/// Leaves a journal of as many records for the next time.
fn recover(dir: &Path, count: u32) {
    let before = memory();
    let (location, mut writer, recovery) = timed("recovered", || open(dir));
    assert_eq!(location.counts().0, u64::from(count));
    println!(
        "           {recovery}, {} records of the journal",
        recovery.records
    );
    tell_memory(before, count);
    let snapshot = fs::metadata(dir.join("bindings.db")).map_or(0, |m| m.len());
    println!(
        "{:>10.0} bytes of snapshot for each",
        snapshot as f64 / f64::from(count)
    );
    for number in 0..count {
        register(&location, number);
        if number % 1000 == 999 {
            writer.step(START);
        }
    }
    writer.step(START);
}

fn tell_memory(before: f64, count: u32) {
    println!(
        "{:>10.0} bytes of memory for each",
        (memory() - before) / f64::from(count)
    );
}

fn open(dir: &Path) -> (Arc<Location>, Writer<FileDisk>, Recovery) {
    let location = Arc::new(Location::new(Options {
        hash_key: KEY,
        waiting_bytes_max: 1 << 30,
        aor_count_max: 10_000_000,
    }));
    let disk = FileDisk::open(dir).expect("a writable directory");
    let (writer, recovery) =
        Writer::open(Arc::clone(&location), disk, WriterOptions::default(), START)
            .expect("a readable directory");
    (location, writer, recovery)
}

fn register(location: &Location, number: u32) {
    let contact = format!("sip:user{number}@192.0.2.10:5060;transport=tcp");
    let instance = format!("<urn:uuid:00000000-0000-1000-8000-0000{number:08x}>");
    let params = format!(";+sip.instance=\"{instance}\"");
    let call_id = format!("0a5f8c3e92d14b7b{number:08x}");
    let binding = Binding::new(&BindingParts {
        contact: contact.as_bytes(),
        params: params.as_bytes(),
        instance: instance.as_bytes(),
        reg_id: 1,
        q: 1000,
        call_id: call_id.as_bytes(),
        cseq: 1,
        expires: START.after_s(3600 + number % 100),
        flow: Flow {
            transport: Transport::Tcp,
            listener: 0,
            connection: u64::from(number),
            local: "192.0.2.1:5060".parse().expect("an address"),
            peer: "198.51.100.7:49152".parse().expect("an address"),
        },
        behind_nat: false,
        path: b"",
        user_agent: b"Phone/1.0.2",
    });
    let set = |bindings: &mut location::Bindings<'_>| {
        bindings.clear();
        bindings.push(binding);
    };
    location.update(&aor(number), START, set).expect("room");
}

fn aor(number: u32) -> Vec<u8> {
    format!("user{number}@example.com").into_bytes()
}

fn timed<R>(what: &str, work: impl FnOnce() -> R) -> R {
    let started = Instant::now();
    let result = work();
    println!("{:>8.2} s {what}", started.elapsed().as_secs_f64());
    result
}

/// Resident memory in bytes.
fn memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|l| l.trim().strip_suffix(" kB"))
        .and_then(|n| n.parse::<f64>().ok());
    kib.expect("as Linux writes it") * 1024.0
}

const KEY: [u64; 2] = [1, 2];
/// Registrations must not expire while this runs, whatever the clock says.
const START: Wall = Wall(u32::MAX as u64 * 1000);
