//! Rates that servers sustain in several ways of transport and connection lifetime, beside a paper's.

use std::ops::Range;

use crate::{
    chart::{each, rounded},
    experiment::Stop,
    lab::{Lab, Plan},
    lifetime::Lifetime,
    record::{
        Agreement, Axis, Bar, Chart, Curve, Finding, Group, Point, Ratio, Sample, Table, Who,
    },
};

/// What one server sustains in one way.
pub(crate) struct Found {
    pub(crate) who: Who,
    pub(crate) lifetime: Lifetime,
    /// Operations per second.
    pub(crate) rate: f64,
}

/// All that was found of a scenario.
pub(crate) struct Sustained {
    /// What an operation is called: `REGISTER`.
    pub(crate) unit: &'static str,
    /// The ways, UDP first, and what the paper's server sustained of each.
    pub(crate) published: &'static [(Lifetime, f64)],
    /// In the order of servers, and of ways for each.
    pub(crate) found: Vec<Found>,
}

/// Shares of the sustainable rate at which response times are taken.
const SHARES: [f64; 6] = [0.1, 0.3, 0.6, 0.8, 1.0, 1.1];

impl Sustained {
    /// The servers, in their order.
    pub(crate) fn who(&self) -> impl Iterator<Item = Who> {
        let udp = self.found.iter().filter(|f| f.lifetime == Lifetime::UDP);
        udp.map(|found| found.who)
    }

    /// The rates of one server, in the order of ways.
    pub(crate) fn rates(&self, who: Who) -> impl Iterator<Item = f64> {
        let of = self.found.iter().filter(move |found| found.who == who);
        of.map(|found| found.rate)
    }

    /// What each server sustains in one way, as a share of its rate over UDP.
    pub(crate) fn of_udp(&self, lifetime: Lifetime) -> Vec<(Who, f64)> {
        let share = |found: &Found| {
            let udp = self.rates(found.who).next().unwrap_or(f64::NAN);
            (found.who, found.rate / udp)
        };
        let of = self.found.iter().filter(|f| f.lifetime == lifetime);
        of.map(share).collect()
    }

    /// What persistent TCP sustains of the rate over UDP: it agrees with what the paper says when the share is within `agrees`.
    pub(crate) fn persistent_of_udp(&self, paper: &str, agrees: Range<f64>) -> Finding {
        let shares = self.of_udp(Lifetime::PERSISTENT);
        let percent = |(who, share): &(Who, f64)| (*who, format!("{:.0} %", 100.0 * share));
        Finding::new(
            paper,
            each(shares.iter().map(percent)),
            Agreement::of(shares.iter().map(|(_, share)| agrees.contains(share))),
        )
    }

    fn published_of_udp(&self, rate: f64) -> f64 {
        rate / self.published[0].1
    }

    /// The two pictures: rates, and shares of the rate over UDP.
    pub(crate) fn charts(&self) -> Vec<Chart> {
        let unit = self.unit;
        let rates = |lifetime| {
            let of = self.found.iter().filter(move |f| f.lifetime == lifetime);
            of.map(|found| (found.who, found.rate)).collect()
        };
        let shares = |lifetime| {
            let shares = self.of_udp(lifetime).into_iter();
            shares.map(|(who, share)| (who, 100.0 * share)).collect()
        };
        vec![
            Chart::bars(
                "sustained",
                &format!("Sustained {unit} rate, and the paper's of 2008"),
                Axis::log(&format!("{unit} per second")),
                self.groups(rates, |paper| paper),
            ),
            Chart::bars(
                "of-udp",
                &format!("Sustained {unit} rate against the same server's over UDP"),
                Axis::linear("% of the rate over UDP"),
                self.groups(shares, |paper| 100.0 * self.published_of_udp(paper)),
            ),
        ]
    }

    /// A group for each way: the paper's bar and each server's.
    fn groups(
        &self,
        here: impl Fn(Lifetime) -> Vec<(Who, f64)>,
        paper: impl Fn(f64) -> f64,
    ) -> Vec<Group> {
        let group = |(lifetime, published): &(Lifetime, f64)| {
            let paper = (Who::Paper, paper(*published));
            let all = [paper].into_iter().chain(here(*lifetime));
            let bars = all.map(|(who, y)| Bar::plain(who, Point::exact(0.0, y)));
            Group::new(lifetime.label, bars)
        };
        self.published.iter().map(group).collect()
    }

    pub(crate) fn table(&self) -> Table {
        let cell = |rate: f64, share: f64| format!("{} ({:.0} %)", rounded(rate), 100.0 * share);
        let row = |(lifetime, paper): &(Lifetime, f64)| {
            let mut row = vec![
                lifetime.label.to_owned(),
                cell(*paper, self.published_of_udp(*paper)),
            ];
            let found = self.found.iter().filter(|f| f.lifetime == *lifetime);
            let shares = self.of_udp(*lifetime).into_iter();
            row.extend(found.zip(shares).map(|(f, (_, share))| cell(f.rate, share)));
            row
        };
        let who = [Who::Paper].into_iter().chain(self.who());
        Table {
            title: format!(
                "Sustained {} per second, and its share of the rate over UDP",
                self.unit
            ),
            columns: [String::new()]
                .into_iter()
                .chain(who.map(|who| who.name().to_owned()))
                .collect(),
            rows: self.published.iter().map(row).collect(),
        }
    }

    pub(crate) fn ratios(&self) -> Vec<Ratio> {
        let ratio = |(lifetime, paper): &(Lifetime, f64)| {
            let paper = (Who::Paper, self.published_of_udp(*paper));
            let label = format!("{}/s sustained, {} / UDP", self.unit, lifetime.label);
            Ratio::new(&label, self.of_udp(*lifetime).into_iter().chain([paper]))
        };
        self.published[1..].iter().map(ratio).collect()
    }

    /// Response times at shares of each sustainable rate, and a little above it. `plan` gives, for
    /// one server in one way, the plan and the most operations of one run.
    ///
    /// # Errors
    /// As [`Lab::sweep`].
    pub(crate) fn sweep(
        &self,
        lab: &mut Lab,
        plan: impl Fn(&Found) -> (Plan, f64),
    ) -> Result<Vec<Sample>, Stop> {
        let mut samples = Vec::new();
        for repeat in 0..lab.repeats {
            for found in &self.found {
                let rates = SHARES.map(|share| (share * found.rate).max(1.0));
                let (plan, most) = plan(found);
                let seconds = lab.size(0.4, 0.2);
                let seconds = f64::min(seconds, most / rates.iter().sum::<f64>());
                samples.extend(lab.sweep(found.who, &plan, (&rates, seconds), repeat)?);
            }
        }
        Ok(samples)
    }

    /// Curves over the rate, of each server in each way.
    pub(crate) fn curves(&self, swept: &[Sample], y: fn(&Sample) -> Option<f64>) -> Vec<Curve> {
        let curve = |found: &Found| {
            let label = found.lifetime.label;
            let of = |s: &&Sample| s.who == found.who && s.of("lifetime") == label;
            let at = |s: &Sample| s.at("rate");
            Curve::of(found.who, label, swept.iter().filter(of), at, y)
        };
        self.found.iter().map(curve).collect()
    }

    /// The two pictures over the rate: response time and processor.
    pub(crate) fn swept(&self, swept: &[Sample], figures: (&str, &str)) -> Vec<Chart> {
        let rate = || Axis::log(&format!("{} per second", self.unit));
        let (response, processor) = figures;
        vec![
            Chart::lines(
                "response",
                &format!("Response time of {} ({response})", self.unit),
                rate(),
                Axis::log("median response time, ms"),
                self.curves(swept, |s| s.figure("latency_us.p50").map(|us| us / 1000.0)),
            ),
            Chart::lines(
                "processor",
                &format!("Processor of the server ({processor})"),
                rate(),
                Axis::linear("share of one core, %"),
                self.curves(swept, |s| Some(s.server.busy_percent)),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: [(Lifetime, f64); 2] = [(Lifetime::UDP, 900.0), (Lifetime::PERSISTENT, 700.0)];

    fn found(who: Who, lifetime: Lifetime, rate: f64) -> Found {
        Found {
            who,
            lifetime,
            rate,
        }
    }

    #[test]
    fn shares_are_of_the_same_servers_rate_over_udp() {
        let sustained = Sustained {
            unit: "call",
            published: &PUBLISHED,
            found: vec![
                found(Who::Kamailio, Lifetime::UDP, 200.0),
                found(Who::Kamailio, Lifetime::PERSISTENT, 50.0),
                found(Who::Sipolis, Lifetime::UDP, 1000.0),
                found(Who::Sipolis, Lifetime::PERSISTENT, 900.0),
            ],
        };
        let shares = sustained.of_udp(Lifetime::PERSISTENT);
        assert_eq!(shares, [(Who::Kamailio, 0.25), (Who::Sipolis, 0.9)]);
        let row = &sustained.table().rows[1];
        assert_eq!(row[1..], ["700 (78 %)", "50 (25 %)", "900 (90 %)"]);
        assert_eq!(sustained.ratios().len(), 1);
    }
}
