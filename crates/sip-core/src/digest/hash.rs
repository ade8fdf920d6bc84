use location::Ha1;
use md5::Md5;
use sha2::Sha256;
use sip_wire::Credentials;

/// A hash algorithm that is offered (RFC 8760 section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    /// By its name in any case; MD5 when there is none (RFC 7616 section 3.4); `None`: not offered.
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        if name.is_empty() {
            return Some(Self::Md5);
        }
        [Self::Md5, Self::Sha256]
            .into_iter()
            .find(|a| name.eq_ignore_ascii_case(a.text()))
    }

    pub(super) const fn text(self) -> &'static [u8] {
        match self {
            Self::Md5 => b"MD5",
            Self::Sha256 => b"SHA-256",
        }
    }

    /// Bytes of a hash.
    pub(super) const fn len(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
        }
    }

    /// What the `response` has to be (RFC 7616 section 3.4.1), filled up with zeros. `secret`: HA1.
    pub(super) fn response(self, secret: &[u8], method: &[u8], c: &Credentials<'_>) -> [u8; 32] {
        let mut out = [0; 32];
        match self {
            Self::Md5 => out[..16].copy_from_slice(&response::<Md5>(secret, method, c)),
            Self::Sha256 => out.copy_from_slice(&response::<Sha256>(secret, method, c)),
        }
        out
    }
}

fn response<H: md5::Digest>(
    secret: &[u8],
    method: &[u8],
    c: &Credentials<'_>,
) -> md5::digest::Output<H> {
    let a2 = joined::<H>(&[method, c.uri]);
    let (mut secret_hex, mut a2_hex) = ([0; 64], [0; 64]);
    let secret = to_hex(secret, &mut secret_hex);
    let a2 = to_hex(&a2, &mut a2_hex);
    if c.qop.is_empty() {
        joined::<H>(&[secret, c.nonce, a2])
    } else {
        joined::<H>(&[secret, c.nonce, c.nc, c.cnonce, c.qop, a2])
    }
}

/// The hashes of a password (RFC 7616 section 3.4.2), to keep instead of it. `user` is the name as phones send it.
#[must_use]
pub fn ha1(user: &str, realm: &str, password: &str) -> Ha1 {
    let parts = [user.as_bytes(), realm.as_bytes(), password.as_bytes()];
    Ha1 {
        md5: joined::<Md5>(&parts).into(),
        sha256: joined::<Sha256>(&parts).into(),
    }
}

/// Hash of the parts with colons between them.
fn joined<H: md5::Digest>(parts: &[&[u8]]) -> md5::digest::Output<H> {
    let mut hash = H::new();
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            hash.update(b":");
        }
        hash.update(part);
    }
    hash.finalize()
}

/// Writes at most 32 bytes in hexadecimal, lower case.
fn to_hex<'a>(bytes: &[u8], text: &'a mut [u8; 64]) -> &'a [u8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, two) in bytes.iter().zip(text.chunks_exact_mut(2)) {
        two[0] = DIGITS[usize::from(byte >> 4)];
        two[1] = DIGITS[usize::from(byte & 15)];
    }
    &text[..bytes.len() * 2]
}

/// Reads at most 32 bytes in hexadecimal, any case; says how many. `None`: not hexadecimal, or longer.
pub(super) fn from_hex(text: &[u8], bytes: &mut [u8; 32]) -> Option<usize> {
    if text.len() > 64 || !text.len().is_multiple_of(2) {
        return None;
    }
    for (two, byte) in text.chunks_exact(2).zip(bytes.iter_mut()) {
        *byte = (hex_digit(two[0])? << 4) | hex_digit(two[1])?;
    }
    Some(text.len() / 2)
}

const fn hex_digit(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        b'A'..=b'F' => Some(c - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(algorithm: Algorithm, secret: &[u8], credentials: &Credentials<'_>, response: &str) {
        let hash = algorithm.response(secret, b"GET", credentials);
        let mut text = [0; 64];
        let hash = to_hex(&hash[..algorithm.len()], &mut text);
        assert_eq!(std::str::from_utf8(hash), Ok(response));
    }

    #[test]
    fn the_example_of_rfc_2617_section_3_5_comes_out() {
        let secret = ha1("Mufasa", "testrealm@host.com", "Circle Of Life");
        let credentials = Credentials {
            nonce: b"dcd98b7102dd2f0e8b11d0f600bfb0c093",
            uri: b"/dir/index.html",
            qop: b"auth",
            nc: b"00000001",
            cnonce: b"0a4f113b",
            ..Credentials::default()
        };
        let response = "6629fae49393a05397450978507c4ef1";
        check(Algorithm::Md5, &secret.md5, &credentials, response);
    }

    #[test]
    fn without_qop_the_example_comes_out_as_in_rfc_2069() {
        let secret = ha1("Mufasa", "testrealm@host.com", "Circle Of Life");
        let credentials = Credentials {
            nonce: b"dcd98b7102dd2f0e8b11d0f600bfb0c093",
            uri: b"/dir/index.html",
            ..Credentials::default()
        };
        let response = "670fd8c2df070c60b045671b8b24ff02";
        check(Algorithm::Md5, &secret.md5, &credentials, response);
    }

    #[test]
    fn the_examples_of_rfc_7616_section_3_9_1_come_out() {
        let secret = ha1("Mufasa", "http-auth@example.org", "Circle of Life");
        let credentials = Credentials {
            nonce: b"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
            uri: b"/dir/index.html",
            qop: b"auth",
            nc: b"00000001",
            cnonce: b"f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
            ..Credentials::default()
        };
        let md5 = "8ca523f5e9506fed4657c9700eebdbec";
        check(Algorithm::Md5, &secret.md5, &credentials, md5);
        let sha256 = "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1";
        check(Algorithm::Sha256, &secret.sha256, &credentials, sha256);
    }

    #[test]
    fn algorithms_are_found_in_any_case_and_those_not_offered_are_not() {
        assert_eq!(Algorithm::of(b""), Some(Algorithm::Md5));
        assert_eq!(Algorithm::of(b"md5"), Some(Algorithm::Md5));
        assert_eq!(Algorithm::of(b"sha-256"), Some(Algorithm::Sha256));
        for name in [
            &b"MD5-sess"[..],
            b"SHA-256-sess",
            b"SHA-512-256",
            b"AKAv1-MD5",
        ] {
            assert_eq!(Algorithm::of(name), None);
        }
    }

    #[test]
    fn hexadecimal_is_read_in_both_cases_and_nothing_else_is() {
        let mut bytes = [0; 32];
        assert_eq!(from_hex(b"0aFf", &mut bytes), Some(2));
        assert_eq!(bytes[..2], [0x0a, 0xff]);
        assert_eq!(from_hex(b"0", &mut bytes), None);
        assert_eq!(from_hex(b"0g", &mut bytes), None);
        assert_eq!(from_hex(&[b'0'; 66], &mut bytes), None);
    }
}
