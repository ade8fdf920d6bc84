//! `sipolis load` and `sipolis echo` as a person or a script uses them.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_sipolis");

/// An echo server on any port of this machine.
struct Echo {
    child: Child,
    stdout: BufReader<ChildStdout>,
    place: String,
}

impl Echo {
    fn start(more: &[&str]) -> Self {
        let mut child = Command::new(BINARY)
            .args(["echo", "--listen", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("is text");
        let place = |scheme: &str| {
            let at = line.find(scheme).unwrap_or_else(|| panic!("{line}"));
            line[at..]
                .split_whitespace()
                .next()
                .expect("an address")
                .to_owned()
        };
        let place = place("udp://") + " " + &place("tcp://");
        Self {
            child,
            stdout,
            place,
        }
    }

    fn udp(&self) -> &str {
        self.place.split(' ').next().expect("is there")
    }

    fn tcp(&self) -> &str {
        self.place.split(' ').nth(1).expect("is there")
    }

    /// Ends it with that signal; what it said since.
    fn end(mut self, signal: &str) -> String {
        tell(&self.child, signal);
        assert!(self.child.wait().expect("ends").success());
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).expect("is text");
        said
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tell(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    let told = Command::new("kill").args(["-s", signal, &pid]).status();
    assert!(told.expect("kill is there").success());
}

fn command(words: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("load").args(words.split_whitespace());
    command
}

/// Exit status, standard output and standard error of `sipolis load`.
fn load(words: &str) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command(words)
        .stdin(Stdio::null())
        .output()
        .expect("starts");
    let text = |bytes| String::from_utf8(bytes).expect("is text");
    (
        status.code().expect("ends by itself"),
        text(stdout),
        text(stderr),
    )
}

fn figures(words: &str) -> Value {
    let (status, stdout, stderr) = load(&format!("{words} --json"));
    assert_eq!(status, 0, "{stderr}{stdout}");
    serde_json::from_str(&stdout).expect("is JSON")
}

#[test]
fn the_figures_have_all_fields_that_are_promised() {
    let echo = Echo::start(&[]);
    let figures = figures(&format!(
        "options {} --count 500 --connections 5 --rate 5000,10000",
        echo.tcp()
    ));
    for field in [
        "version",
        "command",
        "scenario",
        "target",
        "transport",
        "lifetime",
        "threads",
        "processes",
        "offered_per_second",
        "operations",
        "succeeded",
        "success_percent",
        "seconds",
        "operations_per_second",
        "succeeded_per_second",
        "failures",
        "timeouts",
        "connections_lost",
        "retransmissions",
        "stray_responses",
        "rubbish_messages",
        "gave_up",
        "latency_us",
        "setup_us",
        "transaction_us",
        "late_us",
        "responses",
        "connections_opened",
        "connections_open",
        "driver_us_per_operation",
        "driver_user_us_per_operation",
        "driver_busy_percent",
        "bottleneck",
        "parts",
        "steps",
        "max_rate",
        "timeline",
        "expectations",
    ] {
        assert!(figures.get(field).is_some(), "{field}");
    }
    for field in [
        "timeout",
        "refused",
        "unreachable",
        "connection_lost",
        "credentials",
        "response",
        "rubbish",
        "local",
        "not_begun",
        "gave_up",
    ] {
        assert_eq!(figures["failures"][field], 0, "{field}");
    }
    for times in ["latency_us", "setup_us", "transaction_us", "late_us"] {
        for field in ["p50", "p90", "p99", "p999", "max", "mean"] {
            assert!(figures[times][field].is_number(), "{times} {field}");
        }
        let histogram = figures[times]["histogram"].as_str().expect("is text");
        assert!(histogram.starts_with("HISTEw"), "V2 in base64: {histogram}");
    }
    assert_eq!(figures["operations"], 500);
    assert_eq!(
        figures["responses"],
        serde_json::json!([{"code": 200, "count": 500}])
    );
    assert_eq!(figures["connections_opened"], 5);
    assert_eq!(figures["transport"], "tcp");
    assert_eq!(figures["steps"][1]["rate"], 10_000.0);
    assert_eq!(figures["parts"][0]["name"], "options");
    assert_eq!(figures["expectations"][0]["text"], "success>=100%");
    let command = figures["command"].as_str().expect("is text");
    assert!(
        command.starts_with("sipolis load options tcp://127.0.0.1:"),
        "{command}"
    );
}

#[test]
fn a_bound_that_is_missed_is_told_in_a_line_and_by_the_exit_status() {
    let echo = Echo::start(&[]);
    let line = format!(
        "options {} --count 100 --json --expect p99<1us --expect failures==0",
        echo.udp()
    );
    let (status, stdout, stderr) = load(&line);
    assert_eq!(status, 1, "{stderr}");
    let missed: Vec<&str> = stderr
        .lines()
        .filter(|l| l.starts_with("missed: "))
        .collect();
    assert!(
        matches!(missed[..], [line] if line.starts_with("missed: p99<1us, found ")),
        "{stderr}"
    );
    let figures: Value = serde_json::from_str(&stdout).expect("is JSON");
    assert_eq!(figures["expectations"][0]["held"], false);
    assert_eq!(figures["expectations"][1]["held"], true);
    let (status, stdout, _) = load(&format!(
        "options {} --count 100 --expect max<1us",
        echo.udp()
    ));
    assert_eq!(status, 1);
    assert!(stdout.contains("missed  max<1us, found "), "{stdout}");
}

#[test]
fn what_can_not_run_is_told_with_what_to_do() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let place = nobody.local_addr().expect("has an address");
    drop(nobody);
    for (words, says) in [
        (format!("register tcp://{place}"), place.to_string()),
        (
            String::from("regster 127.0.0.1"),
            String::from("register perhaps"),
        ),
        (
            String::from("options tls://127.0.0.1"),
            String::from("not built yet"),
        ),
        (
            String::from("options 127.0.0.1 --rate 0"),
            String::from("above 0"),
        ),
        (
            String::from("options 127.0.0.1 --rate 5..0"),
            String::from("above 0"),
        ),
        (
            String::from("options 127.0.0.1 --expect p98<50ms"),
            String::from("p99<50ms perhaps"),
        ),
        (
            String::from("options 127.0.0.1 --find-max 9..5"),
            String::from("5..9"),
        ),
        (
            String::from("options 127.0.0.1 --lifetime dialog"),
            String::from("UDP has no connections"),
        ),
        (
            String::from("options 127.0.0.1 --source 10.0.0.1-10.0"),
            String::from("no address"),
        ),
        (
            String::from("options 127.0.0.1 --scale 2"),
            String::from("for mixes"),
        ),
        (
            String::from("nowhere.toml 127.0.0.1"),
            String::from("nowhere.toml: "),
        ),
        (
            String::from("city 127.0.0.1 --rate 5"),
            String::from("--scale"),
        ),
        (
            String::from("call 127.0.0.1 --cancel 60 --busy 60"),
            String::from("more than all"),
        ),
        (
            String::from("options tcp://127.0.0.1 --connections 900000000"),
            String::from("--processes "),
        ),
    ] {
        let (status, stdout, stderr) = load(&words);
        assert_eq!(status, 2, "{words}: {stderr}");
        assert!(stderr.contains(&says), "{words}: {stderr}");
        assert_eq!(stdout, "", "{words}");
    }
}

#[test]
fn it_waits_to_begin_and_stays_with_its_connections_in_one_process_and_in_several() {
    for processes in [1, 2] {
        let echo = Echo::start(&[]);
        let words = format!(
            "register {} --count 50 --connections 10 --processes {processes} --wait --stay --json",
            echo.tcp()
        );
        let mut child = command(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut stdin = child.stdin.take().expect("is piped");
        let mut lines = BufReader::new(child.stderr.take().expect("is piped")).lines();
        let mut next =
            || lines.find_map(|line| line.ok().filter(|l| l.starts_with("sipolis load: ")));
        assert_eq!(next().as_deref(), Some("sipolis load: ready"));
        writeln!(stdin).expect("it reads");
        assert_eq!(next().as_deref(), Some("sipolis load: done"));
        drop(stdin);
        let output = child.wait_with_output().expect("ends");
        let figures: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        assert_eq!(figures["operations"], 50);
        assert_eq!(figures["connections_open"], 10);
        let said = echo.end("TERM");
        assert!(
            said.contains("TCP  50 messages on 10 connections"),
            "{said}"
        );
    }
}

#[test]
fn connections_alone_are_held_with_no_operation_at_all() {
    let echo = Echo::start(&[]);
    let figures = figures(&format!(
        "options {} --count 0 --connections 30 --stay",
        echo.tcp()
    ));
    assert_eq!(figures["connections_open"], 30);
    assert_eq!(figures["operations"], 0);
}

#[test]
fn several_processes_are_one_load_with_exact_counts() {
    let echo = Echo::start(&[]);
    let figures = figures(&format!(
        "register {} --processes 3 --count 1000 --connections 7 --users 100 --outstanding 10",
        echo.tcp()
    ));
    assert_eq!(figures["operations"], 1000);
    assert_eq!(figures["succeeded"], 1000);
    assert_eq!(figures["connections_opened"], 7);
    assert_eq!(figures["processes"], 3);
    assert_eq!(figures["processes_lost"], 0);
    let said = echo.end("INT");
    assert!(
        said.contains("TCP  1,000 messages on 7 connections"),
        "{said}"
    );
}

/// A load that would go on for an hour, when its first operations have succeeded.
fn endless(words: &str) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = command(&format!("{words} --duration 3600 --json"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let stderr = BufReader::new(child.stderr.take().expect("is piped"));
    let mut lines = stderr.lines().map_while(Result::ok);
    lines
        .by_ref()
        .find(|line| line.contains("succeeded"))
        .expect("goes on");
    (child, lines)
}

#[test]
fn one_that_is_interrupted_prints_what_was_done() {
    let echo = Echo::start(&[]);
    for processes in [1, 2] {
        let line = format!("options {} --rate 500 --processes {processes}", echo.udp());
        let (child, _lines) = endless(&line);
        tell(&child, "INT");
        let output = child.wait_with_output().expect("ends");
        let figures: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        assert_eq!(figures["stopped"], true);
        assert!(figures["succeeded"].as_u64() > Some(0));
        assert_eq!(figures["succeeded"], figures["operations"]);
    }
}

#[test]
fn one_that_waits_or_stays_can_be_interrupted() {
    let echo = Echo::start(&[]);
    for (words, state) in [("--wait", "ready"), ("--stay", "done")] {
        let words = format!("options {} --count 5 {words}", echo.tcp());
        let mut child = command(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let stderr = BufReader::new(child.stderr.take().expect("is piped"));
        let state = format!("sipolis load: {state}");
        let there = stderr
            .lines()
            .map_while(Result::ok)
            .any(|line| line == state);
        assert!(there, "{state}");
        let stdin = child.stdin.take(); // open until it has ended
        tell(&child, "INT");
        assert!(child.wait().expect("ends").code().is_some());
        drop(stdin);
    }
}

#[test]
fn a_process_that_dies_is_told_and_the_others_go_on() {
    let echo = Echo::start(&[]);
    let (parent, mut lines) = endless(&format!("options {} --rate 500 --processes 2", echo.udp()));
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    let children = std::fs::read_to_string(children).expect("is readable");
    let child = children.split_whitespace().next().expect("there are two");
    let killed = Command::new("kill").args(["-s", "KILL", child]).status();
    assert!(killed.expect("kill is there").success());
    let told = lines.find(|line| line.contains("has died"));
    assert!(told.expect("is told").contains("process 1 of 2"));
    lines
        .find(|line| line.contains("succeeded"))
        .expect("goes on");
    tell(&parent, "INT");
    let output = parent.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(1));
    let figures: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    assert_eq!(figures["processes_lost"], 1);
}

#[test]
fn the_highest_rate_is_searched_within_a_range_and_each_trial_told() {
    let echo = Echo::start(&[]);
    // Bounds that no machine is too slow for: it is the search that is looked at here.
    let line = format!(
        "options {} --find-max 100..400 --trial 0.3 --within p99<30s",
        echo.udp()
    );
    let found = figures(&line);
    assert_eq!(found["max_rate"], 400.0);
    let rates: Vec<_> = found["steps"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|s| s["rate"].clone())
        .collect();
    assert_eq!(rates, [100.0, 200.0, 400.0, 400.0]);
    assert_eq!(found["steps"][3]["sustained"], true);
    let line = format!(
        "options {} --find-max 100..400 --trial 0.3 --within p99<1us",
        echo.udp()
    );
    let (status, stdout, _) = load(&line);
    assert_eq!(status, 1);
    assert!(stdout.contains("no rate was sustained"), "{stdout}");
}

#[test]
fn an_echo_server_counts_as_json_when_told_to() {
    let mut child = Command::new(BINARY)
        .args([
            "echo",
            "--listen",
            "127.0.0.1:0",
            "--workers",
            "2",
            "--json",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut line = String::new();
    let stderr = child.stderr.take().expect("is piped");
    BufReader::new(stderr)
        .read_line(&mut line)
        .expect("is text");
    let tcp = &line.trim()[line.find("tcp://").expect("it says where")..];
    assert_eq!(
        figures(&format!("echo {tcp} --count 20 --connections 2"))["succeeded"],
        20
    );
    tell(&child, "TERM");
    let output = child.wait_with_output().expect("ends");
    assert!(output.status.success());
    let counted: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    assert_eq!(counted["tcp_messages"], 20);
    assert_eq!(counted["tcp_connections"], 2);
}
