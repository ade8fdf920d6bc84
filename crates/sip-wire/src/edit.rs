use crate::{Message, Span};

/// Changes to a message, written out with the unchanged bytes between them: forwarding without rebuilding.
/// Reusable; text of the edits is kept in one arena.
#[derive(Default)]
pub struct Edits {
    edits: Vec<Edit>,
    arena: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Edit {
    span: Span,
    /// Where its text is in the arena.
    text: Span,
}

impl Edits {
    /// No edits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all edits, keeps the memory.
    pub fn clear(&mut self) {
        self.edits.clear();
        self.arena.clear();
    }

    /// Replaces `span` by `text`. An empty span inserts before it; several insertions at one place keep the order they were added in. Spans must not overlap.
    pub fn replace(&mut self, span: Span, text: &[u8]) {
        self.replace_parts(span, &[text]);
    }

    /// The same with several pieces of text in a row.
    pub fn replace_parts(&mut self, span: Span, parts: &[&[u8]]) {
        let start = self.arena.len() as u32;
        for part in parts {
            self.arena.extend_from_slice(part);
        }
        let end = self.arena.len() as u32;
        self.edits.push(Edit {
            span,
            text: Span { start, end },
        });
    }

    /// Inserts `parts` at an offset: [`Self::replace_parts`] of nothing.
    pub fn insert(&mut self, at: u32, parts: &[&[u8]]) {
        self.replace_parts(Span { start: at, end: at }, parts);
    }

    /// Takes out the bytes of a span, such as a whole [`crate::Header::field_span`].
    pub fn remove(&mut self, span: Span) {
        self.replace_parts(span, &[]);
    }

    /// Appends the edited message to `out`. Of spans that overlap, the later one replaces only what is left of it.
    pub fn write(&mut self, message: &Message<'_>, out: &mut Vec<u8>) {
        let bytes = message.bytes();
        self.edits
            .sort_by_key(|edit| (edit.span.start, !edit.span.is_empty()));
        out.reserve(bytes.len() + self.arena.len());
        let mut at = 0;
        for edit in &self.edits {
            let start = (edit.span.start as usize).clamp(at, bytes.len());
            out.extend_from_slice(&bytes[at..start]);
            out.extend_from_slice(&self.arena[edit.text.range()]);
            at = (edit.span.end as usize).clamp(start, bytes.len());
        }
        out.extend_from_slice(&bytes[at..]);
    }
}
