use location::{Flow, Transport};
use sip_core::{Event, Mono};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Lines for the operator, written by a thread of its own. Whoever logs never waits: what does not fit the channel is counted and lost.
#[derive(Clone)]
pub struct Log {
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
}

/// Lines that may wait for the writer.
const LINES_MAX: usize = 1024;

impl Log {
    /// To standard error.
    #[must_use]
    pub fn stderr() -> Self {
        Self::to(std::io::stderr())
    }

    /// To anywhere. The thread ends with the last clone of this.
    #[must_use]
    pub fn to(out: impl Write + Send + 'static) -> Self {
        let (lines, receiver) = sync_channel(LINES_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let lost_here = Arc::clone(&lost);
        // Without a thread nothing is written: the server goes on.
        let _ = std::thread::Builder::new()
            .name(String::from("log"))
            .spawn(move || write_lines(&receiver, &lost_here, out));
        Self { lines, lost }
    }

    /// Writes a line, given without its end.
    pub fn line(&self, line: String) {
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_lines(lines: &Receiver<String>, lost: &AtomicU64, mut out: impl Write) {
    while let Ok(line) = lines.recv() {
        // An error here has nowhere to be told.
        let _ = writeln!(out, "{line}");
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ = writeln!(out, "{lost} more lines were lost: too many at once");
        }
    }
}

/// A worker's voice: so many lines of a kind a second, and then how many more there were.
pub(crate) struct Voice {
    log: Log,
    kinds: [Kind; KINDS],
    /// Lines not written, since the start.
    pub(crate) suppressed: u64,
}

#[derive(Clone, Copy, Default)]
struct Kind {
    second: u64,
    count: u32,
    suppressed: u64,
}

const KINDS: usize = 5;
const LINES_PER_SECOND: u32 = 5;
/// Bytes of a peer's own words that a line holds.
const QUOTED_BYTES_MAX: usize = 64;

impl Voice {
    pub(crate) fn new(log: Log) -> Self {
        Self {
            log,
            kinds: [Kind::default(); KINDS],
            suppressed: 0,
        }
    }

    pub(crate) fn event(&mut self, now: Mono, event: &Event<'_>) {
        match *event {
            Event::Malformed { flow, why, status } => self.say(0, now, || {
                let done = match status {
                    0 => String::from("dropped"),
                    status => format!("answered {status}"),
                };
                format!("malformed message from {}: {why}; {done}", peer(flow))
            }),
            Event::AuthFailed { flow, username } => self.say(1, now, || {
                format!(
                    "wrong credentials from {} for \"{}\"",
                    peer(flow),
                    quoted(username)
                )
            }),
            Event::RelayDenied { flow } => self.say(2, now, || {
                format!("refused to relay for a stranger at {}", peer(flow))
            }),
            Event::TableFull { table } => self.say(3, now, || {
                format!("the table of {table} is full; new ones are refused")
            }),
            _ => {}
        }
    }

    /// A connection that a peer made us end.
    pub(crate) fn expelled(&mut self, now: Mono, closed: &net::Closed) {
        let why = match closed.why {
            net::Why::FirstMessageLate => "no message came in time",
            net::Why::HalfMessageLate => "a message was begun and not ended in time",
            net::Why::PushedBack => "it did not take what was sent to it",
            net::Why::HeldTooMuch => "half-received messages take too much memory",
            _ => return,
        };
        self.say(4, now, || {
            format!("closed the connection of tcp {}: {why}", closed.peer)
        });
    }

    fn say(&mut self, kind: usize, now: Mono, line: impl FnOnce() -> String) {
        let kind = &mut self.kinds[kind];
        let second = now.0 / 1_000_000;
        if kind.second != second {
            *kind = Kind {
                second,
                count: 0,
                suppressed: kind.suppressed,
            };
        }
        if kind.count >= LINES_PER_SECOND {
            kind.suppressed += 1;
            self.suppressed += 1;
            return;
        }
        kind.count += 1;
        let mut line = line();
        if kind.suppressed > 0 {
            line.push_str(&format!(" ({} more like it before)", kind.suppressed));
            kind.suppressed = 0;
        }
        self.log.line(line);
    }
}

fn peer(flow: &Flow) -> String {
    let transport = match flow.transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Tls => "tls",
        Transport::Ws => "ws",
        Transport::Wss => "wss",
        Transport::Sctp => "sctp",
    };
    format!("{transport} {}", flow.peer)
}

/// A peer's own words, cut, and without what could forge lines or drive a terminal.
fn quoted(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(QUOTED_BYTES_MAX)];
    cut.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    struct Lines(Sender<Vec<u8>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.send(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_flood_of_events_makes_a_few_lines_and_a_count() {
        let (sender, written) = channel();
        let mut voice = Voice::new(Log::to(Lines(sender)));
        for _ in 0..100 {
            voice.event(Mono(5_000_000), &Event::TableFull { table: "x" });
        }
        voice.event(Mono(6_000_000), &Event::TableFull { table: "x" });
        assert_eq!(voice.suppressed, 95);
        drop(voice);
        let all: Vec<u8> = written.iter().flatten().collect();
        let text = String::from_utf8(all).expect("text");
        assert_eq!(text.lines().count(), 6);
        assert!(text.ends_with("(95 more like it before)\n"), "{text}");
    }

    #[test]
    fn a_name_with_control_characters_can_not_forge_a_line() {
        assert_eq!(quoted(b"a\r\n\x1b[2Jb"), "a\\r\\n\\x1b[2Jb");
    }
}
