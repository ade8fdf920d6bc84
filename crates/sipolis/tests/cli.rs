//! The binary as a person uses it: a server on a data directory of its own, commands beside it, a phone that registers.

mod phone;
mod server;

use phone::Phone;
use server::{Serve, refused, run, sipolis};
use std::collections::HashSet;
use std::fs;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

const ALICE: &str = "alice@example.com";

#[test]
fn a_user_added_while_the_server_runs_can_register_at_once_and_a_removed_one_no_longer() {
    let data = tempfile::tempdir().unwrap();
    let server = Serve::start(data.path(), &["--domain", "example.com"]);
    let mut phone = Phone::new(server.udp(), "alice", "example.com", "secret");
    assert_eq!(phone.register(), 401, "a stranger");
    sipolis(data.path(), "user add", &[ALICE, "--password", "secret"]);
    assert_eq!(phone.register(), 200);
    let list = sipolis(data.path(), "bindings", &[]);
    assert!(list.contains(ALICE) && list.contains("1 binding"), "{list}");

    sipolis(data.path(), "user passwd", &[ALICE, "--password", "other"]);
    assert_eq!(phone.register(), 401, "the old password");
    sipolis(data.path(), "user remove", &[ALICE]);
    let list = sipolis(data.path(), "bindings", &[ALICE]);
    assert!(list.contains("No phone"), "{list}");
    assert_eq!(phone.register(), 401, "a stranger again");
}

#[test]
fn a_binding_can_be_shown_as_json_and_removed() {
    let data = tempfile::tempdir().unwrap();
    sipolis(data.path(), "user add", &[ALICE, "--password", "secret"]);
    let server = Serve::start(data.path(), &[]);
    let mut phone = Phone::new(server.udp(), "alice", "example.com", "secret");
    assert_eq!(phone.register(), 200);
    let json = sipolis(data.path(), "bindings", &["--json"]);
    let aor: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(aor["aor"], ALICE);
    assert_eq!(aor["bindings"][0]["transport"], "udp");
    let removed = sipolis(data.path(), "bindings", &[ALICE, "--remove"]);
    assert!(removed.contains("1 binding of"), "{removed}");
    assert_eq!(sipolis(data.path(), "bindings", &["--json"]), "");
}

#[test]
fn an_acknowledged_registration_is_there_after_kill_9_and_after_term() {
    let data = tempfile::tempdir().unwrap();
    sipolis(data.path(), "user add", &[ALICE, "--password", "secret"]);
    for signal in ["KILL", "TERM", "INT"] {
        let mut server = Serve::start(data.path(), &[]);
        let mut phone = Phone::new(server.udp(), "alice", "example.com", "secret");
        assert_eq!(phone.register(), 200);
        let port = format!(":{}", phone.port());
        server.signal(signal);
        assert_eq!(
            server.ended(),
            signal != "KILL",
            "its status after {signal}"
        );
        let again = Serve::start(data.path(), &[]);
        let list = sipolis(data.path(), "bindings", &[]);
        assert!(list.contains(&port), "{list}");
        drop(again);
    }
}

#[test]
fn term_in_the_middle_of_registrations_loses_none_that_was_acknowledged() {
    let data = tempfile::tempdir().unwrap();
    let more = ["--auth", "off", "--domain", "example.com"];
    let mut server = Serve::start(data.path(), &more);
    let (sender, acknowledged) = channel();
    let phones: Vec<_> = (0..4)
        .map(|line| {
            let (address, sender) = (server.udp(), sender.clone());
            // Registers one user after the other until the server has gone or refuses.
            std::thread::spawn(move || {
                for number in 0.. {
                    let user = format!("line{line}-user{number}");
                    let mut phone = Phone::new(address, &user, "example.com", "")
                        .waiting(Duration::from_secs(1));
                    if phone.try_register() != Some(200) {
                        return;
                    }
                    sender.send(format!("{user}@example.com")).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let mut users: Vec<String> = acknowledged.iter().take(200).collect();
    server.signal("TERM");
    users.extend(acknowledged);
    phones.into_iter().for_each(|phone| phone.join().unwrap());
    assert!(server.ended());

    let _again = Serve::start(data.path(), &more);
    let list = sipolis(data.path(), "bindings", &[]);
    let there: HashSet<_> = list.lines().filter_map(|l| l.split(' ').next()).collect();
    let lost: Vec<_> = users
        .iter()
        .filter(|user| !there.contains(user.as_str()))
        .collect();
    assert!(
        lost.is_empty(),
        "{} of {}: {lost:?}",
        lost.len(),
        users.len()
    );
}

#[test]
fn hup_takes_over_a_right_configuration_whole_and_a_wrong_one_not_at_all() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("sipolis.toml");
    let file_name = file.to_str().unwrap();
    fs::write(&file, "domains = [\"one.example\"]\n").unwrap();
    let server = Serve::start(data.path(), &["--config", file_name]);
    let domain = || {
        let status = sipolis(data.path(), "status", &["--json"]);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        status["domains"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(domain(), "one.example");

    fs::write(&file, "domains = [\"two.example\"]\nworkres = 3\n").unwrap();
    server.signal("HUP");
    server.expect_log("configuration not reloaded");
    server.expect_log("sipolis.toml:2: unknown key `workres`: did you mean `workers`?");
    assert_eq!(domain(), "one.example");

    fs::write(&file, "domains = [\"two.example\"]\nworkers = 77\n").unwrap();
    server.signal("HUP");
    let line = server.expect_log("configuration reloaded");
    assert!(line.ends_with("until the next start: workers"), "{line}");
    assert_eq!(domain(), "two.example");
}

#[test]
fn stages_are_in_the_status_where_they_are_measured_and_nowhere_else() {
    for measured in [true, false] {
        let data = tempfile::tempdir().unwrap();
        sipolis(data.path(), "user add", &[ALICE, "--password", "secret"]);
        let more: &[&str] = if measured { &["--stage-times"] } else { &[] };
        let server = Serve::start(data.path(), more);
        let mut phone = Phone::new(server.udp(), "alice", "example.com", "secret");
        assert_eq!(phone.register(), 200);
        let json = sipolis(data.path(), "status", &["--json", "--once"]);
        let status: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(status.get("rates").is_none(), "{json}");
        let stages = status["stage_times"]["stages"].as_array();
        assert_eq!(stages.is_some(), measured, "{json}");
        let text = sipolis(data.path(), "status", &[]);
        assert_eq!(text.contains("look up"), measured, "{text}");
        let Some(stages) = stages else { continue };
        let parse = stages.iter().find(|stage| stage["name"] == "parse");
        // The REGISTER without credentials and the one with them.
        assert_eq!(parse.unwrap()["calls"], 2, "{json}");
        let time_of_two = parse.unwrap()["nanoseconds"].as_u64().unwrap();
        assert!(time_of_two > 0, "{json}");
    }
}

#[test]
fn a_port_in_use_is_named_with_the_option_to_choose_another() {
    let data = tempfile::tempdir().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listen = format!("udp://{}", taken.local_addr().unwrap());
    let said = refused(data.path(), "serve", &["--listen", &listen]);
    assert!(
        said.contains(&listen) && said.contains("--listen"),
        "{said}"
    );
}

#[test]
fn check_names_what_keeps_the_server_from_starting_and_fails_only_then() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("sipolis.toml");
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for (text, starts, expected) in [
        ("listen = [\"udp://127.0.0.1:0\"]", true, "is free"),
        ("[proxy]\ntimer_c = 5", false, "sipolis.toml:2: unknown key"),
        (
            &format!("listen = [\"udp://{address}\"]"),
            false,
            "--listen udp://127.0.0.1:",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let arguments = ["--json", "--config", file.to_str().unwrap()];
        let done = run(data.path(), "check", &arguments);
        assert_eq!(done.ok, starts, "{done:?}");
        let report: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(report["starts"], starts);
        assert!(done.out.contains(expected), "{done:?}");
    }
}

#[test]
fn check_prints_the_reference_page() {
    let data = tempfile::tempdir().unwrap();
    let page = sipolis(data.path(), "check", &["--reference"]);
    assert!(page.contains("registrar.expires_min_s"), "{page}");
}

#[test]
fn a_data_directory_has_one_server() {
    let data = tempfile::tempdir().unwrap();
    let _server = Serve::start(data.path(), &[]);
    let said = refused(data.path(), "serve", &["--listen", "udp://127.0.0.1:0"]);
    assert!(said.contains("in use by another server"), "{said}");
}

#[test]
fn users_move_from_one_server_to_another_without_their_passwords() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let csv = from.path().join("users.csv");
    let users: String = (0..3000).fold(String::from("user,domain,password\n"), |text, n| {
        text + &format!("user{n},example.com,secret{n}\n")
    });
    fs::write(&csv, users).unwrap();
    let said = sipolis(from.path(), "user import", &[csv.to_str().unwrap()]);
    assert!(said.contains("3,000 new, 0 replaced"), "{said}");
    let exported = sipolis(from.path(), "user export", &[]);
    assert!(exported.starts_with("user,domain,ha1,ha1_sha256\n"));
    assert!(!exported.contains("secret"));
    fs::write(&csv, &exported).unwrap();

    let server = Serve::start(to.path(), &[]);
    let said = sipolis(to.path(), "user import", &[csv.to_str().unwrap()]);
    assert!(said.contains("3,000 new, 0 replaced"), "{said}");
    assert_eq!(sipolis(to.path(), "user export", &[]), exported);
    assert_eq!(sipolis(to.path(), "user list", &[]).lines().count(), 3000);
    let mut phone = Phone::new(server.udp(), "user2999", "example.com", "secret2999");
    assert_eq!(phone.register(), 200);
}

#[test]
fn a_file_with_a_wrong_line_is_refused_whole_and_the_line_named() {
    let data = tempfile::tempdir().unwrap();
    let csv = data.path().join("users.csv");
    for (line, expected) in [
        (
            "bob,example.com",
            "line 3: 2 fields where the first line names 3",
        ),
        ("bob,exa mple.com,x", "line 3: `exa mple.com` is not a host"),
        (
            "bob,example.com,",
            "line 3: bob has neither password nor ha1",
        ),
    ] {
        fs::write(
            &csv,
            format!("user,domain,password\nalice,example.com,x\n{line}\n"),
        )
        .unwrap();
        let said = refused(data.path(), "user import", &[csv.to_str().unwrap()]);
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("nothing was imported"), "{said}");
    }
    fs::write(&csv, "user,domain,ha1\nalice,example.com,abc\n").unwrap();
    let said = refused(data.path(), "user import", &[csv.to_str().unwrap()]);
    assert!(
        said.contains("line 2: ha1 has to be 32 hex digits"),
        "{said}"
    );
}

#[test]
fn what_can_not_be_done_says_what_to_do() {
    let data = tempfile::tempdir().unwrap();
    sipolis(data.path(), "user add", &[ALICE]);
    let missing = data.path().join("missing");
    for (place, name, more, expected) in [
        (data.path(), "user add", ALICE, "sipolis user passwd"),
        (
            data.path(),
            "user add",
            "alice",
            "write it like `alice@example.com`",
        ),
        (
            data.path(),
            "user remove",
            "bob@example.com",
            "sipolis user list",
        ),
        (data.path(), "bindings", ALICE, "sipolis serve"),
        (&missing, "user show", ALICE, "--data"),
    ] {
        let said = refused(place, name, &[more]);
        assert!(said.contains(expected), "{name} {more}: {said}");
    }
}

#[test]
fn a_made_password_is_shown_once_and_is_nowhere_in_the_data() {
    let data = tempfile::tempdir().unwrap();
    let said = sipolis(data.path(), "user add", &[ALICE]);
    let password = said
        .split_whitespace()
        .find(|word| word.len() == 19 && word.matches('-').count() == 3)
        .expect("a password");
    for entry in fs::read_dir(data.path()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let found = bytes
            .windows(password.len())
            .any(|w| w == password.as_bytes());
        assert!(!found);
    }
    let server = Serve::start(data.path(), &[]);
    let mut phone = Phone::new(server.udp(), "alice", "example.com", password);
    assert_eq!(phone.register(), 200);
}

#[test]
fn the_demo_makes_its_call_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let demo = Command::new(env!("CARGO_BIN_EXE_sipolis"))
        .args(["demo", "--once", "--port", "0"])
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let text = String::from_utf8(demo.stdout).unwrap();
    assert!(demo.status.success(), "{text}");
    for line in [
        "INVITE + credentials",
        "180 Ringing",
        "BYE",
        "the call went through",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}
