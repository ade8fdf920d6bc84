/// Password hashes of a subscriber for one realm (RFC 3261 section 22.4, RFC 7616): never the password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ha1 {
    /// MD5 of `user:realm:password`; all zero: not known.
    pub md5: [u8; 16],
    /// SHA-256 of the same; all zero: not known.
    pub sha256: [u8; 32],
}

/// Subscribers by address-of-record, all in memory (some 100 bytes each), with a SQLite table behind.
pub struct Subscribers {}

impl Subscribers {
    /// None, no file behind: for tests and the simulation.
    #[must_use]
    pub fn in_memory(hash_key: [u64; 2]) -> Self {
        let _ = hash_key;
        todo!()
    }
    /// The hashes of `aor` (`user@domain`, canonical).
    #[must_use]
    pub fn ha1(&self, aor: &[u8]) -> Option<Ha1> {
        let _ = aor;
        todo!()
    }
    /// Whether it exists.
    #[must_use]
    pub fn exists(&self, aor: &[u8]) -> bool {
        let _ = aor;
        todo!()
    }
    /// Whether any subscriber is of this domain (lower case).
    #[must_use]
    pub fn serves_domain(&self, domain: &[u8]) -> bool {
        let _ = domain;
        todo!()
    }
    /// Sets one in memory only.
    pub fn insert_in_memory(&self, aor: &[u8], ha1: Ha1) {
        let _ = (aor, ha1);
        todo!()
    }
}
