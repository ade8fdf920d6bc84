//! The client's side of digest (RFC 7616), written apart from the server's.

use super::text::text;
use md5::{Digest as _, Md5};
use sha2::Sha256;
use sip_wire::{Message, Name};

/// A challenge as the phone keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Challenge {
    realm: String,
    nonce: String,
    sha256: bool,
    pub(crate) stale: bool,
    count: u32,
    proxy: bool,
}

impl Challenge {
    /// The first challenge of a response that the phone understands; `sha256`: it prefers that one.
    pub(crate) fn of(response: &Message<'_>, sha256: bool) -> Option<Self> {
        let proxy = response.code() == Some(407);
        let name = if proxy {
            Name::ProxyAuthenticate
        } else {
            Name::WwwAuthenticate
        };
        let all: Vec<Self> = response
            .headers(name)
            .filter_map(|h| Self::parse(text(h.value), proxy))
            .collect();
        let preferred = all.iter().find(|c| c.sha256 == sha256).or(all.first());
        preferred.cloned()
    }

    fn parse(value: &str, proxy: bool) -> Option<Self> {
        let params = value.strip_prefix("Digest ")?;
        let algorithm = param(params, "algorithm").unwrap_or("MD5");
        let sha256 = algorithm.eq_ignore_ascii_case("SHA-256");
        if !sha256 && !algorithm.eq_ignore_ascii_case("MD5") {
            return None;
        }
        Some(Self {
            realm: param(params, "realm")?.to_string(),
            nonce: param(params, "nonce")?.to_string(),
            sha256,
            stale: param(params, "stale").is_some_and(|s| s.eq_ignore_ascii_case("true")),
            count: 0,
            proxy,
        })
    }

    /// The header line that answers it, with the next nonce-count.
    pub(crate) fn answer(&mut self, user: &str, password: &str, method: &str, uri: &str) -> String {
        self.count += 1;
        let Self {
            realm,
            nonce,
            sha256,
            count,
            proxy,
            ..
        } = &*self;
        let cnonce = "0a4f113b";
        let ha1 = self.hash(&format!("{user}:{realm}:{password}"));
        let ha2 = self.hash(&format!("{method}:{uri}"));
        let response = self.hash(&format!("{ha1}:{nonce}:{count:08x}:{cnonce}:auth:{ha2}"));
        let name = if *proxy {
            "Proxy-Authorization"
        } else {
            "Authorization"
        };
        let algorithm = if *sha256 { "SHA-256" } else { "MD5" };
        format!(
            "{name}: Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", \
             response=\"{response}\", algorithm={algorithm}, cnonce=\"{cnonce}\", qop=auth, nc={count:08x}\r\n"
        )
    }

    fn hash(&self, of: &str) -> String {
        if self.sha256 {
            hex(&Sha256::digest(of))
        } else {
            hex(&Md5::digest(of))
        }
    }
}

/// The hashes that the server keeps of a password.
pub(crate) fn ha1(user: &str, realm: &str, password: &str) -> location::Ha1 {
    let of = format!("{user}:{realm}:{password}");
    location::Ha1 {
        md5: Md5::digest(&of).into(),
        sha256: Sha256::digest(&of).into(),
    }
}

fn param<'a>(params: &'a str, name: &str) -> Option<&'a str> {
    params.split(',').find_map(|p| {
        let (n, value) = p.split_once('=')?;
        (n.trim() == name).then(|| value.trim().trim_matches('"'))
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
