use std::time::Instant;

/// A part of the work of a thread. Of those that the sockets do not see, [`crate::Handler`]s tell by [`Stages::enter`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Waiting for something to do; a call of the poller each.
    Wait,
    /// System calls that receive: a batch of datagrams, or what a connection has; the end of a connection is read, too.
    Read,
    /// Accepting, opening and closing connections; looking for one more to accept counts.
    Connections,
    /// Finding out what the bytes are: datagrams that are no message, the first and the last byte of a message in a stream.
    Classify,
    /// Taking a message to pieces.
    Parse,
    /// Looking up and changing what is stored.
    LookUp,
    /// Everything else that a message makes its receiver do, up to the bytes of the answer.
    Decide,
    /// System calls that send: a batch of datagrams, or what waits for a connection.
    Write,
    /// The event loop itself; a turn each.
    Other,
}

impl Stage {
    const ALL: [Self; 9] = [
        Self::Wait,
        Self::Read,
        Self::Connections,
        Self::Classify,
        Self::Parse,
        Self::LookUp,
        Self::Decide,
        Self::Write,
        Self::Other,
    ];

    /// As status and reports have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Read => "read",
            Self::Connections => "connections",
            Self::Classify => "classify",
            Self::Parse => "parse",
            Self::LookUp => "look_up",
            Self::Decide => "decide",
            Self::Write => "write",
            Self::Other => "other",
        }
    }
}

/// Measures how long a thread is in each stage. Off unless [`crate::Options::stage_times`]; off, it costs a branch that is always the same.
pub struct Stages(Option<Box<Clock>>);

/// What was spent in one stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StageTime {
    /// Which.
    pub stage: Stage,
    /// Times that it was entered; going back to it from another one that was inside of it does not count.
    pub calls: u64,
    /// Nanoseconds in it, without those in other stages and without the cost of measuring.
    pub nanoseconds: u64,
}

/// What was spent in all stages, since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StageTimes {
    /// Each of them, in the order in which a message goes through them.
    pub each: [StageTime; Stage::ALL.len()],
    /// What going from one stage to the next was found to cost at the start, in picoseconds. It has been subtracted for each.
    pub switch_ps: u64,
}

struct Clock {
    stage: Stage,
    since: Instant,
    spent: [Spent; Stage::ALL.len()],
    switch_ps: u64,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    calls: u64,
    /// Times that it was left: each has cost one reading of the clock.
    visits: u64,
    nanoseconds: u64,
}

impl Stages {
    pub(crate) fn new(on: bool) -> Self {
        Self(on.then(|| Box::new(Clock::new(switch_cost_ps()))))
    }

    /// Begins a stage; returns the one that it interrupts, for [`Self::back_to`].
    #[inline]
    pub fn enter(&mut self, stage: Stage) -> Stage {
        match &mut self.0 {
            None => stage,
            Some(clock) => {
                clock.spent[stage as usize].calls += 1;
                clock.switch(stage)
            }
        }
    }

    /// Goes on with a stage that was interrupted.
    #[inline]
    pub fn back_to(&mut self, stage: Stage) {
        if let Some(clock) = &mut self.0
            && clock.stage != stage
        {
            clock.switch(stage);
        }
    }

    /// The stage that it is in.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Stage {
        self.0.as_ref().map_or(Stage::Wait, |clock| clock.stage)
    }

    /// What was spent so far, up to the last change of stage; `None`: it is off.
    #[must_use]
    pub fn times(&self) -> Option<StageTimes> {
        self.0.as_ref().map(|clock| clock.times())
    }
}

impl StageTimes {
    /// Adds another thread's; the cost of measuring becomes the larger one.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.each.iter_mut().zip(&other.each) {
            sum.calls += more.calls;
            sum.nanoseconds += more.nanoseconds;
        }
        self.switch_ps = self.switch_ps.max(other.switch_ps);
    }
}

impl Clock {
    fn new(switch_ps: u64) -> Self {
        Self {
            // There is nothing to do before the first turn.
            stage: Stage::Wait,
            since: Instant::now(),
            spent: [Spent::default(); Stage::ALL.len()],
            switch_ps,
        }
    }

    #[cold]
    #[inline(never)]
    fn switch(&mut self, stage: Stage) -> Stage {
        let now = Instant::now();
        let spent = &mut self.spent[self.stage as usize];
        spent.nanoseconds += now.duration_since(self.since).as_nanos() as u64;
        spent.visits += 1;
        self.since = now;
        std::mem::replace(&mut self.stage, stage)
    }

    fn times(&self) -> StageTimes {
        StageTimes {
            each: Stage::ALL.map(|stage| {
                let spent = self.spent[stage as usize];
                let cost = spent.visits.saturating_mul(self.switch_ps) / 1000;
                StageTime {
                    stage,
                    calls: spent.calls,
                    nanoseconds: spent.nanoseconds.saturating_sub(cost),
                }
            }),
            switch_ps: self.switch_ps,
        }
    }
}

/// What it costs to go from one stage to the next here, in picoseconds: the least of some tries, so that rather too little than too much is
/// subtracted.
fn switch_cost_ps() -> u64 {
    const SWITCHES: u64 = 1000;
    let mut clock = Clock::new(0);
    let tries = (0..16).map(|_| {
        let began = Instant::now();
        for _ in 0..SWITCHES {
            clock.switch(Stage::Other);
        }
        began.elapsed().as_nanos() as u64
    });
    tries.min().unwrap_or(0) * 1000 / SWITCHES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(stages: &Stages) -> Vec<(&'static str, u64)> {
        let times = stages.times().expect("on");
        let called = times.each.iter().filter(|time| time.calls > 0);
        called.map(|time| (time.stage.name(), time.calls)).collect()
    }

    #[test]
    fn a_stage_counts_when_it_is_entered_and_not_when_it_goes_on() {
        let mut stages = Stages::new(true);
        let before = stages.enter(Stage::Decide);
        assert_eq!(before, Stage::Wait);
        let before = stages.enter(Stage::LookUp);
        stages.back_to(before);
        stages.enter(Stage::Write);
        stages.back_to(Stage::Wait);
        assert_eq!(
            calls(&stages),
            [("look_up", 1), ("decide", 1), ("write", 1)]
        );
    }

    #[test]
    fn all_time_is_in_one_stage_or_another_less_the_cost_of_measuring() {
        let switch_ps = switch_cost_ps();
        let outer = Instant::now();
        let mut stages = Stages(Some(Box::new(Clock::new(switch_ps))));
        let inner = Instant::now();
        for _ in 0..1000 {
            stages.enter(Stage::Read);
            stages.enter(Stage::Parse);
        }
        let least = inner.elapsed().as_nanos() as u64;
        stages.back_to(Stage::Wait);
        let most = outer.elapsed().as_nanos() as u64;
        let times = stages.times().expect("on");
        let sum: u64 = times.each.iter().map(|time| time.nanoseconds).sum();
        let cost = 2001 * switch_ps / 1000;
        assert!(switch_ps > 0 && sum <= most, "{sum} of {most}");
        assert!(sum + cost + 9 >= least, "{sum} + {cost} of {least}");
    }

    #[test]
    fn off_there_is_nothing() {
        let mut stages = Stages::new(false);
        stages.enter(Stage::Read);
        assert_eq!((stages.now(), stages.times()), (Stage::Wait, None));
    }

    #[test]
    fn stages_are_kept_under_their_own_number() {
        for (index, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, index);
        }
    }
}
