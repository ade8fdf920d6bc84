//! UDP and TCP sockets, connections, framing and batching; all unsafe code.
