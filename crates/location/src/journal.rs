use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::list::List;
use crate::{Binding, Refused};

/// The place of a change in the journal. Ordered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ticket(pub u64);

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TicketState {
    /// On disk: the 200 may leave.
    Durable,
    /// On its way.
    Waiting,
    /// The disk did not take it: answer 503. The change stands in memory, and goes to disk once that works again.
    Failed,
}

/// Records to be written at once.
pub struct Batch {
    /// The bytes to append to the journal.
    pub bytes: Vec<u8>,
    /// Tickets it makes durable: all up to this one.
    pub up_to: Ticket,
}

/// The journal's queue: records that wait for the disk, and how far the disk is.
pub(crate) struct Queue {
    records: Mutex<Records>,
    /// Wakes the writer; used only while it waits, for waking costs a system call.
    arrived: Condvar,
    durable: AtomicU64,
    failed: AtomicU64,
    /// The last batch could not be written.
    is_failing: AtomicBool,
    /// Bytes queued or being written.
    waiting_bytes: AtomicUsize,
    waiting_bytes_max: usize,
}

#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    /// The buffer of the batch before, to be used again.
    spare: Vec<u8>,
    last: Ticket,
    writer_waits: bool,
}

impl Queue {
    pub(crate) fn new(waiting_bytes_max: usize) -> Self {
        Self {
            records: Mutex::default(),
            arrived: Condvar::new(),
            durable: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
            waiting_bytes: AtomicUsize::new(0),
            waiting_bytes_max,
        }
    }

    /// Whether a change may be made now.
    pub(crate) fn admit(&self) -> Result<(), Refused> {
        if self.is_failing.load(Ordering::Relaxed) {
            Err(Refused::DiskFailed)
        } else if self.waiting_bytes.load(Ordering::Relaxed) >= self.waiting_bytes_max {
            Err(Refused::Busy)
        } else {
            Ok(())
        }
    }

    /// Queues the whole state of an address-of-record.
    pub(crate) fn append(&self, aor: &[u8], bindings: &[Binding]) -> Ticket {
        let mut records = self.lock();
        let len_before = records.bytes.len();
        encode_record(&mut records.bytes, aor, bindings);
        let len = records.bytes.len() - len_before;
        self.waiting_bytes.fetch_add(len, Ordering::Relaxed);
        records.last.0 += 1;
        if self.is_failing.load(Ordering::Relaxed) {
            // The disk failed since `admit`: nobody shall wait for the next attempt.
            self.failed.store(records.last.0, Ordering::Release);
        }
        let ticket = records.last;
        let wake = std::mem::take(&mut records.writer_waits);
        drop(records);
        if wake {
            self.arrived.notify_one();
        }
        ticket
    }

    pub(crate) fn state(&self, ticket: Ticket) -> TicketState {
        if ticket.0 <= self.durable.load(Ordering::Acquire) {
            TicketState::Durable
        } else if ticket.0 <= self.failed.load(Ordering::Acquire) {
            TicketState::Failed
        } else {
            TicketState::Waiting
        }
    }

    pub(crate) fn take_batch(&self) -> Option<Batch> {
        let mut records = self.lock();
        if records.bytes.is_empty() {
            return None;
        }
        let spare = std::mem::take(&mut records.spare);
        Some(Batch {
            bytes: std::mem::replace(&mut records.bytes, spare),
            up_to: records.last,
        })
    }

    pub(crate) fn batch_written(&self, mut batch: Batch) {
        let mut records = self.lock();
        self.durable.store(batch.up_to.0, Ordering::Release);
        self.is_failing.store(false, Ordering::Relaxed);
        self.waiting_bytes
            .fetch_sub(batch.bytes.len(), Ordering::Relaxed);
        if batch.bytes.capacity() <= SPARE_LEN_MAX {
            batch.bytes.clear();
            records.spare = batch.bytes;
        }
    }

    pub(crate) fn batch_failed(&self, mut batch: Batch) {
        let mut records = self.lock();
        batch.bytes.extend_from_slice(&records.bytes);
        records.bytes = batch.bytes;
        self.is_failing.store(true, Ordering::Relaxed);
        self.failed.store(records.last.0, Ordering::Release);
    }

    /// Blocks until a record waits, or for `time_max`. For the writer's thread alone.
    pub(crate) fn wait(&self, time_max: Duration) {
        let mut records = self.lock();
        if records.bytes.is_empty() {
            records.writer_waits = true;
            let (mut records, _) = self
                .arrived
                .wait_timeout(records, time_max)
                .unwrap_or_else(PoisonError::into_inner);
            records.writer_waits = false;
        }
    }

    /// Ends a [`Self::wait`] now.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A larger buffer is given back to the system after a peak.
const SPARE_LEN_MAX: usize = 4 << 20;

// A record, little-endian: MAGIC, length of the payload (4 bytes), CRC-32 of the payload (4 bytes), payload.
// The payload: VERSION, length of the address-of-record (4 bytes), the address-of-record, and for each binding
// its length (4 bytes) and packed form. It is the whole state, so that to apply it again, or late, does no harm;
// no binding: removed.
const MAGIC: [u8; 4] = *b"\xF5AOR";
const HEADER_LEN: usize = 12;
const VERSION: u8 = 1;

/// Appends one record.
pub(crate) fn encode_record(buffer: &mut Vec<u8>, aor: &[u8], bindings: &[Binding]) {
    let start = buffer.len();
    buffer.extend_from_slice(&MAGIC);
    buffer.extend_from_slice(&[0; HEADER_LEN - MAGIC.len()]);
    buffer.push(VERSION);
    put_text(buffer, aor);
    for binding in bindings {
        put_text(buffer, binding.packed());
    }
    let payload = start + HEADER_LEN;
    let len = u32::try_from(buffer.len() - payload).expect("bindings of one AOR, under 4 GiB");
    let crc = crc32fast::hash(&buffer[payload..]);
    buffer[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    buffer[start + 8..payload].copy_from_slice(&crc.to_le_bytes());
}

/// What [`decode_records`] could not read, and how far it came.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Decoded {
    /// Records read.
    pub(crate) count: u64,
    /// Ranges of bytes that are no record, and have a good record behind them.
    pub(crate) damage: Vec<Range<usize>>,
    /// Behind the last good record.
    pub(crate) end: usize,
}

/// Reads all records that are whole, in order; after damage goes on with the next good one.
pub(crate) fn decode_records(bytes: &[u8], mut each: impl FnMut(&[u8], List)) -> Decoded {
    let mut decoded = Decoded::default();
    let mut at = 0;
    while at < bytes.len() {
        let Some((len, aor, bindings)) = decode_record(&bytes[at..]) else {
            let next = bytes[at + 1..]
                .windows(MAGIC.len())
                .position(|w| w == MAGIC);
            match next {
                Some(distance) => at += 1 + distance,
                None => break,
            }
            continue;
        };
        if at > decoded.end {
            decoded.damage.push(decoded.end..at);
        }
        at += len;
        decoded.count += 1;
        decoded.end = at;
        each(aor, bindings);
    }
    decoded
}

fn decode_record(bytes: &[u8]) -> Option<(usize, &[u8], List)> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
    let (magic, numbers) = header.split_first_chunk::<4>()?;
    let (len, crc) = numbers.split_first_chunk::<4>()?;
    let payload = rest.get(..u32::from_le_bytes(*len) as usize)?;
    if *magic != MAGIC || crc != crc32fast::hash(payload).to_le_bytes() {
        return None;
    }
    let (&VERSION, mut rest) = payload.split_first()? else {
        return None;
    };
    let aor = take_text(&mut rest)?;
    let mut bindings = List::new();
    while !rest.is_empty() {
        bindings.push(Binding::from_packed(take_text(&mut rest)?)?);
    }
    Some((HEADER_LEN + payload.len(), aor, bindings))
}

fn put_text(buffer: &mut Vec<u8>, text: &[u8]) {
    let len = u32::try_from(text.len()).expect("a part of a message, which is far shorter");
    buffer.extend_from_slice(&len.to_le_bytes());
    buffer.extend_from_slice(text);
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, tail) = rest.split_first_chunk::<4>()?;
    let (text, tail) = tail.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *rest = tail;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::binding;

    fn three_records() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        let both = [binding("sip:1", 60), binding("sip:2", 70)];
        for (aor, bindings) in [("a@x", &both[..1]), ("b@x", &both), ("c@x", &[])] {
            encode_record(&mut bytes, aor.as_bytes(), bindings);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn decode(bytes: &[u8]) -> (Vec<(String, usize)>, Decoded) {
        let mut seen = Vec::new();
        let decoded = decode_records(bytes, |aor, bindings| {
            seen.push((String::from_utf8_lossy(aor).into_owned(), bindings.len()));
        });
        (seen, decoded)
    }

    #[test]
    fn records_read_as_they_were_written() {
        let (bytes, _) = three_records();
        let (seen, decoded) = decode(&bytes);
        assert_eq!(
            seen,
            [("a@x".into(), 1), ("b@x".into(), 2), ("c@x".into(), 0)]
        );
        assert_eq!((decoded.count, decoded.end), (3, bytes.len()));
        assert!(decoded.damage.is_empty());
    }

    #[test]
    fn a_tail_cut_anywhere_loses_only_the_record_it_cuts() {
        let (bytes, ends) = three_records();
        for len in 0..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= len).count();
            let (seen, decoded) = decode(&bytes[..len]);
            assert_eq!(seen.len(), whole);
            assert_eq!(decoded.end, if whole == 0 { 0 } else { ends[whole - 1] });
            assert!(decoded.damage.is_empty());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_between_records_are_passed_over(garbage: Vec<u8>) {
            let (record, _) = three_records();
            let bytes = [&garbage[..], &record, &garbage, &record, &garbage].concat();
            let (seen, decoded) = decode(&bytes);
            proptest::prop_assert_eq!(seen.len(), 6);
            proptest::prop_assert_eq!(decoded.end, bytes.len() - garbage.len());
            proptest::prop_assert_eq!(decoded.damage.len(), if garbage.is_empty() { 0 } else { 2 });
        }
    }

    #[test]
    fn a_wrong_byte_anywhere_loses_only_the_record_it_is_in() {
        let (bytes, ends) = three_records();
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let hit = ends.iter().filter(|end| **end <= at).count();
            let (seen, decoded) = decode(&bytes);
            assert_eq!(seen.len(), 2, "byte {at}");
            if hit < 2 {
                let start = if hit == 0 { 0 } else { ends[hit - 1] };
                assert_eq!(decoded.damage, vec![start..ends[hit]]);
            } else {
                assert_eq!(decoded.end, ends[1]);
            }
        }
    }
}
