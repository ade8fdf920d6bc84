//! The highest rate that a server sustains, found once and used by every experiment that needs it.

use crate::{
    experiment::Stop,
    lab::{Lab, Plan},
    record::{Sample, Who},
};

/// Below this share of a rate two rates are one.
const STEP: f64 = 1.05;

impl Lab {
    /// The highest rate at which every operation succeeds and 99 % of them within 50 ms, of `sipolis load --find-max`.
    /// A search that was made before in this run isn't made again.
    ///
    /// # Errors
    /// As [`measure`](Self::measure), and when not even the lowest rate is sustained.
    pub(crate) fn sustainable(&mut self, who: Who, plan: &Plan) -> Result<(f64, Sample), Stop> {
        let range = self.size("4000..1000000", "1000..2000");
        // What a server remembers of finished calls grows for longer than half a second; so does a queue.
        let trial = self.size(1.5, 0.2);
        let words = format!("--find-max {range} --trial {trial}");
        let mut plan = plan.clone();
        plan.load = plan.load.with(&words);
        let same = |(w, p, _): &&(Who, Plan, Sample)| *w == who && p.is_same_work(&plan);
        let sample = match self.searches.iter().find(same) {
            Some((_, _, known)) => plan.sample(who, 0, known.load.clone(), known.server.clone()),
            None => {
                let sample = self.measure(who, &plan, 0)?;
                self.searches.push((who, plan, sample.clone()));
                sample
            }
        };
        let found = sample.figure("max_rate").filter(|rate| *rate > 0.0);
        let rate = found.ok_or_else(|| {
            Stop::Fail(format!(
                "{} does not sustain any rate of {range}",
                who.name()
            ))
        })?;
        Ok((rate, sample))
    }

    /// The same by a run for each trial, where one run's end would favour the next: `plan` makes
    /// the load of a rate. `high` is taken as not sustained.
    ///
    /// # Errors
    /// As [`measure`](Self::measure), and when `low` is not sustained.
    pub(crate) fn sustainable_between(
        &mut self,
        who: Who,
        (mut low, mut high): (f64, f64),
        plan: impl Fn(f64) -> Plan,
    ) -> Result<(f64, Vec<Sample>), Stop> {
        let lowest = self.measure(who, &plan(low), 0)?;
        if !sustained(&lowest) {
            let who = who.name();
            return Err(Stop::Fail(format!(
                "{who} does not sustain {low:.0} a second"
            )));
        }
        let mut samples = vec![lowest];
        while high / low > STEP * STEP {
            let rate = (low * high).sqrt();
            let sample = self.measure(who, &plan(rate), 0)?;
            if sustained(&sample) {
                low = rate;
            } else {
                high = rate;
            }
            samples.push(sample);
        }
        Ok((low, samples))
    }
}

/// Milliseconds within which 99 of 100 operations end at a rate that counts as sustained.
const BOUND_MS: f64 = 50.0;

fn sustained(sample: &Sample) -> bool {
    let p99 = sample.figure("latency_us.p99");
    sample.success_percent() >= 100.0 && p99.is_some_and(|us| us < BOUND_MS * 1000.0)
}
