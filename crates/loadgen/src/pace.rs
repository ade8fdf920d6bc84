//! When operations begin.

/// How a part's operations are paced.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rate {
    Constant(f64),
    /// From one to the other, evenly, over the run.
    Ramp(f64, f64),
    /// Each for an equal part of the run.
    Steps(Vec<f64>),
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
}

/// When the operations of an open loop are due. Microseconds of the driver's clock.
pub(crate) struct Schedule {
    rate: Rate,
    begun_us: u64,
    /// Operations that were due before the next one.
    position: f64,
}

impl Schedule {
    /// Begins at `begun_us`. `duration` is what ramps and steps are spread over.
    pub(crate) fn new(
        rate: Rate,
        poisson: bool,
        begun_us: u64,
        duration: Option<std::time::Duration>,
    ) -> Self {
        let _ = (poisson, duration); // TODO(engine): ramps, steps, exponential gaps
        Self {
            rate,
            begun_us,
            position: 0.0,
        }
    }

    /// When the next operation is due.
    pub(crate) fn due_us(&self) -> u64 {
        let rate = match &self.rate {
            Rate::Constant(rate) | Rate::Ramp(rate, _) => *rate,
            Rate::Steps(rates) => rates[0],
        };
        self.begun_us + (self.position * 1e6 / rate) as u64
    }

    /// The next operation has begun.
    pub(crate) fn advance(&mut self) {
        self.position += 1.0;
    }
}
