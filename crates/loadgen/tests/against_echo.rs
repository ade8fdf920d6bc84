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

fn check_echoed(transport: &str, options: &str) {
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
