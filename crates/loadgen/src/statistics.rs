//! What is counted while a load runs.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Serializer as _, V2Serializer},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

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

    /// `HdrHistogram`'s V2 format in base64.
    pub(crate) fn encoded(&self) -> String {
        let mut bytes = Vec::new();
        let done = V2Serializer::new().serialize(&self.0, &mut bytes);
        done.expect("a histogram of this size fits into memory");
        STANDARD.encode(bytes)
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: &Self) {
        if !other.0.is_empty() {
            self.0.add(&other.0).expect("all have the same bounds");
        }
    }
}

/// `HdrHistogram`'s V2 format in base64.
impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.encoded())
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        let read = hdrhistogram::serialization::Deserializer::new().deserialize(&mut &*bytes);
        let read: Histogram<u64> = read.map_err(|e| D::Error::custom(format!("{e:?}")))?;
        let mut times = Self::default();
        // Checked here, so that adding can't fail later.
        times.0.add(&read).map_err(D::Error::custom)?;
        Ok(times)
    }
}

/// Counts of one part of a load.
#[derive(Clone, Default, Serialize, Deserialize)]
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
}

/// Counts of one step of a rate in steps. An operation counts in the step that it was due in.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct StepStatistics {
    /// Operations a second that were due, of all parts.
    pub(crate) rate: f64,
    pub(crate) length: Duration,
    pub(crate) begun: u64,
    pub(crate) succeeded: u64,
    pub(crate) retransmissions: u64,
    pub(crate) latency_us: Times,
}

/// One second of a run.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Second {
    /// Operations that were due, succeeded and failed in it.
    pub(crate) begun: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    /// Connections open at its end.
    pub(crate) open: u64,
    /// Latencies recorded in it, to two digits: values in order and how often each came.
    latencies: Arc<[(u32, u32)]>,
}

/// Counts of a run: of one thread, or of several together.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Statistics {
    pub(crate) parts: Vec<PartStatistics>,
    pub(crate) retransmissions: u64,
    /// Responses to nothing that was sent.
    pub(crate) strays: u64,
    /// Messages that can't be understood.
    pub(crate) rubbish: u64,
    /// From opening a connection to its being open, those of the preparation too.
    pub(crate) setup_us: Times,
    /// From sending a request to its final response.
    pub(crate) transaction_us: Times,
    /// From when an operation was due to its begin: this tool's own lag.
    pub(crate) late_us: Times,
    /// Connections that were opened, those of the preparation too.
    pub(crate) connections_opened: u64,
    /// Connections open now.
    pub(crate) connections_open: u64,
    /// Operations under way now.
    pub(crate) under_way: u64,
    /// The server fell silent and the rest was not begun.
    pub(crate) gave_up: bool,
    /// The run was asked to end early.
    pub(crate) stopped: bool,
    pub(crate) elapsed: Duration,
    /// Processor time of the drivers.
    pub(crate) driver: CpuTime,
    /// Share of the time that the busiest thread worked, or was ready to work and had no processor, percent.
    pub(crate) busy_percent: f64,
    /// Of a rate in steps.
    pub(crate) steps: Vec<StepStatistics>,
    /// The first [`TIMELINE_MAX`] seconds of the run.
    pub(crate) timeline: Vec<Second>,
}

/// Seconds in a timeline: two hours.
pub(crate) const TIMELINE_MAX: usize = 7200;

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

    /// Operations that succeeded, of all parts.
    pub(crate) fn succeeded(&self) -> u64 {
        self.parts.iter().map(|p| p.succeeded).sum()
    }

    /// Operations that failed, of all parts.
    pub(crate) fn failed(&self) -> u64 {
        self.parts.iter().map(|p| p.failures.total()).sum()
    }

    /// Adds another thread's of the same run.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.parts.is_empty() {
            *self = other.clone();
            return;
        }
        for (part, other) in self.parts.iter_mut().zip(&other.parts) {
            part.add(other);
        }
        for (step, other) in self.steps.iter_mut().zip(&other.steps) {
            step.add(other);
        }
        for (n, second) in other.timeline.iter().enumerate() {
            match self.timeline.get_mut(n) {
                Some(own) => own.add(second),
                None => self.timeline.push(second.clone()),
            }
        }
        self.retransmissions += other.retransmissions;
        self.strays += other.strays;
        self.rubbish += other.rubbish;
        self.setup_us.add(&other.setup_us);
        self.transaction_us.add(&other.transaction_us);
        self.late_us.add(&other.late_us);
        self.connections_opened += other.connections_opened;
        self.connections_open += other.connections_open;
        self.under_way += other.under_way;
        self.gave_up |= other.gave_up;
        self.stopped |= other.stopped;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.driver.add(other.driver);
        self.busy_percent = self.busy_percent.max(other.busy_percent);
    }
}

impl PartStatistics {
    fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.succeeded += other.succeeded;
        self.failures.add(&other.failures);
        for (own, other) in self.responses.iter_mut().zip(&other.responses) {
            *own += other;
        }
        self.latency_us.add(&other.latency_us);
    }
}

impl StepStatistics {
    fn add(&mut self, other: &Self) {
        self.rate += other.rate;
        self.begun += other.begun;
        self.succeeded += other.succeeded;
        self.retransmissions += other.retransmissions;
        self.latency_us.add(&other.latency_us);
    }
}

impl Second {
    /// The latency that so large a share of the operations that succeeded in it did not exceed, microseconds; 0
    /// without any.
    pub(crate) fn latency_us(&self, quantile: f64) -> u64 {
        let all: u64 = self.latencies.iter().map(|(_, n)| u64::from(*n)).sum();
        let wanted = (quantile * all as f64).ceil().max(1.0) as u64;
        let mut counted = 0;
        let reached = self.latencies.iter().find(|(_, count)| {
            counted += u64::from(*count);
            counted >= wanted
        });
        reached.map_or(0, |(us, _)| u64::from(*us))
    }

    fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.open += other.open;
        let both = self.latencies.iter().chain(other.latencies.iter());
        let mut both: Vec<(u32, u32)> = both.copied().collect();
        both.sort_unstable();
        both.dedup_by(|from, into| {
            let same = from.0 == into.0;
            into.1 += if same { from.1 } else { 0 };
            same
        });
        self.latencies = both.into();
    }
}

/// The second that a run is in.
pub(crate) struct ThisSecond {
    latencies: Histogram<u32>,
    /// What was counted before it.
    before: (u64, u64, u64),
    end_us: u64,
}

impl ThisSecond {
    /// The first of a run.
    pub(crate) fn new(begun_us: u64) -> Self {
        let latencies = Histogram::new_with_bounds(1, LONGEST_US, 2);
        Self {
            latencies: latencies.expect("the bounds are in order and two digits are allowed"),
            before: (0, 0, 0),
            end_us: begun_us + 1_000_000,
        }
    }

    /// Records an operation's latency.
    pub(crate) fn record(&mut self, us: u64) {
        self.latencies.saturating_record(us.max(1));
    }

    /// When it ends.
    pub(crate) fn end_us(&self) -> u64 {
        self.end_us
    }

    /// Puts it into the timeline, and begins the next one.
    pub(crate) fn end(&mut self, statistics: &mut Statistics) {
        self.end_us += 1_000_000;
        if statistics.timeline.len() == TIMELINE_MAX {
            return;
        }
        let (begun, succeeded, failed) = self.before;
        let now = (
            statistics.begun(),
            statistics.succeeded(),
            statistics.failed(),
        );
        self.before = now;
        let recorded = self.latencies.iter_recorded();
        statistics.timeline.push(Second {
            begun: now.0 - begun,
            succeeded: now.1 - succeeded,
            failed: now.2 - failed,
            open: statistics.connections_open,
            latencies: recorded
                .map(|v| {
                    (
                        v.value_iterated_to() as u32,
                        v.count_since_last_iteration() as u32,
                    )
                })
                .collect(),
        });
        self.latencies.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(latencies: &[u64]) -> Second {
        let mut now = ThisSecond::new(0);
        latencies.iter().for_each(|us| now.record(*us));
        let mut statistics = Statistics::new([String::from("a")].into_iter());
        statistics.parts[0].succeeded = latencies.len() as u64;
        now.end(&mut statistics);
        assert_eq!(now.end_us(), 2_000_000);
        statistics.timeline.remove(0)
    }

    #[test]
    fn counts_are_the_same_after_a_way_through_json() {
        let mut statistics = Statistics::new([String::from("a")].into_iter());
        statistics.timeline.push(second(&[10, 20, 50_000]));
        for us in [1, 999, 50_000, LONGEST_US] {
            statistics.parts[0].latency_us.record(us);
        }
        let json = serde_json::to_string(&statistics).expect("has a JSON form");
        let read: Statistics = serde_json::from_str(&json).expect("is read back");
        assert!(read.parts[0].latency_us.0 == statistics.parts[0].latency_us.0);
        assert_eq!(read.timeline[0].latency_us(0.5), 20);
        let twice = json.replace("HIST", "TSIH");
        assert!(serde_json::from_str::<Statistics>(&twice).is_err());
    }

    #[test]
    fn seconds_of_two_threads_are_one_second_with_the_latencies_of_both() {
        let mut one = second(&[10, 20, 30]);
        one.add(&second(&[20, 40, 50_000]));
        assert_eq!(one.succeeded, 6);
        assert_eq!(one.latency_us(0.5), 20);
        assert_eq!(one.latency_us(0.8), 40);
        assert!(one.latency_us(0.99).abs_diff(50_000) < 500);
        assert_eq!(second(&[]).latency_us(0.99), 0);
    }
}
