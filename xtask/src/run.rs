//! Child processes: shown, timed and, where asked, read along.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// A command line that can be printed for the reader to repeat.
pub(crate) struct Run {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

/// What a command printed, and whether it succeeded.
pub(crate) struct Outcome {
    pub(crate) ok: bool,
    /// Standard output and standard error, line by line.
    pub(crate) lines: Vec<String>,
}

impl Run {
    /// The words of `line` are the program and its arguments; none may hold a blank.
    pub(crate) fn new(line: &str) -> Self {
        let mut words = line.split_whitespace().map(String::from);
        Self {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            env: Vec::new(),
        }
    }

    /// A program by its path, without arguments.
    pub(crate) fn at(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
        }
    }

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<str>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the child's environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs to the end with our own terminal.
    ///
    /// # Errors
    /// Names the command that failed.
    pub(crate) fn run(&self) -> Result<(), String> {
        let status = self
            .command()
            .status()
            .map_err(|error| format!("{}: {error}", self.program))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("failed: {self}"))
        }
    }

    /// Runs to the end and shows what it prints, keeping the lines.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(crate) fn watch(&self) -> Result<Outcome, String> {
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program))?;
        let lines = Mutex::new(Vec::new());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            scope.spawn(|| stdout.map(|pipe| copy(pipe, std::io::stdout(), &lines)));
            scope.spawn(|| stderr.map(|pipe| copy(pipe, std::io::stderr(), &lines)));
        });
        let status = child.wait().map_err(|error| error.to_string())?;
        Ok(Outcome {
            ok: status.success(),
            lines: lines.into_inner().unwrap_or_default(),
        })
    }

    /// Runs to the end and gives its standard output.
    ///
    /// # Errors
    /// Names the command that failed, with what it said on standard error.
    pub(crate) fn read(&self) -> Result<String, String> {
        let output = self
            .command()
            .output()
            .map_err(|error| format!("{}: {error}", self.program))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("failed: {self}\n{said}"))
        }
    }

    /// Runs to the end, well or not, and shows nothing.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(crate) fn capture(&self) -> Result<Outcome, String> {
        let output = self.command().output();
        let output = output.map_err(|error| format!("{}: {error}", self.program))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        Ok(Outcome {
            ok: output.status.success(),
            lines: said.lines().map(String::from).collect(),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().cloned())
            .current_dir(root());
        command
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}='{value}' ")?;
        }
        write!(f, "{}", self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg}"))
    }
}

/// The repository's root: where every command runs.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// Where cargo puts what it builds.
///
/// # Errors
/// When cargo does not say.
pub(crate) fn target_directory() -> Result<PathBuf, String> {
    let metadata = Run::new("cargo metadata --format-version 1 --no-deps").read()?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let path = metadata["target_directory"].as_str().map(PathBuf::from);
    path.ok_or_else(|| String::from("cargo metadata names no target directory"))
}

fn copy(pipe: impl Read, mut to: impl Write, lines: &Mutex<Vec<String>>) {
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        // A closed terminal is no reason to stop reading: the child would block.
        let _ = writeln!(to, "{line}");
        if let Ok(mut lines) = lines.lock() {
            lines.push(line);
        }
    }
}
