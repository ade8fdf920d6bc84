use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use siphasher::sip::SipHasher13;

use crate::journal::Queue;
use crate::list::List;
use crate::wheel::Wheel;
use crate::{Batch, Binding, Bindings, Ticket, TicketState, Wall};

/// Sizes and bounds.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Key of the hash over addresses-of-record; from the system's random source, or fixed in a simulation.
    pub hash_key: [u64; 2],
    /// Journal bytes that may wait for the disk; beyond it changes are refused.
    pub waiting_bytes_max: usize,
    /// Addresses-of-record with a binding, or with one until about an hour ago. Each takes some 300 bytes.
    pub aor_count_max: usize,
}

/// Why a change is not taken: answer 503.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The journal can't be written.
    DiskFailed,
    /// Too much waits for the disk.
    Busy,
    /// Too many addresses-of-record.
    Full,
}

/// All bindings. Shared by the workers; sharded; no lock is held across I/O.
pub struct Location {
    shards: Box<[Mutex<Shard>]>,
    queue: Queue,
    hash_key: [u64; 2],
    aor_count_max: u64,
    binding_count: AtomicU64,
    aor_count: AtomicU64,
    /// Addresses-of-record in the shards, with those that have lost their bindings and wait to be freed.
    entry_count: AtomicU64,
    /// The shard that [`Self::expire`] looks at next.
    expire_next: AtomicUsize,
}

/// A part of the addresses-of-record, by hash.
#[derive(Default)]
struct Shard {
    // Boxed: a table is half empty on average, and a pointer wastes less than an entry.
    table: HashTable<Box<Aor>>,
    /// For each entry of the table one hash, under a time when it is worth a look.
    wheel: Wheel,
}

/// An address-of-record. It outlives its bindings until the wheel comes by, so that the wheel holds no stale hashes.
struct Aor {
    name: Box<[u8]>,
    bindings: List,
    /// Of the last change.
    ticket: Ticket,
}

impl Location {
    /// Empty.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            shards: (0..SHARD_COUNT).map(|_| Mutex::default()).collect(),
            queue: Queue::new(options.waiting_bytes_max),
            hash_key: options.hash_key,
            aor_count_max: options.aor_count_max as u64,
            binding_count: AtomicU64::new(0),
            aor_count: AtomicU64::new(0),
            entry_count: AtomicU64::new(0),
            expire_next: AtomicUsize::new(0),
        }
    }

    /// Lets `change` see and change the bindings of `aor`. When it changed them, the new state of the whole address-of-record
    /// is appended to the journal's queue under the same lock, and the ticket says what to wait for. When it did not,
    /// the ticket is that of the last change of this address-of-record, which may still be on its way to disk.
    ///
    /// # Errors
    /// Nothing was changed. A change that only removes is taken even when `Full`.
    pub fn update<R>(
        &self,
        aor: &[u8],
        now: Wall,
        change: impl FnOnce(&mut Bindings<'_>) -> R,
    ) -> Result<(R, Ticket), Refused> {
        self.queue.admit()?;
        let hash = self.hash(aor);
        let mut shard = self.lock(hash.shard);
        let shard = &mut *shard;
        match shard.table.find_mut(hash.in_table(), |e| *e.name == *aor) {
            Some(entry) => Ok(self.change_entry(entry, now, change)),
            None => self.change_absent(shard, hash, aor, now, change),
        }
    }

    fn change_entry<R>(
        &self,
        entry: &mut Aor,
        now: Wall,
        change: impl FnOnce(&mut Bindings<'_>) -> R,
    ) -> (R, Ticket) {
        let count_before = entry.bindings.len();
        drop_expired(&mut entry.bindings, now);
        let mut bindings = Bindings {
            list: &mut entry.bindings,
            changed: false,
        };
        let result = change(&mut bindings);
        if bindings.changed {
            entry.ticket = self.queue.append(&entry.name, &entry.bindings);
        }
        self.count(count_before, entry.bindings.len());
        (result, entry.ticket)
    }

    fn change_absent<R>(
        &self,
        shard: &mut Shard,
        hash: Hash,
        aor: &[u8],
        now: Wall,
        change: impl FnOnce(&mut Bindings<'_>) -> R,
    ) -> Result<(R, Ticket), Refused> {
        let mut list = List::new();
        let result = change(&mut Bindings {
            list: &mut list,
            changed: false,
        });
        if list.is_empty() {
            return Ok((result, Ticket::default()));
        }
        if self.entry_count.load(Ordering::Relaxed) >= self.aor_count_max {
            return Err(Refused::Full);
        }
        let ticket = self.queue.append(aor, &list);
        self.set(shard, hash, aor, list, ticket, now);
        Ok((result, ticket))
    }

    /// Makes an entry, or replaces its bindings.
    fn set(
        &self,
        shard: &mut Shard,
        hash: Hash,
        aor: &[u8],
        bindings: List,
        ticket: Ticket,
        now: Wall,
    ) {
        let count_before;
        let count = bindings.len();
        let entry = shard.table.entry(
            hash.in_table(),
            |e| *e.name == *aor,
            |e| self.hash(&e.name).in_table(),
        );
        match entry {
            Entry::Occupied(mut occupied) => {
                let entry = occupied.get_mut();
                count_before = entry.bindings.len();
                entry.bindings = bindings;
                entry.ticket = ticket;
            }
            Entry::Vacant(_) if count == 0 => return,
            Entry::Vacant(vacant) => {
                count_before = 0;
                shard
                    .wheel
                    .arm(hash.table, first_expiry(&bindings, now), now);
                vacant.insert(Box::new(Aor {
                    name: aor.into(),
                    bindings,
                    ticket,
                }));
                self.entry_count.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count(count_before, count);
    }

    /// Reads the bindings of `aor` that have not expired.
    pub fn read<R>(&self, aor: &[u8], now: Wall, read: impl FnOnce(&[Binding]) -> R) -> R {
        let hash = self.hash(aor);
        let mut shard = self.lock(hash.shard);
        match shard.table.find_mut(hash.in_table(), |e| *e.name == *aor) {
            Some(entry) => {
                self.purge(entry, now);
                read(&entry.bindings)
            }
            None => {
                drop(shard);
                read(&[])
            }
        }
    }

    /// Whether the change behind a ticket is on disk. One atomic load.
    #[must_use]
    pub fn ticket_state(&self, ticket: Ticket) -> TicketState {
        self.queue.state(ticket)
    }

    /// Frees what has expired until `now`; bounded work per call, called now and then by the journal's writer.
    ///
    /// An address-of-record is freed some two minutes after its last binding ended, or up to 70 minutes after
    /// when bindings were removed or shortened; nobody sees an expired binding meanwhile.
    pub fn expire(&self, now: Wall) {
        for _ in 0..EXPIRE_SHARDS {
            let index = self.expire_next.fetch_add(1, Ordering::Relaxed) % SHARD_COUNT;
            let mut shard = self.lock(index);
            let shard = &mut *shard;
            for _ in 0..EXPIRE_ENTRIES_PER_SHARD {
                let Some(hash) = shard.wheel.pop(now) else {
                    break;
                };
                self.expire_hash(shard, hash, now);
            }
        }
    }

    /// Frees or arms again what has this hash: one entry, nearly always.
    fn expire_hash(&self, shard: &mut Shard, table_hash: u32, now: Wall) {
        let in_table = spread(table_hash);
        let mut again: Option<Wall> = None;
        for entry in shard.table.iter_hash_mut(in_table) {
            if self.hash(&entry.name).table != table_hash {
                continue;
            }
            self.purge(entry, now);
            if self.is_needed(entry) {
                let at = first_expiry(&entry.bindings, now);
                again = Some(again.map_or(at, |earlier| earlier.min(at)));
            }
        }
        while let Ok(occupied) = shard.table.find_entry(in_table, |e| {
            !self.is_needed(e) && self.hash(&e.name).table == table_hash
        }) {
            occupied.remove();
            self.entry_count.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(at) = again {
            shard.wheel.arm(table_hash, at, now);
        }
    }

    /// Whether an entry has bindings, or a removal that somebody may yet ask the ticket of.
    fn is_needed(&self, entry: &Aor) -> bool {
        !entry.bindings.is_empty() || self.queue.state(entry.ticket) != TicketState::Durable
    }

    fn purge(&self, entry: &mut Aor, now: Wall) {
        let count_before = entry.bindings.len();
        drop_expired(&mut entry.bindings, now);
        self.count(count_before, entry.bindings.len());
    }

    /// Bindings held, addresses-of-record held.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (
            self.binding_count.load(Ordering::Relaxed),
            self.aor_count.load(Ordering::Relaxed),
        )
    }

    /// Takes all journal records that wait, to be written as one batch. `None` when none wait. For the writer alone.
    pub fn take_batch(&self) -> Option<Batch> {
        self.queue.take_batch()
    }

    /// The batch is on disk: its tickets are `Durable`.
    pub fn batch_written(&self, batch: Batch) {
        self.queue.batch_written(batch);
    }

    /// The batch could not be written: its tickets are `Failed`, new changes are refused, and the batch is
    /// given again by the next [`Self::take_batch`], so that memory and journal agree once the disk is back.
    pub fn batch_failed(&self, batch: Batch) {
        self.queue.batch_failed(batch);
    }

    /// Sets the bindings of an address-of-record without the journal: it has them already.
    pub(crate) fn restore(&self, aor: &[u8], mut bindings: List, now: Wall) {
        drop_expired(&mut bindings, now);
        let hash = self.hash(aor);
        self.set(
            &mut self.lock(hash.shard),
            hash,
            aor,
            bindings,
            Ticket::default(),
            now,
        );
    }

    /// Adds a binding without the journal.
    pub(crate) fn restore_one(&self, aor: &[u8], binding: Binding, now: Wall) {
        if binding.expires() <= now {
            return;
        }
        let hash = self.hash(aor);
        let mut shard = self.lock(hash.shard);
        if let Some(entry) = shard.table.find_mut(hash.in_table(), |e| *e.name == *aor) {
            entry.bindings.push(binding);
            self.count(entry.bindings.len() - 1, entry.bindings.len());
            return;
        }
        let list = List::One(binding);
        self.set(&mut shard, hash, aor, list, Ticket::default(), now);
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Walks all addresses-of-record, a shard at a time, in no order; `page` is 0 first, then what was returned, until `None`.
    /// `each` runs under the shard's lock: let it be short.
    pub fn scan(
        &self,
        page: usize,
        now: Wall,
        each: &mut dyn FnMut(&[u8], &[Binding]),
    ) -> Option<usize> {
        if page >= SHARD_COUNT {
            return None;
        }
        let mut shard = self.lock(page);
        for entry in shard.table.iter_mut() {
            self.purge(entry, now);
            if !entry.bindings.is_empty() {
                each(&entry.name, &entry.bindings);
            }
        }
        (page + 1 < SHARD_COUNT).then_some(page + 1)
    }

    fn count(&self, before: usize, after: usize) {
        if before == after {
            return;
        }
        // Wraps around zero where fewer are left, as intended.
        let difference = (after as u64).wrapping_sub(before as u64);
        self.binding_count.fetch_add(difference, Ordering::Relaxed);
        if before == 0 {
            self.aor_count.fetch_add(1, Ordering::Relaxed);
        } else if after == 0 {
            self.aor_count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn hash(&self, aor: &[u8]) -> Hash {
        let mut hasher = SipHasher13::new_with_keys(self.hash_key[0], self.hash_key[1]);
        hasher.write(aor);
        let hash = hasher.finish();
        Hash {
            shard: (hash >> 32) as usize % SHARD_COUNT,
            table: hash as u32,
        }
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        // A panic of a closure leaves the list as the closure left it, which is a valid one.
        self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy)]
struct Hash {
    shard: usize,
    /// Half of the hash is enough within a shard, and what the wheel keeps.
    table: u32,
}

impl Hash {
    fn in_table(self) -> u64 {
        spread(self.table)
    }
}

/// The table takes its tag from the top bits and its slot from the bottom ones.
fn spread(table_hash: u32) -> u64 {
    u64::from(table_hash) << 32 | u64::from(table_hash)
}

fn drop_expired(bindings: &mut List, now: Wall) {
    if bindings.iter().any(|b| b.expires() <= now) {
        bindings.retain(|b| b.expires() > now);
    }
}

fn first_expiry(bindings: &[Binding], now: Wall) -> Wall {
    bindings.iter().map(Binding::expires).min().unwrap_or(now)
}

const SHARD_COUNT: usize = 1024;
const EXPIRE_SHARDS: usize = 64;
const EXPIRE_ENTRIES_PER_SHARD: usize = 256;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{BindingParts, Flow, Transport};

    pub(crate) const NOW: Wall = Wall(1_764_000_000_000);

    fn location() -> Location {
        Location::new(OPTIONS)
    }

    pub(crate) const OPTIONS: Options = Options {
        hash_key: [1, 2],
        waiting_bytes_max: 1 << 20,
        aor_count_max: 1000,
    };

    pub(crate) fn binding(contact: &str, seconds: u32) -> Binding {
        Binding::new(&BindingParts {
            contact: contact.as_bytes(),
            params: b"",
            instance: b"",
            reg_id: 0,
            q: 1000,
            call_id: b"call",
            cseq: 1,
            expires: NOW.after_s(seconds),
            flow: Flow {
                transport: Transport::Udp,
                listener: 0,
                connection: 0,
                local: "192.0.2.1:5060".parse().unwrap(),
                peer: "192.0.2.2:5060".parse().unwrap(),
            },
            behind_nat: false,
            path: b"",
            user_agent: b"",
        })
    }

    pub(crate) fn push(location: &Location, aor: &str, contact: &str, seconds: u32) -> Ticket {
        let push = |b: &mut Bindings<'_>| b.push(binding(contact, seconds));
        location.update(aor.as_bytes(), NOW, push).unwrap().1
    }

    pub(crate) fn contacts(location: &Location, aor: &str, now: Wall) -> Vec<String> {
        let contact = |b: &Binding| String::from_utf8_lossy(b.parts().contact).into_owned();
        location.read(aor.as_bytes(), now, |list| {
            list.iter().map(contact).collect()
        })
    }

    fn commit(location: &Location) {
        if let Some(batch) = location.take_batch() {
            location.batch_written(batch);
        }
    }

    #[test]
    fn bindings_are_listed_oldest_first_until_they_expire() {
        let location = location();
        push(&location, "alice@a", "sip:1", 60);
        push(&location, "alice@a", "sip:2", 30);
        push(&location, "alice@a", "sip:3", 90);
        assert_eq!(
            contacts(&location, "alice@a", NOW),
            ["sip:1", "sip:2", "sip:3"]
        );
        assert_eq!(
            contacts(&location, "alice@a", NOW.after_s(30)),
            ["sip:1", "sip:3"]
        );
        assert_eq!(location.counts(), (2, 1));
        assert!(contacts(&location, "alice@a", NOW.after_s(90)).is_empty());
        assert!(contacts(&location, "bob@a", NOW).is_empty());
        assert_eq!(location.counts(), (0, 0));
    }

    #[test]
    fn a_change_is_durable_once_its_batch_is_written() {
        let location = location();
        let first = push(&location, "alice@a", "sip:1", 60);
        assert_eq!(location.ticket_state(first), TicketState::Waiting);
        let batch = location.take_batch().unwrap();
        let second = push(&location, "bob@a", "sip:2", 60);
        assert_eq!(location.ticket_state(first), TicketState::Waiting);
        location.batch_written(batch);
        assert_eq!(location.ticket_state(first), TicketState::Durable);
        assert_eq!(location.ticket_state(second), TicketState::Waiting);
        assert!(location.take_batch().is_some());
        assert!(location.take_batch().is_none());
    }

    #[test]
    fn without_a_change_the_ticket_is_that_of_the_last_one() {
        let location = location();
        let look = |aor: &str| location.update(aor.as_bytes(), NOW, |_| ()).unwrap().1;
        assert_eq!(location.ticket_state(look("alice@a")), TicketState::Durable);
        let ticket = push(&location, "alice@a", "sip:1", 60);
        assert_eq!(look("alice@a"), ticket);
        let clear = |b: &mut Bindings<'_>| b.clear();
        let (_, removed) = location.update(b"alice@a", NOW, clear).unwrap();
        assert!(removed > ticket);
        assert_eq!(look("alice@a"), removed);
        assert_eq!(location.counts(), (0, 0));
    }

    #[test]
    fn while_the_disk_fails_changes_are_refused_and_none_is_lost() {
        let location = location();
        let first = push(&location, "alice@a", "sip:1", 60);
        let batch = location.take_batch().unwrap();
        let second = push(&location, "bob@a", "sip:2", 60);
        let bytes = batch.bytes.clone();
        location.batch_failed(batch);
        assert_eq!(location.ticket_state(first), TicketState::Failed);
        assert_eq!(location.ticket_state(second), TicketState::Failed);
        let refused = location.update(b"carol@a", NOW, |_| unreachable!("must not be asked"));
        assert_eq!(refused, Err::<((), _), _>(Refused::DiskFailed));
        let again = location.take_batch().unwrap();
        assert!(again.bytes.len() > bytes.len() && again.bytes.starts_with(&bytes));
        location.batch_written(again);
        assert_eq!(location.ticket_state(second), TicketState::Durable);
        assert!(push(&location, "carol@a", "sip:3", 60) > second);
    }

    #[test]
    fn changes_are_refused_while_too_much_waits() {
        let location = Location::new(Options {
            waiting_bytes_max: 300,
            ..OPTIONS
        });
        let mut taken = 0;
        let refused = loop {
            match location.update(b"alice@a", NOW, |b| b.push(binding("sip:1", 60))) {
                Ok(_) => taken += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused, Refused::Busy);
        assert_eq!(location.counts(), (taken, 1));
        let batch = location.take_batch().unwrap();
        assert_eq!(
            location.update(b"alice@a", NOW, |_| ()),
            Err(Refused::Busy),
            "what is being written still counts"
        );
        location.batch_written(batch);
        assert!(location.update(b"alice@a", NOW, |_| ()).is_ok());
    }

    #[test]
    fn a_full_store_refuses_a_new_address_of_record_and_takes_the_rest() {
        let location = Location::new(Options {
            aor_count_max: 2,
            ..OPTIONS
        });
        push(&location, "alice@a", "sip:1", 60);
        push(&location, "bob@a", "sip:1", 60);
        let refused = location.update(b"carol@a", NOW, |b| b.push(binding("sip:1", 60)));
        assert_eq!(refused, Err(Refused::Full));
        assert!(contacts(&location, "carol@a", NOW).is_empty());
        assert!(location.update(b"carol@a", NOW, |b| b.clear()).is_ok());
        push(&location, "bob@a", "sip:2", 60);
        assert_eq!(location.counts(), (3, 2));
    }

    fn entries(location: &Location) -> usize {
        let count = |s: &Mutex<Shard>| s.lock().unwrap().table.len();
        location.shards.iter().map(count).sum()
    }

    fn expire_all(location: &Location, now: Wall) {
        for _ in 0..2 * SHARD_COUNT / EXPIRE_SHARDS {
            location.expire(now);
        }
    }

    #[test]
    fn expired_and_removed_addresses_of_record_are_freed() {
        let location = location();
        for i in 0..500 {
            push(&location, &format!("user{i}@a"), "sip:1", 60 + i);
        }
        location.update(b"user499@a", NOW, |b| b.clear()).unwrap();
        commit(&location);
        assert_eq!(entries(&location), 500);
        expire_all(&location, NOW.after_s(300));
        assert!((260..=499).contains(&location.counts().1));
        expire_all(&location, NOW.after_s(560 + 132));
        assert_eq!(location.counts(), (0, 0));
        assert_eq!(entries(&location), 0);
        assert_eq!(location.entry_count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_refreshed_binding_outlives_its_first_expiry_and_ends_at_the_second() {
        let location = location();
        push(&location, "alice@a", "sip:1", 60);
        location
            .update(b"alice@a", NOW, |b| {
                let flow = b.list()[0].parts().flow;
                b.at(0).refresh(b"call", 2, NOW.after_s(600), flow);
            })
            .unwrap();
        commit(&location);
        expire_all(&location, NOW.after_s(400));
        assert_eq!(contacts(&location, "alice@a", NOW.after_s(400)), ["sip:1"]);
        expire_all(&location, NOW.after_s(732));
        assert_eq!(entries(&location), 0);
    }

    #[test]
    fn a_removal_on_its_way_to_disk_is_not_forgotten() {
        let location = location();
        push(&location, "alice@a", "sip:1", 60);
        let (_, ticket) = location.update(b"alice@a", NOW, |b| b.clear()).unwrap();
        let later = NOW.after_s(4000);
        expire_all(&location, later);
        let (_, again) = location.update(b"alice@a", later, |_| ()).unwrap();
        assert_eq!(again, ticket);
        commit(&location);
        expire_all(&location, later.after_s(4000));
        assert_eq!(entries(&location), 0);
    }

    #[test]
    fn the_scan_shows_each_address_of_record_once() {
        let location = location();
        for i in 0..300 {
            push(&location, &format!("user{i}@a"), "sip:1", 60 + i);
        }
        let mut seen = Vec::new();
        let mut page = Some(0);
        while let Some(p) = page {
            page = location.scan(p, NOW.after_s(61), &mut |aor, bindings| {
                assert_eq!(bindings.len(), 1);
                seen.push(aor.to_vec());
            });
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 298);
    }
}
