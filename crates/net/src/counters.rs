macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What a [`crate::Net`] has counted since its start. Plain numbers of one thread.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[$doc])* pub $name: u64),* }

        impl Counters {
            /// Every counter with its name.
            pub fn each(&self, mut f: impl FnMut(&'static str, u64)) { $(f(stringify!($name), self.$name);)* }
            /// Adds another thread's.
            pub fn add(&mut self, other: &Self) { $(self.$name += other.$name;)* }
        }
    };
}

counters! {
    /// Datagrams received, keep-alives too.
    datagrams_received,
    /// Datagrams that the kernel took.
    datagrams_sent,
    /// Bytes in datagrams received.
    datagram_bytes_received,
    /// Bytes in datagrams sent.
    datagram_bytes_sent,
    /// Datagrams that the kernel dropped because the socket's receive buffer was full.
    datagrams_overflowed,
    /// Datagrams that could not be sent.
    datagrams_unsent,
    /// Datagrams of CR, LF and NUL, and those of at most 4 bytes.
    keepalives_received,
    /// Messages cut out of streams.
    messages_received,
    /// Messages given to connections.
    messages_sent,
    /// Messages given to connections that did not leave.
    messages_unsent,
    /// Bytes read from streams.
    stream_bytes_received,
    /// Bytes written to streams.
    stream_bytes_sent,
    /// Pings answered on streams (RFC 5626 section 3.5.1).
    pings_answered,
    /// Connections accepted.
    connections_accepted,
    /// Connections opened by us, whether they succeed or not.
    connections_opened,
    /// Connections open now.
    connections_open,
    /// Connections that ended, for any reason.
    connections_closed,
    /// Of those, the ones that a peer made us end: too slow, too large, broken.
    connections_expelled,
    /// Times that accepting paused because descriptors or places ran out.
    accept_pauses,
    /// Bytes held now for half-received and waiting messages.
    held_bytes,
}
