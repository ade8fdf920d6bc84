//! Times, shares and rates as they are typed.

use std::{str::FromStr, time::Duration};

use crate::{distribution::parse_us, pace::Rate};

/// A time as it is typed: a number alone is seconds; `200ms`, `4s`, `5min`, `1h`.
///
/// # Errors
/// What is wrong with it, and what is right.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let us = match text.trim().bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        true => parse_us(&format!("{text}s")),
        false => parse_us(text),
    };
    us.map(Duration::from_micros)
}

/// A time that is not 0.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    match time.is_zero() {
        true => Err(String::from("must be longer than 0")),
        false => Ok(time),
    }
}

/// A share: `30` and `30%` are the same.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse() {
        Ok(share @ 0.0..=100.0) => Ok(share),
        _ => Err(String::from(
            "a share is a number from 0 to 100, such as 30%",
        )),
    }
}

/// A number above 0.
pub(crate) fn above_zero(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err(format!("{text:?} must be a number above 0")),
    }
}

/// Rates beyond it no machine of today reaches.
const RATE_MAX: f64 = 1e8;

/// One rate, operations a second: `250`, `250/s`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix("/s").unwrap_or(text);
    let rate = above_zero(number).map_err(|_| {
        format!(
            "{text:?} is no rate: operations a second, above 0; without --rate the loop is closed"
        )
    })?;
    match rate <= RATE_MAX {
        true => Ok(rate),
        false => Err(format!(
            "{text:?}: {RATE_MAX} operations a second are the most"
        )),
    }
}

/// Two rates with dots between, the first the lower one.
pub(crate) fn rates(text: &str) -> Result<(f64, f64), String> {
    let (low, high) = text
        .split_once("..")
        .ok_or_else(|| format!("{text:?} is no range of rates; 100..20000 is"))?;
    match (rate(low)?, rate(high)?) {
        (low, high) if low < high => Ok((low, high)),
        (low, high) => Err(format!(
            "from {low} up to {high} is nothing: the lower rate comes first, {high}..{low}"
        )),
    }
}

/// `1000` is constant, `100..1000` goes from one to the other, `100,200,400` is three steps.
impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((from, to)) = text.split_once("..") {
            return Ok(Self::Ramp(rate(from)?, rate(to)?));
        }
        if text.contains(',') {
            return text
                .split(',')
                .map(rate)
                .collect::<Result<_, _>>()
                .map(Self::Steps);
        }
        rate(text).map(Self::Constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_are_seconds_without_one() {
        for (text, ms) in [
            ("10", 10_000),
            ("0", 0),
            ("0.25", 250),
            ("200ms", 200),
            ("5min", 300_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "5 parsecs", "-1", "1e9", "1..2", "25h"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(some_time("0s").is_err());
    }

    #[test]
    fn a_rate_is_constant_or_a_ramp_or_steps() {
        assert_eq!("250".parse(), Ok(Rate::Constant(250.0)));
        assert_eq!("1000..10/s".parse(), Ok(Rate::Ramp(1000.0, 10.0)));
        assert_eq!("1,2.5,4".parse(), Ok(Rate::Steps(vec![1.0, 2.5, 4.0])));
        for text in ["0", "-3", "x", "1..", "..", "1,,2", "NaN", "inf", "0..5"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_of_rates_goes_up() {
        assert_eq!(rates("100..2000"), Ok((100.0, 2000.0)));
        assert!(rates("2000..100").is_err_and(|e| e.contains("100..2000")));
        assert!(rates("100").is_err());
    }

    #[test]
    fn shares_are_percent() {
        assert_eq!((percent("30%"), percent("2.5")), (Ok(30.0), Ok(2.5)));
        assert!(percent("130%").is_err() && percent("%").is_err());
    }
}
