//! What came of a run, for a person.

use std::fmt;

use crate::summary::{Latency, Summary, time};

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} operations in {:.2} s, {:.0} a second; {:.2} % succeeded",
            self.operations, self.seconds, self.operations_per_second, self.success_percent
        )?;
        let Latency {
            p50,
            p90,
            p99,
            p999,
            max,
            ..
        } = self.latency_us;
        let [p50, p90, p99, p999, max] = [p50, p90, p99, p999, max].map(time);
        writeln!(
            f,
            "latency      p50 {p50}  p90 {p90}  p99 {p99}  p99.9 {p999}  max {max}"
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
