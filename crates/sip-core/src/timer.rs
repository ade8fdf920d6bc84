use crate::Mono;

/// Timer wheel: arming is O(1), nothing is ever cancelled. A key that comes up early or whose owner is gone is ignored by its
/// owner, which arms again for its real deadline.
///
/// Four levels of 256 slots over a tick of 1 ms. An entry lies on the level of the highest byte in which its tick differs from the
/// present one, so whatever is on a lower level is due before anything on a higher one, and each slot that is occupied lies
/// ahead of the present tick. Entries that differ above the fourth byte (a border crossed every 49.7 days) wait in a list of their own.
pub(crate) struct Wheel<K> {
    /// Everything up to and with this tick has come up.
    tick: u64,
    levels: [Level<K>; LEVELS],
    far: Slot<K>,
    /// Emptied slots whose memory the next ones to fill take over.
    spare: Vec<Slot<K>>,
    /// Sum of the capacities in `spare`.
    spare_entries: usize,
    /// Entries armed.
    len: usize,
}

type Slot<K> = Vec<(u64, K)>;

struct Level<K> {
    slots: Vec<Slot<K>>,
    occupied: Bitmap,
}

/// Which of a level's 256 slots hold entries.
#[derive(Default)]
struct Bitmap([u64; 4]);

const LEVELS: usize = 4;
const SLOT_BITS: u32 = 8;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS_BITS: u32 = LEVELS as u32 * SLOT_BITS;
const TICK_US: u64 = 1000;
/// Spare memory that is kept however few entries are armed.
const SPARE_ENTRIES_MIN: usize = 4096;

impl<K: Copy> Wheel<K> {
    pub(crate) fn new(now: Mono) -> Self {
        Self {
            tick: now.0 / TICK_US,
            levels: std::array::from_fn(|_| Level {
                slots: (0..SLOTS).map(|_| Vec::new()).collect(),
                occupied: Bitmap::default(),
            }),
            far: Vec::new(),
            spare: Vec::new(),
            spare_entries: 0,
            len: 0,
        }
    }

    /// Brings `key` up at `deadline` or at most a tick (1 ms) later.
    pub(crate) fn arm(&mut self, deadline: Mono, key: K) {
        self.len += 1;
        let tick = deadline.0.div_ceil(TICK_US).max(self.tick + 1);
        self.place(tick, key);
    }

    /// Moves to `now` and appends what is due to `due`. Cost: what is due or moves down a level; empty slots are skipped by occupancy bitmaps.
    pub(crate) fn advance(&mut self, now: Mono, due: &mut Vec<K>) {
        let until = now.0 / TICK_US;
        let due_before = due.len();
        while let Some((start, level)) = self.next_slot().filter(|(start, _)| *start <= until) {
            self.tick = start;
            self.empty(level, due);
        }
        self.tick = self.tick.max(until);
        self.len -= due.len() - due_before;
        self.give_back();
    }

    /// When to call [`Self::advance`] next; may be early, never late.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.next_slot().map(|(start, _)| Mono(start * TICK_US))
    }

    fn place(&mut self, tick: u64, key: K) {
        let level = ((tick ^ self.tick) | 1).ilog2() / SLOT_BITS;
        let slot = if level as usize >= LEVELS {
            &mut self.far
        } else {
            let index = slot_index(tick, level);
            let level = &mut self.levels[level as usize];
            level.occupied.set(index);
            &mut level.slots[index]
        };
        if slot.capacity() == 0
            && let Some(spare) = self.spare.pop()
        {
            self.spare_entries -= spare.capacity();
            *slot = spare;
        }
        slot.push((tick, key));
    }

    /// The first tick of the first slot that is occupied, and its level; [`LEVELS`] for the far ones.
    fn next_slot(&self) -> Option<(u64, usize)> {
        for (number, level) in self.levels.iter().enumerate() {
            let shift = number as u32 * SLOT_BITS;
            let present = slot_index(self.tick, number as u32);
            if let Some(index) = level.occupied.first_from(present + 1) {
                let above = self.tick >> (shift + SLOT_BITS) << (shift + SLOT_BITS);
                return Some((above | ((index as u64) << shift), number));
            }
        }
        let border = ((self.tick >> LEVELS_BITS) + 1) << LEVELS_BITS;
        (!self.far.is_empty()).then_some((border, LEVELS))
    }

    /// Empties the slot that begins with the present tick: what is due to `due`, the rest to lower levels.
    fn empty(&mut self, level: usize, due: &mut Vec<K>) {
        let mut slot = if level == LEVELS {
            std::mem::take(&mut self.far)
        } else {
            let index = slot_index(self.tick, level as u32);
            self.levels[level].occupied.clear(index);
            std::mem::take(&mut self.levels[level].slots[index])
        };
        for (tick, key) in slot.drain(..) {
            if tick <= self.tick {
                due.push(key);
            } else {
                self.place(tick, key);
            }
        }
        self.spare_entries += slot.capacity();
        self.spare.push(slot);
    }

    /// Frees spare memory beyond what the entries that are armed now could fill again.
    fn give_back(&mut self) {
        while self.spare_entries > self.len + SPARE_ENTRIES_MIN {
            let Some(slot) = self.spare.pop() else { return };
            self.spare_entries -= slot.capacity();
        }
    }
}

impl Bitmap {
    fn set(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn clear(&mut self, index: usize) {
        self.0[index / 64] &= !(1 << (index % 64));
    }

    /// The first one set at `index` or after it.
    fn first_from(&self, index: usize) -> Option<usize> {
        let mut word = index / 64;
        let mut bits = self.0.get(word)? & (u64::MAX << (index % 64));
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

fn slot_index(tick: u64, level: u32) -> usize {
    (tick >> (level * SLOT_BITS)) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Arm { after_us: u64 },
        Advance { by_us: u64 },
        AdvanceToNext,
    }

    /// Spans of every level's size, in microseconds.
    fn span() -> impl Strategy<Value = u64> {
        (0u32..44).prop_flat_map(|bits| 0..(1u64 << bits))
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => span().prop_map(|after_us| Step::Arm { after_us }),
            2 => span().prop_map(|by_us| Step::Advance { by_us }),
            2 => Just(Step::AdvanceToNext),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn keys_come_up_at_their_deadline_or_less_than_a_tick_later(
            start in prop_oneof![Just(0), span(), Just((1u64 << 32) * TICK_US - 5000)],
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let mut now = Mono(start);
            let mut wheel = Wheel::new(now);
            let mut model: BTreeMap<u32, Mono> = BTreeMap::new();
            let mut due = Vec::new();
            for (key, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Arm { after_us } => {
                        wheel.arm(Mono(now.0 + after_us), key as u32);
                        model.insert(key as u32, Mono(now.0 + after_us));
                        continue;
                    }
                    Step::Advance { by_us } => now.0 += by_us,
                    Step::AdvanceToNext => now = wheel.next_deadline().unwrap_or(now).max(now),
                }
                due.clear();
                wheel.advance(now, &mut due);
                for key in &due {
                    let deadline = model.remove(key);
                    prop_assert!(deadline.is_some_and(|d| d <= now), "early, twice or unknown");
                }
                prop_assert!(model.values().all(|d| d.0 + TICK_US > now.0), "late");
                prop_assert_eq!(wheel.len, model.len());
                let next = wheel.next_deadline();
                prop_assert_eq!(next.is_some(), !model.is_empty());
                if let (Some(next), Some(first)) = (next, model.values().min()) {
                    prop_assert!(next > now, "would spin");
                    prop_assert!(next.0 < first.0.max(now.0 + 1) + TICK_US, "late");
                }
            }
        }
    }

    #[test]
    fn a_key_comes_up_after_a_wake_up_per_level_at_most() {
        let mut wheel = Wheel::new(Mono(123));
        wheel.arm(Mono(20_000_000_000), 1);
        let mut due = Vec::new();
        let mut wake_ups = 0;
        while let Some(next) = wheel.next_deadline() {
            wheel.advance(next, &mut due);
            wake_ups += 1;
        }
        assert_eq!(due, [1]);
        assert!(wake_ups <= LEVELS, "{wake_ups}");
    }

    #[test]
    fn a_deadline_in_the_past_comes_up_with_the_next_tick() {
        let mut wheel = Wheel::new(Mono(5_000_000));
        wheel.arm(Mono(0), 1);
        assert_eq!(wheel.next_deadline(), Some(Mono(5_001_000)));
        let mut due = Vec::new();
        wheel.advance(Mono(5_000_999), &mut due);
        assert!(due.is_empty());
        wheel.advance(Mono(5_001_000), &mut due);
        assert_eq!(due, [1]);
    }

    #[test]
    fn the_clock_standing_still_or_going_back_changes_nothing() {
        let mut wheel = Wheel::new(Mono(5_000_000));
        wheel.arm(Mono(6_000_000), 1);
        let mut due = Vec::new();
        wheel.advance(Mono(5_000_000), &mut due);
        wheel.advance(Mono(0), &mut due);
        assert!(due.is_empty());
        wheel.advance(Mono(6_000_000), &mut due);
        assert_eq!(due, [1]);
    }

    #[test]
    fn the_memory_of_a_burst_is_given_back() {
        let held = |wheel: &Wheel<u64>| {
            let slots = wheel.levels.iter().flat_map(|level| &level.slots);
            slots.chain(&wheel.spare).map(Vec::capacity).sum::<usize>()
        };
        let mut wheel = Wheel::new(Mono(0));
        let mut due = Vec::new();
        for key in 0..1_000_000 {
            wheel.arm(Mono(key * 32), key);
        }
        assert!(held(&wheel) >= 1_000_000);
        wheel.advance(Mono(40_000_000), &mut due);
        assert_eq!(due.len(), 1_000_000);
        assert!(held(&wheel) <= SPARE_ENTRIES_MIN, "{}", held(&wheel));
    }
}
