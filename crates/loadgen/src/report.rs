//! What came of a run.

use std::{fmt, time::Duration};

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::cpu::CpuTime;

/// Counts of a run.
pub(crate) struct Statistics {
    pub(crate) begun: u64,
    pub(crate) succeeded: u64,
    pub(crate) timeouts: u64,
    pub(crate) connections_lost: u64,
    pub(crate) retransmissions: u64,
    /// Responses to nothing that was sent.
    pub(crate) strays: u64,
    /// The server fell silent and the rest was not begun.
    pub(crate) gave_up: bool,
    pub(crate) elapsed: Duration,
    /// Processor time of the driver itself.
    pub(crate) driver: CpuTime,
    latency_us: Histogram<u64>,
    /// Responses by status code.
    codes: Vec<u64>,
}

impl Default for Statistics {
    fn default() -> Self {
        Self {
            begun: 0,
            succeeded: 0,
            timeouts: 0,
            connections_lost: 0,
            retransmissions: 0,
            strays: 0,
            gave_up: false,
            elapsed: Duration::ZERO,
            driver: CpuTime::default(),
            latency_us: Histogram::new_with_bounds(1, LATENCY_MAX_US, 3)
                .expect("the bounds are in order and three digits are allowed"),
            codes: vec![0; 700],
        }
    }
}

/// A longer latency is counted as this.
const LATENCY_MAX_US: u64 = 600_000_000;

impl Statistics {
    /// Counts a response.
    pub(crate) fn count(&mut self, code: u16) {
        self.codes[usize::from(code)] += 1;
    }

    /// Records how long an operation took: from when it was due to its 2xx; for a call, that of the
    /// INVITE.
    pub(crate) fn record(&mut self, latency_us: u64) {
        self.latency_us.saturating_record(latency_us.max(1));
    }

    /// The figures for people and programs.
    pub(crate) fn summary(&self) -> Summary {
        let per_operation = |time: Duration| time.as_secs_f64() * 1e6 / self.begun.max(1) as f64;
        let seconds = self.elapsed.as_secs_f64().max(1e-9);
        let quantile = |q| self.latency_us.value_at_quantile(q);
        Summary {
            operations: self.begun,
            succeeded: self.succeeded,
            success_percent: 100.0 * self.succeeded as f64 / self.begun.max(1) as f64,
            timeouts: self.timeouts,
            connections_lost: self.connections_lost,
            retransmissions: self.retransmissions,
            stray_responses: self.strays,
            gave_up: self.gave_up,
            seconds,
            operations_per_second: self.begun as f64 / seconds,
            latency_us: Latency {
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                p999: quantile(0.999),
                max: self.latency_us.max(),
            },
            responses: (0u16..)
                .zip(&self.codes)
                .filter(|(_, count)| **count > 0)
                .map(|(code, count)| Responses {
                    code,
                    count: *count,
                })
                .collect(),
            driver_us_per_operation: per_operation(self.driver.total),
            driver_user_us_per_operation: per_operation(self.driver.user),
        }
    }
}

/// Figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Operations begun.
    pub operations: u64,
    /// Operations that ended well.
    pub succeeded: u64,
    /// Share of those, percent.
    pub success_percent: f64,
    /// Operations that ended because a transaction had its time.
    pub timeouts: u64,
    /// Operations that ended with their connection.
    pub connections_lost: u64,
    /// Messages sent again.
    pub retransmissions: u64,
    /// Responses that fit no request of this run.
    pub stray_responses: u64,
    /// The server fell silent, so the rest was not begun.
    pub gave_up: bool,
    /// From the first operation's begin to the last one's end.
    pub seconds: f64,
    /// Operations begun, by that time.
    pub operations_per_second: f64,
    /// From when an operation was due to its 2xx.
    pub latency_us: Latency,
    /// Responses by status code.
    pub responses: Vec<Responses>,
    /// Processor time of the driver, microseconds.
    pub driver_us_per_operation: f64,
    /// The part of it in user space.
    pub driver_user_us_per_operation: f64,
}

/// Quantiles in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Latency {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

/// How often a status code came.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Responses {
    pub code: u16,
    pub count: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} operations in {:.2} s, {:.0} a second; {:.2} % succeeded",
            self.operations, self.seconds, self.operations_per_second, self.success_percent
        )?;
        let l = self.latency_us;
        writeln!(
            f,
            "latency us   p50 {}  p90 {}  p99 {}  p99.9 {}  max {}",
            l.p50, l.p90, l.p99, l.p999, l.max
        )?;
        write!(f, "responses   ")?;
        for response in &self.responses {
            write!(f, " {} x {} ", response.code, response.count)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "troubles     {} timeouts, {} connections lost, {} retransmissions, {} stray responses",
            self.timeouts, self.connections_lost, self.retransmissions, self.stray_responses
        )?;
        if self.gave_up {
            writeln!(
                f,
                "             the server fell silent; the rest was not begun"
            )?;
        }
        write!(
            f,
            "driver       {:.2} us of processor per operation, {:.2} of it in user space",
            self.driver_us_per_operation, self.driver_user_us_per_operation
        )
    }
}
