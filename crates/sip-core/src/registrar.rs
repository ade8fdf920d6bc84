use crate::{Now, Settings};
use location::{Binding, BindingParts, Bindings, Flow, Location, Refused, Ticket, Wall};
use sip_wire::{Message, Name};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::io::Write as _;

mod contact;
mod date;
#[cfg(test)]
mod tests;

use contact::{Contact, on_one_line};

/// Why a REGISTER is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
}

/// Serves a REGISTER that is for us and authorized (RFC 3261 section 10.3 items 5 to 8): appends the 200's own header lines (Contact per binding, Date, Path,
/// Supported) to `headers` and returns what the 200 has to wait for. On a refusal `headers` holds that one's (Min-Expires, Unsupported, Retry-After).
/// `random` shortens expiries.
///
/// A REGISTER is served whole or not at all. Refused are: 400 what is malformed or out of order, 403 more contacts or bindings
/// than allowed, 420 extensions we do not have (`outbound` is one of them), 423 an expiry that is too short, 503 what the
/// store can't take.
///
/// Departures:
/// - The same Call-ID with the same CSeq is taken for the request come again (RFC 3261 section 10.3 item 7 lets it fail): 200 with the
///   bindings as they are, since its first 200 may have been lost.
/// - A Contact with the `+sip.instance` and `reg-id` of a binding replaces it, whatever its URI and without the negotiation of RFC 5626: a
///   phone that moved would otherwise be called at its old address too.
/// - Path is stored although the phone did not say `Supported: path` (RFC 3327 section 5.3 leaves it open): it can't be reached otherwise.
/// - A granted expiry may be shorter than the one asked for by `expires_jitter_percent`, though not below the minimum or 60 s.
#[allow(clippy::too_many_arguments)]
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
    require_known_extensions(request, headers)?;
    let register = Register::read(request, flow, now.wall, settings, random, headers)?;
    let contacts_start = headers.len();
    let updated = location.update(aor, now.wall, |bindings| {
        if register.check(bindings.list(), settings)? == Freshness::New {
            register.apply(bindings);
        }
        write_contacts(bindings.list(), now.wall, headers);
        Ok(())
    });
    match updated {
        Ok((Ok(()), ticket)) => {
            write_path(&register.path, headers);
            headers.extend_from_slice(b"Date: ");
            headers.extend_from_slice(&date::imf_fixdate(now.wall));
            headers.extend_from_slice(b"\r\nSupported: path\r\n");
            Ok(ticket)
        }
        Ok((Err(refusal), _)) => Err(refusal),
        Err(refused) => {
            headers.truncate(contacts_start);
            // Spread, so that those who were refused do not come back together.
            let _ = write!(headers, "Retry-After: {}\r\n", 10 + random % 50);
            Err(store_refusal(refused))
        }
    }
}

/// What a REGISTER wants, as far as it can be known without the bindings.
struct Register<'a> {
    request: Message<'a>,
    call_id: &'a [u8],
    cseq: u32,
    flow: Flow,
    now: Wall,
    user_agent: &'a [u8],
    /// Path values, comma-separated.
    path: Vec<u8>,
    wish: Wish<'a>,
}

#[allow(clippy::large_enum_variant)] // lives on the stack for one call
enum Wish<'a> {
    /// `Contact: *`.
    RemoveAll,
    /// Add, refresh and remove these; none: only list.
    Change(SmallVec<[Contact<'a>; 1]>),
}

/// Whether a request came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Freshness {
    New,
    Repeated,
}

/// Bounds of what is kept for one binding, bytes.
const CONTACT_BYTES_MAX: usize = 2048;
const PATH_BYTES_MAX: usize = 2048;
const CALL_ID_BYTES_MAX: usize = 512;
const USER_AGENT_BYTES_MAX: usize = 64;

impl<'a> Register<'a> {
    fn read(
        request: &Message<'a>,
        flow: &Flow,
        now: Wall,
        settings: &Settings,
        random: u64,
        headers: &mut Vec<u8>,
    ) -> Result<Self, Refusal> {
        let call_id = request.call_id().map_err(|_| bad("Malformed Call-ID"))?;
        let cseq = request.cseq().map_err(|_| bad("Malformed CSeq"))?.number;
        if call_id.len() > CALL_ID_BYTES_MAX {
            return Err(too_large("Call-ID Too Long"));
        }
        Ok(Self {
            call_id,
            cseq,
            flow: *flow,
            request: *request,
            now,
            user_agent: user_agent(request),
            path: path(request)?,
            wish: Wish::read(request, flow, settings, random, headers)?,
        })
    }

    /// All that can speak against the change, before any of it is made (RFC 3261 section 10.3 item 7: all or nothing).
    fn check(&self, bindings: &[Binding], settings: &Settings) -> Result<Freshness, Refusal> {
        let contacts = match &self.wish {
            Wish::RemoveAll => {
                for binding in bindings {
                    if self.order(&binding.parts()) != Ordering::Greater {
                        return Err(out_of_order());
                    }
                }
                return Ok(Freshness::New);
            }
            Wish::Change(contacts) => contacts,
        };
        let (mut added, mut removed) = (0, 0);
        let mut freshness = Freshness::New;
        for contact in contacts {
            let Some(index) = contact.find(bindings) else {
                added += usize::from(contact.granted_s > 0);
                continue;
            };
            removed += usize::from(contact.granted_s == 0);
            match self.order(&bindings[index].parts()) {
                Ordering::Less => return Err(out_of_order()),
                Ordering::Equal => freshness = Freshness::Repeated,
                Ordering::Greater => {}
            }
        }
        if added > removed && bindings.len() + added - removed > settings.bindings_per_aor_max {
            return Err(Refusal {
                code: 403,
                reason: "Too Many Bindings For This User",
            });
        }
        Ok(freshness)
    }

    /// Whether this request comes after the one that made a binding. One with another Call-ID does: the phone was restarted.
    fn order(&self, binding: &BindingParts<'_>) -> Ordering {
        if binding.call_id == self.call_id {
            self.cseq.cmp(&binding.cseq)
        } else {
            Ordering::Greater
        }
    }

    fn apply(&self, bindings: &mut Bindings<'_>) {
        match &self.wish {
            Wish::RemoveAll => bindings.clear(),
            Wish::Change(contacts) => {
                for contact in contacts {
                    self.apply_one(contact, bindings);
                }
            }
        }
    }

    fn apply_one(&self, contact: &Contact<'_>, bindings: &mut Bindings<'_>) {
        let found = contact.find(bindings.list());
        let new = self.binding(contact);
        match found {
            Some(index) if contact.granted_s == 0 => bindings.remove(index),
            Some(index) if same_but_for_time(&bindings.list()[index].parts(), &new) => {
                bindings
                    .at(index)
                    .refresh(self.call_id, self.cseq, new.expires, self.flow);
            }
            Some(index) => {
                *bindings.at(index) = Binding::new(&new);
                // The phone may have got the address that another binding still names.
                let rest = index + 1;
                while let Some(other) = contact.find(&bindings.list()[rest..]) {
                    bindings.remove(rest + other);
                }
            }
            None if contact.granted_s == 0 => {}
            None => bindings.push(Binding::new(&new)),
        }
    }

    /// The phone takes answers where it sends from: it asked for `rport`.
    fn is_symmetric(&self) -> bool {
        self.request
            .top_via()
            .is_ok_and(|via| via.params.has("rport"))
    }

    fn binding<'s>(&'s self, contact: &'s Contact<'_>) -> BindingParts<'s> {
        BindingParts {
            contact: contact.uri.text,
            params: &contact.params,
            instance: contact.instance,
            reg_id: contact.reg_id,
            q: contact.q,
            call_id: self.call_id,
            cseq: self.cseq,
            expires: self.now.after_s(contact.granted_s),
            flow: self.flow,
            behind_nat: contact.is_behind_nat(&self.flow, || self.is_symmetric()),
            path: &self.path,
            user_agent: self.user_agent,
        }
    }
}

impl<'a> Wish<'a> {
    fn read(
        request: &Message<'a>,
        flow: &Flow,
        settings: &Settings,
        random: u64,
        headers: &mut Vec<u8>,
    ) -> Result<Self, Refusal> {
        let expires = request
            .number(Name::Expires)
            .map_err(|_| bad("Malformed Expires"))?;
        let mut contacts = SmallVec::new();
        let mut star = false;
        for value in request.values(Name::Contact) {
            if value.text == b"*" {
                star = true;
                continue;
            }
            if contacts.len() == settings.contacts_per_register_max {
                return Err(Refusal {
                    code: 403,
                    reason: "Too Many Contacts In One REGISTER",
                });
            }
            let mut contact = Contact::read(value.text, flow, &settings.domains)?;
            let asked_s = contact
                .asked_s
                .or(expires)
                .unwrap_or(settings.expires_default_s);
            contact.granted_s = granted_s(asked_s, settings, random).inspect_err(|_| {
                let _ = write!(headers, "Min-Expires: {}\r\n", settings.expires_min_s);
            })?;
            contacts.push(contact);
        }
        match (star, contacts.is_empty()) {
            (false, _) => Ok(Self::Change(contacts)),
            (true, false) => Err(bad("Contact * Must Be The Only Contact")),
            (true, true) if expires != Some(0) => Err(bad("Contact * Needs Expires: 0")),
            (true, true) => Ok(Self::RemoveAll),
        }
    }
}

/// How long a binding lasts, seconds; 0 removes it. A minimum of more than an hour is not held against a phone that asks
/// for an hour (RFC 3261 section 10.3 item 7).
fn granted_s(asked_s: u32, settings: &Settings, random: u64) -> Result<u32, Refusal> {
    const HOUR_S: u32 = 3600;
    const JITTER_FLOOR_S: u32 = 60;
    if asked_s == 0 {
        return Ok(0);
    }
    if asked_s < settings.expires_min_s.min(HOUR_S) {
        return Err(Refusal {
            code: 423,
            reason: "Interval Too Brief",
        });
    }
    let granted_s = asked_s.min(settings.expires_max_s);
    let share = u64::from(settings.expires_jitter_percent.min(100));
    let cut_max_s = u64::from(granted_s) * share / 100;
    let cut_s = (random % (cut_max_s + 1)) as u32; // at most `granted_s`
    let floor_s = settings.expires_min_s.max(JITTER_FLOOR_S).min(granted_s);
    Ok((granted_s - cut_s).max(floor_s))
}

/// A refresh: all that other requests see of the binding stays.
fn same_but_for_time(old: &BindingParts<'_>, new: &BindingParts<'_>) -> bool {
    old.contact == new.contact
        && old.params == new.params
        && old.behind_nat == new.behind_nat
        && old.path == new.path
        && old.user_agent == new.user_agent
}

fn require_known_extensions(request: &Message<'_>, headers: &mut Vec<u8>) -> Result<(), Refusal> {
    let mut unknown = request
        .values(Name::Require)
        .filter(|value| !value.text.eq_ignore_ascii_case(b"path"))
        .peekable();
    if unknown.peek().is_none() {
        return Ok(());
    }
    for value in unknown {
        headers.extend_from_slice(b"Unsupported: ");
        headers.extend(on_one_line(value.text));
        headers.extend_from_slice(b"\r\n");
    }
    Err(Refusal {
        code: 420,
        reason: "Bad Extension",
    })
}

/// The Path values in order (RFC 3327 section 5.3).
fn path(request: &Message<'_>) -> Result<Vec<u8>, Refusal> {
    let mut path = Vec::new();
    for value in request.values(Name::Path) {
        if sip_wire::NameAddr::parse(value.text).is_err() {
            return Err(bad("Malformed Path"));
        }
        if !path.is_empty() {
            path.extend_from_slice(b", ");
        }
        path.extend(on_one_line(value.text));
        if path.len() > PATH_BYTES_MAX {
            return Err(too_large("Path Too Long"));
        }
    }
    Ok(path)
}

/// The first line of User-Agent, cut.
fn user_agent<'a>(request: &Message<'a>) -> &'a [u8] {
    let text = request
        .header(Name::UserAgent)
        .map_or(&b""[..], |header| header.value);
    let text = text.split(|byte| byte.is_ascii_control()).next();
    let text = text.unwrap_or_default();
    &text[..text.len().min(USER_AGENT_BYTES_MAX)]
}

fn write_contacts(bindings: &[Binding], now: Wall, headers: &mut Vec<u8>) {
    for binding in bindings {
        let parts = binding.parts();
        headers.extend_from_slice(b"Contact: <");
        headers.extend_from_slice(parts.contact);
        headers.extend_from_slice(b">");
        headers.extend_from_slice(parts.params);
        let left_s = parts.expires.seconds_since(now);
        let _ = write!(headers, ";expires={left_s}\r\n");
    }
}

fn write_path(path: &[u8], headers: &mut Vec<u8>) {
    if !path.is_empty() {
        headers.extend_from_slice(b"Path: ");
        headers.extend_from_slice(path);
        headers.extend_from_slice(b"\r\n");
    }
}

const fn store_refusal(refused: Refused) -> Refusal {
    Refusal {
        code: 503,
        reason: match refused {
            Refused::DiskFailed => "Registrations Can Not Be Stored",
            Refused::Busy => "Too Many Registrations At Once",
            Refused::Full => "Too Many Registered Users",
        },
    }
}

const fn out_of_order() -> Refusal {
    bad("CSeq Not Higher Than Before")
}

const fn bad(reason: &'static str) -> Refusal {
    Refusal { code: 400, reason }
}

const fn too_large(reason: &'static str) -> Refusal {
    Refusal { code: 513, reason }
}
