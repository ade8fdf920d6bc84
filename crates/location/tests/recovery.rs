//! What is there after a restart, and what is said about it.

mod common;

use common::{EAGER, NOW, location, open, parts, register, state};
use location::{
    Binding, Disk, FileDisk, MemoryDisk, Notice, Step, Tear, TicketState, Transport, Wall, Writer,
    WriterOptions,
};

#[test]
fn a_restart_finds_what_was_committed() {
    let disk = MemoryDisk::new();
    let (location, mut writer, _) = open(disk.clone(), WriterOptions::default());
    register(&location, "alice@a", "sip:1", 1);
    register(&location, "bob@a", "sip:2", 1);
    assert_eq!(writer.step(NOW), Step::Committed);
    register(&location, "alice@a", "sip:1", 2);
    location.update(b"bob@a", NOW, |b| b.clear()).unwrap();
    assert_eq!(writer.step(NOW), Step::Committed);
    assert_eq!(writer.step(NOW), Step::Idle);
    register(&location, "carol@a", "sip:3", 1);

    let (location, _, recovery) = open(disk, WriterOptions::default());
    assert_eq!(state(&location, "alice@a"), [("sip:1".into(), 2)]);
    assert_eq!(state(&location, "bob@a"), []);
    assert_eq!(state(&location, "carol@a"), []);
    assert_eq!((recovery.bindings, recovery.aors), (1, 1));
    assert_eq!(recovery.records, 4);
    assert_eq!(recovery.to_string(), "1 bindings of 1 users recovered");
}

#[test]
fn a_recovered_binding_keeps_everything_but_its_connection() {
    let dir = tempfile::tempdir().unwrap();
    let mut full = parts("sip:alice@192.0.2.9;transport=tcp", 7);
    full.path = b"<sip:edge.example.com;lr>";
    full.call_id = b"\xff\xfe not UTF-8 \0";
    full.expires = Wall(NOW.0 + 1_234_567);
    full.flow.transport = Transport::Sctp;
    full.flow.peer = "[fe80::1%3]:5060".parse().unwrap();
    let check = |location: &location::Location| {
        let mut expected = full;
        expected.flow.connection = 0;
        location.read(b"alice@a", NOW, |list| {
            assert_eq!(list.len(), 1);
            assert_eq!(list[0].parts(), expected);
        });
    };
    // First from the journal, and then from the snapshot that it has become.
    {
        let disk = FileDisk::open(dir.path()).unwrap();
        let (location, mut writer, _) = open(disk, EAGER);
        location
            .update(b"alice@a", NOW, |b| b.push(Binding::new(&full)))
            .unwrap();
        writer.step(NOW);
    }
    {
        let disk = FileDisk::open(dir.path()).unwrap();
        let (location, mut writer, recovery) = open(disk, EAGER);
        assert_eq!(recovery.records, 1);
        check(&location);
        write_until_snapshot(&location, &mut writer);
    }
    assert!(!dir.path().join("journal-00000001.log").exists());
    let disk = FileDisk::open(dir.path()).unwrap();
    let (location, _, _) = open(disk, EAGER);
    check(&location);
}

fn write_until_snapshot<D: Disk>(location: &location::Location, writer: &mut Writer<D>) {
    for cseq in 0..1_000_000 {
        register(location, "busy@a", "sip:busy", cseq);
        writer.step(NOW);
        if let Some(notice) = writer.take_notices().first() {
            assert!(matches!(notice, Notice::SnapshotWritten(_)), "{notice}");
            return;
        }
    }
    panic!("no snapshot");
}

#[test]
fn a_snapshot_takes_the_place_of_the_segments_before() {
    let disk = MemoryDisk::new();
    let (location, mut writer, _) = open(disk.clone(), EAGER);
    register(&location, "alice@a", "sip:1", 1);
    register(&location, "bob@a", "sip:1", 1);
    write_until_snapshot(&location, &mut writer);
    location.update(b"bob@a", NOW, |b| b.clear()).unwrap();
    writer.step(NOW);
    let first = disk.clone().list().unwrap().remove(0);
    assert_ne!(first, "journal-00000001.log");

    let (location, mut writer, recovery) = open(disk.clone(), EAGER);
    assert!(recovery.damage.is_empty(), "{recovery}");
    assert_eq!(state(&location, "alice@a"), [("sip:1".into(), 1)]);
    assert_eq!(state(&location, "bob@a"), [], "removed after the snapshot");
    // Numbers go on, though segments were removed.
    write_until_snapshot(&location, &mut writer);
    let (location, _, recovery) = open(disk, EAGER);
    assert!(recovery.damage.is_empty(), "{recovery}");
    assert_eq!(state(&location, "alice@a"), [("sip:1".into(), 1)]);
}

#[test]
fn a_crash_before_the_segments_behind_a_snapshot_are_removed_does_no_harm() {
    let mut disk = MemoryDisk::new();
    let (location, mut writer, _) = open(disk.clone(), EAGER);
    register(&location, "alice@a", "sip:old", 1);
    writer.step(NOW);
    let old = disk.read("journal-00000001.log").unwrap();
    register(&location, "alice@a", "sip:new", 2);
    write_until_snapshot(&location, &mut writer);
    disk.append("journal-00000001.log", &old).unwrap();
    let (location, _, recovery) = open(disk.clone(), EAGER);
    assert_eq!(state(&location, "alice@a"), [("sip:new".into(), 2)]);
    assert!(recovery.damage.is_empty(), "{recovery}");
    assert!(disk.read("journal-00000001.log").is_err());
}

#[test]
fn bindings_that_ended_meanwhile_are_not_recovered() {
    let disk = MemoryDisk::new();
    let (store, mut writer, _) = open(disk.clone(), WriterOptions::default());
    register(&store, "alice@a", "sip:1", 1);
    writer.step(NOW);
    let later = NOW.after_s(3600);
    let (_, recovery) = Writer::open(location(), disk, WriterOptions::default(), later).unwrap();
    assert_eq!((recovery.bindings, recovery.records), (0, 1));
}

#[test]
fn an_unfinished_write_is_cut_off_and_told() {
    for tear in [Tear::Short, Tear::Zeros] {
        let disk = MemoryDisk::new();
        let (location, mut writer, _) = open(disk.clone(), WriterOptions::default());
        register(&location, "alice@a", "sip:1", 1);
        writer.step(NOW);
        let lost = register(&location, "bob@a", "sip:2", 1);
        disk.crash_after(100, tear);
        assert_eq!(writer.step(NOW), Step::Failed);
        assert_eq!(location.ticket_state(lost), TicketState::Failed);
        disk.restart();

        let (location, mut writer, recovery) = open(disk.clone(), WriterOptions::default());
        assert!(recovery.cut_bytes >= 100 && recovery.damage.is_empty());
        assert!(recovery.to_string().contains("of an unfinished write"));
        assert_eq!(state(&location, "alice@a"), [("sip:1".into(), 1)]);
        register(&location, "bob@a", "sip:2", 1);
        writer.step(NOW);
        let (location, _, recovery) = open(disk, WriterOptions::default());
        assert_eq!((recovery.cut_bytes, recovery.damage.len()), (0, 0));
        assert_eq!(location.counts(), (2, 2));
    }
}

#[test]
fn damage_is_told_and_what_stands_around_it_is_read() {
    let disk = MemoryDisk::new();
    let (location, mut writer, _) = open(disk.clone(), EAGER);
    for (index, aor) in ["alice@a", "bob@a", "carol@a"].into_iter().enumerate() {
        register(&location, aor, "sip:1", index as u32);
    }
    writer.step(NOW);
    let len = disk.clone().read("journal-00000001.log").unwrap().len();
    disk.spoil("journal-00000001.log", len / 2);
    let (location, _, recovery) = open(disk, EAGER);
    assert_eq!(location.counts(), (2, 2));
    assert_eq!(state(&location, "bob@a"), []);
    assert_eq!(recovery.damage.len(), 1);
    let text = recovery.to_string();
    assert!(text.contains("journal-00000001.log: bytes"), "{text}");
}

#[test]
fn a_missing_segment_is_told() {
    let mut disk = MemoryDisk::new();
    for aor in ["alice@a", "bob@a", "carol@a"] {
        let (location, mut writer, _) = open(disk.clone(), WriterOptions::default());
        register(&location, aor, "sip:1", 1);
        writer.step(NOW);
    }
    disk.remove("journal-00000002.log").unwrap();
    let (location, _, recovery) = open(disk, WriterOptions::default());
    assert_eq!(location.counts(), (2, 2));
    assert!(
        recovery
            .to_string()
            .contains("journal-00000002.log is missing")
    );
}

#[test]
fn a_damaged_snapshot_stops_the_start_and_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bindings.db"), "this is no database at all").unwrap();
    let disk = FileDisk::open(dir.path()).unwrap();
    let Err(error) = Writer::open(location(), disk, EAGER, NOW) else {
        panic!("started");
    };
    assert!(error.to_string().contains("move it away"), "{error}");
}

#[test]
fn the_snapshot_reads_well_in_a_database_shell() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::open(dir.path()).unwrap();
    let (location, mut writer, _) = open(disk, EAGER);
    register(&location, "alice@example.com", "sip:alice@192.0.2.9", 3);
    write_until_snapshot(&location, &mut writer);
    let database = rusqlite::Connection::open(dir.path().join("bindings.db")).unwrap();
    let row: (String, f64, String, String, String) = database
        .query_row(
            "SELECT contact, q, datetime(expires_at, 'unixepoch'), transport, peer
             FROM binding WHERE aor = 'alice@example.com'",
            [],
            |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                ))
            },
        )
        .unwrap();
    assert_eq!(row.0, "sip:alice@192.0.2.9");
    assert_eq!(row.1, 0.7);
    assert_eq!(row.2, "2100-01-01 01:00:00");
    assert_eq!((&*row.3, &*row.4), ("tcp", "198.51.100.7:49152"));
}

#[test]
fn a_full_disk_refuses_changes_and_goes_on_when_there_is_room() {
    let disk = MemoryDisk::new();
    let (location, mut writer, _) = open(disk.clone(), WriterOptions::default());
    let before = register(&location, "alice@a", "sip:1", 1);
    writer.step(NOW);
    let used = disk.clone().read("journal-00000001.log").unwrap().len() as u64;

    disk.set_capacity(Some(used + 50));
    let during = register(&location, "bob@a", "sip:2", 1);
    assert_eq!(writer.step(NOW), Step::Failed);
    assert_eq!(location.ticket_state(before), TicketState::Durable);
    assert_eq!(location.ticket_state(during), TicketState::Failed);
    let refused = location.update(b"carol@a", NOW, |_| ());
    assert_eq!(refused, Err(location::Refused::DiskFailed));
    assert_eq!(state(&location, "alice@a"), [("sip:1".into(), 1)]);
    assert_eq!(writer.step(Wall(NOW.0 + 500)), Step::Pausing);
    assert_eq!(writer.step(NOW.after_s(1)), Step::Failed);
    let notices = writer.take_notices();
    assert!(
        matches!(&notices[..], [Notice::JournalFails(_)]),
        "said once: {notices:?}"
    );

    disk.set_capacity(None);
    assert_eq!(writer.step(NOW.after_s(2)), Step::Committed);
    assert!(matches!(writer.take_notices()[..], [Notice::JournalWorks]));
    assert_eq!(location.ticket_state(during), TicketState::Durable);
    let after = register(&location, "carol@a", "sip:3", 1);
    writer.step(NOW.after_s(3));
    assert_eq!(location.ticket_state(after), TicketState::Durable);
    let (location, _, recovery) = open(disk, WriterOptions::default());
    assert_eq!(location.counts(), (3, 3));
    assert_eq!((recovery.cut_bytes, recovery.damage.len()), (0, 0));
}

#[test]
fn a_snapshot_that_found_no_room_is_tried_again_while_the_journal_waits_for_room() {
    let disk = MemoryDisk::new();
    let (location, mut writer, _) = open(disk.clone(), EAGER);
    disk.set_capacity(Some(EAGER.journal_len_min + 400));
    register(&location, "bob@a", "sip:1", 1);
    let mut notices = Vec::new();
    for cseq in 0.. {
        register(&location, "alice@a", "sip:1", cseq);
        writer.step(NOW);
        notices.extend(writer.take_notices());
        if !notices.is_empty() {
            break;
        }
    }
    assert!(
        matches!(notices[..], [Notice::SnapshotFailed(_)]),
        "{notices:?}"
    );
    // Now room for a snapshot, but not for what waits.
    disk.set_capacity(Some(EAGER.journal_len_min + 1200));
    let mut last = location::Ticket::default();
    for cseq in 0..10 {
        last = register(&location, "alice@a", "sip:2", cseq);
    }
    assert_eq!(writer.step(NOW), Step::Failed);
    for second in 1..65 {
        writer.step(NOW.after_s(second));
    }
    let notices = writer.take_notices();
    assert!(
        matches!(
            notices[..],
            [
                Notice::JournalFails(_),
                Notice::SnapshotWritten(_),
                Notice::JournalWorks
            ]
        ),
        "{notices:?}"
    );
    assert_eq!(location.ticket_state(last), TicketState::Durable);
}

#[test]
fn many_restarts_end_in_a_snapshot_and_not_in_a_thousand_files() {
    let mut disk = MemoryDisk::new();
    for cseq in 0..300 {
        let (location, mut writer, _) = open(disk.clone(), WriterOptions::default());
        register(&location, "alice@a", "sip:1", cseq);
        writer.step(NOW);
        writer.step(NOW);
    }
    assert!(disk.list().unwrap().len() < 60);
    let (location, _, recovery) = open(disk, WriterOptions::default());
    assert!(recovery.damage.is_empty(), "{recovery}");
    assert_eq!(state(&location, "alice@a"), [("sip:1".into(), 299)]);
}
