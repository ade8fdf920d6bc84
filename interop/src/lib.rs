//! Tests of the built server against real and hostile peers.
//!
//! Each test is a [`Case`]: loopback addresses of its own and a folder that stays when the test fails. It starts a
//! [`Server`], sets peers on it ([`Sipp`], [`Baresip`], [`Load`], [`Phone`], [`Peer`]), and asserts on what they saw. Nothing sleeps to
//! be right: everything that is awaited is awaited with a bound ([`within`]).

mod baresip;
mod case;
mod kamailio;
mod load;
mod peer;
mod phone;
mod relay;
mod scenario;
mod server;
mod sipp;

pub use baresip::Baresip;
pub use case::{Case, skip, within};
pub use kamailio::Kamailio;
pub use load::Load;
pub use peer::Peer;
pub use phone::{Message, Phone, Transport};
pub use relay::Relay;
pub use server::{DOMAIN, PASSWORD, Server};
pub use sipp::Sipp;
