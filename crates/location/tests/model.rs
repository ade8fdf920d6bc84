//! Random changes, crashes at any byte, and full disks, against a model of what must be there afterwards.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{EAGER, NOW, location, parts};
use location::{Binding, Location, MemoryDisk, Step, Tear, Ticket, TicketState, Wall, Writer};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Action {
    /// Sets so many bindings of an address-of-record.
    Change {
        aor: u8,
        bindings: u8,
    },
    /// Looks and changes nothing.
    Look {
        aor: u8,
    },
    Step,
    /// Room for so many bytes more; then again without limit.
    DiskFull {
        room: u64,
    },
    DiskRoomy,
    /// The machine crashes so many appended bytes later.
    Crash {
        after: u64,
        zeros: bool,
    },
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => (0..6u8, 0..4u8).prop_map(|(aor, bindings)| Action::Change { aor, bindings }),
        2 => (0..6u8).prop_map(|aor| Action::Look { aor }),
        6 => Just(Action::Step),
        1 => (0..1500u64).prop_map(|room| Action::DiskFull { room }),
        1 => Just(Action::DiskRoomy),
        2 => (0..3000u64, any::<bool>()).prop_map(|(after, zeros)| Action::Crash { after, zeros }),
    ]
}

/// All states of one address-of-record since the last restart, oldest first, each with its ticket.
type History = Vec<(Ticket, Vec<String>)>;

struct Run {
    disk: MemoryDisk,
    location: Arc<Location>,
    writer: Writer<MemoryDisk>,
    histories: BTreeMap<u8, History>,
    now: Wall,
    serial: u32,
}

impl Run {
    fn new() -> Self {
        let disk = MemoryDisk::new();
        let location = location();
        let (writer, _) = Writer::open(Arc::clone(&location), disk.clone(), EAGER, NOW).unwrap();
        Self {
            disk,
            location,
            writer,
            histories: BTreeMap::new(),
            now: NOW,
            serial: 0,
        }
    }

    fn perform(&mut self, action: &Action) {
        match *action {
            Action::Change { aor, bindings } => self.change(aor, bindings),
            Action::Look { aor } => self.look(aor),
            Action::Step => {
                // Long enough for the next attempt after a failure.
                self.now = self.now.after_s(1);
                self.writer.step(self.now);
            }
            Action::DiskFull { room } => {
                let used: usize = self.journal_len();
                self.disk.set_capacity(Some(used as u64 + room));
            }
            Action::DiskRoomy => self.disk.set_capacity(None),
            Action::Crash { after, zeros } => self.crash(after, zeros),
        }
    }

    fn change(&mut self, aor: u8, count: u8) {
        self.serial += 1;
        let contacts: Vec<_> = (0..count)
            .map(|i| format!("sip:{}.{i}", self.serial))
            .collect();
        let change = |bindings: &mut location::Bindings<'_>| {
            bindings.clear();
            for contact in &contacts {
                bindings.push(Binding::new(&parts(contact, self.serial)));
            }
        };
        let before = contacts_of(&self.location, aor);
        match self.location.update(&name(aor), NOW, change) {
            Ok((_, ticket)) => self
                .histories
                .entry(aor)
                .or_default()
                .push((ticket, contacts)),
            Err(_) => assert_eq!(contacts_of(&self.location, aor), before),
        }
    }

    fn look(&self, aor: u8) {
        if let Ok((contacts, ticket)) = self.location.update(&name(aor), NOW, |b| list(b.list())) {
            let last = self.histories.get(&aor).and_then(|h| h.last());
            let (last_ticket, last_contacts) = last.cloned().unwrap_or_default();
            assert_eq!(contacts, last_contacts);
            assert!(ticket >= last_ticket || contacts.is_empty());
        }
    }

    fn journal_len(&mut self) -> usize {
        use location::Disk;
        let files = self.disk.list().unwrap();
        files
            .iter()
            .map(|file| self.disk.read(file).unwrap().len())
            .sum()
    }

    /// Works on until the machine crashes, or nothing waits; then restarts and compares.
    fn crash(&mut self, after: u64, zeros: bool) {
        let tear = if zeros { Tear::Zeros } else { Tear::Short };
        self.disk.crash_after(after, tear);
        while self.writer.step(self.now) == Step::Committed {}
        let durable = |ticket| self.location.ticket_state(ticket) == TicketState::Durable;
        let acknowledged: BTreeMap<u8, usize> = self
            .histories
            .iter()
            .map(|(aor, history)| (*aor, history.iter().filter(|(t, _)| durable(*t)).count()))
            .collect();
        self.disk.restart();
        self.disk.set_capacity(None);
        self.location = location();
        let (writer, recovery) = Writer::open(
            Arc::clone(&self.location),
            self.disk.clone(),
            EAGER,
            self.now,
        )
        .unwrap();
        self.writer = writer;
        assert!(recovery.damage.is_empty(), "{recovery}");
        for (aor, history) in &mut self.histories {
            let found = contacts_of(&self.location, *aor);
            check_recovered(&found, history, acknowledged[aor]);
            // The tickets of before mean nothing now; what was found is durable.
            *history = vec![(Ticket::default(), found)];
        }
    }
}

/// What was found is the last acknowledged state, or a later one that was on its way.
fn check_recovered(found: &Vec<String>, history: &History, acknowledged: usize) {
    let mut possible: Vec<&Vec<String>> = history[acknowledged..].iter().map(|(_, s)| s).collect();
    let nothing = Vec::new();
    possible.push(match acknowledged {
        0 => &nothing,
        count => &history[count - 1].1,
    });
    assert!(
        possible.contains(&found),
        "{found:?} is none of {possible:?}"
    );
}

fn name(aor: u8) -> Vec<u8> {
    format!("user{aor}@example.com").into_bytes()
}

fn contacts_of(location: &Location, aor: u8) -> Vec<String> {
    location.read(&name(aor), NOW, list)
}

fn list(bindings: &[Binding]) -> Vec<String> {
    let contact = |b: &Binding| String::from_utf8_lossy(b.parts().contact).into_owned();
    bindings.iter().map(contact).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_acknowledged_is_missing_after_any_crash(actions in prop::collection::vec(action(), 1..120)) {
        let mut run = Run::new();
        for action in &actions {
            run.perform(action);
        }
        run.crash(u64::MAX, false);
    }
}
