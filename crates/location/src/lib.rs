//! Bindings and subscribers in memory, made durable by a group-committed journal.
//!
//! Knows no SIP text and no sockets: an address-of-record and a contact are bytes, a flow is a value to give back.
//! The disk is behind [`Disk`], so that a simulation can tear its writes.
//!
//! # The life of a change
//! A worker calls [`Location::update`]. Under the lock of one shard the bindings of the address-of-record change, and their
//! whole new state goes into the queue, so that the journal has the changes of each address-of-record in the order they were
//! made. The worker keeps its answer with the [`Ticket`] and goes on. The [`Writer`] takes all that waits, appends it, flushes once,
//! and wakes the workers, which send what has become durable. Nobody holds a lock while the disk works.
//!
//! # The data directory
//! | file | holds |
//! | --- | --- |
//! | `journal-NNNNNNNN.log` | changes since the snapshot, in segments; each record whole and checked |
//! | `bindings.db` | the snapshot, a SQLite database: table `binding`, for reading |
//! | `subscribers.db` | a SQLite database: table `subscriber`, hashes and no passwords |
//! | `lock` | the process id of the server; locked while it runs |
//!
//! A snapshot walks the shards while they change. That is sound because a record is the whole state of an address-of-record: those
//! written since the snapshot began are in later segments, and to apply them to a state that has seen some of them already ends in the same.

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
