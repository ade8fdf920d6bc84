//! Tests of the built server against real and hostile peers.
