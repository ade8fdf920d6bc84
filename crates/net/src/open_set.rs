use crate::ConnectionId;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Which connections of one thread are open, readable by the others without a lock: 4 bytes a connection.
///
/// What others read may be a moment old.
pub struct OpenSet {
    segments: [OnceLock<Box<[AtomicU32]>>; SEGMENTS],
}

const SEGMENTS: usize = 1024;
const SEGMENT_SLOTS: usize = 16 * 1024;
/// Connections that one thread can hold.
pub(crate) const SLOTS_MAX: usize = SEGMENTS * SEGMENT_SLOTS;

impl Default for OpenSet {
    fn default() -> Self {
        Self {
            segments: [const { OnceLock::new() }; SEGMENTS],
        }
    }
}

impl OpenSet {
    /// Whether the connection is open. The worker in the id is not looked at.
    #[must_use]
    pub fn contains(&self, id: ConnectionId) -> bool {
        let slot = id.slot() as usize;
        self.segments
            .get(slot / SEGMENT_SLOTS)
            .and_then(OnceLock::get)
            .is_some_and(|segment| {
                segment[slot % SEGMENT_SLOTS].load(Ordering::Relaxed) == id.generation()
            })
    }

    pub(crate) fn insert(&self, id: ConnectionId) {
        self.set(id.slot(), id.generation());
    }

    pub(crate) fn remove(&self, id: ConnectionId) {
        self.set(id.slot(), 0);
    }

    fn set(&self, slot: u32, generation: u32) {
        let slot = slot as usize;
        let segment = self.segments[slot / SEGMENT_SLOTS]
            .get_or_init(|| (0..SEGMENT_SLOTS).map(|_| AtomicU32::new(0)).collect());
        segment[slot % SEGMENT_SLOTS].store(generation, Ordering::Relaxed);
    }
}
