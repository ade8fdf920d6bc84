//! A process that is killed with SIGKILL in the midst of writing has lost nothing that it had acknowledged.

mod common;

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;

use common::{open, parts, state};
use location::{Binding, Bindings, FileDisk, Hooks, Location, Ticket, TicketState, WriterOptions};

const AOR_COUNT: u64 = 50;
const WINDOW: usize = 70;

/// Small, so that segments and snapshots come and go all the time.
const OPTIONS: WriterOptions = WriterOptions {
    segment_len_max: 40_000,
    journal_len_min: 100_000,
    commit_interval: std::time::Duration::ZERO,
};

#[test]
fn nothing_acknowledged_is_missing_after_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::new();
    let mut serial = 0;
    // How many acknowledgements, or else snapshots, come before the end; what is written then is up to chance.
    let ends = [1, 2, 70, 300, 1000, 1001, 3000].map(End::Acknowledged);
    for end in ends.into_iter().chain([1, 2, 3].map(End::Snapshots)) {
        kill_at(end, dir.path(), serial, &mut acknowledged);
        let disk = FileDisk::open(dir.path()).unwrap();
        let (location, _, recovery) = open(disk, OPTIONS);
        assert!(recovery.damage.is_empty(), "{recovery}");
        for (aor, serial) in &acknowledged {
            check(&location, *aor, *serial);
        }
        let last = acknowledged.values().max().copied();
        serial = last.unwrap_or(0) + 2 * WINDOW as u64;
    }
    assert!(dir.path().join("bindings.db").exists());
}

enum End {
    Acknowledged(usize),
    Snapshots(usize),
}

/// Runs the child below and kills it.
fn kill_at(end: End, dir: &Path, serial: u64, acknowledged: &mut BTreeMap<u64, u64>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env("CHILD_DIR", dir)
        .env("CHILD_SERIAL", serial.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (mut durable, mut snapshots) = (0, 0);
    // To the end of the output: also what it has said between the line that decided and its death.
    for line in output.lines() {
        let line = line.unwrap();
        if let Some(serial) = line.strip_prefix("durable ") {
            let serial = serial.parse().unwrap();
            acknowledged.insert(aor_of(serial), serial);
            durable += 1;
        } else if line.starts_with("snapshot") {
            snapshots += 1;
        } else {
            continue;
        }
        let is_over = match end {
            End::Acknowledged(count) => durable >= count,
            End::Snapshots(count) => snapshots >= count,
        };
        if is_over {
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "the child ended by itself");
}

/// The state must be the acknowledged one, or one of those that were on their way.
fn check(location: &Location, aor: u64, serial: u64) {
    let found = state(location, &name(aor));
    let mut possible = (serial..).step_by(AOR_COUNT as usize).take(20);
    let as_after = |serial| match is_removal(serial) {
        true => found.is_empty(),
        false => found == [(format!("sip:{serial}"), serial as u32)],
    };
    assert!(
        possible.any(as_after),
        "{}: {found:?} is older than {serial}",
        name(aor)
    );
}

#[test]
#[ignore = "the process that the test above kills; does nothing useful alone"]
fn child() {
    let dir = env::var_os("CHILD_DIR").expect("set by the test above");
    let mut serial: u64 = env::var("CHILD_SERIAL").unwrap().parse().unwrap();
    let (location, writer, _) = open(FileDisk::open(dir.as_ref()).unwrap(), OPTIONS);
    let (wake, woken) = sync_channel(1);
    let _thread = writer.spawn(Hooks {
        on_commit: Box::new(move || {
            let _ = wake.try_send(());
        }),
        on_notice: Box::new(|notice| println!("{notice}")),
    });
    let mut waiting: Vec<(Ticket, u64)> = Vec::new();
    loop {
        while waiting.len() < WINDOW {
            waiting.push((change(&location, serial), serial));
            serial += 1;
        }
        woken.recv().unwrap();
        let mut lines = String::new();
        waiting.retain(|(ticket, serial)| {
            let durable = location.ticket_state(*ticket) == TicketState::Durable;
            if durable {
                lines += &format!("durable {serial}\n");
            }
            !durable
        });
        std::io::stdout().write_all(lines.as_bytes()).unwrap();
    }
}

fn change(location: &Location, serial: u64) -> Ticket {
    let contact = format!("sip:{serial}");
    let change = |bindings: &mut Bindings<'_>| {
        bindings.clear();
        if !is_removal(serial) {
            bindings.push(Binding::new(&parts(&contact, serial as u32)));
        }
    };
    let aor = name(aor_of(serial));
    location
        .update(aor.as_bytes(), common::NOW, change)
        .unwrap()
        .1
}

fn is_removal(serial: u64) -> bool {
    (serial / AOR_COUNT) % 7 == 6
}

fn aor_of(serial: u64) -> u64 {
    serial % AOR_COUNT
}

fn name(aor: u64) -> String {
    format!("user{aor}@example.com")
}
