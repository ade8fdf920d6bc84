//! Ring and talk times.

/// A time: constant, or drawn anew for each call. Microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Distribution {
    Constant(u64),
    /// Evenly between the two.
    Uniform(u64, u64),
    /// Exponential with that mean.
    Exponential(u64),
}
