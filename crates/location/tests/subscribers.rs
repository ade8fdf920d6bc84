//! Subscribers with their table behind.

use std::os::unix::fs::PermissionsExt;

use location::{Ha1, SubscriberTable, Subscribers};

const KEY: [u64; 2] = [1, 2];

fn ha1(number: u32) -> Ha1 {
    let mut ha1 = Ha1 {
        md5: [1; 16],
        sha256: [2; 32],
    };
    ha1.md5[..4].copy_from_slice(&number.to_le_bytes());
    ha1
}

fn names(page: &[(Vec<u8>, Ha1)]) -> Vec<&str> {
    page.iter()
        .map(|(aor, _)| std::str::from_utf8(aor).unwrap())
        .collect()
}

#[test]
fn changes_are_there_at_once_and_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let subscribers = Subscribers::open(dir.path(), KEY).unwrap();
    subscribers.put(b"alice@example.com", ha1(1)).unwrap();
    subscribers.put(b"bob@example.com", ha1(2)).unwrap();
    subscribers.put(b"alice@example.com", ha1(3)).unwrap();
    assert!(subscribers.remove(b"bob@example.com").unwrap());
    assert!(!subscribers.remove(b"bob@example.com").unwrap());
    for subscribers in [&subscribers, &Subscribers::open(dir.path(), KEY).unwrap()] {
        assert_eq!(subscribers.ha1(b"alice@example.com"), Some(ha1(3)));
        assert!(!subscribers.exists(b"bob@example.com"));
        assert_eq!(subscribers.count(), 1);
        assert!(subscribers.serves_domain(b"example.com"));
    }
}

#[test]
fn a_hash_that_is_not_known_stays_so() {
    let dir = tempfile::tempdir().unwrap();
    let only_md5 = Ha1 {
        sha256: [0; 32],
        ..ha1(1)
    };
    let subscribers = Subscribers::open(dir.path(), KEY).unwrap();
    subscribers.put(b"alice@example.com", only_md5).unwrap();
    let again = Subscribers::open(dir.path(), KEY).unwrap();
    assert_eq!(again.ha1(b"alice@example.com"), Some(only_md5));
}

#[test]
fn pages_go_through_all_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let subscribers = Subscribers::open(dir.path(), KEY).unwrap();
    let all = ["b@x.example", "a@y.example", "a@x.example", "a1@x.example"];
    let put = subscribers.put_many(all.map(|aor| (aor, ha1(1))));
    assert_eq!(put.unwrap(), 4);
    let first = subscribers.page(None, 3).unwrap();
    assert_eq!(
        names(&first),
        ["a@x.example", "a1@x.example", "b@x.example"]
    );
    let last = first.last().map(|(aor, _)| &aor[..]);
    assert_eq!(names(&subscribers.page(last, 3).unwrap()), ["a@y.example"]);
    assert!(
        subscribers
            .page(Some(b"a@y.example"), 3)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_list_with_a_fault_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let subscribers = Subscribers::open(dir.path(), KEY).unwrap();
    let error = subscribers
        .put_many([("alice@example.com", ha1(1)), ("bob", ha1(2))])
        .unwrap_err();
    assert_eq!(error.to_string(), "bob is not of the form user@domain");
    assert_eq!(subscribers.count(), 0);
    assert_eq!(Subscribers::open(dir.path(), KEY).unwrap().count(), 0);
}

#[test]
fn a_command_beside_the_server_edits_the_table_and_the_server_reloads() {
    let dir = tempfile::tempdir().unwrap();
    let server = Subscribers::open(dir.path(), KEY).unwrap();
    server.put(b"alice@example.com", ha1(1)).unwrap();
    let mut command = SubscriberTable::open(dir.path()).unwrap();
    assert_eq!(command.ha1(b"alice@example.com").unwrap(), Some(ha1(1)));
    assert!(command.remove(b"alice@example.com").unwrap());
    command.put(b"carol@example.org", ha1(2)).unwrap();
    assert_eq!(command.count().unwrap(), 1);
    assert!(server.exists(b"alice@example.com"), "not told yet");
    server.reload().unwrap();
    assert_eq!(server.ha1(b"alice@example.com"), None);
    assert_eq!(server.ha1(b"carol@example.org"), Some(ha1(2)));
    assert_eq!(server.count(), 1);
    assert!(!server.serves_domain(b"example.com"));
    assert!(server.serves_domain(b"example.org"));
}

#[test]
fn the_files_are_for_their_owner_only() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("data");
    let subscribers = Subscribers::open(&dir, KEY).unwrap();
    subscribers.put(b"alice@example.com", ha1(1)).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.file_name());
        count += 1;
    }
    assert_eq!(count, 3, "the database and the two files of its log");
}

#[test]
fn without_a_file_behind_changes_are_in_memory() {
    let subscribers = Subscribers::in_memory(KEY);
    subscribers.put(b"alice@example.com", ha1(1)).unwrap();
    assert!(subscribers.exists(b"alice@example.com"));
    subscribers.reload().unwrap();
    assert!(subscribers.exists(b"alice@example.com"));
    assert!(subscribers.remove(b"alice@example.com").unwrap());
    assert_eq!(subscribers.count(), 0);
}
