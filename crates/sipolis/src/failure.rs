use std::fmt::Display;
use std::process::ExitCode;

/// Why a command did not do what it was asked, in words that say what to do next.
#[derive(Debug)]
pub(crate) struct Failure(Option<String>);

/// What a command comes to.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    /// With an explanation.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(Some(text.into()))
    }

    /// What was being done when something below it failed.
    pub(crate) fn during(what: impl Display, error: impl Display) -> Self {
        Self(Some(format!("{what}: {error}")))
    }

    /// The command has printed all that there is to say; only the exit status is left.
    pub(crate) const fn silent() -> Self {
        Self(None)
    }

    /// Prints it and gives the exit status.
    pub(crate) fn report(self) -> ExitCode {
        match self.0.as_deref() {
            // The reader of our output has gone, `sipolis user list | head`.
            Some(text) if text == BROKEN_PIPE => return ExitCode::SUCCESS,
            Some(text) => eprintln!("sipolis: {text}"),
            None => {}
        }
        ExitCode::FAILURE
    }
}

const BROKEN_PIPE: &str = "broken pipe";

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(BROKEN_PIPE),
            _ => Self::new(error.to_string()),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or_default())
    }
}
