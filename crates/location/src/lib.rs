//! Bindings and subscribers in memory, made durable by a group-committed journal.
//!
//! Knows no SIP text and no sockets: an address-of-record and a contact are bytes, a flow is a value to give back.
//! The disk is behind [`Disk`], so that a simulation can tear its writes.

mod binding;
mod disk;
mod flow;
mod journal;
mod recovery;
mod snapshot;
mod store;
mod subscribers;
mod wheel;
mod writer;

pub use binding::{Binding, BindingParts, Bindings};
pub use disk::{Disk, FileDisk};
pub use flow::{Flow, Transport, Wall};
pub use journal::{Batch, Ticket, TicketState};
pub use store::{Location, Options, Refused};
pub use subscribers::{Ha1, Subscribers};
