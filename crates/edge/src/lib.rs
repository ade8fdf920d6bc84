//! The event loop of one core: reads the clock, moves bytes, runs the machines.
