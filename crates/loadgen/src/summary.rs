//! What came of a run, as figures.

use std::time::Duration;

use serde::Serialize;

use crate::{
    Failures,
    statistics::{self, PartStatistics, Statistics, StepStatistics, Times},
    words,
};

/// Figures of a run. Times are in microseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Of the program.
    pub version: &'static str,
    /// As it was typed.
    pub command: String,
    /// What was done.
    pub scenario: String,
    /// What a mix stands for.
    #[serde(skip)]
    pub(crate) comment: String,
    /// Where the server is.
    pub target: String,
    /// What carried the callers' requests.
    pub transport: &'static str,
    /// How long a connection lived.
    pub lifetime: String,
    /// Of each process.
    pub threads: usize,
    /// That put the load.
    pub processes: usize,
    /// Those of them that died.
    pub processes_lost: usize,
    /// Operations a second that were due, on average; a closed loop has no such rate.
    pub offered_per_second: Option<f64>,
    /// Operations that were due.
    pub operations: u64,
    /// Operations that ended well.
    pub succeeded: u64,
    /// Share of those, percent.
    pub success_percent: f64,
    /// From the first operation's begin to the last one's end.
    pub seconds: f64,
    /// Operations that were due, by that time.
    pub operations_per_second: f64,
    /// Operations that ended well, by that time.
    pub succeeded_per_second: f64,
    /// The others by cause.
    pub failures: Failures,
    /// Operations that ended because a transaction had its time.
    pub timeouts: u64,
    /// Operations that ended with their connection.
    pub connections_lost: u64,
    /// Messages sent again.
    pub retransmissions: u64,
    /// Responses that fit no request of this run.
    pub stray_responses: u64,
    /// Messages that can't be understood.
    pub rubbish_messages: u64,
    /// The server fell silent, so the rest was not begun.
    pub gave_up: bool,
    /// It was asked to end before its time.
    pub stopped: bool,
    /// From when an operation was due to its success; for a call, to the 2xx of its INVITE.
    pub latency_us: Latency,
    /// From opening a connection to its being open, those of the preparation too.
    pub setup_us: Option<Latency>,
    /// From sending a request to its final response.
    pub transaction_us: Option<Latency>,
    /// From when an operation was due to its begin: this tool's own lag.
    pub late_us: Latency,
    /// Responses by status code.
    pub responses: Vec<Responses>,
    /// Connections opened, those of the preparation too.
    pub connections_opened: u64,
    /// Connections open at the end.
    pub connections_open: u64,
    /// Processor time of the driver.
    pub driver_us_per_operation: f64,
    /// The part of it in user space.
    pub driver_user_us_per_operation: f64,
    /// Share of the time that the busiest thread worked.
    pub driver_busy_percent: f64,
    /// What held the rate back, if that was not the server.
    pub bottleneck: Option<String>,
    /// The parts of a mix; one of a plain scenario.
    pub parts: Vec<Part>,
    /// Of a rate in steps, or the trials of a search.
    pub steps: Vec<Step>,
    /// What a search found, operations a second.
    pub max_rate: Option<f64>,
    /// Each second of the run.
    pub timeline: Vec<Second>,
    /// The rate was searched.
    #[serde(skip)]
    pub(crate) searched: bool,
    /// The bounds that were stated.
    pub expectations: Vec<Expected>,
}

/// Quantiles in microseconds.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct Latency {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
    pub mean: f64,
    /// All of it: HdrHistogram's V2 format in base64.
    pub histogram: String,
}

/// How often a status code came.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Responses {
    pub code: u16,
    pub count: u64,
}

/// One part of a mix. As the [`Summary`]'s.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Part {
    pub name: String,
    pub offered_per_second: Option<f64>,
    pub operations: u64,
    pub succeeded: u64,
    pub success_percent: f64,
    pub latency_us: Latency,
    pub failures: Failures,
    pub responses: Vec<Responses>,
}

/// One rate of several.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Operations a second that were due.
    pub rate: f64,
    /// How long.
    pub seconds: f64,
    /// Operations that were due in it.
    pub operations: u64,
    /// Those that ended well.
    pub succeeded: u64,
    /// Share of those.
    pub success_percent: f64,
    /// Those that ended well, a second.
    pub achieved_per_second: f64,
    /// Median of the latency.
    pub p50_us: u64,
    /// 99 % of the operations took less.
    pub p99_us: u64,
    /// Messages sent again.
    pub retransmissions: u64,
    /// Every operation ended well, within the bound of a search.
    pub sustained: bool,
    /// What held the rate back, if that was not the server.
    pub bottleneck: Option<String>,
}

/// One second of a run.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Second {
    pub second: u64,
    pub begun: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub p50_us: u64,
    pub p99_us: u64,
    /// Connections open at its end.
    pub open: u64,
}

/// A bound and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct Expected {
    /// As it was typed.
    pub text: String,
    /// Whether it held.
    pub held: bool,
    /// In microseconds, percent, operations a second, or a count.
    pub found: f64,
    /// The same for a person.
    #[serde(skip)]
    pub written: String,
}

impl Statistics {
    /// The figures for people and programs.
    pub(crate) fn summary(&self) -> Summary {
        let begun = self.begun();
        let succeeded = self.succeeded();
        let seconds = self.elapsed.as_secs_f64().max(1e-9);
        let mut codes = vec![0; 700];
        let failures = self.failures();
        for part in &self.parts {
            for (sum, count) in codes.iter_mut().zip(&part.responses) {
                *sum += count;
            }
        }
        let per_operation = |time: Duration| time.as_secs_f64() * 1e6 / begun.max(1) as f64;
        Summary {
            version: env!("CARGO_PKG_VERSION"),
            threads: 1,
            processes: 1,
            operations: begun,
            succeeded,
            success_percent: percent(succeeded, begun),
            seconds,
            operations_per_second: begun as f64 / seconds,
            succeeded_per_second: succeeded as f64 / seconds,
            failures,
            timeouts: failures.timeout,
            connections_lost: failures.connection_lost,
            retransmissions: self.retransmissions,
            stray_responses: self.strays,
            rubbish_messages: self.rubbish,
            gave_up: self.gave_up,
            stopped: self.stopped,
            latency_us: Latency::of(&self.latency_us()),
            setup_us: Latency::of_some(&self.setup_us),
            transaction_us: Latency::of_some(&self.transaction_us),
            late_us: Latency::of(&self.late_us),
            responses: responses(&codes),
            connections_opened: self.connections_opened,
            connections_open: self.connections_open,
            driver_us_per_operation: per_operation(self.driver.total),
            driver_user_us_per_operation: per_operation(self.driver.user),
            driver_busy_percent: self.busy_percent,
            bottleneck: self.bottleneck(),
            parts: self.parts.iter().map(Part::of).collect(),
            steps: self.steps.iter().map(Step::of).collect(),
            timeline: (0..).zip(&self.timeline).map(Second::of).collect(),
            ..Summary::default()
        }
    }

    /// Latencies of all parts.
    pub(crate) fn latency_us(&self) -> Times {
        let mut all = Times::default();
        self.parts.iter().for_each(|part| all.add(&part.latency_us));
        all
    }

    /// Failures of all parts.
    pub(crate) fn failures(&self) -> Failures {
        let mut all = Failures::default();
        self.parts.iter().for_each(|part| all.add(&part.failures));
        all
    }

    /// What held the rate back, if that was this tool.
    pub(crate) fn bottleneck(&self) -> Option<String> {
        let not_begun: u64 = self.parts.iter().map(|p| p.failures.not_begun).sum();
        let late_us = self.late_us.0.value_at_quantile(0.99);
        if self.busy_percent > BUSY_PERCENT {
            return Some(format!(
                "this tool: its busiest thread was busy {:.0} % of the time; give it more --threads or --processes",
                self.busy_percent
            ));
        }
        if late_us > LATE_US {
            return Some(format!(
                "this tool: 1 % of the operations began {} late or later; give it a processor of its own, more --threads or --processes",
                words::time(late_us)
            ));
        }
        (not_begun > 0).then(|| {
            format!("--outstanding-max: {not_begun} operations were due and not begun, because so many were under way")
        })
    }
}

/// A thread that is busier has no time left.
const BUSY_PERCENT: f64 = 95.0;
/// A tool that lags more measures itself.
const LATE_US: u64 = 20_000;

impl Latency {
    fn of(times: &Times) -> Self {
        let quantile = |q| times.0.value_at_quantile(q);
        Self {
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: times.0.max(),
            mean: times.0.mean(),
            histogram: times.encoded(),
        }
    }

    fn of_some(times: &Times) -> Option<Self> {
        (!times.0.is_empty()).then(|| Self::of(times))
    }
}

impl Part {
    fn of(part: &PartStatistics) -> Self {
        Self {
            name: part.name.clone(),
            offered_per_second: None,
            operations: part.begun,
            succeeded: part.succeeded,
            success_percent: percent(part.succeeded, part.begun),
            latency_us: Latency::of(&part.latency_us),
            failures: part.failures,
            responses: responses(&part.responses),
        }
    }
}

impl Step {
    fn of(step: &StepStatistics) -> Self {
        let seconds = step.length.as_secs_f64().max(1e-9);
        Self {
            rate: step.rate,
            seconds,
            operations: step.begun,
            succeeded: step.succeeded,
            success_percent: percent(step.succeeded, step.begun),
            achieved_per_second: step.succeeded as f64 / seconds,
            p50_us: step.latency_us.0.value_at_quantile(0.5),
            p99_us: step.latency_us.0.value_at_quantile(0.99),
            retransmissions: step.retransmissions,
            sustained: step.begun > 0 && step.succeeded == step.begun,
            bottleneck: None,
        }
    }

    /// Of one trial of a search.
    pub(crate) fn of_trial(rate: f64, length: Duration, summary: &Summary) -> Self {
        Self {
            rate,
            seconds: length.as_secs_f64().min(summary.seconds),
            operations: summary.operations,
            succeeded: summary.succeeded,
            success_percent: summary.success_percent,
            achieved_per_second: summary.succeeded_per_second,
            p50_us: summary.latency_us.p50,
            p99_us: summary.latency_us.p99,
            retransmissions: summary.retransmissions,
            sustained: false,
            bottleneck: None,
        }
    }
}

impl Second {
    fn of((second, counts): (u64, &statistics::Second)) -> Self {
        Self {
            second,
            begun: counts.begun,
            succeeded: counts.succeeded,
            failed: counts.failed,
            p50_us: counts.latency_us(0.5),
            p99_us: counts.latency_us(0.99),
            open: counts.open,
        }
    }
}

/// A share; all of nothing is nothing.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn responses(codes: &[u64]) -> Vec<Responses> {
    let counted = (0u16..).zip(codes).filter(|(_, count)| **count > 0);
    let response = |(code, count): (u16, &u64)| Responses {
        code,
        count: *count,
    };
    counted.map(response).collect()
}
