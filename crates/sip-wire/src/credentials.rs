/// Digest credentials (RFC 3261 section 22.4, RFC 7616), quotes removed. Empty where absent.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Credentials<'a> {
    pub username: &'a [u8],
    pub realm: &'a [u8],
    pub nonce: &'a [u8],
    pub uri: &'a [u8],
    pub response: &'a [u8],
    pub algorithm: &'a [u8],
    pub cnonce: &'a [u8],
    pub opaque: &'a [u8],
    pub qop: &'a [u8],
    pub nc: &'a [u8],
}

impl<'a> Credentials<'a> {
    /// Parses the value of Authorization or Proxy-Authorization; `None` when the scheme is not Digest or it is malformed.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let _ = value;
        todo!()
    }
}
