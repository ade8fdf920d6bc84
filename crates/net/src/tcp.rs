use crate::SocketOptions;
use crate::udp::set_int;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Makes a listening socket. IPv6 sockets take IPv6 only, so that `[::]` and `0.0.0.0` can be listened on side by side.
///
/// # Errors
/// As the system says: address in use, not of this machine, or privileged.
pub fn listen_tcp(address: SocketAddr, options: &SocketOptions) -> io::Result<TcpListener> {
    let socket = new_socket(address)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(options.shared)?;
    // Accepted sockets inherit these two: no call for each.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(milliseconds(options.unacknowledged_ms))?;
    socket.bind(&address.into())?;
    socket.listen(options.backlog)?;
    Ok(socket.into())
}

/// Begins to open a connection, from `source` when given (port 0: any).
pub(crate) fn connect(
    peer: SocketAddr,
    source: Option<SocketAddr>,
    unacknowledged_ms: u32,
) -> io::Result<TcpStream> {
    let socket = new_socket(peer)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_user_timeout(milliseconds(unacknowledged_ms))?;
    if let Some(source) = source {
        if source.port() == 0 {
            // The port is then chosen at connect, and may be used again for another peer.
            set_int(&socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        } else {
            socket.set_reuse_address(true)?;
        }
        socket.bind(&source.into())?;
    }
    match socket.connect(&peer.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(socket.into())
}

fn milliseconds(ms: u32) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms.into()))
}

fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;

    #[test]
    fn accepted_sockets_have_what_was_set_on_the_listener() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = listen_tcp(any, &SocketOptions::default()).expect("a listener");
        listener.set_nonblocking(false).expect("set");
        let address = listener.local_addr().expect("bound");
        let _peer = TcpStream::connect(address).expect("in the backlog");
        let (accepted, _) = listener.accept().expect("accepted");
        let accepted = SockRef::from(&accepted);
        assert!(accepted.tcp_nodelay().expect("readable"));
        let timeout = accepted.tcp_user_timeout().expect("readable");
        assert_eq!(timeout, Some(Duration::from_secs(30)));
    }
}
