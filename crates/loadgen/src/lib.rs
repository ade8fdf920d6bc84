//! Echo server and load generator: the instruments that show what a SIP server can do.
//!
//! [`load`] plays the users of a server, one thread with all their sockets, and counts what comes
//! back; [`echo`] is the floor that a server's cost is compared with. Neither knows the inside of
//! the server that this project builds: they measure any.

mod call;
mod cpu;
mod digest;
mod driver;
pub mod echo;
mod io;
pub mod load;
mod message;
mod report;
mod requests;
mod timers;
mod uas;
mod users;

pub use cpu::CpuTime;
pub use report::{Latency, Responses, Summary};
