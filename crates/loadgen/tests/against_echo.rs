//! The load generator against real sockets: an echo server, and a server that says nothing.

use std::net::UdpSocket;

use clap::Parser;
use loadgen::{
    Summary,
    load::{Load, LoadArgs},
};
use net::{Options, echo::Echo};

fn load(line: &str, operations: u64) -> std::io::Result<Summary> {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }
    let words = ["load"].into_iter().chain(line.split_whitespace());
    let line = Line::try_parse_from(words).map_err(std::io::Error::other)?;
    Load::new(&line.load)?.operations(operations)
}

fn check_echoed(transport: &str, options: &str) -> Summary {
    let any = "127.0.0.1:0".parse().expect("an address");
    let echo = Echo::start(&[any], 1, Options::default()).expect("starts");
    let address = match transport {
        "udp" => echo.udp[0],
        _ => echo.tcp[0],
    };
    let line = format!("{options} {transport}://{address} --users 50");
    let summary = load(&line, 1000).expect("runs");
    assert_eq!(summary.operations, 1000);
    assert_eq!(summary.succeeded, 1000, "{summary}");
    assert_eq!(summary.stray_responses, 0, "{summary}");
    let counted: Vec<_> = summary
        .responses
        .iter()
        .map(|r| (r.code, r.count))
        .collect();
    assert_eq!(counted, [(200, 1000)]);
    summary
}

#[test]
fn every_register_over_udp_is_answered() {
    check_echoed("udp", "register");
}

#[test]
fn requests_larger_than_a_read_are_framed_over_tcp() {
    check_echoed("tcp", "options --body 20000 --connections 7");
}

#[test]
fn a_connection_each_is_opened_and_closed() {
    check_echoed("tcp", "register --connection-each --outstanding 5");
}

#[test]
fn an_open_loop_begins_as_many_as_asked() {
    check_echoed("udp", "options --rate 20000");
    check_echoed("udp", "options --rate 20000 --poisson");
    check_echoed("udp", "options --rate 1000..9000 --threads 3");
}

#[test]
fn each_lifetime_opens_as_many_connections_as_it_says() {
    for (lifetime, opened) in [
        ("persistent", 10),
        ("persistent-open", 50),
        ("5", 200),
        ("1000", 10),
        ("dialog", 1000),
        ("transaction", 1000),
    ] {
        let connections = match lifetime {
            "persistent" | "5" | "1000" => "--connections 10",
            _ => "",
        };
        let line = format!("register --lifetime {lifetime} {connections}");
        let summary = check_echoed("tcp", &line);
        assert_eq!(summary.connections_opened, opened, "{lifetime}");
        let setup = summary.setup_us.expect("connections were opened");
        assert!(setup.max > 0 && setup.p50 <= setup.max, "{lifetime}");
    }
}

#[test]
fn threads_open_as_many_connections_together_as_one() {
    let summary = check_echoed(
        "tcp",
        "options --connections 10 --threads 3 --outstanding 7",
    );
    assert_eq!(summary.connections_opened, 10);
    assert_eq!(summary.connections_open, 10);
}

#[test]
fn connections_come_from_each_source_in_turn() {
    let sources = "127.0.3.1-127.0.3.4";
    let line = format!("register --connections 8 --source {sources}");
    check_echoed("tcp", &line);
    check_echoed("udp", &line);
}

#[test]
fn operations_count_in_the_step_that_they_were_due_in_and_in_their_second() {
    let summary = check_echoed("udp", "options --rate 1000,3000 --threads 2");
    let steps: Vec<_> = summary
        .steps
        .iter()
        .map(|s| (s.rate, s.operations))
        .collect();
    assert_eq!(steps, [(1000.0, 250), (3000.0, 750)]);
    assert_eq!(summary.steps.iter().map(|s| s.succeeded).sum::<u64>(), 1000);
    let seconds = &summary.timeline;
    assert_eq!(seconds.iter().map(|s| s.begun).sum::<u64>(), 1000);
    assert_eq!(seconds.iter().map(|s| s.succeeded).sum::<u64>(), 1000);
    assert!(seconds.iter().all(|s| s.p50_us <= s.p99_us));
}

#[test]
fn a_server_that_says_nothing_ends_the_run_with_timeouts() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let address = silent.local_addr().expect("has an address");
    let line = format!("options {address} --timeout 0.1 --outstanding 3");
    let summary = load(&line, 1_000_000).expect("runs");
    assert_eq!(summary.succeeded, 0);
    assert!(summary.gave_up);
    assert_eq!(summary.failures.total(), summary.operations);
    assert!(summary.operations < 100, "{summary}");
}

#[test]
fn a_port_where_nobody_listens_is_an_error_that_names_it() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let address = taken.local_addr().expect("has an address"); // UDP only
    let error = load(&format!("register tcp://{address}"), 1).expect_err("is refused");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
