/// Names an entry of a [`Slab`]; stale ones are told apart by their generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Handle {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl Handle {
    pub(crate) const fn to_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    pub(crate) const fn from_u64(n: u64) -> Self {
        Self {
            slot: n as u32,
            generation: (n >> 32) as u32,
        }
    }
}

/// Entries in reused slots. The caller gives the generation: a random one, so that a handle which leaves in a branch
/// can't be guessed.
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: u32,
    len: usize,
}

struct Entry<T> {
    generation: u32,
    content: Content<T>,
}

enum Content<T> {
    Used(T),
    Free { next: u32 },
}

const NONE: u32 = u32::MAX;

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, generation: u32, value: T) -> Handle {
        self.len += 1;
        let entry = Entry {
            generation,
            content: Content::Used(value),
        };
        let slot = self.free;
        match self.entries.get_mut(slot as usize) {
            Some(old) => {
                if let Content::Free { next } = old.content {
                    self.free = next;
                }
                *old = entry;
                Handle { slot, generation }
            }
            None => {
                self.entries.push(entry);
                Handle {
                    slot: (self.entries.len() - 1) as u32,
                    generation,
                }
            }
        }
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        match self.entries.get_mut(handle.slot as usize) {
            Some(Entry {
                generation,
                content: Content::Used(value),
            }) if *generation == handle.generation => Some(value),
            _ => None,
        }
    }

    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        match self.entries.get(handle.slot as usize) {
            Some(Entry {
                generation,
                content: Content::Used(value),
            }) if *generation == handle.generation => Some(value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Option<T> {
        let entry = self.entries.get_mut(handle.slot as usize)?;
        if entry.generation != handle.generation || matches!(entry.content, Content::Free { .. }) {
            return None;
        }
        let content = std::mem::replace(&mut entry.content, Content::Free { next: self.free });
        self.free = handle.slot;
        self.len -= 1;
        match content {
            Content::Used(value) => Some(value),
            Content::Free { .. } => None,
        }
    }

    /// Handles of all entries, for shutting down.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        let used = self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, e)| matches!(e.content, Content::Used(_)));
        used.map(|(slot, e)| Handle {
            slot: slot as u32,
            generation: e.generation,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_handle_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.insert(1, 'a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert(2, 'b');
        assert_eq!(second.slot, first.slot);
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.len(), 1);
        assert_eq!(slab.handles(), [second]);
    }
}
