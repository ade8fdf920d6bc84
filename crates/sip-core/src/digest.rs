use location::{Ha1, Wall};
use sip_wire::{Message, Name};

/// Digest authentication without a table of nonces (RFC 3261 section 22, 7616, 8760). Shared by all workers; atomics only.
pub struct Digest {}

/// What credentials are worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict<'a> {
    /// They fit; the user name as sent.
    Good(&'a [u8]),
    /// None for this realm: challenge.
    Missing,
    /// Right, but the nonce is too old, unknown, or its count was used before: challenge with `stale=true`.
    Stale,
    /// Wrong: challenge again, count it. The same for a user who does not exist.
    Wrong(&'a [u8]),
    /// Malformed: 400.
    Malformed,
}

impl Digest {
    /// `key` is random at each start. `slots`: how many nonces in use are remembered for their counts, 8 bytes each, rounded up to a power of two.
    #[must_use]
    pub fn new(key: [u8; 16], slots: usize, start: Wall) -> Self {
        let _ = (key, slots, start);
        todo!()
    }

    /// Appends the challenge's header lines (WWW-Authenticate or Proxy-Authenticate, one per algorithm, MD5 first: old phones read only the first).
    /// `unique` makes nonces of the same millisecond differ.
    pub fn challenge(
        &self,
        now: Wall,
        unique: u64,
        header: Name,
        realm: &str,
        stale: bool,
        out: &mut Vec<u8>,
    ) {
        let _ = (now, unique, header, realm, stale, out);
        todo!()
    }

    /// Checks the credentials of a request for `realm` in `header` (Authorization or Proxy-Authorization). `ha1` finds the hashes of a user
    /// name as it was sent; the comparison takes as long when it finds none.
    pub fn verify<'a>(
        &self,
        now: Wall,
        lifetime_s: u32,
        request: &Message<'a>,
        header: Name,
        realm: &str,
        ha1: impl FnOnce(&[u8]) -> Option<Ha1>,
    ) -> Verdict<'a> {
        let _ = (now, lifetime_s, request, header, realm, ha1);
        todo!()
    }
}
