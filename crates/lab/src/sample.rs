//! What is read out of samples: the figures of the load, and medians over repeats.

use serde_json::Value;

use crate::{
    chart::rounded,
    record::{Curve, Point, Sample, Who},
};

impl Sample {
    /// A figure of the load by its path in the JSON: `latency_us.p50`. `None` where the load has none.
    pub(crate) fn figure(&self, path: &str) -> Option<f64> {
        let mut value = &self.load;
        for name in path.split('.') {
            value = match value {
                Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
                value => value.get(name)?,
            };
        }
        value.as_f64()
    }

    /// A figure of the load that counts something: nothing where it has none.
    pub(crate) fn count(&self, path: &str) -> f64 {
        self.figure(path).unwrap_or(0.0)
    }

    /// Share of the operations that succeeded, percent.
    pub(crate) fn success_percent(&self) -> f64 {
        self.count("success_percent")
    }

    /// Processor time of the server for one operation, microseconds; `None` if there was none.
    pub(crate) fn cpu_us_per_operation(&self) -> Option<f64> {
        self.per_operation(self.server.cpu_us)
    }

    /// The part of it in user space.
    pub(crate) fn user_us_per_operation(&self) -> Option<f64> {
        self.per_operation(self.server.user_us)
    }

    fn per_operation(&self, of_all: f64) -> Option<f64> {
        // A search's figures are of its last trial, the server worked in all of them.
        let trials = self.load.get("steps").and_then(Value::as_array);
        let trials = trials.into_iter().flatten();
        let in_trials: f64 = trials.filter_map(|t| t.get("operations")?.as_f64()).sum();
        let operations = f64::max(self.count("operations"), in_trials);
        (operations > 0.0).then(|| of_all / operations)
    }

    /// Value of something varied, a number.
    pub(crate) fn at(&self, name: &str) -> Option<f64> {
        self.at.get(name).copied()
    }

    /// Value of something varied, no number; empty if this wasn't.
    pub(crate) fn of(&self, name: &str) -> &str {
        self.of.get(name).map_or("", String::as_str)
    }

    /// What was varied, and of whom: `sipolis transport tcp, rate 1000`.
    pub(crate) fn varied(&self) -> String {
        let of = self
            .of
            .iter()
            .map(|(name, value)| format!("{name} {value}"));
        let at = self
            .at
            .iter()
            .map(|(name, value)| format!("{name} {}", rounded(*value)));
        let varied: Vec<String> = of.chain(at).collect();
        format!("{} {}", self.who.name(), varied.join(", "))
    }

    /// One line for the person who waits.
    pub(crate) fn line(&self) -> String {
        let cpu = self.cpu_us_per_operation();
        format!(
            "{:52} {:6.0}/s  {:6.2} % succeeded  p50 {:.2} ms  p99 {:.2} ms  server {:.1} us each, {:.0} % busy",
            self.varied(),
            self.count("operations_per_second"),
            self.success_percent(),
            self.count("latency_us.p50") / 1000.0,
            self.count("latency_us.p99") / 1000.0,
            cpu.unwrap_or(0.0),
            self.server.busy_percent,
        )
    }
}

/// Whose samples there are, each once, in the order of [`Who`].
pub(crate) fn servers(samples: &[Sample]) -> Vec<Who> {
    let mut who: Vec<Who> = samples.iter().map(|sample| sample.who).collect();
    who.sort_unstable();
    who.dedup();
    who
}

/// The middle one, or the mean of the two in the middle; `None` of nothing.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return Some(values[middle]);
    }
    Some(f64::midpoint(
        *values.get(middle.checked_sub(1)?)?,
        values[middle],
    ))
}

impl Point {
    /// Median and spread of what was measured at `x`; `None` of nothing.
    pub(crate) fn of(x: f64, values: &[f64]) -> Option<Self> {
        let y = median(values.iter().copied())?;
        let (low, high) = values
            .iter()
            .fold((y, y), |(low, high), v| (low.min(*v), high.max(*v)));
        Some(Self { x, y, low, high })
    }

    /// A published figure.
    pub(crate) fn exact(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            low: y,
            high: y,
        }
    }
}

impl Curve {
    /// The medians of repeats, by `x`, in its order. Samples without `x` or `y` are left out.
    pub(crate) fn of<'a>(
        who: Who,
        label: &str,
        samples: impl IntoIterator<Item = &'a Sample>,
        x: impl Fn(&Sample) -> Option<f64>,
        y: impl Fn(&Sample) -> Option<f64>,
    ) -> Self {
        let mut values: Vec<(f64, f64)> = samples
            .into_iter()
            .filter_map(|sample| Some((x(sample)?, y(sample)?)))
            .collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let same_x = values.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq());
        let points = same_x.filter_map(|same| {
            let y: Vec<f64> = same.iter().map(|(_, y)| *y).collect();
            Point::of(same[0].0, &y)
        });
        Self {
            who,
            label: label.to_owned(),
            points: points.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;
    use serde_json::json;

    fn sample(rate: f64, load: Value) -> Sample {
        Sample {
            who: Who::Sipolis,
            at: [("rate".to_owned(), rate)].into(),
            of: [("transport".to_owned(), "udp".to_owned())].into(),
            repeat: 0,
            load,
            server: ServerUse {
                cpu_us: 500.0,
                ..ServerUse::default()
            },
        }
    }

    #[test]
    fn figures_of_the_load_are_read_where_it_has_them() {
        let load = json!({"operations": 100, "max_rate": null, "latency_us": {"p50": 7}, "steps": [{"rate": 5.5}]});
        let sample = sample(1.0, load);
        assert_eq!(sample.figure("latency_us.p50"), Some(7.0));
        assert_eq!(sample.figure("steps.0.rate"), Some(5.5));
        assert_eq!(sample.figure("steps.1.rate"), None);
        assert_eq!(sample.figure("max_rate"), None);
        assert_eq!(sample.figure("setup_us.p50"), None);
        assert_eq!(sample.cpu_us_per_operation(), Some(5.0));
    }

    #[test]
    fn the_cost_of_a_search_is_that_of_all_its_trials() {
        let trials = json!({"operations": 10, "steps": [{"operations": 40}, {"operations": 10}]});
        assert_eq!(sample(1.0, trials).cpu_us_per_operation(), Some(10.0));
    }

    #[test]
    fn no_operation_has_no_cost() {
        assert_eq!(
            sample(1.0, json!({"operations": 0})).cpu_us_per_operation(),
            None
        );
    }

    #[test]
    fn the_median_lies_in_the_middle_of_odd_and_even_counts() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median([]), None);
        assert_eq!(median([f64::NAN, 1.0]), Some(1.0));
    }

    #[test]
    fn a_curve_has_one_point_for_all_repeats_in_order() {
        let load = |p50| json!({"latency_us": {"p50": p50}});
        let samples = [
            sample(20.0, load(5)),
            sample(10.0, load(1)),
            sample(10.0, load(4)),
            sample(10.0, load(3)),
            sample(30.0, json!({})),
        ];
        let y = |s: &Sample| s.figure("latency_us.p50");
        let curve = Curve::of(Who::Sipolis, "UDP", &samples, |s| s.at("rate"), y);
        let middle = Point {
            x: 10.0,
            y: 3.0,
            low: 1.0,
            high: 4.0,
        };
        assert_eq!(curve.points, [middle, Point::exact(20.0, 5.0)]);
    }
}
