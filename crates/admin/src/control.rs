//! The control socket: how the command line talks to a running server.
//!
//! JSON, one value a line, over a Unix stream socket in the data directory, readable by its owner only: a [`Request`], then its
//! [`Response`], any number of times. Clients, the size of a request and the time between two are bounded; the threads are the
//! socket's own, and no worker waits for them. The same [`Operations`] answer when no server runs and the command line opens the database.

mod client;
mod operations;
mod protocol;
mod server;

pub use client::{CallError, Client};
pub use operations::{Answer, Host, Operations, Running};
pub use protocol::{
    AorView, BindingView, Request, Response, SOCKET_NAME, StageTime, StageTimes, Status,
    USERS_PER_REQUEST_MAX, User, hex, unhex,
};
pub use server::Server;
