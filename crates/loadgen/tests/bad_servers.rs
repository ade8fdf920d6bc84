//! The load generator against servers that do what servers should not: each operation counts under its cause, and the run ends.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use loadgen::{
    Failures, Summary,
    load::{Load, LoadArgs},
};

/// Longer than any of these runs takes, even on a machine that is busy with other things: it tells an end from a hang.
const HANG: Duration = Duration::from_secs(60);

fn load(line: &str, operations: u64) -> io::Result<Summary> {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }
    let words = ["load"].into_iter().chain(line.split_whitespace());
    let line = Line::try_parse_from(words).map_err(io::Error::other)?;
    let begun = Instant::now();
    let summary = Load::new(&line.load)?.operations(operations);
    assert!(begun.elapsed() < HANG);
    summary
}

/// Runs some operations, none of which succeeds.
fn failures(line: &str) -> Failures {
    let summary = load(
        &format!("{line} --users 10 --timeout 0.3 --outstanding 5"),
        20,
    )
    .expect("runs");
    assert_eq!(summary.succeeded, 0);
    assert_eq!(summary.failures.total(), summary.operations);
    assert!(summary.operations > 0);
    summary.failures
}

/// A UDP server that answers each request with what `answer` makes of it, if anything.
fn udp_server(answer: impl Fn(&str) -> Option<String> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let address = socket.local_addr().expect("has an address");
    thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok((count, peer)) = socket.recv_from(&mut buffer) {
            let request = String::from_utf8_lossy(&buffer[..count]);
            if let Some(answer) = answer(&request) {
                let _ = socket.send_to(answer.as_bytes(), peer);
            }
        }
    });
    address
}

/// A TCP server that does `serve` with each connection.
fn tcp_server(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = listener.local_addr().expect("has an address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Answers the first bytes that come with some, and then reads on.
fn answering(answer: impl Fn(&str) -> String + Send + Clone + 'static) -> SocketAddr {
    tcp_server(move |mut stream| {
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let request = String::from_utf8_lossy(&buffer[..count]);
            if stream.write_all(answer(&request).as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// A response to a request, with other header fields.
fn response(request: &str, status: &str, more: &str) -> String {
    let copied = ["Via", "From", "To", "Call-ID", "CSeq"];
    let copied = request.lines().filter(|line| {
        copied
            .iter()
            .any(|name| line.starts_with(&format!("{name}:")))
    });
    let fields: String = copied.map(|line| format!("{line}\r\n")).collect();
    format!("SIP/2.0 {status}\r\n{fields}{more}\r\n")
}

#[test]
fn a_closed_udp_port_is_unreachable() {
    let gone = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let address = gone.local_addr().expect("has an address");
    drop(gone);
    let failures = failures(&format!("options udp://{address}"));
    assert_eq!(failures.unreachable, failures.total(), "{failures:?}");
}

#[test]
fn a_tcp_port_that_closes_during_the_run_is_unreachable() {
    let gone = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = gone.local_addr().expect("has an address");
    drop(gone);
    for lifetime in ["transaction", "dialog", "persistent-open", "3"] {
        let failures = failures(&format!("options tcp://{address} --lifetime {lifetime}"));
        assert_eq!(
            failures.unreachable,
            failures.total(),
            "{lifetime}: {failures:?}"
        );
    }
}

#[test]
fn a_server_that_closes_after_it_accepts_loses_connections() {
    let address = tcp_server(drop);
    let failures = failures(&format!("options tcp://{address} --lifetime dialog"));
    assert_eq!(failures.connection_lost, failures.total(), "{failures:?}");
}

#[test]
fn a_server_that_closes_in_the_middle_of_a_response_loses_connections() {
    let address = tcp_server(|mut stream| {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer);
        let _ = stream.write_all(b"SIP/2.0 200 OK\r\nVia: SIP/2.0/TCP a;bran");
    });
    let failures = failures(&format!("register tcp://{address} --connections 3"));
    assert_eq!(failures.connection_lost, failures.total(), "{failures:?}");
}

#[test]
fn what_is_not_sip_is_rubbish_over_tcp_and_no_answer_over_udp() {
    let address = answering(|_| String::from("220 mail.example.com ESMTP\r\n\r\n"));
    let tcp = failures(&format!("options tcp://{address} --connections 2"));
    assert_eq!(tcp.rubbish, tcp.total(), "{tcp:?}");
    let address = udp_server(|_| Some(String::from("220 mail.example.com ESMTP\r\n")));
    let line = format!("options udp://{address} --timeout 0.3 --outstanding 5");
    let udp = load(&line, 20).expect("runs");
    assert_eq!(udp.failures.timeout, udp.operations);
    assert!(udp.rubbish_messages >= udp.operations);
}

#[test]
fn a_body_that_is_shorter_than_said_is_rubbish() {
    let broken = |request: &str| response(request, "200 OK", "Content-Length: 99999999999\r\n");
    let address = udp_server(move |request| Some(broken(request)));
    let udp = failures(&format!("options udp://{address}"));
    assert_eq!(udp.rubbish, udp.total(), "{udp:?}");
    let address = answering(broken);
    let tcp = failures(&format!("options tcp://{address} --connections 2"));
    assert_eq!(tcp.rubbish, tcp.total(), "{tcp:?}");
}

#[test]
fn a_header_without_an_end_is_rubbish() {
    let address = tcp_server(|mut stream| {
        let _ = stream.write_all(b"SIP/2.0 200 OK\r\n");
        let line = format!("Subject: {}\r\n", "x".repeat(1000));
        while stream.write_all(line.as_bytes()).is_ok() {}
    });
    let failures = failures(&format!("options tcp://{address} --lifetime dialog"));
    assert_eq!(failures.rubbish, failures.total(), "{failures:?}");
}

#[test]
fn responses_to_other_branches_are_strays_and_the_operations_time_out() {
    let address = udp_server(|request| {
        let request = request.replace("branch=z9hG4bKL", "branch=z9hG4bKX");
        Some(response(&request, "200 OK", "Content-Length: 0\r\n"))
    });
    let line = format!("options udp://{address} --timeout 0.3 --outstanding 5");
    let summary = load(&line, 20).expect("runs");
    assert_eq!(
        summary.operations, 20,
        "a server that speaks is not given up"
    );
    assert_eq!(summary.failures.timeout, 20);
    assert!(summary.stray_responses >= 20);
}

#[test]
fn a_server_that_never_reads_ends_the_run_with_timeouts() {
    let address = tcp_server(|stream| {
        let _open = stream;
        loop {
            thread::park();
        }
    });
    let line = format!("options tcp://{address} --connections 2 --body 30000");
    let failures = failures(&line);
    assert_eq!(failures.timeout, failures.total(), "{failures:?}");
}

#[test]
fn an_invite_that_is_never_answered_finally_ends() {
    let address = udp_server(|request| {
        let status = match request.starts_with("REGISTER") {
            true => "200 OK",
            false => "100 Trying",
        };
        Some(response(request, status, "Content-Length: 0\r\n"))
    });
    let failures = failures(&format!("call udp://{address}"));
    assert_eq!(failures.timeout, failures.total(), "{failures:?}");
}

#[test]
fn credentials_that_are_never_taken_are_counted_as_such() {
    let challenge =
        "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\nContent-Length: 0\r\n";
    let address = udp_server(move |request| Some(response(request, "401 Unauthorized", challenge)));
    for digest in ["answer", "reuse", "none"] {
        let failures = failures(&format!("register udp://{address} --digest {digest}"));
        assert_eq!(
            failures.credentials,
            failures.total(),
            "{digest}: {failures:?}"
        );
    }
}

#[test]
fn an_overloaded_server_refuses() {
    let none = "Content-Length: 0\r\n";
    let address =
        udp_server(move |request| Some(response(request, "503 Service Unavailable", none)));
    let failures = failures(&format!("register udp://{address}"));
    assert_eq!(failures.refused, failures.total(), "{failures:?}");
}

#[test]
fn what_else_a_server_refuses_is_a_response() {
    let none = "Content-Length: 0\r\n";
    let address = udp_server(move |request| Some(response(request, "404 Not Found", none)));
    let failures = failures(&format!("register udp://{address}"));
    assert_eq!(failures.response, failures.total(), "{failures:?}");
}

#[test]
fn threads_share_the_work_and_their_counts_sum_up() {
    let address = udp_server(|request| Some(response(request, "200 OK", "Content-Length: 0\r\n")));
    let line = format!("options udp://{address} --threads 3 --outstanding 7");
    let summary = load(&line, 1001).expect("runs");
    assert_eq!((summary.operations, summary.succeeded), (1001, 1001));
}
