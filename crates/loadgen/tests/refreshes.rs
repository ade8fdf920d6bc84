//! REGISTERs of the same user that are under way together.

use std::{collections::HashSet, net::UdpSocket, thread, time::Duration};

use clap::Parser;
use loadgen::load::{Load, LoadArgs};

/// Value of a header field, as the tool writes it.
fn field<'a>(message: &'a str, name: &str) -> &'a str {
    let line = |line: &'a str| line.strip_prefix(name)?.strip_prefix(": ");
    message.split("\r\n").find_map(line).expect("is there")
}

fn ok(request: &str) -> String {
    let copied = ["Via", "From", "To", "Call-ID", "CSeq"];
    let lines = copied.map(|name| format!("{name}: {}\r\n", field(request, name)));
    format!(
        "SIP/2.0 200 OK\r\n{}Content-Length: 0\r\n\r\n",
        lines.concat()
    )
}

#[test]
fn a_refresh_does_not_overtake_the_one_before() {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArgs,
    }
    const ROUNDS: usize = 10;
    const AT_ONCE: usize = 8;
    let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let wait = Some(Duration::from_secs(20));
    socket.set_read_timeout(wait).expect("a wait");
    let address = socket.local_addr().expect("an address");
    // Answers when so many are there, the last first: whatever is under way is so at the same time.
    let server = thread::spawn(move || {
        let mut refreshed = 0;
        for _ in 0..ROUNDS {
            let mut requests: Vec<(String, _)> = Vec::new();
            while requests.len() < AT_ONCE {
                let mut buffer = [0; 2048];
                let (length, from) = socket.recv_from(&mut buffer).expect("a REGISTER");
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                let again = |(known, _): &(String, _)| field(known, "Via") == field(&text, "Via");
                if !requests.iter().any(again) {
                    requests.push((text, from));
                }
            }
            let call_ids: HashSet<_> = requests.iter().map(|(r, _)| field(r, "Call-ID")).collect();
            assert_eq!(call_ids.len(), AT_ONCE, "{requests:?}");
            let refreshes = requests.iter().map(|(r, _)| field(r, "CSeq"));
            refreshed += refreshes.filter(|cseq| *cseq != "1 REGISTER").count();
            for (request, from) in requests.iter().rev() {
                let sent = socket.send_to(ok(request).as_bytes(), from);
                sent.expect("is sent");
            }
        }
        refreshed
    });
    let count = ROUNDS * AT_ONCE;
    let words = format!("load register {address} --users 4 --outstanding {AT_ONCE}");
    let line = Line::try_parse_from(words.split_whitespace()).expect("is understood");
    let mut load = Load::new(&line.load).expect("is ready");
    let summary = load.operations(count as u64).expect("runs");
    assert_eq!(summary.succeeded, count as u64, "{summary}");
    let refreshed = server.join().expect("no two of a Call-ID at once");
    assert!(refreshed > 0, "some had the Call-ID of the one before");
}
