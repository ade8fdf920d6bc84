//! Kamailio, as the measurements run it.

use crate::{Case, Peer, Phone, within};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// A running Kamailio for example.com, where each user's password is its name.
pub struct Kamailio {
    peer: Peer,
    /// Where it listens, by UDP and TCP.
    pub address: SocketAddr,
}

impl Kamailio {
    /// Starts one, with or without digest. `None`: it is not installed.
    ///
    /// # Panics
    /// When it does not answer in time.
    #[must_use]
    pub fn start(case: &Case, digest: bool) -> Option<Self> {
        let version = Command::new("kamailio").arg("-v").output();
        if !version.is_ok_and(|output| output.status.success()) {
            return None;
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/kamailio/kamailio.cfg");
        let address = case.address(1);
        let mut command = Command::new("kamailio");
        command
            .args(["-DD", "-E", "-m", "128", "-M", "16", "-f"])
            .arg(file);
        for transport in ["udp", "tcp"] {
            command.args(["-l", &format!("{transport}:{address}")]);
        }
        if digest {
            command.args(["-A", "WITH_AUTH"]);
        }
        let mut peer = Peer::start(&mut command, case.path("kamailio.log"));
        let mut phone = Phone::udp(SocketAddr::new(address.ip(), 0));
        within(20, "an answer to OPTIONS", || {
            assert!(peer.ended().is_none(), "it ended:\n{}", peer.said());
            phone.send(phone.options(address), address);
            phone.receive_for(200).map(|_| ())
        });
        Some(Self { peer, address })
    }
}

impl Drop for Kamailio {
    /// Its main process ends the others.
    fn drop(&mut self) {
        self.peer.terminate();
        self.peer.ends(20);
    }
}
