//! What the papers vary first: the transport, and how long a TCP connection is kept.

use crate::{lab::Plan, load::Load};

/// UDP, or TCP with one lifetime of its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lifetime {
    /// As charts and tables have it.
    pub(crate) label: &'static str,
    pub(crate) transport: &'static str,
    words: &'static str,
}

impl Lifetime {
    pub(crate) const UDP: Self = Self {
        label: "UDP",
        transport: "udp",
        words: "",
    };
    /// Connections are there before the first request.
    pub(crate) const PERSISTENT: Self = Self {
        label: "TCP persistent",
        transport: "tcp",
        words: "--lifetime persistent",
    };
    /// Each user's connection is opened for its first request and kept.
    pub(crate) const PERSISTENT_OPEN: Self = Self {
        label: "TCP persistent with open",
        transport: "tcp",
        words: "--lifetime persistent-open",
    };
    pub(crate) const DIALOG: Self = Self {
        label: "TCP dialog",
        transport: "tcp",
        words: "--lifetime dialog",
    };
    pub(crate) const TRANSACTION: Self = Self {
        label: "TCP transaction",
        transport: "tcp",
        words: "--lifetime transaction",
    };

    /// A scenario over it.
    pub(crate) fn plan(self, scenario: &str) -> Plan {
        let load = Load::new(scenario, self.transport).with(self.words);
        Plan::new(load).of("lifetime", self.label)
    }

    /// The same with a connection opened for every operation, `operations` of them. So many
    /// descriptors are needed on both sides.
    pub(crate) fn plan_of_first(self, scenario: &str, operations: f64) -> Plan {
        let mut plan = self.plan(scenario);
        plan.load = plan.load.with(&format!("--users {operations:.0}"));
        plan
    }
}
