//! A driver does a work: operations begin when they are due, the rest is answers and timers.

use std::{io, time::Duration};

use crate::{
    cause::Cause,
    cpu::CpuTime,
    driver::{Driver, Part, Work},
    io::Inbox,
    pace::{Pace, Schedule},
    random::Random,
    statistics::{Statistics, StepStatistics, ThisSecond},
};

/// Operations of each part that begin between two looks at what has come: a tool that is late catches up without going deaf.
const BEGUN_AT_ONCE: usize = 256;
/// A request to end early is seen after this time.
const LOOK_US: u64 = 100_000;
/// What is under way when a run is asked to end has so long.
const GRACE_US: u64 = 2_000_000;

/// One run of a driver.
struct Run {
    parts: Vec<Running>,
    work: Work,
    begun_us: u64,
    /// When no operation is begun any more, for whichever reason.
    over_us: Option<u64>,
    cpu: CpuTime,
}

/// A part while it runs.
enum Running {
    Closed(usize),
    Open(Schedule),
}

/// When the next operation begins.
enum Next {
    At(u64),
    /// When another one has ended.
    Later,
    Never,
}

impl Driver {
    /// Does the work and returns what came of it. Operations still under way at the end are waited
    /// for, each at most the time that a transaction has.
    ///
    /// # Errors
    /// The poller fails.
    pub(crate) fn run(&mut self, parts: &mut [Part], work: Work) -> io::Result<Statistics> {
        let mut run = self.begin_run(parts, work);
        let mut inbox = Inbox::default();
        loop {
            let next = self.begin_due(parts, &mut run);
            if matches!(next, Next::Never) && run.over_us.is_none() {
                run.over_us = Some(self.now_us());
                parts.iter_mut().for_each(|p| p.scenario.finish(self));
            }
            if run.over_us.is_some() && self.under_way() == 0 {
                break;
            }
            self.io.turn(self.wait(&next), &mut inbox)?;
            for (flow, setup_us) in inbox.opened.drain(..) {
                self.opened(flow, setup_us);
            }
            for (message, from) in inbox.messages() {
                self.take(parts, from, message);
            }
            for request in inbox.undelivered() {
                self.undelivered(request);
            }
            for (flow, cause) in inbox.lost.drain(..) {
                self.lost(flow, cause);
            }
            self.expire(parts);
            self.look_around(&run);
        }
        self.timers.clear();
        self.operations
            .iter_mut()
            .for_each(|o| o.look_us = u64::MAX);
        self.io.read_clock();
        self.statistics.connections_open = self.io.connections();
        self.second.end(&mut self.statistics);
        let statistics = self.statistics_of(&run);
        self.flows.opened = 0;
        self.flows.setup_us = Default::default();
        self.statistics = Statistics::default();
        Ok(statistics)
    }

    /// Does a work that belongs to the preparation. Connections that it opens are counted with those of the first run.
    ///
    /// # Errors
    /// The poller fails.
    pub(crate) fn prepare(&mut self, parts: &mut [Part], work: Work) -> io::Result<Statistics> {
        let statistics = self.run(parts, work)?;
        self.flows.opened = statistics.connections_opened;
        self.flows.setup_us = statistics.setup_us.clone();
        Ok(statistics)
    }

    fn begin_run(&mut self, parts: &[Part], work: Work) -> Run {
        self.io.read_clock();
        let begun_us = self.now_us();
        self.heard_us = begun_us;
        self.silent_since_us = u64::MAX;
        self.second = ThisSecond::new(begun_us);
        self.part_under_way = vec![0; parts.len()];
        self.statistics = Statistics::new(parts.iter().map(|p| p.name.clone()));
        self.statistics.steps = steps(parts, work);
        Run {
            parts: parts
                .iter()
                .map(|part| self.running(part, begun_us, work))
                .collect(),
            work,
            begun_us,
            over_us: None,
            cpu: CpuTime::of_this_thread(),
        }
    }

    fn running(&mut self, part: &Part, begun_us: u64, work: Work) -> Running {
        match &part.pace {
            Pace::Outstanding(outstanding) => Running::Closed(*outstanding),
            Pace::Open { rate, poisson } => {
                let random = poisson.then(|| Random::new(self.random().bits()));
                let length = work.duration.unwrap_or_else(|| {
                    let seconds = work.operations.unwrap_or(0) as f64 / rate.mean();
                    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
                });
                let phase = self.number as f64 / self.threads as f64;
                Running::Open(Schedule::new(rate.clone(), random, begun_us, length, phase))
            }
        }
    }

    /// Begins what is to begin now.
    fn begin_due(&mut self, parts: &mut [Part], run: &mut Run) -> Next {
        if run.over_us.is_some() || self.statistics.gave_up || self.stop.is_asked() {
            self.statistics.stopped |= self.stop.is_asked();
            return Next::Never;
        }
        let now_us = self.now_us();
        let end_us = run.work.duration.map_or(u64::MAX, |duration| {
            run.begun_us.saturating_add(duration.as_micros() as u64)
        });
        let mut left = run.work.operations.map_or(u64::MAX, |operations| {
            operations.saturating_sub(self.statistics.begun())
        });
        let mut next = Next::Never;
        for (number, state) in run.parts.iter_mut().enumerate() {
            let mut room = BEGUN_AT_ONCE;
            loop {
                let own = state.next(now_us, self.part_under_way[number], end_us);
                match own {
                    _ if left == 0 => return Next::Never,
                    Next::At(due_us) if due_us <= now_us && room > 0 => {
                        (left, room) = (left - 1, room - 1);
                        self.begin(parts, number, state, due_us);
                    }
                    own => {
                        next = next.or(own);
                        break;
                    }
                }
            }
        }
        next
    }

    fn begin(&mut self, parts: &mut [Part], number: usize, state: &mut Running, due_us: u64) {
        let mut stage = u16::MAX;
        if let Running::Open(schedule) = state {
            stage = schedule.step() as u16;
            schedule.advance();
        }
        let counts = &mut self.statistics;
        counts.parts[number].begun += 1;
        if let Some(step) = counts.steps.get_mut(usize::from(stage)) {
            step.begun += 1;
        }
        counts.late_us.record(self.io.now_us() - due_us);
        if self.under_way() >= self.outstanding_max {
            let failures = &mut self.statistics.parts[number].failures;
            return failures.count(Cause::NotBegun);
        }
        let slot = self.new_operation(number, stage, due_us);
        parts[number].scenario.begin(self, slot);
    }

    /// How long there is nothing to do, if nothing comes.
    fn wait(&self, next: &Next) -> Duration {
        let now_us = self.now_us();
        let begin_us = match next {
            Next::At(at_us) => *at_us,
            Next::Later | Next::Never => u64::MAX,
        };
        let until_us = begin_us
            .min(self.timers.next().unwrap_or(u64::MAX))
            .min(self.second.end_us())
            .min(now_us + LOOK_US);
        match until_us.saturating_sub(now_us) {
            // Whole milliseconds, which the poller waits for itself, as far as they go.
            long @ 2000.. => Duration::from_millis(long / 1000 - 1),
            short => Duration::from_micros(short),
        }
    }

    /// What is to be done now and then: ends a second, tells how far it is, and ends what would not end by itself.
    fn look_around(&mut self, run: &Run) {
        let now_us = self.now_us();
        while now_us >= self.second.end_us() {
            self.statistics.connections_open = self.io.connections();
            self.second.end(&mut self.statistics);
        }
        if self.monitor.is_asked() {
            let statistics = self.statistics_of(run);
            self.monitor.tell(statistics);
        }
        let Some(over_us) = run.over_us else {
            return;
        };
        let stopped = self.statistics.stopped || self.stop.is_asked();
        let gave_up = self.statistics.gave_up && now_us > over_us + self.timeout_us;
        // Nothing waits for a timer, and nothing comes: a scenario waits for what the server does not do.
        let stalled = self.timers.next().is_none() && now_us > self.heard_us + self.timeout_us;
        if gave_up || stalled || (stopped && now_us > over_us + GRACE_US) {
            self.statistics.stopped |= stopped;
            self.end_all(Cause::GaveUp);
        }
    }

    /// The counts of a run until now.
    fn statistics_of(&mut self, run: &Run) -> Statistics {
        let elapsed = Duration::from_micros(self.now_us() - run.begun_us);
        let cpu = CpuTime::of_this_thread().since(run.cpu);
        self.statistics.elapsed = elapsed;
        self.statistics.driver = cpu;
        let busy = (cpu.total + cpu.waiting).as_secs_f64() / elapsed.as_secs_f64().max(1e-6);
        self.statistics.busy_percent = (100.0 * busy).min(100.0);
        self.statistics.under_way = self.under_way() as u64;
        self.statistics.connections_open = self.io.connections();
        self.statistics.connections_opened = self.flows.opened;
        Statistics {
            setup_us: self.flows.setup_us.clone(),
            ..self.statistics.clone()
        }
    }
}

impl Running {
    /// When the next operation begins. An open loop begins what was due before the end, even if it is late.
    fn next(&self, now_us: u64, under_way: usize, end_us: u64) -> Next {
        match self {
            Self::Closed(_) if now_us >= end_us => Next::Never,
            Self::Closed(outstanding) if under_way < *outstanding => Next::At(now_us),
            Self::Closed(0) => Next::Never,
            Self::Closed(_) => Next::Later,
            Self::Open(schedule) if schedule.due_us() < end_us => Next::At(schedule.due_us()),
            Self::Open(_) => Next::Never,
        }
    }
}

impl Next {
    /// The one that comes first.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(a), Self::At(b)) => Self::At(a.min(b)),
            (Self::At(at), _) | (_, Self::At(at)) => Self::At(at),
            (Self::Later, _) | (_, Self::Later) => Self::Later,
            (Self::Never, Self::Never) => Self::Never,
        }
    }
}

/// The steps of all parts whose rate has some.
fn steps(parts: &[Part], work: Work) -> Vec<StepStatistics> {
    let mut steps: Vec<StepStatistics> = Vec::new();
    for part in parts {
        let Pace::Open { rate, .. } = &part.pace else {
            continue;
        };
        let rates = rate.steps();
        steps.resize_with(steps.len().max(rates.len()), StepStatistics::default);
        for (step, rate) in steps.iter_mut().zip(rates) {
            step.rate += rate;
        }
    }
    let count = steps.len().max(1) as u32;
    for step in &mut steps {
        step.length = work.duration.unwrap_or_default() / count;
    }
    steps
}
