//! An acknowledged registration survives a crash, a torn write, and a full disk.

use interop::{Case, Phone, Server, within};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Without digest, so that every REGISTER is acknowledged at once, and with short deadlines.
const OPEN: &str = "auth = false\nworkers = 2\n";

/// Registrations that the server has acknowledged: user and contact.
type Acknowledged = BTreeMap<String, String>;

/// Registers users without a pause until told to stop, or until the server is gone; gives what was acknowledged.
fn storm(
    case: &Case,
    server: &Server,
    round: u32,
    killed: &AtomicBool,
    progress: &mpsc::Sender<()>,
) -> Acknowledged {
    let mut phone = Phone::udp(std::net::SocketAddr::new(case.host(10 + round as u8), 0));
    let mut acknowledged = Acknowledged::new();
    for number in 0.. {
        if killed.load(Ordering::Relaxed) {
            break;
        }
        let user = format!("user{}", number % 500);
        let call_id = format!("storm{round}x{number}");
        let contact = format!("sip:{user}@192.0.2.{}:{}", 1 + round, 1024 + number);
        let request = phone.register_raw(&user, &call_id, 1, &format!("Contact: <{contact}>\r\n"));
        phone.send(&request, server.address);
        // Answers may be late, not wrong: what belongs to an older request is known by its Call-ID.
        while let Some(answer) = phone.receive_for(100) {
            if answer.header("Call-ID").as_deref() == Some(&call_id) {
                assert_eq!(answer.status(), 200, "{}", answer.text);
                acknowledged.insert(user, contact);
                let _ = progress.send(());
                break;
            }
        }
    }
    acknowledged
}

/// Every acknowledged contact is still bound, says the server to phones and to its operator.
fn all_are_there(case: &Case, server: &Server, acknowledged: &Acknowledged) {
    let mut phone = Phone::udp(std::net::SocketAddr::new(case.host(9), 0));
    for (user, contact) in acknowledged {
        let bound = phone.bindings(user, server.address);
        let there = bound.iter().any(|value| value.contains(contact.as_str()));
        assert!(
            there,
            "{user}: {contact} was acknowledged, and is not in {bound:?}"
        );
    }
    let listed = server.cli(&["bindings", "--json"]);
    for contact in acknowledged.values() {
        assert!(
            listed.contains(contact.as_str()),
            "{contact} is not in sipolis bindings --json:\n{listed}"
        );
    }
}

fn journal(server: &Server) -> PathBuf {
    let files = std::fs::read_dir(&server.data).expect("the data folder");
    let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    files.retain(|path| path.to_string_lossy().contains("journal"));
    files.sort();
    files
        .pop()
        .unwrap_or_else(|| panic!("no journal in {}", server.data.display()))
}

#[test]
fn kill_9_in_a_storm_of_registrations_loses_none_that_was_acknowledged() {
    let case = Case::new("crash");
    let mut server = Server::start(&case, &[], OPEN);
    let mut acknowledged = Acknowledged::new();
    for round in 0..6 {
        let killed = AtomicBool::new(false);
        let (progress, seen) = mpsc::channel();
        let storm = std::thread::scope(|scope| {
            let storm = scope.spawn(|| storm(&case, &server, round, &killed, &progress));
            // Another moment each time, counted in acknowledgements.
            for _ in 0..=(round * 137 + 40) {
                seen.recv().expect("the storm goes on");
            }
            server.peer_id().map(kill).expect("the server runs");
            killed.store(true, Ordering::Relaxed);
            storm.join().expect("the storm")
        });
        acknowledged.extend(storm);
        server.kill();
        server.again();
        all_are_there(&case, &server, &acknowledged);
    }
}

/// SIGKILL.
fn kill(id: u32) {
    let killed = Command::new("kill").args(["-9", &id.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

#[test]
fn a_torn_last_write_costs_nothing_that_was_acknowledged() {
    let case = Case::new("torn");
    let mut server = Server::start(&case, &[], OPEN);
    let mut phone = Phone::udp(case.address(3));
    let mut acknowledged = Acknowledged::new();
    // What a crash leaves behind a whole record: zeroes of a block that was allocated, noise, a record begun.
    for (number, tail) in [
        &[0_u8; 4096][..],
        b"noise, and no record",
        &[0xff; 3],
        b"\x40\0\0\0begun",
    ]
    .iter()
    .enumerate()
    {
        let user = format!("user{number}");
        let contact = format!("sip:{user}@192.0.2.1:{}", 5000 + number);
        let request = phone.register_raw(
            &user,
            &format!("torn{number}"),
            1,
            &format!("Contact: <{contact}>\r\n"),
        );
        assert_eq!(
            phone
                .ask(&request, server.address)
                .map(|answer| answer.status()),
            Some(200)
        );
        acknowledged.insert(user, contact);
        server.kill();
        let mut file = std::fs::File::options()
            .append(true)
            .open(journal(&server))
            .expect("the journal");
        file.write_all(tail).expect("a torn write");
        server.again();
        all_are_there(&case, &server, &acknowledged);
    }
}

#[test]
fn term_in_order_keeps_everything_and_ends_soon() {
    let case = Case::new("term");
    let mut server = Server::start(&case, &[], OPEN);
    let mut phone = Phone::udp(case.address(3));
    let contact = "sip:alice@192.0.2.1:5000";
    let request = phone.register_raw("alice", "term", 1, &format!("Contact: <{contact}>\r\n"));
    assert_eq!(
        phone
            .ask(&request, server.address)
            .map(|answer| answer.status()),
        Some(200)
    );
    server.peer().terminate();
    let ended = server.peer().ends(20);
    assert!(ended.success(), "{ended}");
    server.again();
    all_are_there(
        &case,
        &server,
        &Acknowledged::from([("alice".to_owned(), contact.to_owned())]),
    );
}

/// A file system of its own, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Nothing where mounting is not permitted.
    fn mount(path: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(path).ok()?;
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(path);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Self(path.to_owned()))
    }

    /// Fills it to the last byte; the file's path.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("ballast");
        let mut file = std::fs::File::create(&path).expect("a file");
        for block in [65_536, 4096, 1] {
            while file.write_all(&vec![b'x'; block]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_registrations_and_lets_calls_go_on() {
    let case = Case::new("full");
    let Some(disk) = SmallDisk::mount(&case.path("data"), "16m") else {
        interop::skip(
            "a_full_disk_refuses_registrations_and_lets_calls_go_on",
            "mount is not permitted; run as root",
        );
        return;
    };
    let mut server = Server::start(&case, &[], OPEN);
    let (mut alice, mut bob) = (Phone::udp(case.address(3)), Phone::udp(case.address(4)));
    let register = |phone: &mut Phone, user: &str, number: u32| {
        let request = phone.register(user, &format!("full{user}"), number, "");
        phone
            .ask(&request, server.address)
            .map(|answer| answer.status())
    };
    assert_eq!(register(&mut bob, "bob", 1), Some(200));
    let ballast = disk.fill();
    let mut number = 1;
    // The file system may still have room for some records in the journal's last block.
    within(20, "503 to REGISTER", || {
        number += 1;
        (register(&mut alice, "alice", number)? == 503).then_some(())
    });

    let request = alice.request(
        "INVITE",
        &format!("sip:bob@{}", interop::DOMAIN),
        "alice",
        "call",
        1,
        "",
    );
    alice.send(request, server.address);
    bob.receive_start("INVITE ");

    std::fs::remove_file(ballast).expect("room again");
    within(20, "200 to REGISTER", || {
        number += 1;
        (register(&mut alice, "alice", number)? == 200).then_some(())
    });
    server.kill();
    server.again();
    let bound = Phone::udp(case.address(5)).bindings("bob", server.address);
    assert_eq!(bound.len(), 1, "{bound:?}");
    drop(server);
    drop(disk);
}
