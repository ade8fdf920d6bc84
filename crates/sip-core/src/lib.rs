//! Transactions, proxy, registrar and digest as machines: input and time in, effects out.
//!
//! No socket, no thread, no file, no clock, no ambient randomness: one [`Core`] per worker is driven by
//! the event loop and by the simulation alike, and its effects leave through a [`Sink`].

mod branch;
mod core;
mod digest;
mod keyed;
mod ours;
mod registrar;
mod resolve;
mod settings;
mod sink;
mod slab;
mod time;
mod timer;
mod token;
mod transaction;

pub use crate::core::{Core, Shared};
pub use digest::{Challenge, Digest, Verdict, ha1};
pub use resolve::{Answer, Plan, Query, ResolveRequest, Step, Target};
pub use settings::{Domains, Settings, Timers};
pub use sink::{Counters, Destination, Event, Origin, ResolveId, Sink, Stage};
pub use time::{Mono, Now};
