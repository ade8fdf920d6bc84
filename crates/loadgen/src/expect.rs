//! Bounds that a run must hold: `success>=99.9%`, `p99<50ms`.

use std::{fmt, str::FromStr};

use crate::{
    distribution::parse_us,
    nearest::nearest,
    statistics::{PartStatistics, Statistics},
    summary::Summary,
    words,
};

/// One bound. It is written as it was typed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Expectation {
    text: String,
    figure: Figure,
    comparison: Comparison,
    /// In the figure's unit: microseconds, percent, operations a second, or a count.
    bound: f64,
    /// A count is compared as percent of the operations.
    share: bool,
}

/// What is bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Figure {
    Success,
    Rate,
    Failures,
    Retransmissions,
    P50,
    P90,
    P99,
    P999,
    Max,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
}

/// Figures by name; the first of several names is the one that is told.
const FIGURES: [(&str, Figure); 10] = [
    ("success", Figure::Success),
    ("rate", Figure::Rate),
    ("failures", Figure::Failures),
    ("retransmissions", Figure::Retransmissions),
    ("p99", Figure::P99), // the one that is meant by a name that is as near to others
    ("p50", Figure::P50),
    ("p90", Figure::P90),
    ("p999", Figure::P999),
    ("p99.9", Figure::P999),
    ("max", Figure::Max),
];

/// Longer signs first: the first that fits is the one.
const COMPARISONS: [(&str, Comparison); 5] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("==", Comparison::Equal),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

impl Expectation {
    /// `success>=PERCENT`.
    pub(crate) fn success(percent: f64) -> Self {
        Self {
            text: format!("success>={percent}%"),
            figure: Figure::Success,
            comparison: Comparison::AtLeast,
            bound: percent,
            share: false,
        }
    }

    /// Whether it holds, and what was found.
    pub(crate) fn check(&self, summary: &Summary) -> (bool, f64) {
        let found = self.found(summary);
        let held = match self.comparison {
            Comparison::AtLeast => found >= self.bound,
            Comparison::AtMost => found <= self.bound,
            Comparison::Above => found > self.bound,
            Comparison::Below => found < self.bound,
            Comparison::Equal => (found - self.bound).abs() < 1e-9,
        };
        // Nothing that was not done was done well, and nothing that has no time was fast.
        let counted = match self.figure {
            figure if figure.is_time() => summary.succeeded > 0,
            _ => summary.operations > 0,
        };
        (held && counted, found)
    }

    /// The bound, where it is the most that a time may be; microseconds.
    pub(crate) fn time_us(&self) -> Option<u64> {
        let upper = matches!(self.comparison, Comparison::AtMost | Comparison::Below);
        (upper && self.figure.is_time()).then_some(self.bound as u64)
    }

    /// Whether it can't hold any more when `operations` are done: too many took too long.
    pub(crate) fn is_lost(&self, statistics: &Statistics, operations: f64) -> bool {
        let Some(limit_us) = self.time_us() else {
            return false;
        };
        let slow = |part: &PartStatistics| {
            let times = &part.latency_us.0;
            times.len() - times.count_between(0, limit_us)
        };
        let slow: u64 = statistics.parts.iter().map(slow).sum();
        slow as f64 > self.figure.above() * operations + 1.0
    }

    /// What was found, for a person.
    pub(crate) fn written(&self, found: f64) -> String {
        match self.figure {
            figure if figure.is_time() => words::time(found as u64),
            Figure::Success => format!("{found:.3} %"),
            Figure::Rate => format!("{found:.1}/s"),
            _ if self.share => format!("{found:.3} %"),
            _ => format!("{found}"),
        }
    }

    fn found(&self, summary: &Summary) -> f64 {
        let latency = &summary.latency_us;
        let count = |count: u64| match self.share {
            true => 100.0 * count as f64 / summary.operations.max(1) as f64,
            false => count as f64,
        };
        match self.figure {
            Figure::Success => summary.success_percent,
            Figure::Rate => summary.succeeded_per_second,
            Figure::Failures => count(summary.operations - summary.succeeded),
            Figure::Retransmissions => count(summary.retransmissions),
            Figure::P50 => latency.p50 as f64,
            Figure::P90 => latency.p90 as f64,
            Figure::P99 => latency.p99 as f64,
            Figure::P999 => latency.p999 as f64,
            Figure::Max => latency.max as f64,
        }
    }
}

impl Figure {
    fn is_time(self) -> bool {
        matches!(
            self,
            Self::P50 | Self::P90 | Self::P99 | Self::P999 | Self::Max
        )
    }

    /// The share of operations that may take longer than it.
    fn above(self) -> f64 {
        match self {
            Self::P50 => 0.5,
            Self::P90 => 0.1,
            Self::P99 => 0.01,
            Self::P999 => 0.001,
            _ => 0.0,
        }
    }

    /// The bound and whether it is a share.
    fn bound(self, name: &str, text: &str) -> Result<(f64, bool), String> {
        let number = |text: &str| -> Result<f64, String> {
            let number: Option<f64> = text.trim().parse().ok();
            let number = number.filter(|n| n.is_finite() && *n >= 0.0);
            number.ok_or_else(|| format!("{text:?} is no number"))
        };
        let share = text.strip_suffix('%');
        match (self, share) {
            (figure, None) if figure.is_time() => {
                let us =
                    parse_us(text).map_err(|e| format!("{e}; a time is, as in {name}<50ms"))?;
                Ok((us as f64, false))
            }
            (figure, Some(_)) if figure.is_time() => {
                Err(format!("{name} is a time, as in {name}<50ms"))
            }
            (Self::Rate, None) => Ok((number(text.strip_suffix("/s").unwrap_or(text))?, false)),
            (Self::Rate, Some(_)) => Err(String::from(
                "rate is operations a second, as in rate>=1000; their share is success>=99.9%",
            )),
            (Self::Success, share) => match number(share.unwrap_or(text))? {
                percent if percent <= 100.0 => Ok((percent, false)),
                _ => Err(String::from("success is a share, as in success>=99.9%")),
            },
            (_, Some(share)) => Ok((number(share)?, true)),
            (_, None) => Ok((number(text)?, false)),
        }
    }
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(at) = text.find(['<', '>', '=']) else {
            return Err(String::from(
                "a bound is NAME, one of >= <= > < ==, VALUE: success>=99.9%, p99<50ms, failures==0",
            ));
        };
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let names = FIGURES.map(|(name, _)| name);
        let Some((_, figure)) = FIGURES.iter().find(|(known, _)| *known == name) else {
            return Err(match nearest(name, names) {
                Some(near) => format!("there is no figure {name:?}; {near}{rest} perhaps"),
                None => format!("there is no figure {name:?}; {} are", names.join(", ")),
            });
        };
        let Some((sign, comparison)) = COMPARISONS.iter().find(|(sign, _)| rest.starts_with(sign))
        else {
            return Err(format!("equality is written ==, as in {name}={rest}"));
        };
        let (bound, share) = figure.bound(name, rest[sign.len()..].trim())?;
        Ok(Self {
            text: text.to_owned(),
            figure: *figure,
            comparison: *comparison,
            bound,
            share,
        })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand operations in two seconds, of which nine failed; 2.5 ms each.
    fn statistics() -> Statistics {
        let mut statistics = Statistics::new([String::from("x")].into_iter());
        let part = &mut statistics.parts[0];
        part.begun = 1000;
        part.succeeded = 991;
        part.failures.timeout = 9;
        for _ in 0..991 {
            part.latency_us.record(2500);
        }
        statistics.retransmissions = 20;
        statistics.elapsed = std::time::Duration::from_secs(2);
        statistics
    }

    #[test]
    fn bounds_hold_or_do_not() {
        let summary = statistics().summary();
        for (text, held) in [
            ("success>=99.1%", true),
            ("success >= 99.2", false),
            ("p99<2.6ms", true),
            ("p50<2ms", false),
            ("p99.9<=0.01s", true),
            ("max>9us", true),
            ("rate>=495", true),
            ("rate>500/s", false),
            ("failures==9", true),
            ("failures<1%", true),
            ("failures==0", false),
            ("retransmissions<=2%", true),
            ("retransmissions<20", false),
        ] {
            let bound: Expectation = text.parse().expect(text);
            assert_eq!(bound.check(&summary).0, held, "{text}");
            assert_eq!(bound.to_string(), text);
        }
    }

    #[test]
    fn a_bound_is_lost_when_too_many_took_too_long() {
        let lost = |text: &str, operations| {
            let bound: Expectation = text.parse().expect(text);
            bound.is_lost(&statistics(), operations)
        };
        assert!(lost("p99<2ms", 10_000.0));
        assert!(!lost("p99<2ms", 1e6));
        assert!(!lost("p99<3ms", 1000.0));
        assert!(!lost("success>=99%", 1000.0));
    }

    #[test]
    fn a_run_without_operations_holds_nothing() {
        let empty = Statistics::new([String::from("x")].into_iter()).summary();
        for text in ["success>=0%", "p99<1s", "failures==0"] {
            let bound: Expectation = text.parse().expect(text);
            assert!(!bound.check(&empty).0, "{text}");
        }
    }

    #[test]
    fn what_is_no_bound_is_told_with_what_is() {
        for (text, says) in [
            ("p98<50ms", "p99<50ms perhaps"),
            ("sucess>=99%", "success>=99% perhaps"),
            ("p99", "NAME, one of"),
            ("p99<50", "50ms"),
            ("p99<5%", "p99 is a time"),
            ("success>=101%", "a share"),
            ("rate>=5%", "operations a second"),
            ("failures=0", "failures==0"),
            ("teapots==0", "retransmissions, p99"),
            ("failures==x", "no number"),
            ("success>=-1", "no number"),
        ] {
            let fault = text.parse::<Expectation>().expect_err(text);
            assert!(fault.contains(says), "{text}: {fault}");
        }
    }
}
