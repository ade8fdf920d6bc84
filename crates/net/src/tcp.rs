use crate::SocketOptions;
use crate::udp::set_int;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
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
    // Accepted sockets inherit it: no call for each.
    socket.set_tcp_nodelay(true)?;
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
    limit_unacknowledged(SockRef::from(&socket), unacknowledged_ms)?;
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

/// Lets the system end a connection on which what was sent stays unacknowledged for so long; on a listener: those that it accepts.
pub(crate) fn limit_unacknowledged(socket: SockRef<'_>, ms: u32) -> io::Result<()> {
    socket.set_tcp_user_timeout((ms > 0).then(|| Duration::from_millis(ms.into())))
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
