use crate::keyed::{hex64, read_hex};
use crate::slab::Handle;

/// What our Via branch says: whose transaction it is, and the loop hash (RFC 3261 section 16.6 item 8).
///
/// `z9hG4bK` `s` worker (2 hex) handle (16 hex) `.` loop hash (16 hex). The handle's generation is random, so that a response
/// to a transaction can be made only by who saw the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Branch {
    pub(crate) worker: u8,
    pub(crate) handle: Handle,
    pub(crate) loop_hash: u64,
}

/// RFC 3261 section 8.1.1.7.
pub(crate) const MAGIC: &[u8] = b"z9hG4bK";

impl Branch {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        out.push(b's');
        let digit = |n: u8| b"0123456789abcdef"[usize::from(n & 15)];
        out.push(digit(self.worker >> 4));
        out.push(digit(self.worker));
        out.extend_from_slice(&hex64(self.handle.to_u64()));
        out.push(b'.');
        out.extend_from_slice(&hex64(self.loop_hash));
    }

    /// `None`: not one of ours.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let rest = text.strip_prefix(MAGIC)?.strip_prefix(b"s")?;
        if rest.len() != 35 || rest[18] != b'.' {
            return None;
        }
        Some(Self {
            worker: read_hex(&rest[..2])? as u8,
            handle: Handle::from_u64(read_hex(&rest[2..18])?),
            loop_hash: read_hex(&rest[19..])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_reads_back_as_it_was_written() {
        let branch = Branch {
            worker: 0xa7,
            handle: Handle {
                slot: 12,
                generation: 0xdead_beef,
            },
            loop_hash: 0x0123_4567_89ab_cdef,
        };
        let mut text = Vec::new();
        branch.write(&mut text);
        assert_eq!(text, b"z9hG4bKsa7deadbeef0000000c.0123456789abcdef");
        assert_eq!(Branch::parse(&text), Some(branch));
    }

    #[test]
    fn foreign_branches_are_not_ours() {
        for text in [
            &b""[..],
            b"z9hG4bK",
            b"z9hG4bKs",
            b"z9hG4bKsxx",
            b"z9hG4bKsa7deadbeef0000000cx0123456789abcdef",
            b"1",
        ] {
            assert_eq!(Branch::parse(text), None);
        }
    }
}
