//! The event loop with a real core behind it, over loopback.

mod common;

use common::{LONG, PANIC, Phone, Rig, listen, ok_to};
use edge::{Listen, Mail, Options, Server};
use location::{Flow, Transport};
use sip_core::{ResolveId, Settings, Target};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

#[test]
fn options_is_answered_over_both_transports_on_one_worker_and_on_two() {
    for workers in [1, 2] {
        let rig = Rig::new(workers);
        for i in 0..10 {
            for mut phone in [rig.udp_phone(), rig.tcp_phone()] {
                phone.send(&phone.options(i));
                let answer = phone.receive();
                assert!(answer.starts_with("SIP/2.0 200 "), "{answer}");
            }
        }
        let status = rig.post.status(LONG);
        assert_eq!(status.len(), usize::from(workers));
        let requests: u64 = status.iter().map(|s| s.core.requests_received).sum();
        assert_eq!(requests, 20);
        rig.end();
    }
}

#[test]
fn the_200_to_a_register_waits_for_the_disk_and_nothing_else_does() {
    for make in [Rig::udp_phone, Rig::tcp_phone] {
        let rig = Rig::new(1);
        let mut phone = make(&rig);
        phone.send(&phone.register("alice", 1));
        phone.send(&phone.options(2));
        let answer = phone.receive();
        assert!(answer.contains("CSeq: 2 OPTIONS"), "{answer}");
        assert_eq!(rig.answers_waiting(), 1);
        rig.commit();
        let answer = phone.receive();
        assert!(answer.starts_with("SIP/2.0 200 ") && answer.contains("Contact: <sip:alice@"));
        assert_eq!(rig.answers_waiting(), 0);
    }
}

#[test]
fn a_register_whose_journal_batch_failed_is_refused() {
    let rig = Rig::new(1);
    let mut phone = rig.udp_phone();
    phone.send(&phone.register("alice", 1));
    phone.send(&phone.options(2));
    phone.receive();
    rig.fail_commit();
    let answer = phone.receive();
    assert!(answer.starts_with("SIP/2.0 503 "), "{answer}");
    let refused = rig.post.status(LONG)[0].answers_refused;
    assert_eq!(refused, 1);
}

#[test]
fn a_shutdown_waits_for_the_disk_and_then_answers() {
    let rig = Rig::new(1);
    let mut phone = rig.udp_phone();
    phone.send(&phone.register("alice", 1));
    phone.send(&phone.options(2));
    phone.receive();
    rig.post.shut_down();
    // Behind the shutdown in the same mailbox: once it is answered, the shutdown has begun.
    assert_eq!(rig.answers_waiting(), 1);
    rig.commit();
    let answer = phone.receive();
    assert!(answer.starts_with("SIP/2.0 200 "), "{answer}");
    rig.end();
}

#[test]
fn a_message_reaches_a_phone_whichever_worker_has_its_connection() {
    let rig = Rig::new(2);
    let mut callees: Vec<Phone> = Vec::new();
    let spread = |rig: &Rig| {
        let status = rig.post.status(LONG);
        status.iter().all(|s| s.net.connections_open > 0)
    };
    while callees.len() < 4 || !spread(&rig) {
        assert!(callees.len() < 100, "the kernel spreads connections");
        let mut callee = rig.tcp_phone();
        rig.register(&mut callee, &format!("user{}", callees.len()));
        callees.push(callee);
    }
    for (i, callee) in callees.iter_mut().enumerate() {
        for mut caller in [rig.udp_phone(), rig.tcp_phone(), rig.udp_phone()] {
            let to = format!("sip:user{i}@example.com");
            caller.send(&caller.request("MESSAGE", &to, &to, 1, ""));
            let request = callee.receive();
            assert!(request.starts_with("MESSAGE sip:user"), "{request}");
            callee.send(&ok_to(&request));
            let answer = caller.receive();
            assert!(answer.starts_with("SIP/2.0 200 "), "{answer}");
        }
    }
}

#[test]
fn a_phone_whose_connection_is_gone_is_not_called_on_it() {
    let rig = Rig::new(2);
    let mut callee = rig.tcp_phone();
    rig.register(&mut callee, "alice");
    drop(callee);
    let open = |rig: &Rig| -> u64 {
        let status = rig.post.status(LONG);
        status.iter().map(|s| s.net.connections_open).sum()
    };
    let mut looks = 0;
    while open(&rig) > 0 {
        looks += 1;
        assert!(looks < 10_000, "the end of the connection is noticed");
    }
    let mut caller = rig.udp_phone();
    let to = "sip:alice@example.com";
    caller.send(&caller.request("MESSAGE", to, to, 1, ""));
    let answer = caller.receive();
    assert!(!answer.starts_with("SIP/2.0 2"), "{answer}");
}

#[test]
fn a_stream_that_makes_no_sense_is_answered_and_closed_and_said_in_the_log() {
    let rig = Rig::new(1);
    let mut phone = rig.tcp_phone();
    let request = phone
        .options(1)
        .replace("Content-Length: 0", "Content-Length: x");
    phone.send(&request);
    let answer = phone.receive();
    assert!(answer.starts_with("SIP/2.0 400 "), "{answer}");
    if let Phone::Tcp(mut stream, _) = phone {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("an orderly end");
        assert!(rest.is_empty());
    }
    let log = rig.log.clone();
    rig.end();
    // The log's thread ends with the server's last voice, and has written all by then or soon after.
    let mut looks = 0;
    while !log.text().contains("malformed message from tcp 127.0.0.1:") {
        looks += 1;
        assert!(looks < 100_000, "{}", log.text());
        std::thread::yield_now();
    }
}

#[test]
fn a_request_to_a_peer_that_refuses_connections_fails_at_once() {
    let rig = Rig::new(1);
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let peer = closed.local_addr().expect("bound");
    drop(closed);
    let mut caller = rig.udp_phone();
    let to = format!("sip:x@{peer};transport=tcp");
    caller.send(&caller.request("MESSAGE", &to, &to, 1, ""));
    let answer = caller.receive();
    assert!(
        answer.starts_with("SIP/2.0 503 ") || answer.starts_with("SIP/2.0 500 "),
        "{answer}"
    );
}

#[test]
fn a_request_to_a_peer_by_tcp_opens_one_connection_and_uses_it_again() {
    let rig = Rig::new(1);
    let peer = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = format!("sip:x@{};transport=tcp", peer.local_addr().expect("bound"));
    let mut caller = rig.udp_phone();
    caller.send(&caller.request("MESSAGE", &to, &to, 1, ""));
    let (stream, _) = peer.accept().expect("opened");
    stream.set_read_timeout(Some(LONG)).expect("set");
    let mut callee = Phone::Tcp(stream, Vec::new());
    for cseq in 2..4 {
        let request = callee.receive();
        let via = format!("Via: SIP/2.0/TCP {}", rig.tcp);
        assert!(request.contains(&via), "names the listener: {request}");
        callee.send(&ok_to(&request));
        assert!(caller.receive().starts_with("SIP/2.0 200 "));
        caller.send(&caller.request("MESSAGE", &to, &to, cseq, ""));
    }
    assert_eq!(rig.post.status(LONG)[0].net.connections_opened, 1);
}

#[test]
fn a_name_is_asked_for_and_the_answer_is_used() {
    let rig = Rig::new(2);
    let target = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    target.set_read_timeout(Some(LONG)).expect("set");
    let mut caller = rig.udp_phone();
    let to = "sip:x@far.example.net";
    caller.send(&caller.request("MESSAGE", to, to, 1, ""));
    let question = loop {
        if let Some(question) = rig.asked.questions.lock().expect("whole").pop() {
            break question;
        }
        std::thread::yield_now();
    };
    assert_eq!(question.2.host, "far.example.net");
    let peer = target.local_addr().expect("bound");
    let targets = vec![Target {
        transport: Transport::Udp,
        peer,
    }];
    rig.post.resolved(question.0, question.1, targets);
    let mut buffer = [0; 65_536];
    let (count, from) = target.recv_from(&mut buffer).expect("a request in time");
    assert!(buffer[..count].starts_with(b"MESSAGE "));
    assert_eq!(from, rig.udp, "requests leave from the listener");
}

#[test]
fn a_busy_resolver_makes_a_final_answer_and_no_silence() {
    let rig = Rig::with(1, true);
    let mut caller = rig.udp_phone();
    let to = "sip:x@far.example.net";
    caller.send(&caller.request("MESSAGE", to, to, 1, ""));
    let answer = caller.receive();
    assert!(
        answer.starts_with("SIP/2.0 5") || answer.starts_with("SIP/2.0 4"),
        "{answer}"
    );
}

#[test]
fn new_settings_reach_every_worker() {
    let rig = Rig::new(2);
    let settings = Settings {
        expires_min_s: 7000,
        ..rig.settings.clone()
    };
    rig.post.set_settings(&Arc::new(settings));
    // Behind the settings in the same mailboxes.
    assert_eq!(rig.post.status(LONG).len(), 2);
    for i in 0..8 {
        let mut phone = rig.udp_phone();
        let request = phone.register("alice", i);
        phone.send(&request.replace("Contact:", "Expires: 100\r\nContact:"));
        let answer = phone.receive();
        assert!(answer.contains("Min-Expires: 7000"), "{answer}");
    }
}

#[test]
fn a_worker_that_fails_ends_the_server_with_an_error() {
    let mut rig = Rig::new(2);
    let mut caller = rig.udp_phone();
    let to = format!("sip:x@{PANIC}");
    caller.send(&caller.request("MESSAGE", &to, &to, 1, ""));
    let server = rig.server.take().expect("running");
    assert!(server.join().is_err());
}

#[test]
fn stun_and_keepalives_are_neither_answered_nor_logged() {
    let rig = Rig::new(1);
    let Phone::Udp(socket) = rig.udp_phone() else {
        panic!("a UDP phone");
    };
    let mut stun = [0_u8; 20];
    stun[1] = 1;
    stun[4..8].copy_from_slice(&[0x21, 0x12, 0xa4, 0x42]);
    socket.send(&stun).expect("sent");
    socket.send(b"\r\n\r\n").expect("sent");
    let mut phone = Phone::Udp(socket);
    phone.send(&phone.options(1));
    assert!(phone.receive().starts_with("SIP/2.0 200 "));
    let status = rig.post.status(LONG)[0];
    assert_eq!(
        (status.stun_ignored, status.net.keepalives_received),
        (1, 1)
    );
    assert_eq!(status.core.malformed, 0);
}

#[test]
fn a_port_that_is_taken_is_named_and_so_is_the_way_out() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound");
    let listen = Listen {
        transport: Transport::Udp,
        address,
    };
    let Err(error) = Server::bind(Options {
        listen: vec![listen],
        ..Options::default()
    }) else {
        panic!("the port is taken");
    };
    let text = error.to_string();
    assert!(text.contains(&format!("udp://{address}")), "{text}");
    assert!(text.contains("ss -lunpt"), "{text}");
}

#[test]
fn two_servers_do_not_share_a_port_by_mistake() {
    let rig = Rig::new(2);
    for (transport, address) in [(Transport::Udp, rig.udp), (Transport::Tcp, rig.tcp)] {
        let second = Server::bind(Options {
            listen: vec![Listen { transport, address }],
            ..Options::default()
        });
        assert!(second.is_err());
    }
}

#[test]
fn a_full_mailbox_drops_messages_and_takes_orders() {
    let bound = Server::bind(Options {
        listen: vec![listen(Transport::Udp)],
        letters_max: 2,
        ..Options::default()
    })
    .expect("ports are free");
    let address: SocketAddr = bound.listeners()[0].address;
    let flow = Flow {
        transport: Transport::Udp,
        listener: 0,
        connection: 0,
        local: address,
        peer: address,
    };
    let handed = || Mail::HandedOver {
        flow,
        bytes: Box::default(),
    };
    let post = bound.post();
    assert!(post.send(0, handed()));
    assert!(post.send(0, handed()));
    assert!(!post.send(0, handed()), "full");
    assert!(post.send(0, Mail::ShutDown));
    assert!(!post.send(1, Mail::ShutDown), "no such worker");
    post.resolved(0, ResolveId(1), Vec::new());
}
