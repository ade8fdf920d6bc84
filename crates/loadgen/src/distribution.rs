//! Ring and talk times.

use std::{fmt, str::FromStr};

use crate::random::Random;

/// A time: constant, or drawn anew for each call. Microseconds.
///
/// Written as `0`, `4s`, `200ms`, `1s..5s` (evenly between the two) or `exp:180s` (exponential with
/// that mean).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Distribution {
    Constant(u64),
    /// Evenly between the two.
    Uniform(u64, u64),
    /// Exponential with that mean.
    Exponential(u64),
}

/// The longest time that can be written: a day.
const LONGEST_US: u64 = 86_400_000_000;

impl Distribution {
    /// A time.
    pub(crate) fn draw(self, random: &mut Random) -> u64 {
        match self {
            Self::Constant(us) => us,
            Self::Uniform(from, to) => from + (random.unit() * (to - from + 1) as f64) as u64,
            Self::Exponential(mean) => (random.exponential() * mean as f64) as u64,
        }
    }
}

/// Reads one time: a number and `us`, `ms`, `s`, `min` or `h`; 0 needs no unit.
///
/// # Errors
/// What is wrong, for a person.
pub(crate) fn parse_us(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if text == "0" {
        return Ok(0);
    }
    let unit = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(unit.unwrap_or(text.len()));
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "min" => 60e6,
        "h" => 3600e6,
        "" => return Err(format!("`{text}` has no unit: `{text}s` or `{text}ms`?")),
        _ => {
            return Err(format!(
                "`{unit}` is no unit of time: us, ms, s, min and h are"
            ));
        }
    };
    match number.trim_end().parse::<f64>() {
        Ok(n) if n >= 0.0 && n * factor <= LONGEST_US as f64 => Ok((n * factor).round() as u64),
        Ok(_) => Err(format!("`{text}` is not between 0 and 24h")),
        Err(_) => Err(format!(
            "`{text}` is no time: write 4s, 200ms, 1s..5s or exp:180s"
        )),
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(mean) = text.trim().strip_prefix("exp:") {
            return Ok(Self::Exponential(parse_us(mean)?));
        }
        let Some((from, to)) = text.split_once("..") else {
            return Ok(Self::Constant(parse_us(text)?));
        };
        let (from_us, to_us) = (parse_us(from)?, parse_us(to)?);
        if from_us > to_us {
            return Err(format!(
                "`{text}`: the shorter time comes first, `{to}..{from}`"
            ));
        }
        Ok(Self::Uniform(from_us, to_us))
    }
}

/// As it is written on the command line.
impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Constant(us) => write!(f, "{}", Written(us)),
            Self::Uniform(from, to) => write!(f, "{}..{}", Written(from), Written(to)),
            Self::Exponential(mean) => write!(f, "exp:{}", Written(mean)),
        }
    }
}

struct Written(u64);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0"),
            us if us % 1_000_000 == 0 => write!(f, "{}s", us / 1_000_000),
            us if us % 1000 == 0 => write!(f, "{}ms", us / 1000),
            us => write!(f, "{us}us"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_write_them_and_read_back() {
        for (text, meant) in [
            ("0", Distribution::Constant(0)),
            ("4s", Distribution::Constant(4_000_000)),
            ("200ms", Distribution::Constant(200_000)),
            ("1500us", Distribution::Constant(1500)),
            ("1s..5s", Distribution::Uniform(1_000_000, 5_000_000)),
            ("exp:180s", Distribution::Exponential(180_000_000)),
        ] {
            let read: Distribution = text.parse().unwrap();
            assert_eq!(read, meant);
            assert_eq!(read.to_string(), text);
        }
        assert_eq!("0.5 s".parse(), Ok(Distribution::Constant(500_000)));
        assert_eq!("50min".parse(), Ok(Distribution::Constant(3_000_000_000)));
        assert_eq!("1h".parse(), Ok(Distribution::Constant(3_600_000_000)));
    }

    #[test]
    fn what_is_no_time_is_refused_with_what_to_write() {
        for (text, says) in [
            ("4", "`4s` or `4ms`"),
            ("4 parsecs", "no unit of time"),
            ("s", "200ms"),
            ("", "no unit"),
            ("-1s", "between 0 and 24h"),
            ("25h", "between 0 and 24h"),
            ("5s..1s", "`1s..5s`"),
            ("exp:", "no unit"),
            ("NaNs", "no unit"),
        ] {
            let error = text.parse::<Distribution>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn drawn_times_have_their_mean_and_stay_in_their_bounds() {
        let mut random = Random::new(1);
        let mut draw = |text: &str| -> Vec<u64> {
            let distribution: Distribution = text.parse().unwrap();
            (0..100_000)
                .map(|_| distribution.draw(&mut random))
                .collect()
        };
        let mean = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len() as f64;
        assert!(draw("7ms").iter().all(|us| *us == 7000));
        let uniform = draw("1s..5s");
        assert!(
            uniform
                .iter()
                .all(|us| (1_000_000..=5_000_000).contains(us))
        );
        assert!((mean(&uniform) / 3e6 - 1.0).abs() < 0.01);
        let exponential = draw("exp:180s");
        assert!((mean(&exponential) / 180e6 - 1.0).abs() < 0.02);
        let longer = exponential.iter().filter(|us| **us > 180_000_000).count();
        assert!((longer as f64 / 1e5 - (-1f64).exp()).abs() < 0.01);
    }
}
