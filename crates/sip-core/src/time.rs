use location::Wall;

/// Monotonic time in microseconds since an epoch that the event loop picked. There is no `now()`: only the
/// event loop and the simulator can make one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mono(pub u64);

impl Mono {
    /// That many milliseconds later.
    #[must_use]
    pub const fn after_ms(self, ms: u32) -> Self {
        Self(self.0 + ms as u64 * 1000)
    }
}

/// Both clocks, read once per turn of the event loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Now {
    pub mono: Mono,
    pub wall: Wall,
}
