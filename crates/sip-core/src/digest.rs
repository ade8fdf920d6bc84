use location::{Ha1, Wall};
use sip_wire::{Credentials, Message, Method, Name, Uri};
use subtle::{Choice, ConstantTimeEq};

mod counts;
mod hash;
mod nonce;
#[cfg(test)]
mod tests;

use counts::{COUNT_MAX, Counts};
use hash::Algorithm;
use nonce::Nonces;

pub use hash::ha1;

/// Digest authentication without a table of nonces (RFC 3261 section 22, 7616, 8760). Shared by all workers; atomics only.
///
/// A nonce carries its time of issue and a keyed hash of itself, so that any worker can tell its own from a forged one and a
/// fresh one from an old one. What has to be remembered is only which nonce-counts were used, and only for credentials that
/// were right: a table of fixed size, in which a newer nonce displaces an older one. A nonce whose place is taken is `Stale`,
/// which costs the phone one more round trip and nobody a password.
///
/// Departures:
/// - A request without `qop` (RFC 2069) is accepted, although RFC 8760 section 2.3 wants it refused: old phones have no
///   other. Its nonce is good for that one request.
/// - The `uri` need not equal the Request-URI (RFC 7616 section 3.4.6): user and host must, unless it names no user; scheme, port, parameters and
///   headers may differ, because phones leave them out (`sip:example.com` for `sip:example.com;transport=tcp`).
/// - The very same REGISTER may come again while its nonce is younger than 32 s (64*T1, Timer J): its 200 may have been
///   lost, and it is served without a transaction. Other requests are absorbed by their transaction, and a repeated count is
///   a replay.
/// - `-sess` algorithms, `auth-int` and `userhash` are not offered, and refused when they come.
pub struct Digest {
    nonces: Nonces,
    counts: Counts,
}

/// What to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Challenge<'a> {
    /// WWW-Authenticate or Proxy-Authenticate.
    pub header: Name,
    /// Without quote and backslash.
    pub realm: &'a str,
    /// The credentials were right, only the nonce was not: the phone need not ask for a password.
    pub stale: bool,
    /// SHA-256 beside MD5. Phones that know MD5 alone may give up when they see another (baresip 1.0 does).
    pub sha256: bool,
}

/// What credentials are worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict<'a> {
    /// They fit; the user name as sent.
    Good(&'a [u8]),
    /// None for this realm: challenge.
    Missing,
    /// Right, but the nonce is too old, unknown, or its count was used before: challenge with `stale=true`.
    Stale,
    /// Wrong: challenge again, count it. The same for a user who does not exist.
    Wrong(&'a [u8]),
    /// Malformed, or answering something that was not offered: 400.
    Malformed,
}

/// How long the very same REGISTER may come again, milliseconds after the nonce was issued.
const REPEAT_MS: u64 = 32_000;

impl Digest {
    /// `key` is random at each start. `slots`: how many nonces in use are remembered for their counts, 36 bytes each, rounded up to a power of two.
    #[must_use]
    pub fn new(key: [u8; 16], slots: usize, start: Wall) -> Self {
        Self {
            nonces: Nonces::new(key, start),
            counts: Counts::new(slots),
        }
    }

    /// Appends the challenge's header lines, one per algorithm, MD5 first: old phones read only the first. `unique` makes
    /// nonces of the same millisecond differ.
    pub fn challenge(&self, now: Wall, unique: u64, challenge: &Challenge<'_>, out: &mut Vec<u8>) {
        let nonce = self.nonces.issue(now, unique);
        let name: &[u8] = match challenge.header {
            Name::ProxyAuthenticate | Name::ProxyAuthorization => b"Proxy-Authenticate",
            _ => b"WWW-Authenticate",
        };
        let algorithms: &[_] = if challenge.sha256 {
            &[Algorithm::Md5, Algorithm::Sha256]
        } else {
            &[Algorithm::Md5]
        };
        for &algorithm in algorithms {
            for part in [
                name,
                b": Digest realm=\"",
                challenge.realm.as_bytes(),
                b"\", nonce=\"",
                &nonce,
                b"\", algorithm=",
                algorithm.text(),
                b", qop=\"auth\"",
                if challenge.stale {
                    b", stale=true"
                } else {
                    b""
                },
                b"\r\n",
            ] {
                out.extend_from_slice(part);
            }
        }
    }

    /// Checks the credentials of a request for `realm` in `header` (Authorization or Proxy-Authorization). `ha1` finds the hashes of a user
    /// name as it was sent; the comparison takes as long when it finds none.
    pub fn verify<'a>(
        &self,
        now: Wall,
        lifetime_s: u32,
        request: &Message<'a>,
        header: Name,
        realm: &str,
        ha1: impl FnOnce(&[u8]) -> Option<Ha1>,
    ) -> Verdict<'a> {
        let mut verdict = Verdict::Missing;
        let ours = request
            .credentials(header)
            .filter(|c| c.realm == realm.as_bytes());
        for credentials in ours {
            let Some(claim) = Claim::of(credentials, request) else {
                verdict = Verdict::Malformed;
                continue;
            };
            if !claim.fits(request.method_text(), ha1) {
                return Verdict::Wrong(credentials.username);
            }
            return if self.take(now, lifetime_s, &claim, request) {
                Verdict::Good(credentials.username)
            } else {
                Verdict::Stale
            };
        }
        verdict
    }

    /// Whether the nonce is ours and in time, and the count not used before; marks it used.
    fn take(&self, now: Wall, lifetime_s: u32, claim: &Claim<'_>, request: &Message<'_>) -> bool {
        let Some(nonce) = self.nonces.check(claim.credentials.nonce) else {
            return false;
        };
        let now_ms = self.nonces.time_ms(now);
        let Some(age_ms) = nonce.age_ms(now_ms) else {
            return false;
        };
        if age_ms > u64::from(lifetime_s) * 1000 {
            return false;
        }
        let repeatable = age_ms <= REPEAT_MS && request.method() == Some(Method::Register);
        let fingerprint = repeatable.then(|| self.nonces.fingerprint(request.bytes()));
        self.counts.take(&nonce, now_ms, claim.count, fingerprint)
    }
}

/// Credentials that can be checked.
struct Claim<'a> {
    credentials: Credentials<'a>,
    algorithm: Algorithm,
    response: [u8; 32],
    /// The place in the order of uses of the nonce, from 1.
    count: u32,
}

impl<'a> Claim<'a> {
    /// `None`: malformed, not offered, or made for another Request-URI.
    fn of(credentials: Credentials<'a>, request: &Message<'_>) -> Option<Self> {
        let algorithm = Algorithm::of(credentials.algorithm)?;
        let mut response = [0; 32];
        let response_len = hash::from_hex(credentials.response, &mut response)?;
        if response_len != algorithm.len() || credentials.username.is_empty() {
            return None;
        }
        let count = if credentials.qop.is_empty() {
            COUNT_MAX // RFC 2069: nothing in the response tells two uses apart, so there is one
        } else if credentials.qop.eq_ignore_ascii_case(b"auth") {
            count_of(credentials.nc)?
        } else {
            return None;
        };
        uri_fits(credentials.uri, request).then_some(Self {
            credentials,
            algorithm,
            response,
            count,
        })
    }

    /// Whether the response is that of the user's password. Takes as long for a user who does not exist.
    fn fits(&self, method: &[u8], ha1: impl FnOnce(&[u8]) -> Option<Ha1>) -> bool {
        let found = ha1(self.credentials.username);
        let hashes = found.unwrap_or(Ha1 {
            md5: [0; 16],
            sha256: [0; 32],
        });
        let secret: &[u8] = match self.algorithm {
            Algorithm::Md5 => &hashes.md5,
            Algorithm::Sha256 => &hashes.sha256,
        };
        let known = Choice::from(u8::from(secret.iter().any(|byte| *byte != 0)));
        let expected = self.algorithm.response(secret, method, &self.credentials);
        (expected.ct_eq(&self.response) & known).into()
    }
}

/// nc (RFC 7616 section 3.4), 8 hexadecimal digits; a phone that begins with 0 instead of 1 is let.
fn count_of(nc: &[u8]) -> Option<u32> {
    if nc.is_empty() || nc.len() > 8 || !nc.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let count = u32::from_str_radix(std::str::from_utf8(nc).ok()?, 16).ok()?;
    Some(count.saturating_add(1).min(COUNT_MAX))
}

/// Whether the `uri` of the credentials leads where the Request-URI does: the same user at the same host, or to no user at all
/// (SIPp names only the server's address).
fn uri_fits(uri: &[u8], request: &Message<'_>) -> bool {
    let (request_uri, _) = request.request_uri();
    if uri == request_uri {
        return true;
    }
    let (Ok(uri), Ok(request_uri)) = (Uri::parse(uri), Uri::parse(request_uri)) else {
        return false;
    };
    if uri.user.is_none()
        || uri.user == request_uri.user && uri.host.eq_ignore_ascii_case(request_uri.host)
    {
        return true;
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    uri.write_aor(&mut a);
    request_uri.write_aor(&mut b);
    a == b
}
