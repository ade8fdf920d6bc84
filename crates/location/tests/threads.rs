//! Many workers, one writer, snapshots in between: what is on disk at the end is what was in memory.

mod common;

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::thread;

use common::{NOW, open, parts};
use location::{Binding, FileDisk, Hooks, Location, Notice, Ticket, TicketState, WriterOptions};

const OPTIONS: WriterOptions = WriterOptions {
    segment_len_max: 100_000,
    journal_len_min: 300_000,
    commit_interval: std::time::Duration::ZERO,
};

#[test]
fn the_journal_has_the_changes_of_all_workers_in_the_order_they_were_made() {
    let dir = tempfile::tempdir().unwrap();
    let (location, writer, _) = open(FileDisk::open(dir.path()).unwrap(), OPTIONS);
    let (commit, committed) = channel();
    let (notice, noticed) = channel();
    let writer = writer
        .spawn(Hooks {
            on_commit: Box::new(move || {
                let _ = commit.send(());
            }),
            on_notice: Box::new(move |n| {
                let _ = notice.send(n);
            }),
        })
        .unwrap();
    // All workers change the same few, so that they meet.
    let last = thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker| {
                scope.spawn({
                    let location = &location;
                    move || work(location, worker)
                })
            })
            .collect();
        let last = workers.into_iter().map(|worker| worker.join().unwrap());
        last.max().unwrap()
    });
    while location.ticket_state(last) != TicketState::Durable {
        committed.recv().unwrap();
    }
    let in_memory = everything(&location);
    drop((location, writer));
    for notice in noticed {
        assert!(matches!(notice, Notice::SnapshotWritten(_)), "{notice}");
    }
    let (location, _, recovery) = open(FileDisk::open(dir.path()).unwrap(), OPTIONS);
    assert!(recovery.damage.is_empty(), "{recovery}");
    assert_eq!(everything(&location), in_memory);
}

fn work(location: &Location, worker: u32) -> Ticket {
    let mut last = Ticket::default();
    for round in 0..3000 {
        let aor = format!("user{}@example.com", (round * (worker + 1)) % 17);
        let contact = format!("sip:{worker}.{round}");
        let change = |bindings: &mut location::Bindings<'_>| {
            if bindings.list().len() == 4 {
                bindings.clear();
            } else {
                bindings.push(Binding::new(&parts(&contact, round)));
            }
        };
        last = location.update(aor.as_bytes(), NOW, change).unwrap().1;
    }
    last
}

fn everything(location: &Location) -> BTreeMap<Vec<u8>, Vec<String>> {
    let mut all = BTreeMap::new();
    let mut page = Some(0);
    while let Some(number) = page {
        page = location.scan(number, NOW, &mut |aor, bindings| {
            let contact = |b: &Binding| String::from_utf8_lossy(b.parts().contact).into_owned();
            all.insert(aor.to_vec(), bindings.iter().map(contact).collect());
        });
    }
    all
}
