/// `;name=value` parameters, borrowed, decoded as they are walked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Params<'a> {
    pub(crate) text: &'a [u8],
}

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Param<'a> {
    pub name: &'a [u8],
    pub value: Option<&'a [u8]>,
}

impl<'a> Params<'a> {
    /// Over the text from the first `;` on.
    #[must_use]
    pub const fn new(text: &'a [u8]) -> Self {
        Self { text }
    }
    /// The text.
    #[must_use]
    pub const fn text(&self) -> &'a [u8] {
        self.text
    }
    /// Walks them.
    pub fn iter(&self) -> impl Iterator<Item = Param<'a>> + 'a {
        std::iter::empty()
    }
    /// The first of that name, any case, with or without a value.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Param<'a>> {
        let _ = name;
        todo!()
    }
    /// Its value (quotes kept, see [`Self::unquoted`]); `None` when absent or without a value.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&'a [u8]> {
        let _ = name;
        todo!()
    }
    /// Its value, surrounding quotes removed (escapes left).
    #[must_use]
    pub fn unquoted(&self, name: &str) -> Option<&'a [u8]> {
        let _ = name;
        todo!()
    }
    /// Whether it is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let _ = name;
        todo!()
    }
}
