//! When operations begin.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// How a part's operations are paced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Pace {
    /// Closed loop: so many under way; one begins when one ends.
    Outstanding(usize),
    /// Open loop: at times that do not depend on the server.
    Open {
        /// Operations a second, over the run.
        rate: Rate,
        /// Gaps are exponentially distributed instead of equal.
        poisson: bool,
    },
}

/// Operations a second, over the length of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Rate {
    Constant(f64),
    /// From one to the other, evenly, over the run.
    Ramp(f64, f64),
    /// Each for an equal part of the run.
    Steps(Vec<f64>),
}

impl Pace {
    /// One thread's share of `of`: number `number`.
    pub(crate) fn share(&self, number: usize, of: usize) -> Self {
        match self {
            Self::Outstanding(n) => Self::Outstanding(share(*n, number, of)),
            Self::Open { rate, poisson } => Self::Open {
                rate: rate.times(1.0 / of as f64),
                poisson: *poisson,
            },
        }
    }
}

/// Share `number` of `of` shares of a whole. They differ by one at most, and sum up to it.
pub(crate) fn share(whole: usize, number: usize, of: usize) -> usize {
    whole / of + usize::from(number < whole % of)
}

impl Rate {
    /// Times a factor: a thread's share.
    pub(crate) fn times(&self, factor: f64) -> Self {
        match self {
            Self::Constant(rate) => Self::Constant(rate * factor),
            Self::Ramp(from, to) => Self::Ramp(from * factor, to * factor),
            Self::Steps(rates) => Self::Steps(rates.iter().map(|r| r * factor).collect()),
        }
    }

    /// Over the length of a run.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Self::Constant(rate) => *rate,
            Self::Ramp(from, to) => (from + to) / 2.0,
            Self::Steps(rates) => rates.iter().sum::<f64>() / rates.len().max(1) as f64,
        }
    }

    /// The rates of its steps; none when it has none.
    pub(crate) fn steps(&self) -> &[f64] {
        match self {
            Self::Steps(rates) => rates,
            _ => &[],
        }
    }
}

/// When the operations of an open loop are due. Microseconds of the driver's clock.
///
/// Operation n is due when the rate, summed up over the time since the begin, reaches n. With
/// exponential gaps, n grows by a draw of mean 1 instead of by 1: a Poisson process, whatever the
/// rate does meanwhile.
pub(crate) struct Schedule {
    rate: Rate,
    random: Option<Random>,
    begun_us: u64,
    length_us: f64,
    /// Operations that were due before the next one.
    position: f64,
    /// The step that the next operation belongs to, and the operations of the steps before.
    step: usize,
    step_position: f64,
    next_us: u64,
}

impl Schedule {
    /// Never.
    pub(crate) const NEVER: u64 = u64::MAX;

    /// Begins at `begun_us`. `length` is what ramps and steps are spread over. `random` draws the
    /// gaps, which are equal without it. `phase`, at least 0 and less than 1, shifts equal gaps, so that the threads of a load
    /// take turns.
    pub(crate) fn new(
        rate: Rate,
        random: Option<Random>,
        begun_us: u64,
        length: Duration,
        phase: f64,
    ) -> Self {
        let mut schedule = Self {
            rate,
            random,
            begun_us,
            length_us: length.as_secs_f64() * 1e6,
            position: phase,
            step: 0,
            step_position: 0.0,
            next_us: 0,
        };
        if let Some(random) = &mut schedule.random {
            schedule.position = random.exponential();
        }
        schedule.next_us = schedule.compute();
        schedule
    }

    /// When the next operation is due, or [`Self::NEVER`].
    pub(crate) fn due_us(&self) -> u64 {
        self.next_us
    }

    /// Which of the rate's steps the next operation belongs to.
    pub(crate) fn step(&self) -> usize {
        self.step
    }

    /// The next operation has begun.
    pub(crate) fn advance(&mut self) {
        self.position += match &mut self.random {
            Some(random) => random.exponential(),
            None => 1.0,
        };
        self.next_us = self.compute();
    }

    fn compute(&mut self) -> u64 {
        match self.after_us() {
            Some(after) => self.begun_us + after as u64,
            None => Self::NEVER,
        }
    }

    /// Microseconds from the begin to the operation at `position`; `None`: the rate's sum does not reach it.
    fn after_us(&mut self) -> Option<f64> {
        let (position, length) = (self.position, self.length_us / 1e6);
        let seconds = match &self.rate {
            Rate::Constant(rate) => position / rate,
            // The sum is from*t + slope/2*t^2; solved for t in the form that is stable at slope 0.
            Rate::Ramp(from, to) if from.max(*to) <= 0.0 => return None,
            Rate::Ramp(from, to) => {
                let slope = (to - from) / length;
                let root = (from * from + 2.0 * slope * position).sqrt();
                let seconds = 2.0 * position / (from + root);
                match position > 0.0 {
                    true if seconds <= length => seconds,
                    true => return None,
                    false => 0.0,
                }
            }
            Rate::Steps(rates) => {
                let each = length / rates.len() as f64;
                while position - self.step_position >= rates.get(self.step)? * each {
                    self.step_position += rates[self.step] * each;
                    self.step += 1;
                }
                self.step as f64 * each + (position - self.step_position) / rates[self.step]
            }
        };
        (seconds.is_finite() && seconds < 1e12).then_some(seconds * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(rate: Rate, poisson: bool, seconds: u64) -> Vec<(u64, usize)> {
        let random = poisson.then(|| Random::new(5));
        let length = Duration::from_secs(seconds);
        let mut schedule = Schedule::new(rate, random, 1_000_000, length, 0.0);
        let end_us = 1_000_000 + seconds * 1_000_000;
        std::iter::from_fn(|| {
            let due = (schedule.due_us(), schedule.step());
            schedule.advance();
            (due.0 < end_us).then_some(due)
        })
        .collect()
    }

    #[test]
    fn a_constant_rate_is_due_at_equal_gaps_and_threads_take_turns() {
        let due = due(Rate::Constant(4.0), false, 1);
        let times: Vec<u64> = due.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [1_000_000, 1_250_000, 1_500_000, 1_750_000]);
        let half = Rate::Constant(4.0).times(0.5);
        let second = Schedule::new(half, None, 1_000_000, Duration::from_secs(1), 0.5);
        assert_eq!(second.due_us(), 1_250_000);
    }

    #[test]
    fn a_ramp_has_its_mean_and_ends_with_the_run() {
        for (from, to) in [(0.0, 200.0), (200.0, 0.0), (100.0, 100.0)] {
            let due = due(Rate::Ramp(from, to), false, 10);
            assert!(due.len().abs_diff(1000) <= 1, "{from}..{to}: {}", due.len());
            let first_half = due.iter().filter(|(at, _)| *at < 6_000_000).count();
            let expected = (from * 0.75 + to * 0.25) * 5.0;
            assert!(
                (first_half as f64 - expected).abs() <= 1.0,
                "{from}..{to}: {first_half}"
            );
        }
    }

    #[test]
    fn each_step_has_its_rate_and_its_part_of_the_time() {
        let due = due(Rate::Steps(vec![10.0, 0.0, 30.0]), false, 6);
        let of = |step| due.iter().filter(move |(_, s)| *s == step);
        assert_eq!([0, 1, 2].map(|s| of(s).count()), [20, 0, 60]);
        assert!(of(0).all(|(at, _)| (1_000_000..3_000_000).contains(at)));
        assert!(of(2).all(|(at, _)| (5_000_000..7_000_000).contains(at)));
    }

    #[test]
    fn exponential_gaps_have_the_rate_and_spread_of_a_poisson_process() {
        let due = due(Rate::Constant(1000.0), true, 100);
        assert!((99_000..101_000).contains(&due.len()), "{}", due.len());
        let short = due.windows(2).filter(|w| w[1].0 - w[0].0 < 693).count();
        let share = short as f64 / due.len() as f64; // half of them, by the median of ln 2
        assert!((0.49..0.51).contains(&share), "{share}");
    }

    #[test]
    fn a_rate_of_zero_is_never_due() {
        assert!(due(Rate::Constant(0.0), false, 1).is_empty());
        assert!(due(Rate::Ramp(0.0, 0.0), false, 1).is_empty());
        assert!(due(Rate::Steps(vec![0.0]), false, 1).is_empty());
    }

    #[test]
    fn shares_sum_up_to_the_whole() {
        for (whole, of) in [(10, 3), (2, 5), (0, 2), (7, 7)] {
            let shares = (0..of).map(|n| share(whole, n, of));
            assert_eq!(shares.sum::<usize>(), whole);
        }
    }
}
