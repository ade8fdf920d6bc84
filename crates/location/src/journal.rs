use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    #[expect(dead_code, reason = "the writer comes next")]
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
    #[expect(dead_code, reason = "the writer comes next")]
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

fn encode_record(buffer: &mut Vec<u8>, aor: &[u8], bindings: &[Binding]) {
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

fn put_text(buffer: &mut Vec<u8>, text: &[u8]) {
    let len = u32::try_from(text.len()).expect("a part of a message, which is far shorter");
    buffer.extend_from_slice(&len.to_le_bytes());
    buffer.extend_from_slice(text);
}
