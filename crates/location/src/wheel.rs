use crate::Wall;

/// When to look at an address-of-record again: its hash, in a bucket of about a minute.
///
/// An hour of buckets; what is farther away waits in the last one, and is armed again when that comes up. A refresh leaves
/// the wheel alone: the bucket of the old expiry comes up once, finds the new expiry, and arms for that.
#[derive(Default)]
pub(crate) struct Wheel {
    /// Empty until the first address-of-record.
    buckets: Vec<Vec<u32>>,
    /// The bucket that is next, in ticks since 1970.
    tick: u64,
}

impl Wheel {
    /// Puts a hash under a time.
    pub(crate) fn arm(&mut self, hash: u32, at: Wall, now: Wall) {
        if self.buckets.is_empty() {
            self.buckets = vec![Vec::new(); BUCKET_COUNT];
            self.tick = tick_of(now);
        }
        let tick = tick_of(at).clamp(self.tick, self.tick + BUCKET_COUNT as u64 - 1);
        self.buckets[tick as usize % BUCKET_COUNT].push(hash);
    }

    /// Takes a hash whose bucket is past.
    pub(crate) fn pop(&mut self, now: Wall) -> Option<u32> {
        if self.buckets.is_empty() {
            return None;
        }
        let tick_now = tick_of(now);
        // After a long pause, once around is enough.
        self.tick = self.tick.max(tick_now.saturating_sub(BUCKET_COUNT as u64));
        while self.tick < tick_now {
            let bucket = &mut self.buckets[self.tick as usize % BUCKET_COUNT];
            if let Some(hash) = bucket.pop() {
                return Some(hash);
            }
            *bucket = Vec::new();
            self.tick += 1;
        }
        None
    }
}

fn tick_of(time: Wall) -> u64 {
    time.0 >> TICK_BITS
}

/// A bucket is 65.536 s.
const TICK_BITS: u32 = 16;
const BUCKET_COUNT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const START: Wall = Wall(1_764_000_000_000);

    fn popped(wheel: &mut Wheel, now: Wall) -> Vec<u32> {
        std::iter::from_fn(|| wheel.pop(now)).collect()
    }

    #[test]
    fn a_hash_comes_up_after_its_time_and_within_two_buckets() {
        let mut wheel = Wheel::default();
        wheel.arm(7, START.after_s(600), START);
        assert_eq!(popped(&mut wheel, START.after_s(600)), []);
        assert_eq!(popped(&mut wheel, START.after_s(600 + 132)), [7]);
        assert_eq!(popped(&mut wheel, START.after_s(6000)), []);
    }

    #[test]
    fn a_time_beyond_the_last_bucket_comes_up_with_that_one() {
        let mut wheel = Wheel::default();
        wheel.arm(7, START.after_s(86_400), START);
        assert_eq!(popped(&mut wheel, START.after_s(4_000)), []);
        assert_eq!(popped(&mut wheel, START.after_s(4_300)), [7]);
    }

    #[test]
    fn a_time_in_the_past_comes_up_soon() {
        let mut wheel = Wheel::default();
        wheel.arm(1, START, START);
        wheel.arm(7, Wall(0), START);
        assert_eq!(popped(&mut wheel, START.after_s(132)), [7, 1]);
    }

    #[test]
    fn all_come_up_after_a_pause_longer_than_the_wheel() {
        let mut wheel = Wheel::default();
        for minute in 0..100 {
            wheel.arm(minute, START.after_s(60 * minute), START);
        }
        let mut hashes = popped(&mut wheel, START.after_s(1_000_000));
        hashes.sort_unstable();
        assert_eq!(hashes, (0..100).collect::<Vec<_>>());
        assert_eq!(popped(&mut wheel, START.after_s(2_000_000)), []);
    }
}
