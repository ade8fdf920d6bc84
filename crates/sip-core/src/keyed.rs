use siphasher::sip::SipHasher13;
use siphasher::sip128::{Hasher128, SipHasher13 as SipHasher13x128};
use std::hash::Hasher;

/// Keyed hashing and random numbers out of one secret: branches, tags, table keys.
pub(crate) struct Keyed {
    key: [u64; 2],
    drawn: u64,
}

impl Keyed {
    pub(crate) fn new(key: [u8; 16]) -> Self {
        let [a, b] = halves(key);
        Self {
            key: [a, b],
            drawn: 0,
        }
    }

    /// 64 bits over parts; a part's length is hashed too, so that moving bytes between parts changes the result.
    pub(crate) fn hash(&self, parts: &[&[u8]]) -> u64 {
        let mut h = SipHasher13::new_with_keys(self.key[0], self.key[1]);
        for part in parts {
            h.write(part);
            h.write_u32(part.len() as u32);
        }
        h.finish()
    }

    /// 128 bits over parts: a table key that needs no comparison of what it was made from.
    pub(crate) fn hash128(&self, parts: &[&[u8]]) -> u128 {
        let mut h = SipHasher13x128::new_with_keys(self.key[0], self.key[1]);
        for part in parts {
            h.write(part);
            h.write_u32(part.len() as u32);
        }
        h.finish128().as_u128()
    }

    /// The next random number.
    pub(crate) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        let mut h = SipHasher13::new_with_keys(self.key[0], self.key[1]);
        h.write_u64(self.drawn);
        h.finish()
    }
}

fn halves(key: [u8; 16]) -> [u64; 2] {
    let n = u128::from_le_bytes(key);
    [n as u64, (n >> 64) as u64]
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// 16 hexadecimal digits.
pub(crate) fn hex64(n: u64) -> [u8; 16] {
    std::array::from_fn(|i| HEX[(n >> (60 - 4 * i)) as usize & 15])
}

/// Reads hexadecimal digits.
pub(crate) fn read_hex(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    text.iter().try_fold(0u64, |n, &c| {
        Some(n << 4 | u64::from((c as char).to_digit(16)?))
    })
}
