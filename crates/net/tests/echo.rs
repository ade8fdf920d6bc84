//! The echo server over real sockets.

mod common;

use common::{message, read_exactly, udp_peer};
use net::Options;
use net::echo::Echo;
use std::io::Write;
use std::net::TcpStream;

#[test]
fn the_echo_server_sends_messages_back_on_every_worker_and_ends_when_dropped() {
    let any = "127.0.0.1:0".parse().expect("an address");
    let echo = Echo::start(&[any], 2, Options::default()).expect("started");
    let (udp, tcp) = (echo.udp[0], echo.tcp[0]);
    for i in 0..20 {
        let peer = udp_peer("127.0.0.1:0");
        peer.send_to(&message(i), udp).expect("sent");
        let mut buffer = [0; 1000];
        let count = peer.recv(&mut buffer).expect("an answer in time");
        assert_eq!(&buffer[..count], message(i));
        let mut peer = TcpStream::connect(tcp).expect("accepted");
        peer.write_all(&message(i)).expect("taken");
        assert_eq!(read_exactly(&mut peer, message(i).len()), message(i));
    }
    drop(echo);
    assert!(TcpStream::connect(tcp).is_err(), "nobody listens any more");
}
