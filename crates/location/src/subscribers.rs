use std::hash::Hasher;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use hashbrown::hash_table::Entry;
use hashbrown::{HashMap, HashTable};
use siphasher::sip::SipHasher13;

use crate::{SubscriberTable, SubscribersError};

/// Password hashes of a subscriber for one realm (RFC 3261 section 22.4, RFC 7616): never the password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ha1 {
    /// MD5 of `user:realm:password`; all zero: not known.
    pub md5: [u8; 16],
    /// SHA-256 of the same; all zero: not known.
    pub sha256: [u8; 32],
}

/// Whoever has them can register: they never reach a log.
impl std::fmt::Debug for Ha1 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ha1(..)")
    }
}

/// Subscribers by address-of-record, all in memory (some 100 bytes each), with a SQLite table behind.
pub struct Subscribers {
    shards: Box<[Mutex<HashTable<Subscriber>>]>,
    /// Subscribers of each domain.
    domains: RwLock<HashMap<Box<[u8]>, u64, DomainHash>>,
    count: AtomicU64,
    hash_key: [u64; 2],
    /// Locked while it is written, which never happens on a worker.
    table: Option<Mutex<SubscriberTable>>,
}

/// Hashes, then the address-of-record, in one allocation.
struct Subscriber(Box<[u8]>);

impl Subscribers {
    /// None, no file behind: for tests and the simulation.
    #[must_use]
    pub fn in_memory(hash_key: [u64; 2]) -> Self {
        Self {
            shards: (0..SHARD_COUNT).map(|_| Mutex::default()).collect(),
            domains: RwLock::new(HashMap::with_hasher(DomainHash(hash_key))),
            count: AtomicU64::new(0),
            hash_key,
            table: None,
        }
    }

    /// Those of a data directory, loaded; a million take some seconds.
    ///
    /// # Errors
    /// As the system or SQLite says.
    pub fn open(dir: &Path, hash_key: [u64; 2]) -> Result<Self, SubscribersError> {
        let table = SubscriberTable::open(dir)?;
        let mut subscribers = Self::in_memory(hash_key);
        table.all(|aor, ha1| subscribers.insert_in_memory(aor, ha1))?;
        subscribers.table = Some(Mutex::new(table));
        Ok(subscribers)
    }

    /// Reads the table again, after somebody else has changed it. What is not in it is gone afterwards.
    ///
    /// # Errors
    /// As SQLite says: nothing was changed.
    pub fn reload(&self) -> Result<(), SubscribersError> {
        let Some(table) = self.table() else {
            return Ok(());
        };
        let fresh = Self::in_memory(self.hash_key);
        table.all(|aor, ha1| fresh.insert_in_memory(aor, ha1))?;
        // The same key: the same shards.
        for (shard, fresh) in self.shards.iter().zip(fresh.shards) {
            let fresh = fresh.into_inner().unwrap_or_else(PoisonError::into_inner);
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        let domains = fresh
            .domains
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        *self.domains.write().unwrap_or_else(PoisonError::into_inner) = domains;
        self.count
            .store(fresh.count.into_inner(), Ordering::Relaxed);
        Ok(())
    }

    /// Adds or replaces one, on disk and then in memory. Waits for the disk: not for a worker.
    ///
    /// # Errors
    /// When `aor` is not `user@domain`, or as SQLite says: nothing was changed.
    pub fn put(&self, aor: &[u8], ha1: Ha1) -> Result<(), SubscribersError> {
        self.put_many([(aor, ha1)]).map(drop)
    }

    /// Adds or replaces many, all or none, on disk and then in memory; how many. A million take some seconds.
    ///
    /// # Errors
    /// When one is not `user@domain`, or as SQLite says: nothing was changed.
    pub fn put_many<A: AsRef<[u8]>>(
        &self,
        subscribers: impl IntoIterator<Item = (A, Ha1)>,
    ) -> Result<u64, SubscribersError> {
        let subscribers: Vec<(A, Ha1)> = subscribers.into_iter().collect();
        let mut table = self.table();
        if let Some(table) = &mut table {
            table.put_many(subscribers.iter().map(|(aor, ha1)| (aor, *ha1)))?;
        }
        for (aor, ha1) in &subscribers {
            self.insert_in_memory(aor.as_ref(), *ha1);
        }
        Ok(subscribers.len() as u64)
    }

    /// Removes one, on disk and then in memory; whether it was there.
    ///
    /// # Errors
    /// As SQLite says: nothing was changed.
    pub fn remove(&self, aor: &[u8]) -> Result<bool, SubscribersError> {
        let mut table = self.table();
        if let Some(table) = &mut table {
            table.remove(aor)?;
        }
        Ok(self.remove_in_memory(aor))
    }

    /// Up to `limit` of them, ordered by domain and then user, from behind `after` on. From disk; none without a file behind.
    ///
    /// # Errors
    /// When `after` is not `user@domain`, or as SQLite says.
    pub fn page(
        &self,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Vec<(Vec<u8>, Ha1)>, SubscribersError> {
        self.table()
            .map_or(Ok(Vec::new()), |table| table.page(after, limit))
    }

    fn table(&self) -> Option<MutexGuard<'_, SubscriberTable>> {
        let table = self.table.as_ref()?;
        Some(table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The hashes of `aor` (`user@domain`, canonical).
    #[must_use]
    pub fn ha1(&self, aor: &[u8]) -> Option<Ha1> {
        let (shard, hash) = self.find(aor);
        shard.find(hash, |s| s.aor() == aor).map(Subscriber::ha1)
    }

    /// Whether it exists.
    #[must_use]
    pub fn exists(&self, aor: &[u8]) -> bool {
        let (shard, hash) = self.find(aor);
        shard.find(hash, |s| s.aor() == aor).is_some()
    }

    /// Whether any subscriber is of this domain (lower case).
    #[must_use]
    pub fn serves_domain(&self, domain: &[u8]) -> bool {
        self.domains
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(domain)
    }

    /// Domains that have a subscriber, sorted.
    #[must_use]
    pub fn domains(&self) -> Vec<Box<[u8]>> {
        let domains = self.domains.read().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<_> = domains.keys().cloned().collect();
        list.sort_unstable();
        list
    }

    /// Subscribers in memory.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Sets one in memory only.
    pub fn insert_in_memory(&self, aor: &[u8], ha1: Ha1) {
        let (mut shard, hash) = self.find(aor);
        let entry = shard.entry(
            hash,
            |s| s.aor() == aor,
            |s| hash_with(self.hash_key, s.aor()),
        );
        match entry {
            Entry::Occupied(mut occupied) => *occupied.get_mut() = Subscriber::new(aor, ha1),
            Entry::Vacant(vacant) => {
                vacant.insert(Subscriber::new(aor, ha1));
                self.count.fetch_add(1, Ordering::Relaxed);
                self.count_domain(aor, 1);
            }
        }
    }

    /// Removes one in memory only; whether it was there.
    pub fn remove_in_memory(&self, aor: &[u8]) -> bool {
        let (mut shard, hash) = self.find(aor);
        let Ok(occupied) = shard.find_entry(hash, |s| s.aor() == aor) else {
            return false;
        };
        occupied.remove();
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.count_domain(aor, -1);
        true
    }

    fn count_domain(&self, aor: &[u8], difference: i64) {
        let domain = domain_of(aor);
        let mut domains = self.domains.write().unwrap_or_else(PoisonError::into_inner);
        let before = domains.get(domain).copied().unwrap_or(0);
        match before.saturating_add_signed(difference) {
            0 => domains.remove(domain),
            count => domains.insert(domain.into(), count),
        };
    }

    fn find(&self, aor: &[u8]) -> (MutexGuard<'_, HashTable<Subscriber>>, u64) {
        let hash = hash_with(self.hash_key, aor);
        // The table takes its tag from the top bits and its slot from the bottom ones: the shard is in between.
        let shard = (hash >> 32) as usize % SHARD_COUNT;
        let guard = self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (guard, hash)
    }
}

impl Subscriber {
    fn new(aor: &[u8], ha1: Ha1) -> Self {
        Self([&ha1.md5[..], &ha1.sha256[..], aor].concat().into())
    }

    fn aor(&self) -> &[u8] {
        &self.0[16 + 32..]
    }

    fn ha1(&self) -> Ha1 {
        let (md5, rest) = self.0.split_first_chunk().expect("made by `new`");
        let (sha256, _) = rest.split_first_chunk().expect("made by `new`");
        Ha1 {
            md5: *md5,
            sha256: *sha256,
        }
    }
}

/// What stands behind the last `@`; all of it where there is none.
fn domain_of(aor: &[u8]) -> &[u8] {
    let at = aor.iter().rposition(|b| *b == b'@');
    &aor[at.map_or(0, |at| at + 1)..]
}

/// Keyed, for peers choose what is asked for.
struct DomainHash([u64; 2]);

impl std::hash::BuildHasher for DomainHash {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0[0], self.0[1])
    }
}

fn hash_with(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
    hasher.write(bytes);
    hasher.finish()
}

const SHARD_COUNT: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Ha1 = Ha1 {
        md5: [1; 16],
        sha256: [2; 32],
    };

    #[test]
    fn a_subscriber_is_found_and_replaced_and_removed() {
        let subscribers = Subscribers::in_memory([1, 2]);
        subscribers.insert_in_memory(b"alice@example.com", ALICE);
        assert_eq!(subscribers.ha1(b"alice@example.com"), Some(ALICE));
        assert_eq!(subscribers.ha1(b"bob@example.com"), None);
        let other = Ha1 {
            md5: [3; 16],
            ..ALICE
        };
        subscribers.insert_in_memory(b"alice@example.com", other);
        assert_eq!(subscribers.ha1(b"alice@example.com"), Some(other));
        assert_eq!(subscribers.count(), 1);
        assert!(subscribers.remove_in_memory(b"alice@example.com"));
        assert!(!subscribers.remove_in_memory(b"alice@example.com"));
        assert!(!subscribers.exists(b"alice@example.com"));
        assert_eq!(subscribers.count(), 0);
    }

    #[test]
    fn a_domain_is_served_while_it_has_a_subscriber() {
        let subscribers = Subscribers::in_memory([1, 2]);
        for aor in ["alice@b.example", "bob@b.example", "carol@a.example"] {
            subscribers.insert_in_memory(aor.as_bytes(), ALICE);
        }
        subscribers.insert_in_memory(b"alice@b.example", ALICE);
        let names: [Box<[u8]>; 2] = [(*b"a.example").into(), (*b"b.example").into()];
        assert_eq!(subscribers.domains(), names);
        subscribers.remove_in_memory(b"alice@b.example");
        assert!(subscribers.serves_domain(b"b.example"));
        subscribers.remove_in_memory(b"bob@b.example");
        assert!(!subscribers.serves_domain(b"b.example"));
        assert!(subscribers.serves_domain(b"a.example"));
    }

    #[test]
    fn the_hashes_are_not_shown() {
        assert_eq!(format!("{ALICE:?}"), "Ha1(..)");
    }
}
