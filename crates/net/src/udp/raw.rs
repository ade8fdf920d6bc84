//! Socket addresses, control messages and options as the kernel lays them out.
#![allow(unsafe_code)]

use socket2::Socket;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

/// A socket address of either family.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union RawAddress {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

/// Room for the control messages of one datagram: a packet info of either family and the overflow count.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Control([u8; 96]);

const _: () = assert!(align_of::<Control>() >= align_of::<libc::cmsghdr>());
// SAFETY: arithmetic on constants.
const _: () = assert!(unsafe {
    libc::CMSG_SPACE(size_of::<libc::in6_pktinfo>() as u32) + libc::CMSG_SPACE(4)
        <= size_of::<Control>() as u32
});

impl RawAddress {
    pub(crate) const EMPTY: Self = Self {
        // SAFETY: all zero bytes are a valid value of this plain structure.
        v6: unsafe { std::mem::zeroed() },
    };
    pub(crate) const SIZE: libc::socklen_t = size_of::<Self>() as libc::socklen_t;

    /// Writes an address; returns its length.
    pub(crate) fn set(&mut self, address: SocketAddr) -> libc::socklen_t {
        *self = Self::EMPTY;
        match address {
            SocketAddr::V4(a) => {
                self.v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: a.port().to_be(),
                    sin_addr: in_addr(*a.ip()),
                    sin_zero: [0; 8],
                };
                size_of::<libc::sockaddr_in>() as libc::socklen_t
            }
            SocketAddr::V6(a) => {
                self.v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: a.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: in6_addr(*a.ip()),
                    sin6_scope_id: a.scope_id(),
                };
                size_of::<libc::sockaddr_in6>() as libc::socklen_t
            }
        }
    }

    /// Reads it, if it is of the internet.
    pub(crate) fn get(&self) -> Option<SocketAddr> {
        // SAFETY: every field of the union is plain data for which all bytes are valid, and `EMPTY` has initialised all of
        // them; the family, written by the kernel or by `set`, says which one is meant.
        unsafe {
            match i32::from(self.family) {
                libc::AF_INET => Some(SocketAddr::V4(SocketAddrV4::new(
                    Ipv4Addr::from(u32::from_be(self.v4.sin_addr.s_addr)),
                    u16::from_be(self.v4.sin_port),
                ))),
                libc::AF_INET6 => Some(SocketAddr::V6(SocketAddrV6::new(
                    Ipv6Addr::from(self.v6.sin6_addr.s6_addr),
                    u16::from_be(self.v6.sin6_port),
                    0,
                    self.v6.sin6_scope_id,
                ))),
                _ => None,
            }
        }
    }
}

impl Control {
    pub(crate) const EMPTY: Self = Self([0; 96]);

    /// Where the messages lie, for the kernel.
    pub(crate) fn pointer(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }

    /// Writes the local address that a datagram has to leave from; returns the length.
    pub(crate) fn set_local(&mut self, local: IpAddr) -> usize {
        match local {
            IpAddr::V4(ip) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: in_addr(ip),
                    ipi_addr: in_addr(Ipv4Addr::UNSPECIFIED),
                };
                self.set(libc::IPPROTO_IP, libc::IP_PKTINFO, info)
            }
            IpAddr::V6(ip) => {
                let info = libc::in6_pktinfo {
                    ipi6_addr: in6_addr(ip),
                    ipi6_ifindex: 0,
                };
                self.set(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info)
            }
        }
    }

    fn set<T: Copy>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) -> usize {
        // SAFETY: arithmetic.
        let (space, len) = unsafe {
            (
                libc::CMSG_SPACE(size_of::<T>() as u32) as usize,
                libc::CMSG_LEN(size_of::<T>() as u32) as usize,
            )
        };
        assert!(space <= self.0.len(), "the room holds each packet info");
        let head: *mut libc::cmsghdr = self.0.as_mut_ptr().cast();
        // SAFETY: `self.0` is aligned for a header (checked above at compile time) and has room for the header and the value (just
        // checked), which lies CMSG_DATA behind the header.
        unsafe {
            (*head).cmsg_len = len as _;
            (*head).cmsg_level = level;
            (*head).cmsg_type = kind;
            libc::CMSG_DATA(head).cast::<T>().write_unaligned(value);
        }
        space
    }
}

/// What the kernel said beside a datagram.
#[derive(Clone, Copy, Default)]
pub(crate) struct Said {
    /// Our address that it came to.
    pub(crate) local: Option<IpAddr>,
    /// Datagrams dropped on this socket since it was made, as a wrapping count.
    pub(crate) overflowed: Option<u32>,
}

/// Reads the control messages of a received datagram.
///
/// # Safety
/// `header` was filled by a receive call, and its control buffer is still there, unchanged.
pub(crate) unsafe fn said(header: &libc::msghdr) -> Said {
    let mut said = Said::default();
    // SAFETY: the caller promises a header as the kernel left it; the macros walk its control buffer within msg_controllen, and
    // each value is read only where the kernel has written one of that type.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while let Some(message) = next.as_ref() {
            let data = libc::CMSG_DATA(next);
            match (message.cmsg_level, message.cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    let ip = Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr));
                    said.local = Some(ip.into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    said.local = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    said.overflowed = Some(data.cast::<u32>().read_unaligned());
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
    said
}

/// Sets an option that is an int.
pub(crate) fn set_int(
    socket: &Socket,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the value's address and size are given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes both buffers as large as allowed, up to `bytes`: past the system's limit when privileged.
pub(crate) fn set_buffers(socket: &Socket, bytes: usize) {
    let wanted = bytes.min(libc::c_int::MAX as usize / 2) as libc::c_int;
    if set_int(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wanted).is_err() {
        // Cut to net.core.rmem_max without an error; `limits` tells the operator.
        let _ = socket.set_recv_buffer_size(wanted as usize);
    }
    if set_int(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, wanted).is_err() {
        let _ = socket.set_send_buffer_size(wanted as usize);
    }
}

fn in_addr(ip: Ipv4Addr) -> libc::in_addr {
    libc::in_addr {
        s_addr: u32::from(ip).to_be(),
    }
}

fn in6_addr(ip: Ipv6Addr) -> libc::in6_addr {
    libc::in6_addr {
        s6_addr: ip.octets(),
    }
}
