use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// A socket address in 24 bytes instead of 32.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PackedAddress {
    ip: [u8; 16],
    scope_id: u32,
    port: u16,
    is_v4: bool,
}

impl From<SocketAddr> for PackedAddress {
    fn from(address: SocketAddr) -> Self {
        let (ip, scope_id, is_v4) = match address {
            SocketAddr::V4(a) => (a.ip().to_ipv6_mapped(), 0, true),
            SocketAddr::V6(a) => (*a.ip(), a.scope_id(), false),
        };
        Self {
            ip: ip.octets(),
            scope_id,
            port: address.port(),
            is_v4,
        }
    }
}

impl From<PackedAddress> for SocketAddr {
    fn from(packed: PackedAddress) -> Self {
        let [.., a, b, c, d] = packed.ip;
        if packed.is_v4 {
            Self::from((Ipv4Addr::new(a, b, c, d), packed.port))
        } else {
            let ip = Ipv6Addr::from(packed.ip);
            std::net::SocketAddrV6::new(ip, packed.port, 0, packed.scope_id).into()
        }
    }
}

/// The address that the system would send from to reach `peer`. Nothing is sent.
///
/// # Errors
/// There is no way there.
pub fn source_address(peer: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(peer)?;
    Ok(socket.local_addr()?.ip())
}

/// The addresses of this machine's interfaces that are up, each once.
///
/// # Errors
/// As the system says.
#[allow(unsafe_code)]
pub fn local_addresses() -> io::Result<Vec<IpAddr>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: `list` is a place for one pointer.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut next = list;
    // SAFETY: getifaddrs has made a list of entries that ends with null and is freed below, after the walk.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if entry.ifa_flags & libc::IFF_UP as libc::c_uint == 0 {
            continue;
        }
        // SAFETY: the address is null or a socket address of the entry.
        let Some(ip) = (unsafe { ip_of(entry.ifa_addr) }) else {
            continue;
        };
        if !addresses.contains(&ip) {
            addresses.push(ip);
        }
    }
    // SAFETY: made by getifaddrs, freed once.
    unsafe { libc::freeifaddrs(list) };
    Ok(addresses)
}

/// # Safety
/// `address` is null or points to a socket address of its family's size.
#[allow(unsafe_code)]
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: null or a socket address, as the caller promises; each family's structure is read only for that family, and from
    // where the system has put one, suitably aligned.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let v4 = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_address_is_the_address_again() {
        for text in [
            "192.0.2.1:5060",
            "[2001:db8::1]:5061",
            "[::ffff:192.0.2.1]:1",
            "[fe80::1%3]:65535",
        ] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(SocketAddr::from(PackedAddress::from(address)), address);
        }
    }

    #[test]
    fn the_loopback_address_is_among_the_local_ones_and_reaches_itself() {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert!(local_addresses().expect("a list").contains(&loopback));
        let source = source_address(SocketAddr::from((Ipv4Addr::LOCALHOST, 5060)));
        assert_eq!(source.expect("a way"), loopback);
    }
}
