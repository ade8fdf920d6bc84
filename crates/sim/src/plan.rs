use crate::rng::Rng;

/// What a seed decides before the run begins: sizes, weather, faults. Times in milliseconds of the run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Workers of the server.
    pub workers: u8,
    /// Phones.
    pub phones: usize,
    /// Until then phones start calls; after it they only finish what they began.
    pub busy_ms: u64,
    /// Datagrams lost, in thousandths.
    pub loss: u64,
    /// Datagrams doubled, in thousandths.
    pub doubled: u64,
    /// Datagrams held back for long, so that later ones overtake them, in thousandths.
    pub held_back: u64,
    /// Usual delay of the network.
    pub delay_ms: u64,
    /// Each TCP connection breaks about that often; 0: never.
    pub break_every_ms: u64,
    /// Each phone changes its address about that often; 0: never.
    pub move_every_ms: u64,
    /// When the server is killed, and how long it is away.
    pub crashes: Vec<(u64, u64)>,
    /// The server is told to end, and started again: when, and how long it is given. Nothing in setup may be left unanswered.
    pub restarts: Vec<(u64, u64)>,
    /// From when until when the disk is full.
    pub disk_full: Vec<(u64, u64)>,
    /// How long a flush of the disk takes.
    pub flush_ms: u64,
    /// The resolver does not answer, in thousandths.
    pub resolver_fails: u64,
    /// Hostile and broken messages sent at the server.
    pub attacks: u64,
    /// Digest is asked for.
    pub auth: bool,
}

impl Plan {
    /// The plan of a seed; `phones` overrides how many.
    #[must_use]
    pub fn new(seed: u64, phones: Option<usize>) -> Self {
        let mut rng = Rng::new(seed, 1);
        let busy_ms = rng.range(60_000, 300_000);
        let mut plan = Self {
            seed,
            workers: rng.range(1, 4) as u8,
            phones: phones.unwrap_or(rng.range(20, 160) as usize),
            busy_ms,
            loss: 0,
            doubled: 0,
            held_back: 0,
            delay_ms: *rng.pick(&[1, 5, 20, 60]),
            break_every_ms: 0,
            move_every_ms: 0,
            crashes: Vec::new(),
            restarts: Vec::new(),
            disk_full: Vec::new(),
            flush_ms: *rng.pick(&[1, 5, 40]),
            resolver_fails: 0,
            attacks: rng.range(0, 60),
            auth: !rng.per_mille(100),
        };
        // A quarter of the runs has fair weather: nothing may go wrong there, so nothing excuses a call.
        if !rng.per_mille(250) {
            plan.spoil(&mut rng);
        }
        plan
    }

    /// Whether nothing is lost, moves, breaks or fails.
    #[must_use]
    pub fn is_fair(&self) -> bool {
        let weather = [self.loss, self.doubled, self.held_back, self.resolver_fails];
        let moves = [self.break_every_ms, self.move_every_ms];
        weather == [0; 4]
            && moves == [0; 2]
            && self.crashes.is_empty()
            && self.restarts.is_empty()
            && self.disk_full.is_empty()
    }

    fn spoil(&mut self, rng: &mut Rng) {
        if rng.per_mille(700) {
            self.loss = *rng.pick(&[5, 20, 100, 200]);
            self.doubled = *rng.pick(&[0, 20, 100]);
            self.held_back = *rng.pick(&[0, 20, 100]);
        }
        if rng.per_mille(400) {
            self.break_every_ms = rng.range(20_000, 200_000);
        }
        if rng.per_mille(400) {
            self.move_every_ms = rng.range(40_000, 300_000);
        }
        if rng.per_mille(400) {
            for _ in 0..rng.range(1, 4) {
                let at = rng.range(5_000, self.busy_ms);
                self.crashes.push((at, rng.range(100, 5_000)));
            }
            self.crashes.sort_unstable();
        }
        if rng.per_mille(250) {
            let at = rng.range(5_000, self.busy_ms);
            self.restarts.push((at, 2_000));
        }
        if rng.per_mille(250) {
            let from = rng.range(5_000, self.busy_ms);
            self.disk_full.push((from, from + rng.range(1_000, 30_000)));
        }
        if rng.per_mille(200) {
            self.resolver_fails = 300;
        }
    }
}
