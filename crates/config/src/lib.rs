//! Settings: one definition gives the parser, the defaults and the reference page.
//!
//! [`Config`] is defined once, in `settings.rs`: each key with its type, default, bounds, unit, what it costs when raised
//! and whether a running server takes it over. The parser ([`Config::parse`]), the defaults ([`Config::default`]) and
//! `docs/configuration.md` ([`reference_page`]) come from there and can't disagree. This crate reads no file and knows no running state.

mod define;
mod error;
mod listen;
mod nearest;
mod read;
mod reference;
mod settings;
mod value;

pub use define::{Key, Reload, Section};
pub use error::{Problem, Problems};
pub use listen::{Domain, Listen, ListenTransport, Nameserver};
pub use reference::reference_page;
pub use settings::{
    Config, Connections, Datagrams, Digest, Dns, Journal, Limits, Proxy, Registrar, SECTIONS,
    Server, Timers,
};
