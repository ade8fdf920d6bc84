use crate::{Now, Settings};
use location::{Flow, Location, Ticket};
use sip_wire::Message;

/// Why a REGISTER is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
}

/// Serves a REGISTER that is for us and authorized (RFC 3261 section 10.3 items 5 to 8): appends the 200's own header lines (Contact per binding, Date, Path,
/// Supported, Require) to `headers` and returns what the 200 has to wait for. On a refusal `headers` holds that one's (Min-Expires, Unsupported).
/// `random` shortens expiries.
pub(crate) fn register(
    request: &Message<'_>,
    flow: &Flow,
    aor: &[u8],
    now: Now,
    location: &Location,
    settings: &Settings,
    random: u64,
    headers: &mut Vec<u8>,
) -> Result<Ticket, Refusal> {
    let _ = (request, flow, aor, now, location, settings, random, headers);
    todo!()
}
