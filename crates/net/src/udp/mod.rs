mod raw;
mod receive;
mod send;

pub(crate) use raw::set_int;
pub(crate) use receive::{ReceiveBatch, take_back};
pub(crate) use send::{SendQueue, SendScratch};

use crate::SocketOptions;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Datagrams moved by one system call.
pub(crate) const BATCH: usize = 32;

/// Makes a datagram socket. IPv6 sockets take IPv6 only, so that `[::]` and `0.0.0.0` can be bound side by side.
///
/// # Errors
/// As the system says: address in use, not of this machine, or privileged.
pub fn bind_udp(address: SocketAddr, options: &SocketOptions) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM.nonblocking().cloexec(),
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_port(options.shared)?;
    raw::set_buffers(&socket, options.buffer_bytes);
    set_int(&socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
    if options.take_back {
        match address {
            SocketAddr::V4(_) => set_int(&socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)?,
            SocketAddr::V6(_) => set_int(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?,
        }
    }
    if address.ip().is_unspecified() {
        // Only these need to be told which of our addresses a datagram came to, and has to leave from.
        match address {
            SocketAddr::V4(_) => set_int(&socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?,
            SocketAddr::V6(_) => {
                set_int(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            }
        }
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}
