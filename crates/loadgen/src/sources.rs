//! The local addresses that connections come from.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

/// Local addresses, used in turn: `ADDR`, `ADDR-ADDR`, `ADDR/BITS`, with commas between.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sources(pub(crate) Vec<IpAddr>);

/// So many addresses have ports for all connections that a machine can hold.
const ADDRESSES_MAX: usize = 65_536;

/// Up to so many connections from one address to one port, the default range of ports suffices.
const CONNECTIONS_EACH: usize = 20_000;

impl Sources {
    /// What suits a load: one address, or many where the target is on this machine and the ports of
    /// one may run out. The first is always the same, since it is where phones say that they listen; the others are
    /// this process' own: the ports that the run before has closed are not free for a while, and the kernel's
    /// search for one takes longer than all the rest when it meets them.
    pub(crate) fn suitable(
        own: IpAddr,
        target: SocketAddr,
        connections: usize,
        opens_while_it_runs: bool,
    ) -> Self {
        match target.ip() {
            IpAddr::V4(ip)
                if ip.is_loopback() && (opens_while_it_runs || connections > CONNECTIONS_EACH) =>
            {
                let [.., second, third] = std::process::id().to_be_bytes();
                let own = |last| Ipv4Addr::new(127, second.max(1), third, last);
                let first = Ipv4Addr::new(127, 0, 1, 1);
                let all = [first].into_iter().chain((1..64).map(own));
                Self(all.map(IpAddr::from).collect())
            }
            _ => Self(vec![own]),
        }
    }

    /// The part of one of several processes: every `processes`-th address from its own on.
    pub(crate) fn share(&self, process: usize, processes: usize) -> Self {
        let start = process % self.0.len();
        let step = processes.min(self.0.len());
        Self(self.0.iter().skip(start).step_by(step).copied().collect())
    }
}

impl FromStr for Sources {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut addresses = Vec::new();
        for part in text.split(',') {
            let (first, last) = range(part.trim())?;
            if last - first >= (ADDRESSES_MAX - addresses.len()) as u128 {
                return Err(format!("more than {ADDRESSES_MAX} addresses"));
            }
            let v4 = part.contains('.');
            addresses.extend((first..=last).map(|number| address(number, v4)));
        }
        Ok(Self(addresses))
    }
}

/// First and last address of a part, as numbers.
fn range(part: &str) -> Result<(u128, u128), String> {
    if let Some((low, high)) = part.split_once('-') {
        let (low, high) = (parse(low)?, parse(high)?);
        if low.is_ipv4() != high.is_ipv4() {
            return Err(format!("{part:?}: from one family to the other"));
        }
        return match (number(low), number(high)) {
            (first, last) if first <= last => Ok((first, last)),
            _ => Err(format!("{part:?} goes backwards; {high}-{low} does not")),
        };
    }
    let Some((address, bits)) = part.split_once('/') else {
        let one = number(parse(part)?);
        return Ok((one, one));
    };
    let address = parse(address)?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits: u32 = bits
        .parse()
        .ok()
        .filter(|bits| *bits <= width)
        .ok_or_else(|| {
            format!("{part:?}: the number behind the slash goes up to {width}, as in 127.0.1.0/24")
        })?;
    let hosts = u128::MAX.checked_shr(128 - (width - bits)).unwrap_or(0);
    let first = number(address) & !hosts;
    let last = first + hosts;
    // The first and the last address of an IPv4 network are not a host's.
    match address.is_ipv4() && hosts >= 3 {
        true => Ok((first + 1, last - 1)),
        false => Ok((first, last)),
    }
}

fn parse(text: &str) -> Result<IpAddr, String> {
    let text = text.trim();
    text.parse().map_err(|_| {
        format!(
            "{text:?} is no address; 10.0.0.5, 127.0.1.1-127.0.1.64 and 127.0.2.0/24 are sources"
        )
    })
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

fn address(number: u128, v4: bool) -> IpAddr {
    match v4 {
        true => Ipv4Addr::from(number as u32).into(),
        false => Ipv6Addr::from(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<String> {
        let sources: Sources = text.parse().expect("is right");
        sources.0.iter().map(IpAddr::to_string).collect()
    }

    #[test]
    fn sources_are_addresses_ranges_and_networks() {
        assert_eq!(parsed("10.0.0.5"), ["10.0.0.5"]);
        assert_eq!(
            parsed("127.0.1.254-127.0.2.1,10.0.0.0/30"),
            [
                "127.0.1.254",
                "127.0.1.255",
                "127.0.2.0",
                "127.0.2.1",
                "10.0.0.1",
                "10.0.0.2"
            ]
        );
        assert_eq!(parsed("2001:db8::/127"), ["2001:db8::", "2001:db8::1"]);
        assert_eq!(parsed("127.0.0.7/32"), ["127.0.0.7"]);
    }

    #[test]
    fn what_is_no_source_is_refused_with_a_reason() {
        let fault = |text: &str| text.parse::<Sources>().expect_err("is refused");
        assert!(fault("localhost").contains("no address"));
        assert!(fault("10.0.0.9-10.0.0.1").contains("10.0.0.1-10.0.0.9"));
        assert!(fault("10.0.0.1-::1").contains("family"));
        assert!(fault("10.0.0.0/33").contains("up to 32"));
        assert!(fault("10.0.0.0/8").contains("more than 65536"));
        assert!(fault("::/0").contains("more than"));
    }

    #[test]
    fn many_connections_on_this_machine_come_from_many_addresses() {
        let own: IpAddr = [127, 0, 0, 1].into();
        let target = SocketAddr::from(([127, 0, 0, 1], 5060));
        let few = Sources::suitable(own, target, 20_000, false);
        assert_eq!(few.0, [own]);
        assert_eq!(Sources::suitable(own, target, 20_001, false).0.len(), 64);
        assert_eq!(Sources::suitable(own, target, 1, true).0.len(), 64);
        let far = SocketAddr::from(([192, 0, 2, 1], 5060));
        assert_eq!(Sources::suitable(own, far, 99_999, true).0, [own]);
    }

    #[test]
    fn processes_share_the_sources() {
        let sources: Sources = "10.0.0.1-10.0.0.5".parse().expect("is right");
        let text = |process| {
            let share = sources.share(process, 2);
            share.0.iter().map(IpAddr::to_string).collect::<Vec<_>>()
        };
        assert_eq!(text(0), ["10.0.0.1", "10.0.0.3", "10.0.0.5"]);
        assert_eq!(text(1), ["10.0.0.2", "10.0.0.4"]);
        let one: Sources = "10.0.0.1".parse().expect("is right");
        assert_eq!(one.share(3, 4), one);
    }
}
