//! What is counted while a load runs.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::{cause::Failures, cpu::CpuTime};

/// Times of something, microseconds.
#[derive(Clone)]
pub(crate) struct Times(pub(crate) Histogram<u64>);

/// A longer time is counted as this.
const LONGEST_US: u64 = 600_000_000;

impl Default for Times {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_US, 3);
        Self(histogram.expect("the bounds are in order and three digits are allowed"))
    }
}

impl Times {
    /// Records one.
    pub(crate) fn record(&mut self, us: u64) {
        self.0.saturating_record(us.max(1));
    }
}

/// Counts of one part of a load.
#[derive(Clone, Default)]
pub(crate) struct PartStatistics {
    pub(crate) name: String,
    /// Operations that were due.
    pub(crate) begun: u64,
    pub(crate) succeeded: u64,
    pub(crate) failures: Failures,
    /// Responses by status code.
    pub(crate) responses: Vec<u64>,
    /// From when an operation was due to its success; for a call, to the 2xx of the INVITE.
    pub(crate) latency_us: Times,
    /// Ended since the driver last looked.
    pub(crate) ended_now: usize,
}

/// Counts of a run: of one thread, or of several together.
#[derive(Clone, Default)]
pub(crate) struct Statistics {
    pub(crate) parts: Vec<PartStatistics>,
    pub(crate) retransmissions: u64,
    /// Responses to nothing that was sent.
    pub(crate) strays: u64,
    /// Messages that can't be understood.
    pub(crate) rubbish: u64,
    /// From opening a connection to its being open.
    pub(crate) setup_us: Times,
    /// From sending a request to its final response.
    pub(crate) transaction_us: Times,
    /// From when an operation was due to its begin: this tool's own lag.
    pub(crate) late_us: Times,
    pub(crate) connections_opened: u64,
    pub(crate) connections_open: u64,
    /// Operations under way now.
    pub(crate) under_way: u64,
    /// The server fell silent and the rest was not begun.
    pub(crate) gave_up: bool,
    pub(crate) elapsed: Duration,
    /// Processor time of the drivers.
    pub(crate) driver: CpuTime,
    /// Share of the time that the busiest thread worked, percent.
    pub(crate) busy_percent: f64,
}

impl Statistics {
    /// For parts of those names.
    pub(crate) fn new(names: impl Iterator<Item = String>) -> Self {
        let part = |name| PartStatistics {
            name,
            responses: vec![0; 700],
            ..PartStatistics::default()
        };
        Self {
            parts: names.map(part).collect(),
            ..Self::default()
        }
    }

    /// Operations that were due, of all parts.
    pub(crate) fn begun(&self) -> u64 {
        self.parts.iter().map(|p| p.begun).sum()
    }
}
