use crate::failure::{Failure, Result};
use admin::control::hex;
use md5::Md5;
use sha2::{Digest, Sha256};
use sip_wire::Credentials;

/// What a phone's user has typed in.
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl Login {
    /// The value of Authorization or Proxy-Authorization that answers a challenge (RFC 7616 section 3.4), with qop `auth`.
    pub(crate) fn answer(
        &self,
        challenge: &Challenge,
        method: &str,
        uri: &str,
        cnonce: &str,
    ) -> String {
        let Challenge {
            realm,
            nonce,
            opaque,
            algorithm,
        } = challenge;
        let hash = |text: String| algorithm.hash(&text);
        let a1 = hash(format!("{}:{realm}:{}", self.user, self.password));
        let a2 = hash(format!("{method}:{uri}"));
        let response = hash(format!("{a1}:{nonce}:00000001:{cnonce}:auth:{a2}"));
        let opaque = match opaque.as_str() {
            "" => String::new(),
            text => format!(", opaque=\"{text}\""),
        };
        format!(
            "Digest username=\"{}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", response=\"{response}\", \
             algorithm={}, cnonce=\"{cnonce}\", qop=auth, nc=00000001{opaque}",
            self.user,
            algorithm.name()
        )
    }
}

/// A challenge that a phone can answer.
pub(crate) struct Challenge {
    realm: String,
    nonce: String,
    opaque: String,
    algorithm: Algorithm,
}

impl Challenge {
    /// The strongest of several.
    pub(crate) fn strongest<'a>(values: impl Iterator<Item = &'a [u8]>) -> Result<Self> {
        values
            .filter_map(Self::parse)
            .max_by_key(|challenge| challenge.algorithm)
            .ok_or_else(|| Failure::new("a challenge of the server can't be answered"))
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let fields = Credentials::parse(value)?;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let algorithm = match fields.algorithm {
            b"" => Algorithm::Md5,
            name if name.eq_ignore_ascii_case(b"MD5") => Algorithm::Md5,
            name if name.eq_ignore_ascii_case(b"SHA-256") => Algorithm::Sha256,
            _ => return None,
        };
        Some(Self {
            realm: text(fields.realm),
            nonce: text(fields.nonce),
            opaque: text(fields.opaque),
            algorithm,
        })
    }
}

/// Weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    fn hash(self, text: &str) -> String {
        match self {
            Self::Md5 => hex(&Md5::digest(text)),
            Self::Sha256 => hex(&Sha256::digest(text)),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA-256",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_responses_are_those_of_rfc_7616_section_3_9_1() {
        let login = Login {
            user: String::from("Mufasa"),
            password: String::from("Circle of Life"),
        };
        for (algorithm, response) in [
            (Algorithm::Md5, "8ca523f5e9506fed4657c9700eebdbec"),
            (
                Algorithm::Sha256,
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
        ] {
            let challenge = Challenge {
                realm: String::from("http-auth@example.org"),
                nonce: String::from("7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"),
                opaque: String::new(),
                algorithm,
            };
            let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
            let answer = login.answer(&challenge, "GET", "/dir/index.html", cnonce);
            assert!(answer.contains(response), "{answer}");
        }
    }
}
