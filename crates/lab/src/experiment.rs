//! What an experiment is.

use std::io;

use crate::{lab::Lab, record::Measured};

/// One experiment, by name.
#[derive(Debug)]
pub(crate) struct Experiment {
    /// As the command line has it.
    pub(crate) name: &'static str,
    /// As the report heads it.
    pub(crate) title: &'static str,
    /// What the paper found, and where: its figures.
    pub(crate) paper: &'static str,
    /// How it is repeated here, in a sentence or two.
    pub(crate) how: &'static str,
    pub(crate) run: fn(&mut Lab) -> Result<Measured, Stop>,
}

/// Why an experiment has no result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It can't be done on this machine or not yet; the text says which and what would change it.
    Skip(String),
    /// It went wrong.
    Fail(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Fail(error.to_string())
    }
}
