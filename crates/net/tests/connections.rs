//! Connections over loopback.

mod common;

use common::{Rig, message, read_exactly, tag};
use net::{ConnectionId, Options, Why};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

fn options() -> Options {
    Options {
        first_message_ms: 32_000,
        half_message_ms: 30_000,
        pushed_back_ms: 30_000,
        idle_ms: 7_200_000,
        ..Options::default()
    }
}

#[test]
fn messages_in_one_segment_are_cut_and_answered_in_order() {
    let mut rig = Rig::new(options());
    rig.seen.echo = true;
    let listener = rig.tcp("127.0.0.1:0");
    let mut peer = TcpStream::connect(listener).expect("accepted");
    let all = [message(0), message(500), message(7)].concat();
    peer.write_all(&all).expect("taken");
    rig.messages(3);
    assert_eq!(read_exactly(&mut peer, all.len()), all);
    let counters = rig.net.io().counters();
    assert_eq!((counters.messages_received, counters.messages_sent), (3, 3));
}

#[test]
fn a_message_that_comes_byte_by_byte_is_whole_and_leaves_nothing_held() {
    let mut rig = Rig::new(options());
    let listener = rig.tcp("127.0.0.1:0");
    let mut peer = TcpStream::connect(listener).expect("accepted");
    peer.set_nodelay(true).expect("set");
    let bytes = message(20);
    for byte in &bytes {
        peer.write_all(std::slice::from_ref(byte)).expect("taken");
        let before = rig.net.io().counters().stream_bytes_received;
        rig.until("a byte", |rig| {
            rig.net.io().counters().stream_bytes_received > before
        });
    }
    rig.messages(1);
    assert_eq!(rig.seen.messages[0].1, bytes);
    assert_eq!(rig.net.io().counters().held_bytes, 0);
}

#[test]
fn the_largest_message_goes_there_and_back() {
    let mut rig = Rig::new(options());
    rig.seen.echo = true;
    let listener = rig.tcp("127.0.0.1:0");
    let mut peer = TcpStream::connect(listener).expect("accepted");
    let bytes = message(120_000);
    let sender = std::thread::spawn({
        let (mut peer, bytes) = (peer.try_clone().expect("cloned"), bytes.clone());
        move || peer.write_all(&bytes).expect("taken")
    });
    rig.messages(1);
    sender.join().expect("sent");
    assert_eq!(read_exactly(&mut peer, bytes.len()), bytes);
}

#[test]
fn a_ping_gets_a_pong_before_any_message() {
    let mut rig = Rig::new(options());
    let listener = rig.tcp("127.0.0.1:0");
    let mut peer = TcpStream::connect(listener).expect("accepted");
    peer.write_all(b"\r\n\r\n").expect("taken");
    rig.until("a pong", |rig| rig.net.io().counters().pings_answered == 1);
    assert_eq!(read_exactly(&mut peer, 2), b"\r\n");
    assert!(rig.seen.messages.is_empty());
}

#[test]
fn a_ping_in_two_reads_gets_one_pong_and_a_lone_line_end_none() {
    let mut rig = Rig::new(options());
    rig.seen.echo = true;
    let listener = rig.tcp("127.0.0.1:0");
    let mut peer = TcpStream::connect(listener).expect("accepted");
    peer.set_nodelay(true).expect("set");
    let mut received = 0;
    let mut say = |rig: &mut Rig, bytes: &[u8]| {
        peer.write_all(bytes).expect("taken");
        received += bytes.len() as u64;
        rig.until("all of it", |rig| {
            rig.net.io().counters().stream_bytes_received == received
        });
        rig.net.io().counters().pings_answered
    };
    assert_eq!(say(&mut rig, b"\r\n"), 0);
    assert_eq!(say(&mut rig, &message(0)), 0);
    assert_eq!(say(&mut rig, b"\r\n"), 0);
    assert_eq!(say(&mut rig, b"\r\n"), 1);
    assert_eq!(say(&mut rig, b"\r"), 1);
    assert_eq!(say(&mut rig, b"\n\r"), 1);
    assert_eq!(say(&mut rig, b"\n"), 2);
    assert_eq!(rig.net.io().counters().held_bytes, 0);
    let answer = [&message(0)[..], b"\r\n\r\n"].concat();
    assert_eq!(read_exactly(&mut peer, answer.len()), answer);
}

#[test]
fn a_peer_that_sends_and_closes_at_once_is_heard_and_answered() {
    let mut rig = Rig::new(options());
    rig.seen.echo = true;
    let listener = rig.tcp("127.0.0.1:0");
    let mut peer = TcpStream::connect(listener).expect("accepted");
    peer.write_all(&message(5)).expect("taken");
    peer.shutdown(Shutdown::Write).expect("shut down");
    assert_eq!(rig.closed(), Why::ByPeer);
    assert_eq!(rig.seen.messages.len(), 1);
    let mut answer = Vec::new();
    peer.read_to_end(&mut answer).expect("an orderly end");
    assert_eq!(answer, message(5));
}

#[test]
fn a_broken_stream_gets_last_words_and_then_the_end() {
    let mut rig = Rig::new(options());
    rig.seen.last_words = Some(b"SIP/2.0 400 No\r\n\r\n".to_vec());
    let listener = rig.tcp("127.0.0.1:0");
    let mut peer = TcpStream::connect(listener).expect("accepted");
    peer.write_all(b"OPTIONS sip:a SIP/2.0\r\nContent-Length: x\r\n\r\n")
        .expect("taken");
    peer.write_all(&message(0)).expect("taken");
    rig.until("a broken stream", |rig| !rig.seen.broken.is_empty());
    let mut answer = Vec::new();
    peer.read_to_end(&mut answer).expect("an orderly end");
    assert_eq!(answer, b"SIP/2.0 400 No\r\n\r\n");
    drop(peer);
    assert_eq!(rig.closed(), Why::ByPeer);
    assert!(rig.seen.messages.is_empty(), "nothing behind it is read");
}

#[test]
fn a_broken_peer_that_does_not_close_is_closed_in_time() {
    let mut rig = Rig::new(options());
    let listener = rig.tcp("127.0.0.1:0");
    let mut peer = TcpStream::connect(listener).expect("accepted");
    peer.write_all(b"nonsense\r\n\r\n").expect("taken");
    rig.until("a broken stream", |rig| !rig.seen.broken.is_empty());
    rig.pass(u64::from(options().drain_ms) + 200);
    assert_eq!(rig.closed(), Why::ByUs);
}

#[test]
fn a_slow_reader_gets_everything_that_was_taken_and_the_rest_comes_back() {
    let mut rig = Rig::new(options());
    let listener = rig.tcp("127.0.0.1:0");
    let (id, mut peer) = rig.accepted(listener);
    let bytes = message(50_000);
    let mut taken = 0;
    while rig.seen.unsent.is_empty() {
        assert!(taken < 2000, "the kernel's buffers end somewhere");
        rig.net.io().send(id, Some(tag(taken)), &bytes);
        rig.net.flush(&mut rig.seen);
        taken += 1;
    }
    taken -= 1;
    assert_eq!(rig.seen.unsent, [tag(taken)], "only the last was refused");
    assert!(rig.net.io().is_pushed_back());
    let held = rig.net.io().counters().held_bytes as usize;
    assert!(held > 0 && held <= options().pushed_back_bytes_max);
    let reader = std::thread::spawn(move || read_exactly(&mut peer, bytes.len() * taken as usize));
    rig.until("all written", |rig| !rig.net.io().is_pushed_back());
    let read = reader.join().expect("all was read");
    assert!(
        read.chunks(message(50_000).len())
            .all(|chunk| chunk == message(50_000))
    );
    assert_eq!(rig.net.io().counters().held_bytes, 0);
    assert!(rig.net.io().is_open(id));
}

#[test]
fn a_peer_that_reads_nothing_is_closed_in_time_and_what_waited_comes_back() {
    let mut rig = Rig::new(options());
    let listener = rig.tcp("127.0.0.1:0");
    let (id, _peer) = rig.accepted(listener);
    let mut sent = 0;
    while !rig.net.io().is_pushed_back() {
        rig.net.io().send(id, Some(tag(sent)), &message(50_000));
        rig.net.flush(&mut rig.seen);
        sent += 1;
    }
    rig.pass(29_000);
    assert!(rig.seen.closed.is_empty());
    rig.pass(1_200);
    assert_eq!(rig.closed(), Why::PushedBack);
    assert_eq!(rig.seen.unsent, [tag(sent - 1)]);
    assert_eq!(rig.net.io().counters().held_bytes, 0);
}

#[test]
fn the_id_of_an_ended_connection_names_no_other() {
    let mut rig = Rig::new(Options {
        worker: 3,
        ..options()
    });
    let listener = rig.tcp("127.0.0.1:0");
    let (first, _peer) = rig.accepted(listener);
    rig.net.io().close(first);
    let (second, _peer) = rig.accepted(listener);
    assert_eq!(first.0 as u32, second.0 as u32, "the slot is used again");
    assert_ne!(first, second);
    assert!(!rig.net.io().is_open(first) && rig.net.io().is_open(second));
    assert_eq!(second.worker(), 3);
    rig.net.io().send(first, Some(tag(1)), b"late");
    rig.net.flush(&mut rig.seen);
    assert_eq!(rig.seen.unsent, [tag(1)]);
    assert!(!rig.net.io().is_open(ConnectionId::NONE));
}

#[test]
fn messages_sent_before_a_connection_is_open_leave_when_it_is() {
    let peer = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = peer.local_addr().expect("bound");
    let mut rig = Rig::new(options());
    let source: SocketAddr = "127.0.0.5:0".parse().expect("an address");
    let id = rig.net.io().connect(address, Some(source)).expect("begun");
    rig.net.io().send(id, Some(tag(1)), &message(1));
    rig.net.io().send(id, Some(tag(2)), &message(2));
    assert_eq!(rig.net.io().connection_to(address), Some(id));
    rig.until("a connection", |rig| rig.seen.connected == [id]);
    let (mut stream, from) = peer.accept().expect("accepted");
    assert_eq!(from.ip(), source.ip());
    let all = [message(1), message(2)].concat();
    assert_eq!(read_exactly(&mut stream, all.len()), all);
    assert!(rig.seen.unsent.is_empty());
    let (local, remote) = rig.net.io().addresses(id).expect("open");
    assert_eq!((local, remote), (from, address));
}

#[test]
fn a_refused_connection_gives_its_messages_back() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = closed.local_addr().expect("bound");
    drop(closed);
    let mut rig = Rig::new(options());
    // The kernel may say so at once, or later.
    if let Ok(id) = rig.net.io().connect(address, None) {
        rig.net.io().send(id, Some(tag(9)), &message(0));
        assert_eq!(rig.closed(), Why::NotOpened);
        assert_eq!(rig.seen.unsent, [tag(9)]);
        assert_eq!(rig.net.io().connection_to(address), None);
    }
    assert_eq!(rig.net.io().counters().connections_open, 0);
}

#[test]
fn a_connection_that_does_not_open_in_time_is_given_up() {
    // A listener whose backlog is full takes no more.
    let full =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    full.bind(&any.into()).expect("bound");
    full.listen(0).expect("listening");
    let address = full.local_addr().expect("bound").as_socket().expect("IP");
    let mut rig = Rig::new(options());
    let ids: Vec<_> = (0..4)
        .map(|_| rig.net.io().connect(address, None).expect("begun"))
        .collect();
    let last = ids[3];
    rig.net.io().send(last, Some(tag(1)), &message(0));
    rig.pass(7_900);
    assert!(rig.seen.unsent.is_empty());
    rig.pass(400);
    assert_eq!(rig.seen.unsent, [tag(1)]);
    assert!(!rig.net.io().is_open(last));
}

#[test]
fn a_peer_that_says_nothing_is_closed_in_time() {
    let mut rig = Rig::new(options());
    let listener = rig.tcp("127.0.0.1:0");
    let mut peer = TcpStream::connect(listener).expect("accepted");
    peer.write_all(b"\r\n\r\n").expect("taken");
    rig.until("a pong", |rig| rig.net.io().counters().pings_answered == 1);
    rig.pass(31_900);
    assert!(rig.seen.closed.is_empty());
    rig.pass(300);
    assert_eq!(rig.closed(), Why::FirstMessageLate);
}

#[test]
fn a_message_that_does_not_end_is_given_up_however_often_a_byte_of_it_comes() {
    let mut rig = Rig::new(options());
    let listener = rig.tcp("127.0.0.1:0");
    let (_, mut peer) = rig.accepted(listener);
    rig.pass(100_000);
    let bytes = message(100);
    for byte in &bytes[..30] {
        assert!(rig.seen.closed.is_empty());
        let before = rig.net.io().counters().stream_bytes_received;
        if peer.write_all(std::slice::from_ref(byte)).is_err() {
            break;
        }
        rig.until("a byte or the end", |rig| {
            rig.net.io().counters().stream_bytes_received > before || !rig.seen.closed.is_empty()
        });
        rig.pass(1_000);
    }
    assert_eq!(rig.closed(), Why::HalfMessageLate);
    assert_eq!(rig.net.io().counters().held_bytes, 0);
    assert_eq!(rig.net.io().counters().connections_expelled, 1);
}

#[test]
fn an_idle_connection_ends_only_when_nothing_has_happened_for_so_long() {
    let mut rig = Rig::new(Options {
        idle_ms: 60_000,
        ..options()
    });
    let listener = rig.tcp("127.0.0.1:0");
    let (_, mut peer) = rig.accepted(listener);
    for _ in 0..5 {
        rig.pass(50_000);
        peer.write_all(b"\r\n\r\n").expect("taken");
        assert_eq!(
            {
                rig.turn();
                read_exactly(&mut peer, 2)
            },
            b"\r\n"
        );
    }
    assert!(rig.seen.closed.is_empty());
    rig.pass(59_800);
    assert!(rig.seen.closed.is_empty());
    rig.pass(400);
    assert_eq!(rig.closed(), Why::Idle);
}

#[test]
fn half_messages_of_all_together_are_bounded() {
    let mut rig = Rig::new(Options {
        held_bytes_max: 1000,
        ..options()
    });
    let listener = rig.tcp("127.0.0.1:0");
    let (_, mut one) = rig.accepted(listener);
    let (_, mut two) = rig.accepted(listener);
    let half = &message(2000)[..600];
    one.write_all(half).expect("taken");
    rig.until("held", |rig| rig.net.io().counters().held_bytes == 600);
    two.write_all(half).expect("taken");
    assert_eq!(rig.closed(), Why::HeldTooMuch);
    one.write_all(&message(2000)[600..]).expect("taken");
    rig.messages(3);
}

#[test]
fn a_busy_peer_gets_one_read_of_a_turn_and_is_not_forgotten() {
    let mut rig = Rig::new(options());
    let listener = rig.tcp("127.0.0.1:0");
    let (_, mut busy) = rig.accepted(listener);
    let sender = std::thread::spawn(move || {
        let many = message(900).repeat(500);
        busy.write_all(&many).expect("taken");
        busy
    });
    let mut before = rig.net.io().counters().stream_bytes_received;
    while rig.seen.messages.len() < 501 {
        rig.turn();
        let now = rig.net.io().counters().stream_bytes_received;
        assert!(now - before <= 64 * 1024);
        before = now;
    }
    drop(sender.join().expect("all sent"));
}

#[test]
fn beyond_the_bound_connections_wait_until_another_ends() {
    let mut rig = Rig::new(Options {
        connections_max: 1,
        ..options()
    });
    let listener = rig.tcp("127.0.0.1:0");
    let (first, _peer) = rig.accepted(listener);
    let mut second = TcpStream::connect(listener).expect("in the backlog");
    second.write_all(&message(0)).expect("taken");
    rig.until("a pause", |rig| rig.net.io().counters().accept_pauses > 0);
    assert_eq!(rig.net.io().counters().connections_open, 1);
    rig.net.io().close(first);
    rig.pass(150);
    rig.messages(2);
}

#[test]
fn closing_when_written_lets_the_last_message_out() {
    let mut rig = Rig::new(options());
    let listener = rig.tcp("127.0.0.1:0");
    let (id, mut peer) = rig.accepted(listener);
    rig.net.io().send(id, None, &message(3));
    rig.net.io().close_when_written(id);
    rig.net.io().send(id, Some(tag(1)), b"after");
    rig.net.flush(&mut rig.seen);
    let mut read = Vec::new();
    peer.read_to_end(&mut read).expect("an orderly end");
    assert_eq!(read, message(3));
    assert_eq!(rig.seen.unsent, [tag(1)]);
    drop(peer);
    assert_eq!(rig.closed(), Why::ByPeer);
}

#[test]
fn accepted_sockets_have_what_is_set_on_the_listener() {
    let mut rig = Rig::new(options());
    let any = "127.0.0.1:0".parse().expect("an address");
    let listener = net::listen_tcp(any, &net::SocketOptions::default()).expect("a listener");
    let same = listener.try_clone().expect("cloned");
    rig.net.add_listener(listener).expect("added");
    let _peer = TcpStream::connect(same.local_addr().expect("bound")).expect("in the backlog");
    let (accepted, _) = same.accept().expect("accepted");
    let accepted = socket2::SockRef::from(&accepted);
    assert!(accepted.tcp_nodelay().expect("readable"));
    let limit = accepted.tcp_user_timeout().expect("readable");
    assert_eq!(limit, Some(std::time::Duration::from_secs(30)));
}

#[test]
fn a_reset_connection_ends_and_nobody_else_notices() {
    let mut rig = Rig::new(options());
    rig.seen.echo = true;
    let listener = rig.tcp("127.0.0.1:0");
    let (id, peer) = rig.accepted(listener);
    socket2::SockRef::from(&peer)
        .set_linger(Some(std::time::Duration::ZERO))
        .expect("set");
    drop(peer);
    assert_eq!(rig.closed(), Why::Failed);
    assert!(!rig.net.io().is_open(id));
    let (_, mut other) = rig.accepted(listener);
    assert_eq!(read_exactly(&mut other, message(0).len()), message(0));
}
