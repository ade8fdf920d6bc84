use super::*;
use edge::Resolver as _;
use hickory_proto::op::{Message, OpCode};
use hickory_proto::rr::Record;
use hickory_proto::rr::rdata::{A, AAAA, NAPTR, SRV};
use std::net::UdpSocket;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

/// An answer that has not come by then will not come.
const PATIENCE: Duration = Duration::from_secs(20);

const ZONE: &str = "
    example.com NAPTR 10 50 s SIP+D2T _sip._tcp.example.com
    example.com NAPTR 20 50 s SIP+D2U _sip._udp.example.com
    _sip._tcp.example.com SRV 1 0 5060 b.example.com
    _sip._tcp.example.com SRV 0 0 5070 A.Example.com
    a.example.com A 192.0.2.1
    a.example.com AAAA 2001:db8::1
    b.example.com A 192.0.2.2
    plain.example A 192.0.2.3
    _sip._udp.half.example SRV 0 0 5060 plain.example
    _sip._udp.half.example SRV 1 0 5060 silent.example
    held.example A 192.0.2.4
";

/// A DNS server on 127.0.0.1. It answers from a zone; `silent` names it never answers; before a `held` name it waits for a word.
struct Server {
    address: SocketAddr,
    /// Questions so far.
    asked: Arc<Mutex<Vec<String>>>,
    /// A word for each question that came.
    came: Receiver<()>,
    release: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (came_sender, came) = channel();
        let (release, released) = channel();
        let log = Arc::clone(&asked);
        let thread = std::thread::spawn(move || serve(&socket, &log, &came_sender, &released));
        Self {
            address,
            asked,
            came,
            release,
            thread: Some(thread),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.release.send(());
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.send_to(b"", self.address).expect("sent"); // the end
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

fn serve(
    socket: &UdpSocket,
    asked: &Mutex<Vec<String>>,
    came: &Sender<()>,
    released: &Receiver<()>,
) {
    let mut buffer = [0; 4096];
    loop {
        let (len, peer) = socket.recv_from(&mut buffer).expect("a datagram");
        if len == 0 {
            return;
        }
        let question = Message::from_vec(&buffer[..len]).expect("a DNS message");
        let query = question.queries[0].clone();
        let (name, kind) = (plain(query.name()), query.query_type().to_string());
        asked
            .lock()
            .expect("no panic")
            .push(format!("{kind} {name}"));
        let _ = came.send(());
        if name.starts_with("silent") {
            continue;
        }
        if name.starts_with("held") {
            let _ = released.recv();
        }
        let mut answer = Message::response(question.metadata.id, OpCode::Query);
        answer.add_query(query);
        answer.add_answers(records_of(&name, &kind));
        let bytes = answer.to_vec().expect("encoded");
        socket.send_to(&bytes, peer).expect("sent");
    }
}

fn records_of(name: &str, kind: &str) -> Vec<Record> {
    ZONE.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|f| f.len() > 2 && f[0] == name && f[1] == kind)
        .map(|f| Record::from_rdata(absolute(name).expect("a name"), 60, data(&f[1..])))
        .collect()
}

fn data(f: &[&str]) -> RData {
    let number = |text: &str| text.parse().expect("a number");
    let bytes = |text: &str| text.as_bytes().into();
    let name = |text: &str| absolute(text).expect("a name");
    match f[0] {
        "A" => RData::A(A(f[1].parse().expect("an address"))),
        "AAAA" => RData::AAAA(AAAA(f[1].parse().expect("an address"))),
        "SRV" => RData::SRV(SRV::new(
            number(f[1]),
            number(f[2]),
            number(f[3]),
            name(f[4]),
        )),
        "NAPTR" => RData::NAPTR(NAPTR::new(
            number(f[1]),
            number(f[2]),
            bytes(f[3]),
            bytes(f[4]),
            bytes(""),
            name(f[5]),
        )),
        other => panic!("no {other} in the zone"),
    }
}

/// A resolver and what it delivered.
fn start(options: DnsOptions) -> (Dns, Receiver<(u8, u64, Vec<String>)>) {
    let (sender, receiver) = channel();
    let dns = Dns::start(options, move |worker, id, targets| {
        let targets = targets
            .iter()
            .map(|t| format!("{:?} {}", t.transport, t.peer))
            .collect();
        let _ = sender.send((worker, id.0, targets));
    });
    (dns.expect("started"), receiver)
}

fn options(servers: &[SocketAddr]) -> DnsOptions {
    DnsOptions {
        nameservers: servers.to_vec(),
        budget: PATIENCE,
        ..DnsOptions::default()
    }
}

fn request(host: &str, port: Option<u16>) -> ResolveRequest {
    ResolveRequest {
        host: host.into(),
        port,
        transport: None,
        secure: false,
        response: false,
    }
}

fn find(dns: &Dns, answers: &Receiver<(u8, u64, Vec<String>)>, host: &str) -> Vec<String> {
    dns.ask(3, ResolveId(7), request(host, None))
        .expect("taken");
    let (worker, id, targets) = answers.recv_timeout(PATIENCE).expect("an answer");
    assert_eq!((worker, id), (3, 7));
    targets
}

#[test]
fn naptr_srv_and_addresses_lead_to_the_servers_in_order() {
    let server = Server::start();
    let (dns, answers) = start(options(&[server.address]));
    assert_eq!(
        find(&dns, &answers, "example.com"),
        [
            "Tcp 192.0.2.1:5070",
            "Tcp [2001:db8::1]:5070",
            "Tcp 192.0.2.2:5060"
        ]
    );
}

#[test]
fn answers_are_kept_also_those_that_say_there_is_nothing() {
    let server = Server::start();
    let (dns, answers) = start(options(&[server.address]));
    assert_eq!(
        find(&dns, &answers, "plain.example"),
        ["Udp 192.0.2.3:5060"]
    );
    let asked = server.asked();
    assert!(asked.contains(&String::from("NAPTR plain.example")));
    assert_eq!(
        find(&dns, &answers, "plain.example"),
        ["Udp 192.0.2.3:5060"]
    );
    assert_eq!(server.asked(), asked, "nothing was asked twice");
    assert!(find(&dns, &answers, "none.example").is_empty());
    let asked = server.asked();
    assert!(find(&dns, &answers, "none.example").is_empty());
    assert_eq!(server.asked(), asked, "nothing was asked twice");
}

#[test]
fn a_dead_server_does_not_keep_the_other_from_answering() {
    let server = Server::start();
    let dead = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let dead = dead.local_addr().expect("its address");
    let (dns, answers) = start(options(&[dead, server.address]));
    assert_eq!(
        find(&dns, &answers, "plain.example"),
        ["Udp 192.0.2.3:5060"]
    );
}

#[test]
fn when_the_time_is_over_what_was_found_is_the_answer() {
    let server = Server::start();
    let (dns, answers) = start(DnsOptions {
        budget: Duration::from_secs(2),
        ..options(&[server.address])
    });
    assert_eq!(find(&dns, &answers, "half.example"), ["Udp 192.0.2.3:5060"]);
}

#[test]
fn a_server_that_never_answers_leads_to_an_empty_answer() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = silent.local_addr().expect("its address");
    let (dns, answers) = start(DnsOptions {
        budget: Duration::from_millis(200),
        ..options(&[address])
    });
    assert!(find(&dns, &answers, "example.com").is_empty());
}

#[test]
fn the_same_request_of_many_is_looked_up_once() {
    let server = Server::start();
    let (dns, answers) = start(options(&[server.address]));
    for id in 0..5 {
        let request = request("held.example", Some(5080));
        dns.ask(id as u8, ResolveId(id), request).expect("taken");
    }
    server.release.send(()).expect("alive");
    server.release.send(()).expect("alive");
    let mut seen: Vec<_> = (0..5)
        .map(|_| answers.recv_timeout(PATIENCE).expect("an answer"))
        .collect();
    seen.sort();
    for (id, answer) in seen.into_iter().enumerate() {
        let targets = vec![String::from("Udp 192.0.2.4:5080")];
        assert_eq!(answer, (id as u8, id as u64, targets));
    }
    let mut asked = server.asked();
    asked.sort();
    assert_eq!(asked, ["A held.example", "AAAA held.example"]);
}

#[test]
fn more_requests_than_may_be_under_way_are_answered_empty_at_once() {
    let server = Server::start();
    let (dns, answers) = start(DnsOptions {
        requests_max: 1,
        ..options(&[server.address])
    });
    let ask = |id, host| dns.ask(0, ResolveId(id), request(host, Some(5060)));
    ask(1, "silent.example").expect("taken");
    server.came.recv_timeout(PATIENCE).expect("a question");
    ask(2, "plain.example").expect("taken");
    let refused = answers.recv_timeout(PATIENCE).expect("an answer");
    assert_eq!(refused, (0, 2, vec![]));
    drop(dns);
    let ended = answers.recv_timeout(PATIENCE).expect("an answer");
    assert_eq!(
        ended,
        (0, 1, vec![]),
        "the end of the resolver is an answer too"
    );
}

#[test]
fn a_queue_that_is_full_refuses_without_blocking() {
    let server = Server::start();
    let (entered_sender, entered) = channel();
    let (leave, left) = channel::<()>();
    let options = DnsOptions {
        requests_max: 1,
        ..options(&[server.address])
    };
    let dns = Dns::start(options, move |_, _, _| {
        let _ = entered_sender.send(());
        let _ = left.recv();
    })
    .expect("started");
    let ask = |id| dns.ask(0, ResolveId(id), request("plain.example", Some(5060)));
    ask(1).expect("taken");
    entered.recv_timeout(PATIENCE).expect("delivering"); // the thread stands still now
    ask(2).expect("the queue has one place");
    assert_eq!(ask(3), Err(Busy));
    drop(leave);
}

#[test]
fn without_any_server_names_fail_and_nothing_else_happens() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let client = builder_with(Vec::new())
        .build()
        .expect("a client without servers");
    let answer = runtime.block_on(look_up(&client, Query::Srv("_sip._udp.example.com".into())));
    assert_eq!(answer, Answer::Failed);
}

#[test]
fn a_name_that_is_none_fails() {
    let server = Server::start();
    let (dns, answers) = start(options(&[server.address]));
    let long = format!("{}.example", "a".repeat(70));
    for host in ["", ".", "a..b", "\u{e4}.example", long.as_str()] {
        assert!(find(&dns, &answers, host).is_empty(), "{host}");
    }
}
