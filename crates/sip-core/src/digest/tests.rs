use super::*;
use sip_wire::{Framing, Index, Limits};

const START: Wall = Wall(1_700_000_000_000);
const REALM: &str = "example.com";
const LIFETIME_S: u32 = 300;

fn at(ms: u64) -> Wall {
    Wall(START.0 + ms)
}

fn digest() -> Digest {
    Digest::new([9; 16], 1024, START)
}

fn users(name: &[u8]) -> Option<Ha1> {
    match name {
        b"alice" => Some(ha1("alice", REALM, "secret")),
        b"alice@example.com" => Some(ha1("alice@example.com", REALM, "secret")),
        b"old" => Some(Ha1 {
            sha256: [0; 32],
            ..ha1("old", REALM, "secret")
        }),
        b"empty" => Some(ha1("empty", REALM, "")),
        _ => None,
    }
}

/// The nonce of a fresh challenge.
fn nonce_at(digest: &Digest, ms: u64, unique: u64) -> String {
    let mut out = Vec::new();
    let challenge = Challenge {
        header: Name::WwwAuthenticate,
        realm: REALM,
        stale: false,
        sha256: true,
    };
    digest.challenge(at(ms), unique, &challenge, &mut out);
    let text = String::from_utf8(out).expect("text");
    let (_, rest) = text.split_once("nonce=\"").expect("a nonce");
    rest.split('"').next().expect("its end").into()
}

/// A phone that answers a challenge.
#[derive(Clone)]
struct Phone {
    method: &'static str,
    request_uri: &'static str,
    header: &'static str,
    user: &'static str,
    password: &'static str,
    realm: &'static str,
    uri: &'static str,
    algorithm: &'static str,
    /// As written; empty: RFC 2069.
    qop: &'static str,
    nc: u32,
    nonce: String,
    /// Further header lines.
    more: &'static str,
}

impl Phone {
    fn new(nonce: String) -> Self {
        Self {
            method: "REGISTER",
            request_uri: "sip:example.com",
            header: "Authorization",
            user: "alice",
            password: "secret",
            realm: REALM,
            uri: "sip:example.com",
            algorithm: "MD5",
            qop: "auth",
            nc: 1,
            nonce,
            more: "",
        }
    }

    fn credentials(&self) -> String {
        let nc = format!("{:08x}", self.nc);
        let qop = self.qop.trim_matches('"');
        let algorithm = self.algorithm.trim_matches('"');
        let kind = Algorithm::of(algorithm.as_bytes()).unwrap_or(Algorithm::Md5);
        let claim = Credentials {
            nonce: self.nonce.as_bytes(),
            uri: self.uri.as_bytes(),
            cnonce: b"0a4f113b",
            qop: qop.as_bytes(),
            nc: nc.as_bytes(),
            ..Credentials::default()
        };
        let hashes = ha1(self.user, self.realm, self.password);
        let secret: &[u8] = match kind {
            Algorithm::Md5 => &hashes.md5,
            Algorithm::Sha256 => &hashes.sha256,
        };
        let response = kind.response(secret, self.method.as_bytes(), &claim);
        let response: String = response[..kind.len()]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut text = format!(
            "Digest username=\"{}\", realm=\"{}\", nonce=\"{}\", uri=\"{}\", response=\"{response}\"",
            self.user, self.realm, self.nonce, self.uri
        );
        if !algorithm.is_empty() {
            text.push_str(&format!(", algorithm={}", self.algorithm));
        }
        if !qop.is_empty() {
            text.push_str(&format!(", qop={}, nc={nc}, cnonce=\"0a4f113b\"", self.qop));
        }
        text
    }

    fn request(&self) -> String {
        format!(
            "{} {} SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\n\
             From: <sip:alice@example.com>;tag=1\r\nTo: <sip:alice@example.com>\r\n\
             Call-ID: 1\r\nCSeq: 1 {}\r\n{}: {}\r\n{}Content-Length: 0\r\n\r\n",
            self.method,
            self.request_uri,
            self.method,
            self.header,
            self.credentials(),
            self.more
        )
    }

    fn tries(&self, digest: &Digest, ms: u64) -> String {
        verdict(digest, ms, &self.request())
    }
}

fn verdict(digest: &Digest, ms: u64, request: &str) -> String {
    let mut index = Index::new();
    index
        .parse(request.as_bytes(), Framing::Datagram, &Limits::default())
        .expect("a message");
    let message = index.message(request.as_bytes());
    let text = |user: &[u8]| String::from_utf8_lossy(user).into_owned();
    let name = Name::Authorization;
    match digest.verify(at(ms), LIFETIME_S, &message, name, REALM, users) {
        Verdict::Good(user) => format!("good {}", text(user)),
        Verdict::Wrong(user) => format!("wrong {}", text(user)),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[test]
fn the_challenge_offers_md5_first_and_sha_256_in_a_line_of_its_own() {
    let (digest, mut out) = (digest(), Vec::new());
    let challenge = Challenge {
        header: Name::ProxyAuthenticate,
        realm: REALM,
        stale: true,
        sha256: true,
    };
    digest.challenge(START, 1, &challenge, &mut out);
    let nonce = nonce_at(&digest, 0, 1);
    assert_eq!(
        String::from_utf8(out).expect("text"),
        format!(
            "Proxy-Authenticate: Digest realm=\"example.com\", nonce=\"{nonce}\", algorithm=MD5, qop=\"auth\", stale=true\r\n\
             Proxy-Authenticate: Digest realm=\"example.com\", nonce=\"{nonce}\", algorithm=SHA-256, qop=\"auth\", stale=true\r\n"
        )
    );
}

#[test]
fn the_right_password_is_good_in_all_the_forms_that_phones_send() {
    for algorithm in ["MD5", "md5", "\"MD5\"", "", "SHA-256", "sha-256"] {
        for qop in ["auth", "\"auth\"", "AUTH", ""] {
            let digest = digest();
            let phone = Phone {
                algorithm,
                qop,
                ..Phone::new(nonce_at(&digest, 0, 1))
            };
            let verdict = phone.tries(&digest, 10);
            assert_eq!(verdict, "good alice", "{algorithm:?} {qop:?}");
        }
    }
}

#[test]
fn the_user_name_is_checked_as_it_was_sent() {
    let digest = digest();
    for (unique, user) in ["alice", "alice@example.com"].into_iter().enumerate() {
        let phone = Phone {
            user,
            ..Phone::new(nonce_at(&digest, 0, unique as u64))
        };
        assert_eq!(phone.tries(&digest, 10), format!("good {user}"));
    }
    let phone = Phone {
        user: "empty",
        password: "",
        ..Phone::new(nonce_at(&digest, 0, 7))
    };
    assert_eq!(phone.tries(&digest, 10), "good empty");
}

#[test]
fn a_wrong_password_and_an_unknown_user_are_the_same() {
    let digest = digest();
    let phone = Phone::new(nonce_at(&digest, 0, 1));
    let wrong = Phone {
        password: "guess",
        ..phone.clone()
    };
    assert_eq!(wrong.tries(&digest, 10), "wrong alice");
    let unknown = Phone {
        user: "mallory",
        ..phone.clone()
    };
    assert_eq!(unknown.tries(&digest, 10), "wrong mallory");
    assert_eq!(
        phone.tries(&digest, 10),
        "good alice",
        "the nonce is not used up"
    );
}

#[test]
fn a_user_without_a_hash_for_the_algorithm_is_unknown() {
    let digest = digest();
    let phone = Phone {
        user: "old",
        algorithm: "SHA-256",
        ..Phone::new(nonce_at(&digest, 0, 1))
    };
    assert_eq!(phone.tries(&digest, 10), "wrong old");
    // Not even who computes with the hash of all zeros.
    let mut claim = Credentials {
        nonce: phone.nonce.as_bytes(),
        uri: b"sip:example.com",
        ..Credentials::default()
    };
    claim.qop = b"";
    let forged = Algorithm::Sha256.response(&[0; 32], b"REGISTER", &claim);
    let forged: String = forged.iter().map(|byte| format!("{byte:02x}")).collect();
    let request = Phone { qop: "", ..phone }.request();
    let at = request.find("response=\"").expect("a response") + 10;
    let request = format!("{}{forged}{}", &request[..at], &request[at + 64..]);
    assert_eq!(verdict(&digest, 10, &request), "wrong old");
}

#[test]
fn credentials_for_another_realm_or_scheme_are_none() {
    let digest = digest();
    let phone = Phone {
        realm: "example.net",
        ..Phone::new(nonce_at(&digest, 0, 1))
    };
    assert_eq!(phone.tries(&digest, 10), "missing");
    let request = Phone::new(nonce_at(&digest, 0, 1)).request();
    let bearer = request.replace("Digest ", "Bearer ");
    assert_eq!(verdict(&digest, 10, &bearer), "missing");
    let proxy = request.replace("Authorization:", "Proxy-Authorization:");
    assert_eq!(verdict(&digest, 10, &proxy), "missing");
}

#[test]
fn ours_are_found_among_credentials_for_others() {
    let digest = digest();
    let phone = Phone {
        more: "Authorization: Digest username=\"x\", realm=\"other\", nonce=\"n\", uri=\"sip:a\", response=\"00\"\r\n",
        ..Phone::new(nonce_at(&digest, 0, 1))
    };
    assert_eq!(phone.tries(&digest, 10), "good alice");
}

#[test]
fn a_nonce_that_is_too_old_is_stale_only_with_the_right_password() {
    let digest = digest();
    let phone = Phone::new(nonce_at(&digest, 0, 1));
    assert_eq!(phone.tries(&digest, 300_001), "stale");
    let wrong = Phone {
        password: "guess",
        ..phone.clone()
    };
    assert_eq!(wrong.tries(&digest, 300_001), "wrong alice");
    assert_eq!(phone.tries(&digest, 300_000), "good alice");
}

#[test]
fn a_nonce_from_before_a_restart_or_from_elsewhere_is_stale() {
    let before = Digest::new([1; 16], 16, START);
    let phone = Phone::new(nonce_at(&before, 0, 1));
    assert_eq!(phone.tries(&digest(), 10), "stale");
    let phone = Phone::new("dcd98b7102dd2f0e8b11d0f600bfb0c093".into());
    assert_eq!(phone.tries(&digest(), 10), "stale");
}

#[test]
fn a_nonce_serves_many_requests_that_count() {
    let digest = digest();
    let mut phone = Phone::new(nonce_at(&digest, 0, 1));
    for nc in [1, 2, 3, 10] {
        phone.nc = nc;
        assert_eq!(phone.tries(&digest, 40_000), "good alice", "nc {nc}");
        assert_eq!(phone.tries(&digest, 40_000), "stale", "nc {nc} again");
    }
    phone.nc = 4;
    assert_eq!(phone.tries(&digest, 40_000), "stale");
}

#[test]
fn a_phone_that_always_counts_1_gets_a_new_nonce_and_no_password_prompt() {
    let digest = digest();
    let first = Phone::new(nonce_at(&digest, 0, 1));
    assert_eq!(first.tries(&digest, 10), "good alice");
    let again = Phone {
        more: "X-Refresh: 2\r\n",
        ..first
    };
    assert_eq!(again.tries(&digest, 20), "stale");
    let renewed = Phone::new(nonce_at(&digest, 20, 2));
    assert_eq!(renewed.tries(&digest, 30), "good alice");
}

#[test]
fn a_register_whose_200_was_lost_may_come_again_for_32_seconds_unchanged() {
    let digest = digest();
    let phone = Phone::new(nonce_at(&digest, 0, 1));
    assert_eq!(phone.tries(&digest, 10), "good alice");
    assert_eq!(phone.tries(&digest, 510), "good alice");
    let changed = Phone {
        more: "Contact: <sip:mallory@192.0.2.66>\r\n",
        ..phone.clone()
    };
    assert_eq!(changed.tries(&digest, 520), "stale");
    assert_eq!(phone.tries(&digest, 32_000), "good alice");
    assert_eq!(phone.tries(&digest, 32_001), "stale");
}

#[test]
fn another_request_is_never_good_twice() {
    let digest = digest();
    let phone = Phone {
        method: "INVITE",
        request_uri: "sip:bob@example.com",
        uri: "sip:bob@example.com",
        ..Phone::new(nonce_at(&digest, 0, 1))
    };
    assert_eq!(phone.tries(&digest, 10), "good alice");
    assert_eq!(phone.tries(&digest, 20), "stale");
}

#[test]
fn without_qop_a_nonce_serves_one_request() {
    let digest = digest();
    let phone = Phone {
        qop: "",
        ..Phone::new(nonce_at(&digest, 0, 1))
    };
    assert_eq!(phone.tries(&digest, 10), "good alice");
    assert_eq!(phone.tries(&digest, 20), "good alice", "come again");
    let other = Phone {
        more: "X: y\r\n",
        ..phone.clone()
    };
    assert_eq!(other.tries(&digest, 30), "stale");
    let counting = Phone {
        qop: "auth",
        nc: 9,
        ..phone
    };
    assert_eq!(counting.tries(&digest, 30), "stale");
}

#[test]
fn the_uri_may_differ_in_parameters_but_not_in_user_or_host() {
    for (request_uri, uri, good) in [
        ("sip:example.com;transport=tcp", "sip:example.com", true),
        (
            "sip:example.com",
            "sip:example.com:5060;transport=udp",
            true,
        ),
        ("sip:example.com", "sips:EXAMPLE.com", true),
        ("sip:%61lice@example.com", "sip:alice@example.com", true),
        ("sip:bob@[2001:db8::1]", "sip:bob@[2001:DB8:0::1]", true),
        ("sip:0900@example.com", "sip:bob@example.com", false),
        ("sip:bob@example.com", "sip:192.0.2.1:5060", true),
        ("sip:bob@example.net", "sip:bob@example.com", false),
        ("sip:bob@example.com", "", false),
        ("sip:bob@example.com", "bob", false),
    ] {
        let digest = digest();
        let phone = Phone {
            request_uri,
            uri,
            ..Phone::new(nonce_at(&digest, 0, 1))
        };
        let expected = if good { "good alice" } else { "malformed" };
        assert_eq!(phone.tries(&digest, 10), expected, "{request_uri} {uri}");
    }
}

#[test]
fn what_was_not_offered_or_can_not_be_read_is_malformed() {
    let digest = digest();
    let phone = Phone::new(nonce_at(&digest, 0, 1));
    for algorithm in ["MD5-sess", "SHA-512-256"] {
        let other = Phone {
            algorithm,
            ..phone.clone()
        };
        assert_eq!(other.tries(&digest, 10), "malformed", "{algorithm}");
    }
    let auth_int = Phone {
        qop: "auth-int",
        ..phone.clone()
    };
    assert_eq!(auth_int.tries(&digest, 10), "malformed");
    let request = phone.request();
    for (from, to) in [
        ("nc=00000001", "nc=0000000g"),
        ("nc=00000001", "nc=+0000001"),
        ("nc=00000001", "nc=000000001"),
        ("nc=00000001, ", ""),
        ("username=\"alice\", ", ""),
        ("response=\"", "response=\"0"),
        ("response=\"", "response=\"zz"),
    ] {
        let broken = request.replace(from, to);
        assert_ne!(broken, request);
        assert_eq!(verdict(&digest, 10, &broken), "malformed", "{from} {to}");
    }
}

#[test]
fn the_highest_count_there_is_does_not_overflow() {
    let digest = digest();
    let phone = Phone {
        nc: u32::MAX,
        ..Phone::new(nonce_at(&digest, 0, 1))
    };
    assert_eq!(phone.tries(&digest, 40_000), "good alice");
    assert_eq!(phone.tries(&digest, 40_000), "stale");
}
