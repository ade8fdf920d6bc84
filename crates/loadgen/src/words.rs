//! Figures as a person reads them.

use std::{env, fmt::Display, io::IsTerminal};

/// Microseconds in the unit that fits.
pub(crate) fn time(us: u64) -> String {
    match us {
        0..1000 => format!("{us} us"),
        1000..10_000 => format!("{:.2} ms", us as f64 / 1e3),
        10_000..100_000 => format!("{:.1} ms", us as f64 / 1e3),
        100_000..1_000_000 => format!("{:.0} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Operations a second: whole ones when there are many.
pub(crate) fn rate(rate: f64) -> String {
    match rate {
        0.0 => String::from("0/s"),
        ..9.95 => format!("{rate:.2}/s"),
        ..99.5 => format!("{rate:.1}/s"),
        _ => format!("{}/s", grouped(rate.round() as u64)),
    }
}

/// A share of a whole. It is 100 % only when it is all, and 0 % only when it is nothing.
pub(crate) fn share(part: u64, whole: u64) -> String {
    match (part, whole) {
        (0, _) => String::from("0 %"),
        (part, whole) if part == whole => String::from("100 %"),
        (part, whole) => {
            let percent = 100.0 * part as f64 / whole as f64;
            format!("{:.2} %", percent.clamp(0.01, 99.99))
        }
    }
}

/// `1 call`, `2 calls`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        grouped(number),
        if number == 1 { one } else { many }
    )
}

/// Colours, on a terminal whose owner has not said `NO_COLOR`; nothing otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    /// For that output.
    pub(crate) fn on(output: &impl IsTerminal) -> Self {
        Self(output.is_terminal() && wanted())
    }

    fn with(self, code: &str, text: impl Display) -> String {
        match self.0 {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }

    pub(crate) fn bold(self, text: impl Display) -> String {
        self.with("1", text)
    }
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.with("2", text)
    }
    pub(crate) fn good(self, text: impl Display) -> String {
        self.with("32", text)
    }
    pub(crate) fn warn(self, text: impl Display) -> String {
        self.with("33", text)
    }
    pub(crate) fn bad(self, text: impl Display) -> String {
        self.with("31", text)
    }
}

/// Whether the owner of the terminal wants colours.
pub(crate) fn wanted() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_in_the_unit_that_fits() {
        let times = [7, 1500, 15_000, 150_000, 1_500_000].map(time);
        assert_eq!(times, ["7 us", "1.50 ms", "15.0 ms", "150 ms", "1.50 s"]);
        let rates = [0.0, 0.5, 12.34, 1234.5].map(rate);
        assert_eq!(rates, ["0/s", "0.50/s", "12.3/s", "1,235/s"]);
        assert_eq!(counted(1, "call", "calls"), "1 call");
        assert_eq!(counted(2000, "call", "calls"), "2,000 calls");
    }

    #[test]
    fn a_share_is_all_or_nothing_only_when_it_is() {
        assert_eq!(share(1_000_000, 1_000_000), "100 %");
        assert_eq!(share(999_999, 1_000_000), "99.99 %");
        assert_eq!(share(1, 1_000_000), "0.01 %");
        assert_eq!(share(0, 0), "0 %");
    }

    #[test]
    fn without_colours_text_is_as_it_is() {
        assert_eq!(Paint(false).bad("x"), "x");
        assert_eq!(Paint(true).bold("x"), "\x1b[1mx\x1b[0m");
    }
}
