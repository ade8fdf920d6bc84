//! The commands that look at a server or at its data directory.

pub(crate) mod bindings;
pub(crate) mod check;
pub(crate) mod place;
pub(crate) mod status;
pub(crate) mod user;
