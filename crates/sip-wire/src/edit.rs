use crate::{Message, Span};

/// Changes to a message, written out with the unchanged bytes between them: forwarding without rebuilding.
/// Reusable; text of the edits is kept in one arena.
#[derive(Default)]
pub struct Edits {}

impl Edits {
    /// No edits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Forgets all edits, keeps the memory.
    pub fn clear(&mut self) {
        todo!()
    }
    /// Replaces `span` by `text`. An empty span inserts before it; several insertions at one place keep the order they were added in. Spans must not overlap.
    pub fn replace(&mut self, span: Span, text: &[u8]) {
        let _ = (span, text);
        todo!()
    }
    /// The same with several pieces of text in a row.
    pub fn replace_parts(&mut self, span: Span, parts: &[&[u8]]) {
        let _ = (span, parts);
        todo!()
    }
    /// Appends the edited message to `out`.
    pub fn write(&mut self, message: &Message<'_>, out: &mut Vec<u8>) {
        let _ = (message, out);
        todo!()
    }
}
