/// A request method (RFC 3261 section 7.1). Methods are case-sensitive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Method {
    Invite,
    Ack,
    Cancel,
    Bye,
    Register,
    Options,
    Info,
    Prack,
    Update,
    Subscribe,
    Notify,
    Refer,
    Message,
    Publish,
    /// A method this crate has no name for; its text is in the message.
    Other,
}

impl Method {
    /// The method of this text.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let _ = text;
        todo!()
    }

    /// Its text; empty for [`Method::Other`].
    #[must_use]
    pub const fn text(self) -> &'static str {
        todo!()
    }
}
