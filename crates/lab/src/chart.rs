//! Pictures, ratios and findings, made in one line each.

use std::collections::BTreeMap;

use crate::record::{
    Agreement, Axis, Bar, BarPart, Chart, Curve, Data, Finding, Group, Point, Ratio, Who,
};

impl Axis {
    /// With its unit: `response time, ms`.
    pub(crate) fn linear(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            log: false,
        }
    }

    pub(crate) fn log(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            log: true,
        }
    }
}

impl Chart {
    /// Curves over a number; those without a point are left out.
    pub(crate) fn lines(id: &str, title: &str, x: Axis, y: Axis, mut curves: Vec<Curve>) -> Self {
        curves.retain(|curve| !curve.points.is_empty());
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            x,
            y,
            data: Data::Lines(curves),
        }
    }

    /// Groups of bars; those without a bar are left out.
    pub(crate) fn bars(id: &str, title: &str, y: Axis, mut groups: Vec<Group>) -> Self {
        groups.retain(|group| !group.bars.is_empty());
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            x: Axis::linear(""),
            y,
            data: Data::Bars(groups),
        }
    }
}

impl Bar {
    /// A bar of one part, from the median and spread of `y`.
    pub(crate) fn plain(who: Who, y: Point) -> Self {
        Self {
            who,
            label: String::new(),
            parts: vec![BarPart {
                label: String::new(),
                value: y.y,
            }],
            low: y.low,
            high: y.high,
        }
    }

    /// A bar of parts, from the bottom up.
    pub(crate) fn stacked(who: Who, parts: &[(&str, f64)]) -> Self {
        let whole = parts.iter().map(|(_, value)| value).sum();
        let parts = parts.iter().map(|(label, value)| BarPart {
            label: (*label).to_owned(),
            value: *value,
        });
        Self {
            who,
            label: String::new(),
            parts: parts.collect(),
            low: whole,
            high: whole,
        }
    }
}

impl Group {
    pub(crate) fn new(label: &str, bars: impl IntoIterator<Item = Bar>) -> Self {
        Self {
            label: label.to_owned(),
            bars: bars.into_iter().collect(),
        }
    }
}

impl Ratio {
    pub(crate) fn new(label: &str, of: impl IntoIterator<Item = (Who, f64)>) -> Self {
        let of = of.into_iter().filter(|(_, ratio)| ratio.is_finite());
        Self {
            label: label.to_owned(),
            of: of.collect::<BTreeMap<_, _>>(),
        }
    }
}

impl Finding {
    pub(crate) fn new(paper: &str, here: String, agrees: Agreement) -> Self {
        Self {
            paper: paper.to_owned(),
            here,
            agrees,
        }
    }
}

impl Agreement {
    /// Yes if all hold, no if none does; nothing to compare if there is none.
    pub(crate) fn of(held: impl IntoIterator<Item = bool>) -> Self {
        let held: Vec<bool> = held.into_iter().collect();
        match held.iter().filter(|held| **held).count() {
            _ if held.is_empty() => Self::NotComparable,
            0 => Self::No,
            n if n == held.len() => Self::Yes,
            _ => Self::Partly,
        }
    }
}

/// Servers and what was found of each, in one sentence: `sipolis 81 %, Kamailio 75 %`.
pub(crate) fn each(of: impl IntoIterator<Item = (Who, String)>) -> String {
    let each = of
        .into_iter()
        .map(|(who, text)| format!("{} {text}", who.name()));
    each.collect::<Vec<_>>().join(", ")
}

/// A number with so many decimals; a dash for what was not measured.
pub(crate) fn decimals(value: f64, count: usize) -> String {
    if value.is_finite() {
        format!("{value:.count$}")
    } else {
        "-".to_owned()
    }
}

/// A rate as people read it: three digits count.
pub(crate) fn rounded(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 2 - value.log10().floor() as i32;
    let scale = 10f64.powi(digits.abs());
    // Divided where it is a fraction: the quotient is the number that people write.
    if digits > 0 {
        (value * scale).round() / scale
    } else {
        (value / scale).round() * scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_of_all_of_some_or_of_none() {
        assert_eq!(Agreement::of([true, true]), Agreement::Yes);
        assert_eq!(Agreement::of([true, false]), Agreement::Partly);
        assert_eq!(Agreement::of([false]), Agreement::No);
        assert_eq!(Agreement::of([]), Agreement::NotComparable);
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        assert_eq!(decimals(1.25, 1), "1.2");
        assert_eq!(decimals(f64::NAN, 1), "-");
    }

    #[test]
    fn three_digits_of_a_rate_count() {
        let texts = [123_456.0, 12.66, 0.012_345, 0.0].map(|value| rounded(value).to_string());
        assert_eq!(texts, ["123000", "12.7", "0.0123", "0"]);
    }
}
