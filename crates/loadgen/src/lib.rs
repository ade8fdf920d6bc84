//! Echo server and load generator: the instruments that show what a SIP server can do.
//!
//! [`load`] plays the users of a server, each thread with its share of them, and counts what comes
//! back; [`echo`] is the floor that a server's cost is compared with. Neither knows the inside of
//! the server that this project builds: they measure any.

mod args;
mod call;
mod callee;
mod caller;
mod cause;
mod cpu;
mod crew;
mod digest;
mod distribution;
mod driver;
pub mod echo;
mod expect;
mod find_max;
mod fleet;
mod flows;
mod io;
pub mod load;
mod message;
mod mix;
mod monitor;
mod nearest;
mod operation;
mod pace;
mod parts;
mod plan;
mod planning;
mod processes;
mod quantity;
mod random;
mod readable;
mod requests;
mod run;
mod scenario;
mod screen;
mod sources;
mod statistics;
mod stop;
mod summary;
mod target;
mod timers;
mod uas;
mod users;
mod view;
mod words;

pub use cause::Failures;
pub use cpu::CpuTime;
pub use summary::{Latency, Responses, Summary};
