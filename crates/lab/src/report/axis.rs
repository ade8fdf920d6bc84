//! Where a value stands on an axis, and how numbers are written.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// Values beyond are left out of pictures: no figure of a server comes near.
const DRAWABLE_MAX: f64 = 1e15;

/// An axis fitted to its values: linear or of logarithms, with its ticks.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    log: bool,
    /// Ends and ticks as drawn: logarithms to base ten on a log axis.
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) ticks: Vec<f64>,
    decimals: usize,
}

impl Scale {
    /// Holds all the values that can be drawn; without any, from 0 to 1 (on a log axis from 1 to 10).
    pub(super) fn new(log: bool, from_zero: bool, values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter_map(|v| place(log, v)) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if log {
            Self::of_logarithms(low, high)
        } else {
            Self::linear(low, high, from_zero)
        }
    }

    fn linear(mut low: f64, mut high: f64, from_zero: bool) -> Self {
        if low > 0.0 && (from_zero || low < high * 0.3) {
            low = 0.0;
        }
        if high <= low {
            let pad = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = (low - pad, high + pad);
        }
        let step = step((high - low).max(high.abs().max(low.abs()) * 1e-9), 6.0);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let count = (last - first).clamp(1.0, 20.0) as u32;
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let ticks: Vec<f64> = (0..=count).map(|i| (first + f64::from(i)) * step).collect();
        Self {
            log: false,
            min: first * step,
            max: (first + f64::from(count)) * step,
            ticks,
            decimals,
        }
    }

    /// Ticks at each power of ten; between them at 2 and 5, and at more where there are few.
    fn of_logarithms(low: f64, high: f64) -> Self {
        let multiples: &[f64] = match high - low {
            narrow if narrow < 0.7 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let all: Vec<f64> = (low.floor() as i32..=high.ceil() as i32)
            .flat_map(|power| multiples.iter().map(move |m| f64::from(power) + m.log10()))
            .collect();
        let near = 1e-9;
        let first = all.iter().rposition(|t| *t <= low + near).unwrap_or(0);
        let mut last = all
            .iter()
            .position(|t| *t >= high - near)
            .unwrap_or(all.len() - 1);
        if last <= first {
            last = (first + 1).min(all.len() - 1);
        }
        let first = first.min(last.saturating_sub(1));
        let (min, max) = (all[first], all[last]);
        let powers = (max - min).ceil() as usize;
        let mut ticks = all[first..=last].to_vec();
        if powers > 3 {
            let every = powers.div_ceil(8).max(1) as i32;
            ticks.retain(|t| (t - t.round()).abs() < near && t.round() as i32 % every == 0);
        }
        Self {
            log: true,
            min,
            max,
            ticks,
            decimals: 0,
        }
    }

    /// Where the value is drawn; `None` where it can't be: not a number, far beyond, or nothing on a log axis.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        place(self.log, value)
    }

    /// As [`Self::place`], but what lies below a log axis is drawn at its end.
    pub(super) fn place_or_end(&self, value: f64) -> f64 {
        self.place(value)
            .unwrap_or(self.min)
            .clamp(self.min, self.max)
    }

    /// A tick's number.
    pub(super) fn label(&self, tick: f64) -> String {
        if self.log {
            return readable(10f64.powf(tick));
        }
        grouped(tick, self.decimals)
    }
}

/// Values are given as drawn: placed already.
impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value - self.min) / (self.max - self.min);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.min..self.max
    }
}

fn place(log: bool, value: f64) -> Option<f64> {
    if !value.is_finite() || value.abs() > DRAWABLE_MAX {
        return None;
    }
    if !log {
        return Some(value);
    }
    (value > 1.0 / DRAWABLE_MAX).then(|| value.log10())
}

/// A round step that divides the span in about so many.
fn step(span: f64, parts: f64) -> f64 {
    let raw = span / parts;
    let power = 10f64.powf(raw.log10().floor());
    let multiple = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|m| m * power >= raw * 0.999);
    let found = multiple.unwrap_or(10.0) * power;
    // 2.5 needs one more digit than its neighbours: only where that is no fraction.
    if multiple == Some(2.5) && power < 10.0 {
        5.0 * power
    } else {
        found
    }
}

/// Three significant digits or all before the point, grouped: `1,234`, `12.3`, `0.0123`; no zeros at the end.
pub(crate) fn readable(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = value.abs().log10().floor();
    let decimals = (2.0 - digits).clamp(0.0, 12.0) as usize;
    let text = grouped(value, decimals);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// With a comma between the thousands.
fn grouped(value: f64, decimals: usize) -> String {
    if value.abs() > DRAWABLE_MAX {
        return format!("{value:e}");
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        out.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let written = |v| readable(v);
        assert_eq!(written(1_234_567.0), "1,234,567");
        assert_eq!(written(1000.4), "1,000");
        assert_eq!(written(12.345), "12.3");
        assert_eq!(written(0.012_34), "0.0123");
        assert_eq!(written(0.5), "0.5");
        assert_eq!(written(-1500.0), "−1,500");
        assert_eq!(written(0.0), "0");
        assert_eq!(written(f64::NAN), "–");
        assert_eq!(grouped(-0.001, 1), "0.0");
    }

    #[test]
    fn a_linear_axis_has_few_round_ticks_around_all_values() {
        let scale = Scale::new(
            false,
            true,
            [120.0, 5300.0, f64::NAN, f64::INFINITY].into_iter(),
        );
        let labels: Vec<_> = scale.ticks.iter().map(|t| scale.label(*t)).collect();
        assert_eq!(
            labels,
            ["0", "1,000", "2,000", "3,000", "4,000", "5,000", "6,000"]
        );
        assert!(scale.min <= 120.0 && scale.max >= 5300.0);
    }

    #[test]
    fn a_log_axis_has_ticks_at_one_two_five_and_no_place_for_zero() {
        let scale = Scale::new(true, false, [0.0, 3.0, 150.0].into_iter());
        let labels: Vec<_> = scale.ticks.iter().map(|t| scale.label(*t)).collect();
        assert_eq!(labels, ["2", "5", "10", "20", "50", "100", "200"]);
        assert_eq!(scale.place(0.0), None);
        assert_eq!(scale.place_or_end(0.0), scale.min);
    }

    #[test]
    fn a_log_axis_of_less_than_a_power_of_ten_has_more_ticks_in_it() {
        let scale = Scale::new(true, false, [2_000.0, 4_500.0].into_iter());
        let labels: Vec<_> = scale.ticks.iter().map(|t| scale.label(*t)).collect();
        assert_eq!(labels, ["2,000", "3,000", "4,000", "5,000"]);
    }

    #[test]
    fn a_log_axis_over_many_powers_shows_only_those() {
        let scale = Scale::new(true, false, [0.001, 1e6].into_iter());
        let labels: Vec<_> = scale.ticks.iter().map(|t| scale.label(*t)).collect();
        assert_eq!(
            labels,
            ["0.01", "1", "100", "10,000", "1,000,000"].map(str::to_owned)
        );
    }

    #[test]
    fn any_values_give_an_axis_of_some_length_and_few_ticks() {
        let odd: &[&[f64]] = &[
            &[],
            &[0.0],
            &[5.0],
            &[-3.0, -3.0],
            &[1e15, 1e15 - 0.001],
            &[1e-15, 1e15],
            &[f64::MAX, f64::MIN],
            &[f64::NAN],
            &[-1.0, 1e14],
            &[0.0001, 0.00011],
        ];
        for values in odd {
            for log in [false, true] {
                for from_zero in [false, true] {
                    let scale = Scale::new(log, from_zero, values.iter().copied());
                    assert!(scale.max > scale.min, "{values:?} {log} {scale:?}");
                    assert!(
                        (1..=21).contains(&scale.ticks.len()),
                        "{values:?} {log} {scale:?}"
                    );
                    for tick in &scale.ticks {
                        assert!(!scale.label(*tick).is_empty());
                    }
                }
            }
        }
    }
}
