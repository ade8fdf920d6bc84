//! Control plane: name resolution, control socket, status.

mod resolver;

pub use resolver::{Busy, Dns, DnsOptions};
