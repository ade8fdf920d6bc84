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
        match text {
            b"INVITE" => Self::Invite,
            b"ACK" => Self::Ack,
            b"CANCEL" => Self::Cancel,
            b"BYE" => Self::Bye,
            b"REGISTER" => Self::Register,
            b"OPTIONS" => Self::Options,
            b"INFO" => Self::Info,
            b"PRACK" => Self::Prack,
            b"UPDATE" => Self::Update,
            b"SUBSCRIBE" => Self::Subscribe,
            b"NOTIFY" => Self::Notify,
            b"REFER" => Self::Refer,
            b"MESSAGE" => Self::Message,
            b"PUBLISH" => Self::Publish,
            _ => Self::Other,
        }
    }

    /// Its text; empty for [`Method::Other`].
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Invite => "INVITE",
            Self::Ack => "ACK",
            Self::Cancel => "CANCEL",
            Self::Bye => "BYE",
            Self::Register => "REGISTER",
            Self::Options => "OPTIONS",
            Self::Info => "INFO",
            Self::Prack => "PRACK",
            Self::Update => "UPDATE",
            Self::Subscribe => "SUBSCRIBE",
            Self::Notify => "NOTIFY",
            Self::Refer => "REFER",
            Self::Message => "MESSAGE",
            Self::Publish => "PUBLISH",
            Self::Other => "",
        }
    }
}
