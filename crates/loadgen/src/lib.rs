//! User agents, echo server and load generator.
