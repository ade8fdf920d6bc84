//! Bindings and subscribers in memory, made durable by a group-committed journal.
//!
//! Knows no SIP text and no sockets: an address-of-record and a contact are bytes, a flow is a value to give back.
//! The disk is behind [`Disk`], so that a simulation can tear its writes.

mod binding;
mod disk;
mod flow;
mod journal;
mod list;
mod memory_disk;
mod recovery;
mod snapshot;
mod store;
mod subscriber_table;
mod subscribers;
mod wheel;
mod writer;

pub use binding::{Binding, BindingParts, Bindings};
pub use disk::{Disk, FileDisk, OpenError, SnapshotJob, SnapshotRead};
pub use flow::{Flow, Transport, Wall};
pub use journal::{Batch, Ticket, TicketState};
pub use memory_disk::{MemoryDisk, Tear};
pub use recovery::{Damage, Recovery};
pub use store::{Location, Options, Refused};
pub use subscriber_table::{SubscriberTable, SubscribersError};
pub use subscribers::{Ha1, Subscribers};
pub use writer::{Hooks, Notice, Step, Writer, WriterOptions, WriterThread};
