//! The search of the highest rate that a server sustains.

use std::{io, time::Duration};

use crate::{
    crew::Crew,
    driver::Work,
    expect::Expectation,
    pace::{Pace, Rate},
    screen::Screen,
    statistics::Statistics,
    stop::Stop,
    summary::Step,
    view,
};

/// What a search came to.
pub(crate) struct Found {
    /// Operations a second; `None` when no rate was sustained.
    pub(crate) rate: Option<f64>,
    /// Of the trial that confirmed it, else of the last one.
    pub(crate) statistics: Statistics,
    pub(crate) trials: Vec<Step>,
    /// What kept a higher rate from being sustained, if that was not the server.
    pub(crate) bottleneck: Option<String>,
}

/// How to search.
pub(crate) struct Settings {
    /// Where it begins and what it does not exceed; measured and unbounded without.
    pub(crate) range: Option<(f64, f64)>,
    /// What a rate that is sustained holds.
    pub(crate) within: Expectation,
    /// Length of a trial.
    pub(crate) trial: Duration,
    pub(crate) poisson: bool,
    /// Share of each part in the rate.
    pub(crate) shares: Vec<f64>,
    /// The rate to begin with where it can't be measured.
    pub(crate) nominal: Option<f64>,
}

/// Which rate is tried next. It knows nothing but which were sustained.
struct Search {
    first: f64,
    ceiling: f64,
    /// Sustained, each higher than the one before.
    sustained: Vec<f64>,
    /// The lowest that was not.
    too_high: Option<f64>,
    confirming: bool,
    trials: u32,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Next {
    /// Below what the search is after: it may be short.
    Grow(f64),
    Try(f64),
    Found(Option<f64>),
}

/// How near the highest sustained rate and the lowest that was not have to be.
const PRECISION: f64 = 1.05;
/// A search that takes more has a server that is not the same from one trial to the next.
const TRIALS_MAX: u32 = 40;
/// A lower rate is none.
const RATE_MIN: f64 = 0.5;
/// Part of a trial's length that is enough while the rate still doubles.
const GROWTH: f64 = 1.0 / 3.0;

impl Search {
    fn new(first: f64, ceiling: f64) -> Self {
        Self {
            first,
            ceiling,
            sustained: Vec::new(),
            too_high: None,
            confirming: false,
            trials: 0,
        }
    }

    fn next(&mut self) -> Next {
        if self.trials >= TRIALS_MAX {
            return Next::Found(None);
        }
        match (self.sustained.last().copied(), self.too_high) {
            (None, None) => Next::Grow(self.first),
            (None, Some(high)) if high / 2.0 < RATE_MIN => Next::Found(None),
            (None, Some(high)) => Next::Try(high / 2.0),
            (Some(low), None) if low < self.ceiling => Next::Grow((2.0 * low).min(self.ceiling)),
            (Some(low), Some(high)) if high > low * PRECISION => {
                Next::Try(f64::midpoint(low, high))
            }
            (Some(low), _) => {
                self.confirming = true;
                Next::Try(low)
            }
        }
    }

    /// A trial has ended. Returns the highest rate when this was its confirmation.
    fn tried(&mut self, rate: f64, sustained: bool) -> Option<f64> {
        self.trials += 1;
        let confirming = std::mem::take(&mut self.confirming);
        match (sustained, confirming) {
            (true, true) => return Some(rate),
            (true, false) => self.sustained.push(rate),
            (false, _) => {
                self.sustained.retain(|low| *low < rate);
                self.too_high = Some(rate);
            }
        }
        None
    }
}

/// Searches.
///
/// # Errors
/// A poller fails, or all processes have died.
pub(crate) fn search(
    crew: &mut Crew,
    settings: &Settings,
    stop: &Stop,
    screen: &mut Screen,
) -> io::Result<Found> {
    let first = first_rate(crew, settings, screen)?;
    let ceiling = settings.range.map_or(f64::MAX, |(_, high)| high);
    let mut search = Search::new(first.min(ceiling), ceiling);
    let mut found = Found {
        rate: None,
        statistics: Statistics::default(),
        trials: Vec::new(),
        bottleneck: None,
    };
    while !stop.is_asked_for_good() {
        let (rate, length) = match search.next() {
            Next::Grow(rate) => (rate, settings.trial.mul_f64(GROWTH)),
            Next::Try(rate) => (rate, settings.trial),
            Next::Found(_) => break,
        };
        screen.trial(view::Trial {
            number: found.trials.len() + 1,
            rate,
            length,
            sustained: search.sustained.last().copied(),
        });
        let trial = Trial::run(crew, settings, rate, length, stop, screen)?;
        let sustained = trial.step.sustained;
        if !sustained {
            found.bottleneck.clone_from(&trial.step.bottleneck);
        }
        found.trials.push(trial.step);
        found.statistics = trial.statistics;
        found.rate = search.tried(rate, sustained);
        if found.rate.is_some() {
            break;
        }
        if !sustained {
            recover(crew, settings, stop, screen)?;
        }
    }
    Ok(found)
}

struct Trial {
    statistics: Statistics,
    step: Step,
}

impl Trial {
    fn run(
        crew: &mut Crew,
        settings: &Settings,
        rate: f64,
        length: Duration,
        stop: &Stop,
        screen: &mut Screen,
    ) -> io::Result<Self> {
        crew.pace(&settings.paces(rate));
        stop.renew();
        let work = Work {
            operations: None,
            duration: Some(length),
        };
        let expected = rate * length.as_secs_f64();
        let statistics = crew.run(work, &mut |statistics| {
            screen.running(statistics);
            if statistics.failed() > 0 || settings.within.is_lost(statistics, expected) {
                stop.ask(); // it can't be sustained any more
            }
        })?;
        let limit_us = settings.within.time_us().unwrap_or(LATE_US);
        let late_us = statistics.late_us.0.value_at_quantile(0.99);
        let summary = statistics.summary();
        let well = summary.operations > 0 && summary.succeeded == summary.operations;
        let whole = statistics.elapsed >= length.mul_f64(0.9) && !stop.is_asked();
        let sustained = well && whole && settings.within.check(&summary).0 && late_us <= limit_us;
        let lagged = late_us > limit_us || statistics.busy_percent > 95.0;
        let bottleneck = (!sustained && lagged).then(|| {
            String::from("the tool was the limit, not the server: give it more --threads or --processes, and processors of its own")
        });
        let mut step = Step::of_trial(rate, length, &summary);
        step.sustained = sustained;
        step.bottleneck = bottleneck;
        Ok(Self { statistics, step })
    }
}

/// Lag of the tool that is too much where the bound is no time.
const LATE_US: u64 = 50_000;
/// How often a server is looked at whether it has recovered.
const RECOVERY_LOOKS: u32 = 10;

/// Waits until the server answers one at a time again within the bound, or has had its chance.
fn recover(
    crew: &mut Crew,
    settings: &Settings,
    stop: &Stop,
    screen: &mut Screen,
) -> io::Result<()> {
    let limit_us = settings.within.time_us().unwrap_or(LATE_US);
    crew.pace(&vec![Pace::Outstanding(1); settings.shares.len()]);
    for _ in 0..RECOVERY_LOOKS {
        if stop.is_asked_for_good() {
            break;
        }
        stop.renew();
        screen.recovering();
        let work = Work {
            operations: Some(20),
            duration: Some(Duration::from_secs(1)),
        };
        let summary = crew
            .run(work, &mut |statistics| screen.running(statistics))?
            .summary();
        if summary.succeeded == summary.operations && summary.latency_us.p90 <= limit_us {
            break;
        }
    }
    Ok(())
}

/// Where to begin: as told, or an eighth of what a closed loop comes to.
fn first_rate(crew: &mut Crew, settings: &Settings, screen: &mut Screen) -> io::Result<f64> {
    if let Some((low, _)) = settings.range {
        return Ok(low);
    }
    if let Some(nominal) = settings.nominal {
        return Ok(nominal);
    }
    screen.measuring();
    crew.pace(&[Pace::Outstanding(16)]);
    let work = Work {
        operations: None,
        duration: Some(Duration::from_secs(1)),
    };
    let summary = crew
        .run(work, &mut |statistics| screen.running(statistics))?
        .summary();
    let rate = summary.succeeded_per_second / 8.0;
    Ok(rate.max(crate::planning::LOWEST_RATE))
}

impl Settings {
    fn paces(&self, rate: f64) -> Vec<Pace> {
        let pace = |share: &f64| Pace::Open {
            rate: Rate::Constant(rate * share),
            poisson: self.poisson,
        };
        self.shares.iter().map(pace).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a search finds, and with how many trials, against a server that decides by rate and trial.
    fn found(first: f64, ceiling: f64, sustains: impl Fn(f64, u32) -> bool) -> (Option<f64>, u32) {
        let mut search = Search::new(first, ceiling);
        loop {
            let rate = match search.next() {
                Next::Grow(rate) | Next::Try(rate) => rate,
                Next::Found(rate) => return (rate, search.trials),
            };
            let sustained = sustains(rate, search.trials);
            if let Some(rate) = search.tried(rate, sustained) {
                return (Some(rate), search.trials);
            }
        }
    }

    #[test]
    fn what_is_found_is_within_five_percent_below_what_the_server_sustains() {
        for capacity in [3.0, 99.0, 100.0, 101.0, 4321.0, 250_000.0, 9e6] {
            let (rate, trials) = found(100.0, f64::MAX, |rate, _| rate <= capacity);
            let rate = rate.expect("is found");
            assert!(
                rate <= capacity && rate * PRECISION >= capacity,
                "{capacity}: {rate}"
            );
            assert!(trials <= 26, "{capacity}: {trials}");
        }
    }

    #[test]
    fn a_range_is_not_exceeded() {
        let (rate, trials) = found(100.0, 1000.0, |_, _| true);
        assert_eq!(rate, Some(1000.0));
        assert_eq!(trials, 6, "100, 200, 400, 800, 1000 and its confirmation");
    }

    #[test]
    fn a_server_that_sustains_nothing_ends_the_search() {
        let (rate, trials) = found(100.0, f64::MAX, |_, _| false);
        assert_eq!(rate, None);
        assert!(trials < 12, "{trials}");
    }

    #[test]
    fn a_rate_that_is_not_confirmed_is_not_found() {
        // The fifth trial is the last that reaches more than 500 a second.
        let (rate, _) = found(100.0, f64::MAX, |rate, trial| {
            rate <= if trial < 5 { 1000.0 } else { 500.0 }
        });
        let rate = rate.expect("is found");
        assert!((500.0 / PRECISION..=500.0).contains(&rate), "{rate}");
    }

    #[test]
    fn a_server_that_changes_its_mind_ends_the_search_too() {
        let (rate, trials) = found(100.0, f64::MAX, |_, trial| trial % 2 == 0);
        assert!(trials <= TRIALS_MAX);
        assert!(rate.is_none_or(|rate| rate > 0.0));
    }
}
