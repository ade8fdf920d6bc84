//! Control plane: name resolution, control socket, status.

pub mod control;
mod resolver;

pub use resolver::{Dns, DnsOptions};
