use crate::{Batch, Binding, Bindings, Ticket, TicketState, Wall};

/// Sizes and bounds.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Key of the hash over addresses-of-record; from the system's random source, or fixed in a simulation.
    pub hash_key: [u64; 2],
    /// Journal bytes that may wait for the disk; beyond it changes are refused.
    pub waiting_bytes_max: usize,
    /// Addresses-of-record with a binding.
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
pub struct Location {}

impl Location {
    /// Empty.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let _ = options;
        todo!()
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
        let _ = (aor, now, change);
        todo!()
    }

    /// Reads the bindings of `aor` that have not expired.
    pub fn read<R>(&self, aor: &[u8], now: Wall, read: impl FnOnce(&[Binding]) -> R) -> R {
        let _ = (aor, now, read);
        todo!()
    }

    /// Whether the change behind a ticket is on disk. One atomic load.
    #[must_use]
    pub fn ticket_state(&self, ticket: Ticket) -> TicketState {
        let _ = ticket;
        todo!()
    }

    /// Frees what has expired until `now`; bounded work per call, called now and then by the journal's writer.
    pub fn expire(&self, now: Wall) {
        let _ = now;
        todo!()
    }

    /// Bindings held, addresses-of-record held.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        todo!()
    }

    /// Takes all journal records that wait, to be written as one batch. `None` when none wait. For the writer alone.
    pub fn take_batch(&self) -> Option<Batch> {
        todo!()
    }

    /// The batch is on disk: its tickets are `Durable`.
    pub fn batch_written(&self, batch: Batch) {
        let _ = batch;
        todo!()
    }

    /// The batch could not be written: its tickets are `Failed`, new changes are refused, and the batch is
    /// given again by the next [`Self::take_batch`], so that memory and journal agree once the disk is back.
    pub fn batch_failed(&self, batch: Batch) {
        let _ = batch;
        todo!()
    }

    /// Walks all addresses-of-record, a shard at a time, in no order; `page` is 0 first, then what was returned, until `None`.
    pub fn scan(
        &self,
        page: usize,
        now: Wall,
        each: &mut dyn FnMut(&[u8], &[Binding]),
    ) -> Option<usize> {
        let _ = (page, now, each);
        todo!()
    }
}
