//! When to look at a connection next: a timer wheel whose links lie in an array beside the connections, so that arming, moving and removing are O(1)
//! and nothing is allocated. A connection has one place in it. Activity does not move it: when the old
//! deadline comes up, the owner computes the real one and arms again.

/// Milliseconds of a tick.
pub(crate) const TICK_MS: u64 = 100;

const LEVELS: usize = 3;
const SLOTS: u32 = 256;
const NONE: u32 = u32::MAX;
const UNLINKED: u16 = u16::MAX;
/// Furthest deadline; what is later comes up early and is armed again.
const AHEAD_MAX: u32 = (SLOTS - 1) << 16;

pub(crate) struct Wheel {
    now: u32,
    links: Vec<Link>,
    heads: Box<[u32; LEVELS * SLOTS as usize]>,
    occupied: [[u64; 4]; LEVELS],
}

#[derive(Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
    at: u32,
    bucket: u16,
}

impl Wheel {
    pub(crate) fn new(now: u32) -> Self {
        Self {
            now,
            links: Vec::new(),
            heads: Box::new([NONE; LEVELS * SLOTS as usize]),
            occupied: [[0; 4]; LEVELS],
        }
    }

    /// Brings `key` up at tick `at`, and no longer at the tick it was armed for before.
    pub(crate) fn arm(&mut self, key: u32, at: u32) {
        self.disarm(key);
        if self.links.len() <= key as usize {
            let unlinked = Link {
                prev: NONE,
                next: NONE,
                at: 0,
                bucket: UNLINKED,
            };
            self.links.resize(key as usize + 1, unlinked);
        }
        self.link(key, at.clamp(self.now + 1, self.now + AHEAD_MAX));
    }

    /// As [`Self::arm`], unless it comes up earlier already.
    pub(crate) fn arm_earlier(&mut self, key: u32, at: u32) {
        match self.links.get(key as usize) {
            Some(link) if link.bucket != UNLINKED && link.at <= at => {}
            _ => self.arm(key, at),
        }
    }

    pub(crate) fn disarm(&mut self, key: u32) {
        let Some(&link) = self.links.get(key as usize) else {
            return;
        };
        if link.bucket == UNLINKED {
            return;
        }
        if link.next != NONE {
            self.links[link.next as usize].prev = link.prev;
        }
        if link.prev == NONE {
            self.heads[link.bucket as usize] = link.next;
            if link.next == NONE {
                self.mark(link.bucket, false);
            }
        } else {
            self.links[link.prev as usize].next = link.next;
        }
        self.links[key as usize].bucket = UNLINKED;
    }

    /// Moves to tick `now` and appends what is due to `due`, disarmed.
    pub(crate) fn advance(&mut self, now: u32, due: &mut Vec<u32>) {
        while let Some(tick) = self.next_tick().filter(|tick| *tick <= now) {
            self.now = tick;
            if tick.is_multiple_of(1 << 16) {
                self.cascade(2, (tick >> 16) % SLOTS);
            }
            if tick.is_multiple_of(1 << 8) {
                self.cascade(1, (tick >> 8) % SLOTS);
            }
            self.drain(0, tick % SLOTS, |_, key| due.push(key));
        }
        self.now = self.now.max(now);
    }

    /// The next tick with something to do; `None` when nothing is armed.
    pub(crate) fn next_tick(&self) -> Option<u32> {
        let near = self.next_occupied().map(|ahead| self.now + ahead);
        let far = (!self.is_empty(1) || !self.is_empty(2)).then(|| ((self.now >> 8) + 1) << 8);
        match (near, far) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn link(&mut self, key: u32, at: u32) {
        let (level, slot) = if at - self.now < SLOTS {
            (0, at % SLOTS)
        } else if (at >> 8) - (self.now >> 8) < SLOTS {
            (1, (at >> 8) % SLOTS)
        } else {
            (2, (at >> 16) % SLOTS)
        };
        let bucket = (level * SLOTS + slot) as u16;
        let next = std::mem::replace(&mut self.heads[bucket as usize], key);
        if next != NONE {
            self.links[next as usize].prev = key;
        }
        self.links[key as usize] = Link {
            prev: NONE,
            next,
            at,
            bucket,
        };
        self.mark(bucket, true);
    }

    fn cascade(&mut self, level: usize, slot: u32) {
        self.drain(level, slot, |wheel, key| {
            let at = wheel.links[key as usize].at;
            wheel.link(key, at.max(wheel.now));
        });
    }

    fn drain(&mut self, level: usize, slot: u32, mut each: impl FnMut(&mut Self, u32)) {
        let bucket = level * SLOTS as usize + slot as usize;
        let mut key = std::mem::replace(&mut self.heads[bucket], NONE);
        self.mark(bucket as u16, false);
        while key != NONE {
            let next = self.links[key as usize].next;
            self.links[key as usize].bucket = UNLINKED;
            each(self, key);
            key = next;
        }
    }

    fn mark(&mut self, bucket: u16, occupied: bool) {
        let (level, slot) = (bucket as usize / 256, bucket as usize % 256);
        let bit = 1 << (slot % 64);
        if occupied {
            self.occupied[level][slot / 64] |= bit;
        } else {
            self.occupied[level][slot / 64] &= !bit;
        }
    }

    fn is_empty(&self, level: usize) -> bool {
        self.occupied[level] == [0; 4]
    }

    /// Ticks from now to the next one whose place in the nearest level is taken.
    fn next_occupied(&self) -> Option<u32> {
        let words = &self.occupied[0];
        let start = (self.now + 1) % SLOTS;
        let (first, bit) = (start as usize / 64, start % 64);
        // The first word is looked at twice: from the start on, and at last up to it.
        (0..=4).find_map(|i| {
            let mask = match i {
                0 => u64::MAX << bit,
                4 => !(u64::MAX << bit),
                _ => u64::MAX,
            };
            let index = (first + i) % 4;
            let word = words[index] & mask;
            let slot = index as u32 * 64 + word.trailing_zeros();
            (word != 0).then(|| (slot + SLOTS - start) % SLOTS + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_key_comes_up_once_at_its_tick_as_in_a_model() {
        let mut random = 1_u64;
        let mut next = |below: u32| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as u32 % below
        };
        let (mut wheel, mut model) = (Wheel::new(7), BTreeMap::new());
        let (mut now, mut due) = (7, Vec::new());
        for _ in 0..20_000 {
            let key = next(300);
            match next(4) {
                0 => {
                    let far = [10, 300, 70_000, 400_000][next(4) as usize];
                    let at = now + 1 + next(far);
                    wheel.arm(key, at);
                    model.insert(key, at);
                }
                1 => {
                    let at = now + 1 + next(1000);
                    wheel.arm_earlier(key, at);
                    let old = model.entry(key).or_insert(at);
                    *old = at.min(*old);
                }
                2 => {
                    wheel.disarm(key);
                    model.remove(&key);
                }
                _ => {
                    let step = [2, 400, 80_000][next(3) as usize];
                    now += next(step);
                    wheel.advance(now, &mut due);
                    due.sort_unstable();
                    let expected: Vec<u32> = model
                        .iter()
                        .filter(|(_, at)| **at <= now)
                        .map(|(key, _)| *key)
                        .collect();
                    assert_eq!(due, expected, "at {now}");
                    model.retain(|_, at| *at > now);
                    due.clear();
                }
            }
            let first = model.values().min().copied();
            assert_eq!(wheel.next_tick().is_some(), first.is_some());
            assert!(wheel.next_tick() <= first, "never late");
        }
    }
}
