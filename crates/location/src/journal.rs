/// The place of a change in the journal. Ordered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ticket(pub u64);

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum TicketState {
    Durable,
    Waiting,
    Failed,
}

/// Records to be written at once.
pub struct Batch {
    /// The bytes to append to the journal.
    pub bytes: Vec<u8>,
    /// Tickets it makes durable: all up to this one.
    pub up_to: Ticket,
}
