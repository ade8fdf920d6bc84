use crate::Tag;
use crate::addresses::PackedAddress;
use hashbrown::HashTable;
use sip_wire::Framer;
use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, TcpStream};

/// Names a connection: worker in the top 8 bits, generation in the next 24 bits, slot in the low 32.
///
/// The generation is never 0 and starts at random with the process: the id of a connection that has ended, or of one before
/// a restart, names no other one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// No connection.
    pub const NONE: Self = Self(0);

    /// The thread that it belongs to.
    #[must_use]
    pub const fn worker(self) -> u8 {
        (self.0 >> 56) as u8
    }

    pub(crate) const fn new(worker: u8, generation: u32, slot: u32) -> Self {
        Self((worker as u64) << 56 | (generation as u64) << 32 | slot as u64)
    }

    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> 32) as u32 & GENERATION_MASK
    }

    pub(crate) const fn slot(self) -> u32 {
        self.0 as u32
    }
}

const GENERATION_MASK: u32 = 0xff_ffff;

/// Why a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The peer closed it.
    ByPeer,
    /// We did.
    ByUs,
    /// It failed: reset, or the peer is gone.
    Failed,
    /// It could not be opened: refused, unreachable, or too late.
    NotOpened,
    /// No whole message came in time.
    FirstMessageLate,
    /// A message was begun and not ended in time.
    HalfMessageLate,
    /// The peer took nothing for too long.
    PushedBack,
    /// Nothing happened for too long.
    Idle,
    /// Its bytes can't be followed.
    Broken,
    /// All half-received messages together became too large.
    HeldTooMuch,
}

/// A connection that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Closed {
    /// Which.
    pub id: ConnectionId,
    /// Whose.
    pub peer: SocketAddr,
    /// Why.
    pub why: Why,
}

/// A connection, small: most of them rest.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    /// The tick of its acceptance, then of the last thing that happened on it.
    pub(crate) since: u32,
    pub(crate) peer: PackedAddress,
    pub(crate) local: PackedAddress,
    /// The start of a message whose end has not come.
    pub(crate) inbound: Option<Box<Inbound>>,
    /// What waits to be written: until the end of the turn, or while the kernel takes no more.
    pub(crate) outbound: Option<Box<Outbound>>,
    /// Index of the listening socket; `u16::MAX`: opened by us.
    pub(crate) listener: u16,
    pub(crate) flags: Flags,
}

/// States and marks of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    /// Being opened by us.
    pub(crate) const CONNECTING: Self = Self(1);
    /// A whole message has come.
    pub(crate) const SPOKE: Self = Self(2);
    /// To be closed once all is written; nothing more is read as messages.
    pub(crate) const CLOSING: Self = Self(4);
    /// All is written; the peer's rest is read and dropped until it closes.
    pub(crate) const DRAINING: Self = Self(8);
    /// On the list of those with something to write.
    pub(crate) const DIRTY: Self = Self(16);
    /// The poller tells when it can be written to.
    pub(crate) const WRITABLE: Self = Self(32);
    /// The kernel took no more.
    pub(crate) const BLOCKED: Self = Self(64);
    /// On the list of those that are read again in the next turn.
    pub(crate) const READY: Self = Self(128);
    /// The last thing read was one CRLF: with another it makes a ping (RFC 5626 section 3.5.1).
    pub(crate) const HALF_PING: Self = Self(256);

    pub(crate) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
    pub(crate) fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }
    pub(crate) fn clear(&mut self, flag: Self) {
        self.0 &= !flag.0;
    }
}

pub(crate) struct Inbound {
    pub(crate) framer: Framer,
    pub(crate) bytes: Vec<u8>,
    /// The tick when the message began.
    pub(crate) since: u32,
}

#[derive(Default)]
pub(crate) struct Outbound {
    pub(crate) bytes: Vec<u8>,
    pub(crate) written: usize,
    /// Where the tagged messages end in `bytes`.
    pub(crate) marks: Vec<(usize, Tag)>,
    /// The tick when the kernel last took something.
    pub(crate) since: u32,
    /// Bytes of it that are counted as held.
    pub(crate) held: usize,
}

impl Outbound {
    pub(crate) fn unwritten(&self) -> usize {
        self.bytes.len() - self.written
    }

    pub(crate) fn push(&mut self, bytes: &[u8], tag: Option<Tag>) {
        self.bytes.extend_from_slice(bytes);
        if let Some(tag) = tag {
            self.marks.push((self.bytes.len(), tag));
        }
    }

    /// Gives up the room of what is written, when that is worth the move.
    pub(crate) fn compact(&mut self) {
        if self.written < 16 * 1024 || self.written < self.bytes.len() / 2 {
            return;
        }
        let written = std::mem::take(&mut self.written);
        self.bytes.drain(..written);
        self.marks.retain_mut(|(end, _)| {
            let unwritten = *end > written;
            *end = end.saturating_sub(written);
            unwritten
        });
    }

    /// Tags of the messages that have not been written whole.
    pub(crate) fn unwritten_tags(&self) -> impl Iterator<Item = Tag> + '_ {
        self.marks
            .iter()
            .filter(|(end, _)| *end > self.written)
            .map(|(_, tag)| *tag)
    }

    pub(crate) fn reset(&mut self) {
        self.bytes.clear();
        self.marks.clear();
        self.written = 0;
        self.held = 0;
    }
}

/// The connections of one thread: a slab with generations, and an index by the peer's address.
pub(crate) struct Table {
    worker: u8,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// `None`: nobody asks.
    by_peer: Option<HashTable<u32>>,
    hasher: RandomState,
    first_generation: u32,
}

struct Slot {
    generation: u32,
    connection: Option<Connection>,
}

// What a connection at rest costs, beside 16 bytes in the wheel, 4 in the open set and some 8 in the index.
const _: () = assert!(size_of::<Slot>() <= 96);

impl Table {
    pub(crate) fn new(worker: u8, by_peer: bool) -> Self {
        let hasher = RandomState::new();
        let first_generation = (hasher.hash_one(worker) as u32 & GENERATION_MASK).max(1);
        Self {
            worker,
            slots: Vec::new(),
            free: Vec::new(),
            by_peer: by_peer.then(HashTable::new),
            hasher,
            first_generation,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The id that [`Self::insert`] will give next.
    pub(crate) fn next_id(&self) -> ConnectionId {
        let (slot, generation) = match self.free.last() {
            Some(slot) => (*slot, self.slots[*slot as usize].generation),
            None => (self.slots.len() as u32, self.first_generation),
        };
        ConnectionId::new(self.worker, generation, slot)
    }

    pub(crate) fn insert(&mut self, connection: Connection) -> ConnectionId {
        let id = self.next_id();
        let peer = connection.peer;
        if self.free.pop().is_none() {
            self.slots.push(Slot {
                generation: id.generation(),
                connection: None,
            });
        }
        self.slots[id.slot() as usize].connection = Some(connection);
        if let Some(by_peer) = &mut self.by_peer {
            let (slots, hasher) = (&self.slots, &self.hasher);
            by_peer.insert_unique(hash(hasher, peer), id.slot(), |slot| {
                hash(hasher, peer_of(slots, *slot))
            });
        }
        id
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        let peer = self.get(id)?.peer;
        if let Some(by_peer) = &mut self.by_peer
            && let Ok(entry) =
                by_peer.find_entry(hash(&self.hasher, peer), |slot| *slot == id.slot())
        {
            entry.remove();
        }
        let slot = &mut self.slots[id.slot() as usize];
        slot.generation = ((slot.generation + 1) & GENERATION_MASK).max(1);
        self.free.push(id.slot());
        slot.connection.take()
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(id.slot() as usize)?;
        if slot.generation != id.generation() || id.worker() != self.worker {
            return None;
        }
        slot.connection.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.slot() as usize)?;
        if slot.generation != id.generation() || id.worker() != self.worker {
            return None;
        }
        slot.connection.as_mut()
    }

    /// The id of the connection in a slot.
    pub(crate) fn id_in(&self, slot: u32) -> ConnectionId {
        ConnectionId::new(self.worker, self.slots[slot as usize].generation, slot)
    }

    /// A connection to that peer on which something can still be sent.
    pub(crate) fn find(&self, peer: SocketAddr) -> Option<ConnectionId> {
        let peer = PackedAddress::from(peer);
        self.by_peer
            .as_ref()?
            .find(hash(&self.hasher, peer), |slot| {
                self.slots[*slot as usize]
                    .connection
                    .as_ref()
                    .is_some_and(|c| {
                        c.peer == peer
                            && !c.flags.has(Flags::CLOSING)
                            && !c.flags.has(Flags::DRAINING)
                    })
            })
            .map(|slot| self.id_in(*slot))
    }
}

fn hash(hasher: &RandomState, peer: PackedAddress) -> u64 {
    hasher.hash_one(peer)
}

fn peer_of(slots: &[Slot], slot: u32) -> PackedAddress {
    slots[slot as usize]
        .connection
        .as_ref()
        .expect("only open connections are in the index")
        .peer
}
