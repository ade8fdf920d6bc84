//! The core on a simulated clock, network and disk, by seed.
