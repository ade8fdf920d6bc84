//! Datagrams over loopback.

mod common;

use common::{Rig, message, tag, udp_peer};
use net::{Options, source_address};
use std::net::SocketAddr;

fn at(ip: &str, port: u16) -> SocketAddr {
    SocketAddr::new(ip.parse().expect("an address"), port)
}

#[test]
fn a_socket_on_all_addresses_knows_where_a_datagram_came_to_and_answers_from_there() {
    for (any, ours, theirs) in [
        ("0.0.0.0:0", "127.0.0.2", "127.0.0.3:0"),
        ("[::]:0", "::1", "[::1]:0"),
    ] {
        let mut rig = Rig::new(Options::default());
        rig.seen.echo = true;
        let (_, bound) = rig.udp(any);
        let peer = udp_peer(theirs);
        let ours = at(ours, bound.port());
        peer.send_to(&message(3), ours).expect("sent");
        rig.messages(1);
        let source = rig.seen.messages[0].0;
        assert_eq!(source.local, ours);
        assert_eq!(source.peer, peer.local_addr().expect("bound"));
        let mut buffer = [0; 1000];
        let (count, from) = peer.recv_from(&mut buffer).expect("an answer in time");
        assert_eq!(from, ours);
        assert_eq!(&buffer[..count], message(3));
    }
}

#[test]
fn both_families_have_the_same_port_side_by_side() {
    let mut rig = Rig::new(Options::default());
    let (v4, bound) = rig.udp("0.0.0.0:0");
    let (v6, _) = rig.udp(&format!("[::]:{}", bound.port()));
    let peer = udp_peer("127.0.0.1:0");
    peer.send_to(&message(0), at("127.0.0.1", bound.port()))
        .expect("sent");
    let peer = udp_peer("[::1]:0");
    peer.send_to(&message(0), at("::1", bound.port()))
        .expect("sent");
    rig.messages(2);
    let mut listeners: Vec<u16> = rig.seen.messages.iter().map(|m| m.0.listener).collect();
    listeners.sort_unstable();
    assert_eq!(listeners, [v4, v6]);
}

#[test]
fn many_datagrams_of_all_sizes_go_there_and_back_unharmed_and_in_order() {
    let mut rig = Rig::new(Options::default());
    rig.seen.echo = true;
    let (_, bound) = rig.udp("127.0.0.1:0");
    let peer = udp_peer("127.0.0.1:0");
    let largest = 65_507 - message(60_000).len() + 60_000;
    let sizes: Vec<usize> = (0..100)
        .map(|i| i * 37)
        .chain([1500, 9000, largest, 0])
        .collect();
    let mut buffer = vec![0; 70_000];
    for chunk in sizes.chunks(40) {
        rig.seen.messages.clear();
        for size in chunk {
            peer.send_to(&message(*size), bound).expect("sent");
        }
        rig.messages(chunk.len());
        for size in chunk {
            let count = peer.recv(&mut buffer).expect("an answer in time");
            assert_eq!(buffer[..count], message(*size));
        }
    }
    let counters = rig.net.io().counters();
    assert_eq!(counters.datagrams_received, sizes.len() as u64);
    assert_eq!(counters.datagrams_sent, sizes.len() as u64);
}

#[test]
fn keepalives_are_counted_and_not_handed_on() {
    let mut rig = Rig::new(Options::default());
    let (_, bound) = rig.udp("127.0.0.1:0");
    let peer = udp_peer("127.0.0.1:0");
    for keepalive in [&b""[..], b"\r\n\r\n", b"\0", b"jaK", b"\r\n\r\n\r\n\0\0"] {
        peer.send_to(keepalive, bound).expect("sent");
    }
    peer.send_to(b"hello", bound).expect("sent");
    rig.messages(1);
    assert_eq!(rig.seen.messages[0].1, b"hello");
    assert_eq!(rig.net.io().counters().keepalives_received, 5);
}

#[test]
fn a_datagram_that_can_not_be_sent_comes_back_and_the_others_leave() {
    let mut rig = Rig::new(Options::default());
    let (listener, _) = rig.udp("127.0.0.1:0");
    let peer = udp_peer("127.0.0.1:0");
    let to = peer.local_addr().expect("bound");
    let io = rig.net.io();
    io.send_datagram(listener, None, to, Some(tag(1)), b"first");
    io.send_datagram(listener, None, to, Some(tag(2)), &[b'x'; 65_508]);
    io.send_datagram(listener, None, to, Some(tag(3)), b"last");
    io.send_datagram(listener + 1, None, to, Some(tag(4)), b"no such socket");
    rig.net.flush(&mut rig.seen);
    let mut unsent: Vec<u64> = rig.seen.unsent.iter().map(|tag| tag.value).collect();
    unsent.sort_unstable();
    assert_eq!(unsent, [2, 4]);
    let mut buffer = [0; 100];
    for expected in [&b"first"[..], b"last"] {
        let count = peer.recv(&mut buffer).expect("in time");
        assert_eq!(&buffer[..count], expected);
    }
    assert_eq!(rig.net.io().counters().datagrams_unsent, 2);
}

#[test]
fn what_waits_for_the_kernel_is_bounded() {
    let mut rig = Rig::new(Options {
        datagram_bytes_max: 10_000,
        ..Options::default()
    });
    let (listener, _) = rig.udp("127.0.0.1:0");
    let peer = udp_peer("127.0.0.1:0");
    let to = peer.local_addr().expect("bound");
    for i in 0..11 {
        rig.net
            .io()
            .send_datagram(listener, None, to, Some(tag(i)), &[b'x'; 1000]);
    }
    rig.net.flush(&mut rig.seen);
    assert_eq!(rig.seen.unsent, [tag(10)]);
}

#[test]
fn a_peer_that_is_gone_harms_nobody() {
    let mut rig = Rig::new(Options::default());
    rig.seen.echo = true;
    let (_, bound) = rig.udp("127.0.0.1:0");
    let gone = udp_peer("127.0.0.1:0");
    gone.send_to(&message(0), bound).expect("sent");
    drop(gone);
    rig.messages(1);
    let peer = udp_peer("127.0.0.1:0");
    peer.send_to(&message(1), bound).expect("sent");
    rig.messages(2);
    let mut buffer = [0; 1000];
    let count = peer.recv(&mut buffer).expect("an answer in time");
    assert_eq!(&buffer[..count], message(1));
}

#[test]
fn the_source_address_towards_loopback_is_loopback() {
    let source = source_address(at("127.0.0.1", 5060)).expect("a way");
    assert_eq!(source.to_string(), "127.0.0.1");
}
