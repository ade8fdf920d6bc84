//! What came of a run.

use std::{fmt, time::Duration};

use serde::Serialize;

use crate::statistics::Statistics;

impl Statistics {
    /// The figures for people and programs.
    pub(crate) fn summary(&self) -> Summary {
        // TODO(cli): all parts, all of the JSON
        let part = &self.parts[0];
        let begun = self.begun();
        let per_operation = |time: Duration| time.as_secs_f64() * 1e6 / begun.max(1) as f64;
        let seconds = self.elapsed.as_secs_f64().max(1e-9);
        let quantile = |q| part.latency_us.0.value_at_quantile(q);
        Summary {
            operations: begun,
            succeeded: part.succeeded,
            success_percent: 100.0 * part.succeeded as f64 / begun.max(1) as f64,
            timeouts: part.failures.timeout,
            connections_lost: part.failures.connection_lost,
            retransmissions: self.retransmissions,
            stray_responses: self.strays,
            gave_up: self.gave_up,
            seconds,
            operations_per_second: begun as f64 / seconds,
            latency_us: Latency {
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                p999: quantile(0.999),
                max: part.latency_us.0.max(),
            },
            responses: (0u16..)
                .zip(&part.responses)
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
