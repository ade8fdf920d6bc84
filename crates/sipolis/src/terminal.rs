use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Colours, on a terminal whose owner has not said `NO_COLOR`; nothing otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For standard output.
    pub(crate) fn stdout() -> Self {
        Self {
            on: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    fn with(self, code: &str, text: impl Display) -> String {
        match self.on {
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
    pub(crate) fn cyan(self, text: impl Display) -> String {
        self.with("36", text)
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

/// `1 user`, `2 users`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        grouped(number),
        if number == 1 { one } else { many }
    )
}

/// Seconds as a person says them: `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`.
pub(crate) fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{minutes} min"),
        7200..=172_799 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// Bytes as a person says them.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{count} B"),
        _ if value < 10.0 => format!("{value:.1} {}", UNITS[unit]),
        _ => format!("{value:.0} {}", UNITS[unit]),
    }
}

/// What a phone has sent, without what could drive the terminal of who reads it.
pub(crate) fn safe(text: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(visible).collect()
}

/// Prints rows in columns as wide as they need to be, below their heads; no heads without `paint`.
pub(crate) fn table(
    out: &mut impl Write,
    paint: Option<Paint>,
    head: &[&str],
    rows: &[Vec<String>],
) -> io::Result<()> {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String]| {
        let mut line = String::new();
        for (index, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            if index > 0 {
                line.push_str("  ");
            }
            line.push_str(cell);
            if index + 1 < cells.len() {
                line.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
            }
        }
        line
    };
    if let Some(paint) = paint {
        let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
        writeln!(out, "{}", paint.dim(line(&head)))?;
    }
    for row in rows {
        writeln!(out, "{}", line(row))?;
    }
    Ok(())
}

/// A line that counts up on the terminal; silent elsewhere.
pub(crate) struct Progress {
    on: bool,
    what: &'static str,
    last: std::time::Instant,
    started: std::time::Instant,
}

impl Progress {
    /// `what` is counted: `users`.
    pub(crate) fn new(what: &'static str) -> Self {
        let now = std::time::Instant::now();
        Self {
            on: io::stderr().is_terminal(),
            what,
            last: now,
            started: now,
        }
    }

    /// So many are done.
    pub(crate) fn show(&mut self, done: u64) {
        if self.on && self.last.elapsed().as_millis() > 100 {
            self.last = std::time::Instant::now();
            let rate = done as f64 / self.started.elapsed().as_secs_f64();
            eprint!(
                "\r  {} {}, {} a second\x1b[K",
                grouped(done),
                self.what,
                grouped(rate as u64)
            );
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        if self.on {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "user", "users"), "1 user");
        assert_eq!(counted(1000, "user", "users"), "1,000 users");
        for (seconds, text) in [
            (59, "59 s"),
            (3600, "60 min"),
            (12_000, "3 h 20 min"),
            (200_000, "2 d 7 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
        for (count, text) in [(512, "512 B"), (1536, "1.5 KiB"), (300 << 20, "300 MiB")] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn what_a_phone_sends_does_not_drive_the_terminal() {
        assert_eq!(safe("phone\u{1b}[2J\n é"), "phone\u{fffd}[2J\u{fffd} é");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut out = Vec::new();
        let rows = [
            vec![String::from("alice@example.com"), String::from("1")],
            vec![String::from("bob"), String::from("20")],
        ];
        table(&mut out, Some(Paint { on: false }), &["user", "n"], &rows).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "user               n\nalice@example.com  1\nbob                20\n"
        );
    }
}
