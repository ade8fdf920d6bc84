use crate::terminal::Paint;
use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Columns between two bars.
const WIDTH: usize = 31;

/// A ladder diagram that grows as messages pass: `alice | sipolis | bob`.
pub(crate) struct Ladder {
    paint: Paint,
    times: Mutex<Times>,
}

/// When times count from, and when the last message was.
struct Times {
    started: Instant,
    last: Instant,
}

/// After such a pause something new begins.
const PAUSE: Duration = Duration::from_secs(3);

/// Whose message it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Which way it goes, for the phone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Sent,
    Received,
}

impl Ladder {
    pub(crate) fn new(paint: Paint) -> Self {
        Self {
            paint,
            times: Mutex::new(Times::begin()),
        }
    }

    /// Starts the clock and prints the heads of the columns.
    pub(crate) fn begin(&self, title: &str, left: &str, right: &str) {
        *self.times.lock().expect("no holder panics") = Times::begin();
        let _ = writeln!(
            io::stdout(),
            "\n{}\n\n{}",
            self.paint.bold(title),
            self.paint.bold(heads(left, right))
        );
    }

    /// One message of one phone.
    pub(crate) fn message(&self, side: Side, way: Way, label: &str) {
        let at = self.times.lock().expect("no holder panics").next();
        if at.is_zero() {
            let _ = writeln!(io::stdout());
        }
        let time = format!("{:>8.1} ms", at.as_secs_f64() * 1000.0);
        let arrow = self.colour(label, &arrow(side, way, label));
        let empty = " ".repeat(WIDTH);
        let (left, right) = match side {
            Side::Left => (arrow.as_str(), empty.as_str()),
            Side::Right => (empty.as_str(), arrow.as_str()),
        };
        let _ = writeln!(io::stdout(), "{} │{left}│{right}│", self.paint.dim(time));
    }

    /// Requests stand out, provisional responses step back, final ones show how it went.
    fn colour(&self, label: &str, text: &str) -> String {
        match label.as_bytes().first() {
            Some(b'1') => self.paint.dim(text),
            Some(b'2') => self.paint.good(text),
            Some(b'3'..=b'4') => self.paint.warn(text),
            Some(b'5'..=b'9') => self.paint.bad(text),
            _ => self.paint.cyan(text),
        }
    }
}

impl Times {
    fn begin() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            last: now,
        }
    }

    /// The time of a message that passes now; zero when it begins something new.
    fn next(&mut self) -> Duration {
        let now = Instant::now();
        if now.duration_since(self.last) > PAUSE {
            self.started = now;
        }
        self.last = now;
        now.duration_since(self.started)
    }
}

/// The names over their bars.
fn heads(left: &str, right: &str) -> String {
    let middle = "sipolis";
    let before = WIDTH + 2 - left.len() - middle.len() / 2;
    let after = WIDTH + 1 - middle.len() / 2 - right.len();
    format!("{:12}{left}{:before$}{middle}{:after$}{right}", "", "", "")
}

/// `── REGISTER ──────────►`
fn arrow(side: Side, way: Way, label: &str) -> String {
    let label = shortened(label);
    let rest = WIDTH - 5 - label.chars().count();
    let line = |n| "─".repeat(n);
    // The left phone sends to the right, the right one to the left.
    match (side == Side::Left) == (way == Way::Sent) {
        true => format!("── {label} {}►", line(rest)),
        false => format!("◄{} {label} ──", line(rest)),
    }
}

/// What fits beside an arrow.
fn shortened(label: &str) -> String {
    let max = WIDTH - 7;
    match label {
        "407 Proxy Authentication Required" => String::from("407 Proxy Auth. Required"),
        _ if label.chars().count() > max => label.chars().take(max - 1).chain(['…']).collect(),
        _ => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_where_the_message_goes_and_are_of_one_width() {
        for (side, way, right) in [
            (Side::Left, Way::Sent, true),
            (Side::Left, Way::Received, false),
            (Side::Right, Way::Sent, false),
            (Side::Right, Way::Received, true),
        ] {
            for label in ["BYE", "REGISTER with credentials", "x".repeat(99).as_str()] {
                let arrow = arrow(side, way, label);
                assert_eq!(arrow.ends_with('►'), right, "{arrow}");
                assert_eq!(arrow.starts_with('◄'), !right, "{arrow}");
                assert_eq!(arrow.chars().count(), WIDTH, "{arrow}");
            }
        }
    }
}
