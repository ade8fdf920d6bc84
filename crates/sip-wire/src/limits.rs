/// What a message may be at most. A message over a limit is answered 513 (RFC 3261 section
/// 21.5.7) or 400, never stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Whole message, bytes, on a stream.
    pub message_bytes_max: usize,
    /// Start line and header fields, bytes.
    pub head_bytes_max: usize,
    /// Header fields.
    pub header_count_max: usize,
    /// One header field, folded lines included, bytes.
    pub header_bytes_max: usize,
    /// Via values.
    pub via_count_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 128 * 1024,
            head_bytes_max: 80 * 1024,
            header_count_max: 256,
            header_bytes_max: 8 * 1024,
            via_count_max: 71,
        }
    }
}
