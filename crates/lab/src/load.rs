//! The load: `sipolis load` as a child process on its own core.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::child::{self, LOAD_CORE, on_core};

/// The words of one `sipolis load`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Load {
    scenario: String,
    transport: String,
    words: Vec<String>,
    /// How long operations begin, where that is bounded by time: the server's share of its core is
    /// taken then, and not when the last transaction has had its time.
    seconds: Option<f64>,
    /// From the begin to the end, and as long for the preparation.
    limit: Duration,
}

/// How long a load may take unless said otherwise.
const LIMIT: Duration = Duration::from_secs(90);

impl Load {
    /// A scenario over `udp` or `tcp`.
    pub(crate) fn new(scenario: &str, transport: &str) -> Self {
        Self {
            scenario: scenario.to_owned(),
            transport: transport.to_owned(),
            words: Vec::new(),
            seconds: None,
            limit: LIMIT,
        }
    }

    /// More options, as typed: `--rate 1000 --lifetime dialog`.
    pub(crate) fn with(mut self, words: &str) -> Self {
        self.words
            .extend(words.split_whitespace().map(String::from));
        self
    }

    /// Operations begin for so many seconds.
    pub(crate) fn lasting(mut self, seconds: f64) -> Self {
        self.seconds = Some(seconds);
        self.with(&format!("--duration {seconds}"))
    }

    /// It fails when it takes longer: a hang must not be waited for.
    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts it and waits until its users and connections are there.
    ///
    /// # Errors
    /// It can't be started, ends before it is ready, or takes too long; with what it said.
    pub(crate) fn prepare(&self, program: &Path, port: u16) -> Result<Prepared, String> {
        let mut command = on_core(LOAD_CORE, program);
        command
            .args(self.arguments(port))
            .args(["--json", "--no-screen", "--wait", "--stay"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut prepared = Prepared::start(&mut command).map_err(|e| e.to_string())?;
        prepared.wait_for("sipolis load: ready", self.limit)?;
        prepared.seconds = self.seconds;
        prepared.limit = self.limit;
        Ok(prepared)
    }

    /// As a person types it.
    pub(crate) fn typed(&self, port: u16) -> String {
        format!(
            "taskset -c {LOAD_CORE} sipolis {} --json",
            self.arguments(port).join(" ")
        )
    }

    fn arguments(&self, port: u16) -> Vec<String> {
        let target = format!("{}://127.0.0.1:{port}", self.transport);
        let mut arguments = vec!["load".to_owned(), self.scenario.clone(), target];
        arguments.extend(self.words.iter().cloned());
        arguments
    }
}

/// A load whose users and connections are there. Dropping it ends it.
///
/// In order: [`begin`](Self::begin), [`wait`](Self::wait) until it is done with the connections still
/// open, [`finish`](Self::finish), which closes them.
pub(crate) struct Prepared {
    child: Child,
    stdin: Option<ChildStdin>,
    said: Receiver<Said>,
    /// The first and the last lines of its standard error, for the reader of a failure.
    lines: Vec<String>,
    json: Option<String>,
    begun: Instant,
    seconds: Option<f64>,
    limit: Duration,
}

/// What comes from the child.
enum Said {
    /// A line on standard error.
    Line(String),
    /// All of standard output, at its end.
    Json(String),
}

/// Lines kept of standard error: the first, where a panic says what it is, and the last.
const FIRST_LINES: usize = 5;
const LINES_MAX: usize = 20;
/// Bytes taken of one line or of the figures; much more than either has.
const OUTPUT_MAX: u64 = 64 << 20;
/// For the figures, once it was told to end; hundreds of thousands of connections may have to be closed.
const END_LIMIT: Duration = Duration::from_secs(30);

impl Prepared {
    fn start(command: &mut std::process::Command) -> io::Result<Self> {
        let mut child = child::start(command)?;
        let (sender, said) = channel();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let lines = sender.clone();
        thread::spawn(move || stderr.map(|pipe| send_lines(pipe, &lines)));
        thread::spawn(move || {
            let mut json = String::new();
            // What is no text is no JSON either, and is found there.
            let _ = stdout.map(|pipe| pipe.take(OUTPUT_MAX).read_to_string(&mut json));
            sender.send(Said::Json(json))
        });
        Ok(Self {
            stdin: child.stdin.take(),
            child,
            said,
            lines: Vec::new(),
            json: None,
            begun: Instant::now(),
            seconds: None,
            limit: LIMIT,
        })
    }

    /// Lets it begin.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        self.begun = Instant::now();
        let stdin = self.stdin.as_mut().map(|pipe| writeln!(pipe));
        match stdin {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failure("ended before it began")),
        }
    }

    /// Waits until no more operations begin; `None` where that time isn't known before.
    pub(crate) fn wait_while_it_begins(&self) -> Option<()> {
        self.seconds.map(|seconds| self.wait_until(seconds))
    }

    /// Waits until so many seconds have passed since it began.
    pub(crate) fn wait_until(&self, seconds: f64) {
        let seconds = Duration::from_secs_f64(seconds);
        thread::sleep(seconds.saturating_sub(self.begun.elapsed()));
    }

    /// Waits until every operation has ended; the connections are still open then.
    pub(crate) fn wait(&mut self) -> Result<(), String> {
        self.wait_for("sipolis load: done", self.limit)
    }

    /// Lets it close its connections, and takes its figures; histograms are left out.
    pub(crate) fn finish(mut self) -> Result<Value, String> {
        self.stdin = None;
        let deadline = Instant::now() + END_LIMIT;
        while self.json.is_none() {
            self.listen(deadline)
                .map_err(|why| self.failure(&format!("{why} before it gave figures")))?;
        }
        child::ended_within(&mut self.child, END_LIMIT);
        let text = self.json.take().unwrap_or_default();
        let mut value = serde_json::from_str(&text)
            .map_err(|e| self.failure(&format!("gave no figures ({e})")))?;
        leave_histograms_out(&mut value);
        Ok(value)
    }

    /// Waits for a line, or for the end of a load that has given its figures.
    fn wait_for(&mut self, line: &str, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            match self.listen(deadline) {
                Ok(true) if self.lines.last().is_some_and(|l| l == line) => return Ok(()),
                Ok(_) => {}
                Err(why) => return Err(self.failure(&format!("{why} before {line:?}"))),
            }
        }
    }

    /// Takes the next thing that it says; whether that was a line on standard error.
    fn listen(&mut self, deadline: Instant) -> Result<bool, &'static str> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.said.recv_timeout(left) {
            Ok(Said::Line(line)) => {
                if self.lines.len() == LINES_MAX {
                    self.lines.remove(FIRST_LINES);
                }
                self.lines.push(line);
                Ok(true)
            }
            Ok(Said::Json(json)) => {
                self.json = Some(json);
                Ok(false)
            }
            Err(RecvTimeoutError::Timeout) => Err("took too long"),
            Err(RecvTimeoutError::Disconnected) => Err("ended"),
        }
    }

    fn failure(&self, what: &str) -> String {
        format!("sipolis load {what}; it said:\n{}", self.lines.join("\n"))
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.stdin = None;
        let pid = self.child.id();
        child::end(&mut self.child, &[pid], Duration::from_secs(2));
    }
}

fn send_lines(pipe: impl io::Read, lines: &Sender<Said>) {
    let mut pipe = BufReader::new(pipe.take(OUTPUT_MAX));
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if lines.send(Said::Line(text)).is_err() {
            return;
        }
        line.clear();
    }
}

/// They are long, and nothing here needs them.
fn leave_histograms_out(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("histogram");
            fields.values_mut().for_each(leave_histograms_out);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_histograms_out),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for the load: a shell that runs `script`.
    fn stand_in(script: &str) -> Prepared {
        let mut command = on_core(LOAD_CORE, Path::new("sh"));
        command
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Prepared::start(&mut command).unwrap()
    }

    #[test]
    fn figures_come_after_ready_begin_and_done() {
        let mut load = stand_in(
            "echo 'sipolis load: ready' >&2; read begin; echo 'sipolis load: done' >&2; read end;
             echo '{\"operations\": 3, \"parts\": [{\"latency_us\": {\"p50\": 7, \"histogram\": \"xx\"}}]}'",
        );
        load.wait_for("sipolis load: ready", LIMIT).unwrap();
        load.begin().unwrap();
        load.wait().unwrap();
        let expected = serde_json::json!({"operations": 3, "parts": [{"latency_us": {"p50": 7}}]});
        assert_eq!(load.finish().unwrap(), expected);
    }

    #[test]
    fn a_load_that_can_not_run_says_why() {
        let mut load = stand_in("echo 'error: connection refused' >&2; exit 2");
        let failure = load.wait_for("sipolis load: ready", LIMIT).unwrap_err();
        assert!(failure.contains("ended before"), "{failure}");
        assert!(failure.contains("error: connection refused"), "{failure}");
    }

    #[test]
    fn a_load_that_hangs_is_not_waited_for() {
        let mut load = stand_in("read begin");
        let failure = load.wait_for("never said", Duration::ZERO).unwrap_err();
        assert!(failure.contains("took too long"), "{failure}");
        let failure = stand_in("echo no JSON").finish().unwrap_err();
        assert!(failure.contains("gave no figures"), "{failure}");
    }

    #[test]
    fn the_command_can_be_typed() {
        let load = Load::new("register", "tcp")
            .with("--rate 1000  --users 50")
            .lasting(2.5);
        assert_eq!(
            load.typed(5060),
            "taskset -c 1 sipolis load register tcp://127.0.0.1:5060 --rate 1000 --users 50 --duration 2.5 --json"
        );
    }
}
