/// The state of one worker at one moment. Counters are since the start; rates come from two of these.
#[derive(Clone, Copy, Debug)]
pub struct WorkerStatus {
    /// Its number.
    pub worker: u8,
    /// Milliseconds since the server's start.
    pub uptime_ms: u64,
    /// What its core has counted.
    pub core: sip_core::Counters,
    /// What its sockets have counted; connections of now in `connections_open`.
    pub net: net::Counters,
    /// The longest turn of the last whole second, microseconds: the most that a message waited for others in this worker.
    pub delay_us_max: u64,
    /// Smoothed average of turns in which there was something to do, microseconds.
    pub delay_us_average: u64,
    /// Turns of the event loop.
    pub turns: u64,
    /// Mail for this worker that was dropped because its mailbox was full.
    pub mail_dropped: u64,
    /// Answers that wait for the journal now.
    pub answers_waiting: u64,
    /// Registrations answered 503 because the journal failed or too many waited for it.
    pub answers_refused: u64,
    /// Answers that have waited for the journal.
    pub disk_waits: u64,
    /// How long, together, microseconds: from their being written to the turn in which they were sent. A worker does other things meanwhile.
    pub disk_wait_us: u64,
    /// How long each stage of the work took; `None` unless asked for.
    pub stages: Option<net::StageTimes>,
    /// STUN requests, which are not answered.
    pub stun_ignored: u64,
    /// Log lines not written because of their rate.
    pub lines_suppressed: u64,
}

/// How long turns take.
#[derive(Default)]
pub(crate) struct Delay {
    second: u64,
    max_now_us: u64,
    max_before_us: u64,
    average_x16_us: u64,
    turns: u64,
}

impl Delay {
    /// A turn began at `began_us` and has ended at `ended_us`.
    pub(crate) fn record(&mut self, began_us: u64, ended_us: u64) {
        let took = ended_us.saturating_sub(began_us);
        self.roll(ended_us / 1_000_000);
        self.max_now_us = self.max_now_us.max(took);
        self.average_x16_us = self.average_x16_us + took - self.average_x16_us / 16;
        self.turns += 1;
    }

    /// Longest of the last whole second, average, number of turns.
    pub(crate) fn read(&mut self, now_us: u64) -> (u64, u64, u64) {
        self.roll(now_us / 1_000_000);
        (self.max_before_us, self.average_x16_us / 16, self.turns)
    }

    fn roll(&mut self, second: u64) {
        if second != self.second {
            let follows = second == self.second + 1;
            self.max_before_us = if follows { self.max_now_us } else { 0 };
            self.max_now_us = 0;
            self.second = second;
        }
    }
}
