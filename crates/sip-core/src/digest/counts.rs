use super::nonce::{Nonce, SKEW_MS, TIME_BITS};
use std::sync::atomic::{AtomicU64, Ordering};

/// Which counts of which nonces were used, in memory of fixed size. Only right credentials come here, so that a stranger
/// can't fill it.
///
/// A nonce has one place, and the place belongs to the newest nonce that was used there. An older one can't tell any more
/// which of its counts were used, and has to be replaced: never a replay, at worst a round trip. Two nonces of the same
/// millisecond in the same place share their count, with the same result.
pub(super) struct Counts {
    slots: Box<[Slot]>,
}

struct Slot {
    /// Time of issue of the nonce in the upper bits, its highest count in the lower.
    used: AtomicU64,
    /// Fingerprint of the request with that count. Written after `used`; whoever reads in between takes a repeated request for
    /// a replay, which is harmless.
    request: AtomicU64,
}

const COUNT_BITS: u32 = 64 - TIME_BITS;

/// The highest count, which can't be followed by another.
pub(super) const COUNT_MAX: u32 = (1 << COUNT_BITS) - 1;

impl Counts {
    pub(super) fn new(slots: usize) -> Self {
        let slot = || Slot {
            used: AtomicU64::new(0),
            request: AtomicU64::new(0),
        };
        Self {
            slots: std::iter::repeat_with(slot)
                .take(slots.next_power_of_two())
                .collect(),
        }
    }

    /// Uses `count` (1 to [`COUNT_MAX`]) of a nonce, once; again only for the request with the same fingerprint as the last
    /// one. `false`: used before, or not known any more.
    pub(super) fn take(
        &self,
        nonce: &Nonce,
        now_ms: u64,
        count: u32,
        fingerprint: Option<u64>,
    ) -> bool {
        let slot = &self.slots[nonce.seal as usize & (self.slots.len() - 1)];
        let wanted = nonce.issued_ms << COUNT_BITS | u64::from(count.min(COUNT_MAX));
        let mut used = slot.used.load(Ordering::Acquire);
        loop {
            let of_the_future = used >> COUNT_BITS > now_ms + SKEW_MS; // the clock was set back
            if used >= wanted && !of_the_future {
                return used == wanted
                    && fingerprint.is_some_and(|f| f == slot.request.load(Ordering::Acquire));
            }
            match slot
                .used
                .compare_exchange_weak(used, wanted, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => break,
                Err(now) => used = now,
            }
        }
        slot.request
            .store(fingerprint.unwrap_or(0), Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(issued_ms: u64) -> Nonce {
        Nonce { issued_ms, seal: 0 }
    }

    #[test]
    fn counts_may_grow_and_skip_but_not_come_again() {
        let counts = Counts::new(4);
        let take = |count| counts.take(&nonce(5), 10, count, None);
        assert!(take(1));
        assert!(!take(1));
        assert!(take(2));
        assert!(take(7));
        assert!(!take(6));
        assert!(!take(7));
    }

    #[test]
    fn the_same_request_may_come_again_until_the_next_one_came() {
        let counts = Counts::new(4);
        assert!(counts.take(&nonce(5), 10, 1, Some(77)));
        assert!(counts.take(&nonce(5), 11, 1, Some(77)));
        assert!(!counts.take(&nonce(5), 11, 1, Some(78)));
        assert!(!counts.take(&nonce(5), 11, 1, None));
        assert!(counts.take(&nonce(5), 12, 2, Some(79)));
        assert!(!counts.take(&nonce(5), 13, 1, Some(77)));
    }

    #[test]
    fn a_newer_nonce_displaces_an_older_one_which_is_then_never_good_again() {
        let counts = Counts::new(1);
        assert!(counts.take(&nonce(5), 10, 1, Some(1)));
        assert!(counts.take(&nonce(6), 10, 1, Some(2)));
        assert!(!counts.take(&nonce(5), 10, 1, Some(1)));
        assert!(!counts.take(&nonce(5), 10, 2, Some(3)));
        assert!(counts.take(&nonce(6), 10, 2, Some(4)));
    }

    #[test]
    fn the_highest_count_is_the_last() {
        let counts = Counts::new(1);
        assert!(counts.take(&nonce(5), 10, COUNT_MAX, None));
        assert!(!counts.take(&nonce(5), 10, COUNT_MAX, None));
        assert!(!counts.take(&nonce(5), 10, u32::MAX, None));
    }

    #[test]
    fn a_clock_set_back_does_not_lock_the_places_taken_before() {
        let counts = Counts::new(1);
        assert!(counts.take(&nonce(1_000_000), 1_000_000, 1, None));
        assert!(counts.take(&nonce(5), 10, 1, None));
        assert!(!counts.take(&nonce(5), 10, 1, None));
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // the point is that threads share it
    fn of_many_threads_with_one_count_one_wins() {
        let counts = Counts::new(1);
        #[allow(clippy::disallowed_methods)] // the test is about threads
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| counts.take(&nonce(5), 10, 1, None)))
                .collect();
            threads
                .into_iter()
                .map(|t| u32::from(t.join().expect("no panic")))
                .sum::<u32>()
        });
        assert_eq!(won, 1);
    }
}
