#![allow(
    clippy::disallowed_types,
    reason = "a nonce may be used on any worker, and a bucket is held for a few comparisons"
)]

use super::nonce::{Nonce, SKEW_MS};
use std::sync::{Mutex, PoisonError};

/// Which counts of which nonces were used, in memory of fixed size. Only right credentials come here, so that a stranger
/// can't fill it.
///
/// A nonce has its bucket, and a bucket has a few places. When they are taken the oldest nonce has to go, and with it every
/// nonce as old: those can't tell any more which of their counts were used, and are replaced, never played again.
pub(super) struct Counts {
    buckets: Box<[Mutex<Bucket>]>,
}

/// A lock is held for a few comparisons, never across anything that waits.
#[derive(Default)]
struct Bucket {
    places: [Place; PLACES],
    /// Nonces issued up to then are not known any more.
    forgotten_ms: u64,
}

#[derive(Clone, Copy, Default)]
struct Place {
    /// 0: free.
    issued_ms: u64,
    /// Tells nonces of the same millisecond apart.
    seal: u64,
    /// Highest count used.
    count: u32,
    /// Fingerprint of the request with that count.
    request: Option<std::num::NonZeroU64>,
}

const PLACES: usize = 4;

/// The highest count, which can't be followed by another.
pub(super) const COUNT_MAX: u32 = (1 << 24) - 1;

impl Counts {
    /// Room for so many nonces, rounded up to a power of two.
    pub(super) fn new(nonces: usize) -> Self {
        let buckets = nonces.div_ceil(PLACES).next_power_of_two();
        Self {
            buckets: std::iter::repeat_with(Mutex::default)
                .take(buckets)
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
        let bucket = &self.buckets[nonce.seal as usize & (self.buckets.len() - 1)];
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.heed_clock(now_ms);
        let wanted = Place {
            issued_ms: nonce.issued_ms.max(1),
            seal: nonce.seal,
            count: count.min(COUNT_MAX),
            request: fingerprint.and_then(std::num::NonZeroU64::new),
        };
        bucket.take(wanted)
    }
}

impl Bucket {
    fn take(&mut self, wanted: Place) -> bool {
        if let Some(known) = self
            .places
            .iter_mut()
            .find(|place| (place.issued_ms, place.seal) == (wanted.issued_ms, wanted.seal))
        {
            if known.count >= wanted.count {
                return known.count == wanted.count
                    && wanted.request.is_some()
                    && known.request == wanted.request;
            }
            *known = wanted;
            return true;
        }
        if wanted.issued_ms <= self.forgotten_ms {
            return false;
        }
        let Some(oldest) = self.places.iter_mut().min_by_key(|place| place.issued_ms) else {
            return false;
        };
        self.forgotten_ms = self.forgotten_ms.max(oldest.issued_ms);
        if wanted.issued_ms <= self.forgotten_ms {
            return false;
        }
        *oldest = wanted;
        true
    }

    /// When the clock was set back, what is of the future now must not lock its bucket.
    fn heed_clock(&mut self, now_ms: u64) {
        let is_future = |ms: u64| ms > now_ms + SKEW_MS;
        if is_future(self.forgotten_ms)
            || self.places.iter().any(|place| is_future(place.issued_ms))
        {
            *self = Self::default();
        }
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
    fn nonces_of_the_same_millisecond_in_the_same_bucket_have_their_own_counts() {
        let counts = Counts::new(1);
        for seal in 0..4 {
            let nonce = Nonce { issued_ms: 5, seal };
            assert!(counts.take(&nonce, 10, 1, None));
            assert!(!counts.take(&nonce, 10, 1, None));
        }
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
    fn a_full_bucket_forgets_its_oldest_nonce_which_is_then_never_good_again() {
        let counts = Counts::new(1);
        for ms in [8, 5, 7, 6] {
            assert!(
                counts.take(&nonce(ms), 10, 1, Some(ms)),
                "in any order while there is room"
            );
        }
        assert!(counts.take(&nonce(9), 10, 1, Some(9)));
        assert!(!counts.take(&nonce(5), 10, 1, Some(5)));
        assert!(!counts.take(&nonce(5), 10, 2, Some(3)));
        assert!(
            !counts.take(&nonce(4), 10, 1, Some(4)),
            "as old as one that was forgotten"
        );
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
