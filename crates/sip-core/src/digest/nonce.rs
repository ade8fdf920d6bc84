use location::Wall;
use siphasher::sip::{SipHasher13, SipHasher24};
use subtle::ConstantTimeEq;

/// Makes and recognizes nonces. A nonce is 21 bytes as 28 characters: time of issue in milliseconds since the start of the
/// server (5), the caller's unique number (8), SipHash-2-4 of both under a key of this start (8).
pub(super) struct Nonces {
    seal: SipHasher24,
    fingerprint: SipHasher13,
    start: Wall,
}

/// A nonce of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Nonce {
    /// Milliseconds since the start.
    pub(super) issued_ms: u64,
    /// Its seal: unpredictable and well spread, fit to choose a place in a table.
    pub(super) seal: u64,
}

/// Length of a nonce's text.
const TEXT_LEN: usize = 28;
/// Bits of the time of issue: 34 years.
pub(super) const TIME_BITS: u32 = 40;
/// How far two workers' clocks may be apart, milliseconds.
pub(super) const SKEW_MS: u64 = 1000;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Nonces {
    pub(super) fn new(key: [u8; 16], start: Wall) -> Self {
        let mut other = key;
        other[0] ^= 1;
        Self {
            seal: SipHasher24::new_with_key(&key),
            fingerprint: SipHasher13::new_with_key(&other),
            start,
        }
    }

    /// Milliseconds since the start, as nonces count them.
    pub(super) fn time_ms(&self, now: Wall) -> u64 {
        now.0.saturating_sub(self.start.0) & ((1 << TIME_BITS) - 1)
    }

    pub(super) fn issue(&self, now: Wall, unique: u64) -> [u8; TEXT_LEN] {
        let mut bytes = [0; 21];
        bytes[..5].copy_from_slice(&self.time_ms(now).to_be_bytes()[3..]);
        bytes[5..13].copy_from_slice(&unique.to_be_bytes());
        let seal = self.seal.hash(&bytes[..13]).to_be_bytes();
        bytes[13..].copy_from_slice(&seal);
        to_text(&bytes)
    }

    /// The nonce behind a text; `None` when it is not one of this start.
    pub(super) fn check(&self, text: &[u8]) -> Option<Nonce> {
        let bytes = from_text(text)?;
        let seal = self.seal.hash(&bytes[..13]);
        if !bool::from(seal.to_be_bytes().ct_eq(&bytes[13..])) {
            return None;
        }
        let mut time = [0; 8];
        time[3..].copy_from_slice(&bytes[..5]);
        Some(Nonce {
            issued_ms: u64::from_be_bytes(time),
            seal,
        })
    }

    /// A keyed hash of a request: two different ones do not share it, even on purpose.
    pub(super) fn fingerprint(&self, request: &[u8]) -> u64 {
        self.fingerprint.hash(request)
    }
}

impl Nonce {
    /// Its age in milliseconds; `None` when it was issued in the future: the clock was set back.
    pub(super) fn age_ms(&self, now_ms: u64) -> Option<u64> {
        (self.issued_ms <= now_ms + SKEW_MS).then(|| now_ms.saturating_sub(self.issued_ms))
    }
}

/// Base 64 with the alphabet that needs no quoting anywhere (RFC 4648 section 5).
fn to_text(bytes: &[u8; 21]) -> [u8; TEXT_LEN] {
    let mut text = [0; TEXT_LEN];
    for (three, four) in bytes.chunks_exact(3).zip(text.chunks_exact_mut(4)) {
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for (i, c) in four.iter_mut().enumerate() {
            *c = ALPHABET[(bits >> (18 - 6 * i)) as usize & 63];
        }
    }
    text
}

fn from_text(text: &[u8]) -> Option<[u8; 21]> {
    if text.len() != TEXT_LEN {
        return None;
    }
    let mut bytes = [0; 21];
    for (four, three) in text.chunks_exact(4).zip(bytes.chunks_exact_mut(3)) {
        let mut bits = 0;
        for c in four {
            bits = bits << 6 | u32::from(digit(*c)?);
        }
        three.copy_from_slice(&bits.to_be_bytes()[1..]);
    }
    Some(bytes)
}

const fn digit(c: u8) -> Option<u8> {
    match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Wall = Wall(1_700_000_000_000);

    fn nonces() -> Nonces {
        Nonces::new([7; 16], START)
    }

    #[test]
    fn a_nonce_is_recognized_with_its_time() {
        let text = nonces().issue(Wall(START.0 + 123_456), u64::MAX);
        let nonce = nonces().check(&text).expect("ours");
        assert_eq!(nonce.issued_ms, 123_456);
        assert_eq!(nonce.age_ms(123_999), Some(543));
    }

    #[test]
    fn a_changed_character_anywhere_makes_it_unknown() {
        let text = nonces().issue(START, 5);
        for at in 0..text.len() {
            let mut forged = text;
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(nonces().check(&forged), None, "at {at}");
        }
    }

    #[test]
    fn a_nonce_of_another_key_or_of_another_length_is_unknown() {
        let text = Nonces::new([8; 16], START).issue(START, 5);
        assert_eq!(nonces().check(&text), None);
        let text = nonces().issue(START, 5);
        assert_eq!(nonces().check(&text[..27]), None);
        assert_eq!(nonces().check(b""), None);
        assert_eq!(nonces().check(&[b'"'; 28]), None);
    }

    #[test]
    fn nonces_of_one_millisecond_differ_by_the_unique_number() {
        assert_ne!(nonces().issue(START, 1), nonces().issue(START, 1 << 63 | 1));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nonces_unusable_but_two_workers_may_differ() {
        let nonce = Nonce {
            issued_ms: 10_000,
            seal: 0,
        };
        assert_eq!(nonce.age_ms(9_500), Some(0));
        assert_eq!(nonce.age_ms(5_000), None);
    }
}
