use crate::phone::Report;
use std::collections::{BTreeMap, BTreeSet};

/// Decides what of all that the phones complain about the weather explains, and what is a fault of the server.
#[derive(Default)]
pub(crate) struct Judge {
    faults: Vec<String>,
    /// Messages lost, by Call-ID.
    lost: BTreeMap<String, u32>,
    /// Final responses that phones gave to the INVITE of a call.
    answered: BTreeMap<String, BTreeSet<u16>>,
    /// When crashes were over, milliseconds.
    crashes_ms: Vec<u64>,
    pub(crate) may_refuse: bool,
    pub(crate) stats: Stats,
}

/// What a run was made of: a run in which nothing happens proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Messages that the server received.
    pub received: u64,
    /// Messages that the server sent.
    pub sent: u64,
    /// Messages that the network lost, and those to a phone that had gone.
    pub lost: u64,
    /// REGISTER answered 200.
    pub registered: u64,
    /// INVITEs answered 200.
    pub calls_answered: u64,
    /// INVITEs answered otherwise.
    pub calls_refused: u64,
    /// Messages passed from one worker to another.
    pub handed_over: u64,
    /// Complaints of phones that the weather explains.
    pub excused: u64,
    /// Bindings looked for after a crash, and found.
    pub bindings_recovered: u64,
}

impl Stats {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.lost += other.lost;
        self.registered += other.registered;
        self.calls_answered += other.calls_answered;
        self.calls_refused += other.calls_refused;
        self.handed_over += other.handed_over;
        self.excused += other.excused;
        self.bindings_recovered += other.bindings_recovered;
    }
}

/// What is sent over and over fails only when that many messages of one call were lost; fewer excuse nothing.
const LOST_MIN: u32 = 3;
/// After it the server cancels what rings for too long.
const TIMER_C_MS: u64 = 181_000;
/// What was sent before a crash may arrive so much later.
const HELD_BACK_MAX_MS: u64 = 3_000;
/// A message lost with its connection or its address is not sent again.
const LOST_FOR_GOOD: u32 = 100;

impl Judge {
    pub(crate) fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(what.into());
    }

    pub(crate) fn faults(self) -> Vec<String> {
        self.faults
    }

    pub(crate) fn lost(&mut self, message: &[u8]) {
        self.lost_times(message, 1);
    }

    pub(crate) fn lost_for_good(&mut self, message: &[u8]) {
        self.lost_times(message, LOST_FOR_GOOD);
    }

    fn lost_times(&mut self, message: &[u8], times: u32) {
        self.stats.lost += 1;
        if let Some(call_id) = call_id(message) {
            *self.lost.entry(call_id.to_string()).or_default() += times;
        }
    }

    pub(crate) fn crashed(&mut self, up_again_ms: u64) {
        self.crashes_ms.push(up_again_ms);
    }

    /// Whether the network has lost anything of a call, or a crash was over between its begin and `until_ms`.
    pub(crate) fn was_disturbed(&self, call_id: &str, since_ms: u64, until_ms: u64) -> bool {
        let crashed = self
            .crashes_ms
            .iter()
            .any(|up| (since_ms..=until_ms).contains(up));
        crashed || self.lost.contains_key(call_id)
    }

    /// Whether something that began at `since_ms` may have gone wrong by itself.
    pub(crate) fn is_excused(&self, call_id: &str, since_ms: u64) -> bool {
        self.lost.get(call_id).is_some_and(|n| *n >= LOST_MIN)
            || self
                .crashes_ms
                .iter()
                .any(|up| *up + HELD_BACK_MAX_MS >= since_ms)
    }

    /// `stable`: the phones of the user that was called could be reached all the time.
    pub(crate) fn hear(&mut self, now_ms: u64, report: Report, stable: impl Fn(&str, u64) -> bool) {
        match report {
            Report::Fault(what) => self.fault(what),
            Report::Complaint {
                call_id,
                since_ms,
                what,
            } => self.complaint(&call_id, since_ms, &what),
            Report::Excuse { call_id } => *self.lost.entry(call_id).or_default() += LOST_FOR_GOOD,
            Report::Answered { call_id, code } => {
                self.answered.entry(call_id).or_default().insert(code);
            }
            Report::Registered => self.stats.registered += 1,
            Report::Refused503 if self.may_refuse => self.stats.excused += 1,
            Report::Refused503 => self.fault("a REGISTER was refused 503 though the disk worked and the server was not told to end"),
            Report::Outcome {
                call_id,
                since_ms,
                user,
                code,
                cancelled,
            } => {
                let answered = code == 200;
                self.stats.calls_answered += u64::from(answered);
                self.stats.calls_refused += u64::from(!answered);
                if !self.is_outcome_right(&call_id, now_ms - since_ms, code, cancelled)
                    && stable(&user, since_ms)
                {
                    let given = self.answered.get(&call_id);
                    let what = format!("the caller got {code}, the phones said {given:?}");
                    self.complaint(&call_id, since_ms, &what);
                }
            }
        }
    }

    pub(crate) fn complaint(&mut self, call_id: &str, since_ms: u64, what: &str) {
        if self.is_excused(call_id, since_ms) {
            self.stats.excused += 1;
        } else {
            let lost = self.lost.get(call_id).copied().unwrap_or_default();
            self.fault(format!(
                "{what} (call {call_id}, since {since_ms} ms, {lost} lost)"
            ));
        }
    }

    /// What a phone said, or what the server says for phones that are silent.
    fn is_outcome_right(&self, call_id: &str, lasted_ms: u64, code: u16, cancelled: bool) -> bool {
        let given = self.answered.get(call_id);
        let given = |code: u16| given.is_some_and(|given| given.contains(&code));
        match code {
            401 | 407 => cancelled,
            487 => cancelled || (given(487) && lasted_ms >= TIMER_C_MS),
            408 => !given(200),
            _ => given(code),
        }
    }
}

fn call_id(message: &[u8]) -> Option<&str> {
    const NAME: &[u8] = b"\r\nCall-ID: ";
    let at = message.windows(NAME.len()).position(|w| w == NAME)? + NAME.len();
    let end = message[at..].iter().position(|b| *b == b'\r')? + at;
    std::str::from_utf8(&message[at..end]).ok()
}
