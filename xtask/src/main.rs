//! The project's own commands: test, fuzz, bench.
fn main() {}
