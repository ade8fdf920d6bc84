//! Digest authentication as a phone does it (RFC 3261 section 22, RFC 7616, RFC 8760).

use md5::{Digest as _, Md5};
use memchr::memchr;
use sha2::Sha256;

use crate::{
    message::{self, Put},
    users::User,
};

/// Algorithm of a challenge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Algorithm {
    Md5,
    Sha256,
}

/// A challenge that can be answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Challenge {
    realm: Vec<u8>,
    nonce: Vec<u8>,
    opaque: Option<Vec<u8>>,
    algorithm: Algorithm,
    qop_auth: bool,
    /// The credentials were right but their nonce was not: another try is worth it (RFC 7616 section 3.3).
    pub(crate) stale: bool,
}

impl Challenge {
    /// Reads the value of WWW-Authenticate or Proxy-Authenticate; `None` for another scheme, an
    /// unknown algorithm, or a `qop` without `auth`. The caller takes the first that can be
    /// answered (RFC 8760 section 2.4).
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let (scheme, parameters) = value.split_at_checked(7)?;
        if !scheme.eq_ignore_ascii_case(b"Digest ") {
            return None;
        }
        let mut challenge = Self {
            realm: Vec::new(),
            nonce: Vec::new(),
            opaque: None,
            algorithm: Algorithm::Md5,
            qop_auth: false,
            stale: false,
        };
        for (name, value) in parameters_of(parameters) {
            if name.eq_ignore_ascii_case(b"realm") {
                challenge.realm = value.to_vec();
            } else if name.eq_ignore_ascii_case(b"nonce") {
                challenge.nonce = value.to_vec();
            } else if name.eq_ignore_ascii_case(b"opaque") {
                challenge.opaque = Some(value.to_vec());
            } else if name.eq_ignore_ascii_case(b"qop") {
                challenge.qop_auth = value
                    .split(|b| *b == b',')
                    .any(|q| q.trim_ascii().eq_ignore_ascii_case(b"auth"));
                if !challenge.qop_auth {
                    return None;
                }
            } else if name.eq_ignore_ascii_case(b"stale") {
                challenge.stale = value.eq_ignore_ascii_case(b"true");
            } else if name.eq_ignore_ascii_case(b"algorithm") {
                challenge.algorithm = if value.eq_ignore_ascii_case(b"MD5") {
                    Algorithm::Md5
                } else if value.eq_ignore_ascii_case(b"SHA-256") {
                    Algorithm::Sha256
                } else {
                    return None;
                };
            }
        }
        (!challenge.nonce.is_empty()).then_some(challenge)
    }
}

/// How often one operation answers challenges: once, and again when that was `stale`.
pub(crate) const ANSWERS_MAX: u32 = 2;

/// `name=value` and `name="value"`, separated by commas. Values with escaped characters stay as
/// written, which is what the hash wants (RFC 7616 section 3.4.1 hashes the unquoted value; no
/// server under test escapes any).
fn parameters_of(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let equals = memchr(b'=', rest)?;
        let name = rest[..equals].trim_ascii();
        let after = rest[equals + 1..].trim_ascii_start();
        let (value, left) = if let Some(quoted) = after.strip_prefix(b"\"") {
            let close = memchr(b'"', quoted)?;
            (&quoted[..close], &quoted[close + 1..])
        } else {
            let end = memchr(b',', after).unwrap_or(after.len());
            (after[..end].trim_ascii(), &after[end..])
        };
        rest = memchr(b',', left).map_or(&[], |comma| &left[comma + 1..]);
        Some((name, value))
    })
}

/// What users answer challenges with, each from its first challenge on.
#[derive(Default)]
pub(crate) struct Accounts(Vec<Option<Box<Account>>>);

impl Accounts {
    /// Whether a user was challenged.
    pub(crate) fn are_challenged(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(Option::is_some)
    }

    /// Takes the challenge of a response, if there is one to answer; whether it is `stale`.
    pub(crate) fn challenged(
        &mut self,
        index: usize,
        user: &User<'_>,
        response: &[u8],
    ) -> Option<bool> {
        let of_proxy = message::values(response, message::PROXY_AUTHENTICATE);
        let of_server = message::values(response, message::WWW_AUTHENTICATE);
        let (challenge, header) = of_proxy
            .filter_map(|value| Some((Challenge::parse(value)?, PROXY_AUTHORIZATION)))
            .chain(of_server.filter_map(|value| Some((Challenge::parse(value)?, AUTHORIZATION))))
            .next()?;
        let stale = challenge.stale;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        let account = self.0[index].get_or_insert_default();
        account.header = header;
        account.challenged(challenge, &user.name, &user.password());
        Some(stale)
    }

    /// Appends the credentials of a user for a request; nothing before its first challenge.
    pub(crate) fn answer(
        &mut self,
        index: usize,
        user: &[u8],
        method: &[u8],
        uri: &[u8],
        out: &mut Vec<u8>,
    ) {
        if let Some(Some(account)) = self.0.get_mut(index) {
            account.answer(account.header, user, method, uri, out);
        }
    }
}

const AUTHORIZATION: &[u8] = b"Authorization";
const PROXY_AUTHORIZATION: &[u8] = b"Proxy-Authorization";

/// What one user answers challenges with. HA1 is computed once for a realm and an algorithm.
#[derive(Default)]
struct Account {
    /// The header field that credentials go into.
    header: &'static [u8],
    /// The challenge that HA1 and `uses` are for.
    challenge: Option<Challenge>,
    ha1: Hash,
    /// How many requests have been answered with the challenge's nonce.
    uses: u32,
}

impl Account {
    /// Takes a new challenge.
    fn challenged(&mut self, challenge: Challenge, user: &[u8], password: &[u8]) {
        let known = self.challenge.as_ref().is_some_and(|old| {
            old.realm == challenge.realm && old.algorithm == challenge.algorithm
        });
        if !known {
            let parts: [&[u8]; 5] = [user, b":", &challenge.realm, b":", password];
            self.ha1 = Hash::of(challenge.algorithm, &parts);
        }
        self.uses = 0;
        self.challenge = Some(challenge);
    }

    /// Appends the header line `NAME: Digest ...` for a request; nothing without a challenge. The
    /// nonce count goes up with each answer (RFC 7616 section 3.4).
    fn answer(&mut self, header: &[u8], user: &[u8], method: &[u8], uri: &[u8], out: &mut Vec<u8>) {
        let Some(challenge) = &self.challenge else {
            return;
        };
        self.uses += 1;
        let algorithm = challenge.algorithm;
        let mut count = Vec::with_capacity(8);
        count.put_hex(self.uses);
        // A client nonce need not be secret for a load generator; it need not even change.
        let client_nonce = b"0a4f113b";
        let ha2 = Hash::of(algorithm, &[method, b":", uri]);
        let response = if challenge.qop_auth {
            let parts: [&[u8]; 9] = [
                self.ha1.hex(),
                b":",
                &challenge.nonce,
                b":",
                &count,
                b":",
                client_nonce,
                b":auth:",
                ha2.hex(),
            ];
            Hash::of(algorithm, &parts)
        } else {
            let parts: [&[u8]; 5] = [self.ha1.hex(), b":", &challenge.nonce, b":", ha2.hex()];
            Hash::of(algorithm, &parts)
        };
        out.put(&[header, b": Digest username=\"", user]);
        out.put(&[b"\",realm=\"", &challenge.realm]);
        out.put(&[b"\",nonce=\"", &challenge.nonce, b"\",uri=\"", uri]);
        out.put(&[b"\",response=\"", response.hex(), b"\",algorithm="]);
        out.put(&[match algorithm {
            Algorithm::Md5 => b"MD5",
            Algorithm::Sha256 => b"SHA-256",
        }]);
        if challenge.qop_auth {
            out.put(&[b",qop=auth,nc=", &count, b",cnonce=\"", client_nonce, b"\""]);
        }
        if let Some(opaque) = &challenge.opaque {
            out.put(&[b",opaque=\"", opaque, b"\""]);
        }
        out.put(&[b"\r\n"]);
    }
}

/// A hash in hexadecimal: 32 digits for MD5, 64 for SHA-256.
#[derive(Clone, Copy)]
struct Hash {
    digits: [u8; 64],
    len: usize,
}

impl Default for Hash {
    fn default() -> Self {
        Self {
            digits: [0; 64],
            len: 0,
        }
    }
}

impl Hash {
    fn of(algorithm: Algorithm, parts: &[&[u8]]) -> Self {
        match algorithm {
            Algorithm::Md5 => {
                let mut hash = Md5::new();
                parts.iter().for_each(|p| hash.update(p));
                Self::from_bytes(&hash.finalize())
            }
            Algorithm::Sha256 => {
                let mut hash = Sha256::new();
                parts.iter().for_each(|p| hash.update(p));
                Self::from_bytes(&hash.finalize())
            }
        }
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut hash = Self {
            digits: [0; 64],
            len: 2 * bytes.len(),
        };
        for (pair, byte) in hash.digits.chunks_exact_mut(2).zip(bytes) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        hash
    }

    fn hex(&self) -> &[u8] {
        &self.digits[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(challenge: &[u8], method: &[u8], uri: &[u8], client: (&[u8], &[u8])) -> String {
        let mut account = Account::default();
        account.challenged(Challenge::parse(challenge).unwrap(), client.0, client.1);
        let mut out = Vec::new();
        account.answer(b"Authorization", client.0, method, uri, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn answers_the_example_of_rfc_2069_as_corrected() {
        let line = answered(
            b"Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", \
              opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"",
            b"GET",
            b"/dir/index.html",
            (b"Mufasa", b"CircleOfLife"),
        );
        assert!(
            line.contains("response=\"1949323746fe6a43ef61f9606e7febea\""),
            "{line}"
        );
        assert!(line.contains("opaque=\"5ccc069c403ebaf9f0171e9517f40e41\""));
        assert!(!line.contains("qop"));
    }

    #[test]
    fn the_nonce_count_goes_up_and_starts_again_with_a_new_nonce() {
        let challenge = |nonce: &str| {
            let text = format!(
                "Digest realm=\"r\", qop=\"auth,auth-int\", algorithm=SHA-256, nonce=\"{nonce}\""
            );
            Challenge::parse(text.as_bytes()).unwrap()
        };
        let mut account = Account::default();
        account.challenged(challenge("a"), b"u", b"p");
        let count_of = |account: &mut Account| {
            let mut out = Vec::new();
            account.answer(b"Authorization", b"u", b"REGISTER", b"sip:r", &mut out);
            let text = String::from_utf8(out).unwrap();
            let at = text.find("nc=").unwrap() + 3;
            text[at..at + 8].to_owned()
        };
        assert_eq!(count_of(&mut account), "00000001");
        assert_eq!(count_of(&mut account), "00000002");
        account.challenged(challenge("b"), b"u", b"p");
        assert_eq!(count_of(&mut account), "00000001");
    }

    #[test]
    fn what_cannot_be_answered_is_no_challenge() {
        for value in [
            &b"Basic realm=\"x\""[..],
            b"Digest realm=\"x\",nonce=\"n\",algorithm=SHA-512-256",
            b"Digest realm=\"x\",nonce=\"n\",qop=\"auth-int\"",
            b"Digest realm=\"x\"",
            b"Dig",
        ] {
            assert_eq!(Challenge::parse(value), None);
        }
    }
}
