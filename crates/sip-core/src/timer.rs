use crate::Mono;

/// Timer wheel: arming is O(1), nothing is ever cancelled. A key that comes up early or whose owner is gone is ignored by its
/// owner, which arms again for its real deadline.
pub(crate) struct Wheel<K> {
    _k: std::marker::PhantomData<K>,
}

impl<K: Copy> Wheel<K> {
    pub(crate) fn new(now: Mono) -> Self {
        let _ = now;
        todo!()
    }
    /// Brings `key` up at `deadline` or at most a tick (1 ms for the near ones) later.
    pub(crate) fn arm(&mut self, deadline: Mono, key: K) {
        let _ = (deadline, key);
        todo!()
    }
    /// Moves to `now` and appends what is due to `due`. Cost: what is due plus the ticks passed over, which are skipped by occupancy bitmaps.
    pub(crate) fn advance(&mut self, now: Mono, due: &mut Vec<K>) {
        let _ = (now, due);
        todo!()
    }
    /// When to call [`Self::advance`] next; may be early, never late.
    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        todo!()
    }
}
