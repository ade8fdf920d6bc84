//! The core on a simulated clock, network and disk, by seed.
//!
//! A run has a server of one to three workers, phones that register, call, cancel and hang up, a network that loses, doubles and
//! reorders, connections that break, crashes, a disk that tears and runs full, and strangers with bad intentions. What
//! happens is decided by the seed and by nothing else. The phones have transactions of their own, written apart from the
//! server's, and complain about whatever a phone can see go wrong; the judge knows what the weather explains.

mod attack;
mod judge;
mod network;
mod phone;
mod plan;
mod rng;
mod server;
mod trace;
mod world;

pub use judge::Stats;
pub use plan::Plan;
pub use world::{Outcome, run};
