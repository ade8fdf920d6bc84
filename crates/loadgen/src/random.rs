//! Chance: gaps, ring and talk times, shares.

/// A small generator of evenly distributed bits (splitmix64). The same seed gives the same sequence.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 evenly distributed bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// At least 0, less than 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_the_mean_is_as_said() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        assert!((0..100).all(|_| a.bits() == b.bits()));
        let mean = |mut draw: Box<dyn FnMut() -> f64>| (0..100_000).map(|_| draw()).sum::<f64>();
        let (mut even, mut gaps) = (Random::new(1), Random::new(1));
        let even = mean(Box::new(move || even.unit())) / 1e5;
        let gaps = mean(Box::new(move || gaps.exponential())) / 1e5;
        assert!((even - 0.5).abs() < 0.01, "{even}");
        assert!((gaps - 1.0).abs() < 0.02, "{gaps}");
    }
}
