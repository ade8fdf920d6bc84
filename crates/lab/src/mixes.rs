//! Traffic of many kinds at once: what of each kind was offered and answered, and what it cost the server.

use crate::{
    chart::each,
    experiment::Stop,
    lab::{Lab, Plan},
    record::{Agreement, Axis, Bar, Chart, Finding, Group, Point, Sample, Table, Who},
    report::readable,
    sample::{median, servers},
};

/// One kind of traffic in a sample.
struct Part<'a> {
    name: &'a str,
    /// Operations a second that were due.
    offered: f64,
    /// Operations a second that were begun and succeeded: less than was due when the load itself was late.
    achieved: f64,
    success_percent: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Seconds in which the operations were begun: those in which they were due, and how late the load was at the end.
fn seconds(sample: &Sample) -> f64 {
    let figure = |name| sample.figure(name).unwrap_or(f64::NAN);
    figure("operations") / figure("offered_per_second") + figure("late_us.p99") / 1e6
}

/// All kinds of traffic of a sample; what the load did not give is not a number.
fn parts(sample: &Sample) -> impl Iterator<Item = Part<'_>> {
    let parts = sample.load.get("parts").and_then(|parts| parts.as_array());
    parts
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, part)| {
            let figure = |name| {
                sample
                    .figure(&format!("parts.{index}.{name}"))
                    .unwrap_or(f64::NAN)
            };
            // Of no operation there is no time, and none succeeded or failed.
            let any = figure("operations") > 0.0;
            let of_any = |name| if any { figure(name) } else { f64::NAN };
            Part {
                name: part["name"].as_str().unwrap_or("?"),
                offered: figure("offered_per_second"),
                achieved: figure("succeeded") / seconds(sample),
                success_percent: of_any("success_percent"),
                p50_ms: of_any("latency_us.p50") / 1_000.0,
                p99_ms: of_any("latency_us.p99") / 1_000.0,
            }
        })
}

impl Lab {
    /// Runs points against the SIP servers in turn, once each: most of the time goes into registering so many users.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub(crate) fn measure_once(&mut self, plans: &[Plan]) -> Result<Vec<Sample>, Stop> {
        let mut samples = Vec::new();
        for plan in plans {
            for who in self.sip_servers() {
                samples.push(self.measure(who, plan, 0)?);
            }
        }
        if self.repeats > 1 {
            self.warn("Each point was measured once: most of the time goes into registering so many users.");
        }
        Ok(samples)
    }
}

/// Samples of one mix, of which `users` is varied.
pub(crate) struct Mixed<'a> {
    pub(crate) samples: &'a [Sample],
}

impl<'a> Mixed<'a> {
    /// The numbers of users, in order, each once.
    fn sizes(&self) -> Vec<f64> {
        let mut sizes: Vec<f64> = self.samples.iter().filter_map(|s| s.at("users")).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        sizes
    }

    pub(crate) fn of(&self, who: Who, users: f64) -> impl Iterator<Item = &'a Sample> {
        self.samples
            .iter()
            .filter(move |s| s.who == who && s.at("users") == Some(users))
    }

    /// How busy a server's core was.
    pub(crate) fn busy(&self, who: Who, users: f64) -> Option<Point> {
        let busy: Vec<f64> = self.of(who, users).map(|s| s.server.busy_percent).collect();
        Point::of(users, &busy)
    }

    pub(crate) fn busy_chart(&self, title: &str) -> Chart {
        let group = |users: f64| {
            let bar = |who| Some(Bar::plain(who, self.busy(who, users)?));
            let name = format!("{} users", readable(users));
            Group::new(&name, servers(self.samples).into_iter().filter_map(bar))
        };
        let groups = self.sizes().into_iter().map(group).collect();
        Chart::bars("busy", title, Axis::linear("server's core busy, %"), groups)
    }

    /// A row for each kind of traffic of each size and server.
    pub(crate) fn table(&self) -> Table {
        let mut rows = Vec::new();
        for users in self.sizes() {
            for who in servers(self.samples) {
                rows.extend(self.rows(who, users));
            }
        }
        let columns = [
            "traffic",
            "users",
            "offered/s",
            "achieved/s",
            "succeeded",
            "p50, ms",
            "p99, ms",
        ];
        Table {
            title: "Each kind of traffic; a call's times are from its INVITE to the 200, with the ringing".to_owned(),
            columns: columns.map(str::to_owned).into(),
            rows,
        }
    }

    fn rows(&self, who: Who, users: f64) -> Vec<Vec<String>> {
        let mut names: Vec<&str> = Vec::new();
        for part in self.of(who, users).flat_map(parts) {
            if !names.contains(&part.name) {
                names.push(part.name);
            }
        }
        let row = |name: &&str| {
            let all = || {
                self.of(who, users)
                    .flat_map(parts)
                    .filter(|p| p.name == *name)
            };
            let middle = |of: fn(&Part<'_>) -> f64| {
                readable(median(all().map(|p| of(&p))).unwrap_or(f64::NAN))
            };
            vec![
                format!("{}, {name}", who.name()),
                readable(users),
                middle(|p| p.offered),
                middle(|p| p.achieved),
                format!("{} %", middle(|p| p.success_percent)),
                middle(|p| p.p50_ms),
                middle(|p| p.p99_ms),
            ]
        };
        names.iter().map(row).collect()
    }

    /// Whether a server took the traffic of so many users, every operation of it in every repeat; `None` where it wasn't measured.
    pub(crate) fn taken(&self, paper: &str, users: f64) -> Option<Finding> {
        let worst = |who| {
            let success: Vec<f64> = self.of(who, users).map(Sample::success_percent).collect();
            let worst = success.iter().copied().reduce(f64::min)?;
            let late = self
                .of(who, users)
                .any(|s| s.load["bottleneck"].is_string());
            Some((who, worst, late))
        };
        let worst: Vec<(Who, f64, bool)> = servers(self.samples)
            .into_iter()
            .filter_map(worst)
            .collect();
        if worst.is_empty() {
            return None;
        }
        let text = |(who, success, late): &(Who, f64, bool)| {
            let busy = self.busy(*who, users).map_or(f64::NAN, |p| p.y.round());
            let late = if *late {
                " (offered more slowly: the load was the bottleneck)"
            } else {
                ""
            };
            let text = format!(
                "{} % succeeded with its core {} % busy{late}",
                readable(*success),
                readable(busy)
            );
            (*who, text)
        };
        Some(Finding::new(
            paper,
            format!(
                "{} users: {}",
                readable(users),
                each(worst.iter().map(text))
            ),
            // What was not offered in time shows nothing of the server.
            Agreement::of(
                worst
                    .iter()
                    .filter(|(_, _, late)| !late)
                    .map(|(_, success, _)| *success >= 100.0),
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUse;
    use serde_json::json;

    fn sample(users: f64, success: f64, busy_percent: f64) -> Sample {
        let part = |name: &str, offered: u32, success: f64| {
            json!({"name": name, "offered_per_second": offered, "success_percent": success, "operations": 200, "succeeded": 2.0 * success,
                   "latency_us": {"p50": 1500, "p99": 9000}})
        };
        Sample {
            who: Who::Sipolis,
            at: [("users".to_owned(), users)].into(),
            of: [].into(),
            repeat: 0,
            load: json!({"success_percent": success, "offered_per_second": 140, "operations": 280, "late_us": {"p99": 500_000}, "parts": [part("calls", 100, success), part("refreshes", 40, 100.0)]}),
            server: ServerUse {
                busy_percent,
                ..ServerUse::default()
            },
        }
    }

    #[test]
    fn each_kind_of_traffic_has_a_row_with_medians() {
        let samples = [
            sample(1_000.0, 100.0, 5.0),
            sample(1_000.0, 50.0, 7.0),
            sample(500.0, 100.0, 3.0),
        ];
        let mixed = Mixed { samples: &samples };
        let rows = mixed.table().rows;
        assert_eq!(rows.len(), 4);
        assert_eq!(
            rows[2],
            ["sipolis, calls", "1,000", "100", "60", "75 %", "1.5", "9"]
        );
        assert_eq!(mixed.busy(Who::Sipolis, 1_000.0).unwrap().y, 6.0);
    }

    #[test]
    fn traffic_is_taken_only_when_every_repeat_succeeds() {
        let samples = [
            sample(1_000.0, 100.0, 5.0),
            sample(1_000.0, 99.5, 7.0),
            sample(500.0, 100.0, 3.0),
        ];
        let mixed = Mixed { samples: &samples };
        assert_eq!(mixed.taken("", 500.0).unwrap().agrees, Agreement::Yes);
        let finding = mixed.taken("", 1_000.0).unwrap();
        assert_eq!(finding.agrees, Agreement::No);
        assert!(
            finding
                .here
                .contains("sipolis 99.5 % succeeded with its core 6 % busy"),
            "{}",
            finding.here
        );
        assert!(mixed.taken("", 7.0).is_none());
        let mut late = samples;
        late[2].load["bottleneck"] = json!("this tool");
        let finding = Mixed { samples: &late }.taken("", 500.0).unwrap();
        assert_eq!(finding.agrees, Agreement::NotComparable);
    }
}
