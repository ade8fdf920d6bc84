//! One SIP server for a city: the command line.
fn main() {}
