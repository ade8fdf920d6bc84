use super::Arguments;
use crate::commands::place::read_config;
use crate::failure::Result;
use config::Config;
use std::path::Path;

/// Where the configuration comes from: the file, and the command line, which wins. Read at the start and on each reload.
#[derive(Clone)]
pub(crate) struct Source {
    arguments: Arguments,
}

impl Source {
    pub(crate) const fn new(arguments: Arguments) -> Self {
        Self { arguments }
    }

    /// The whole configuration, or what is wrong with it.
    pub(crate) fn read(&self) -> Result<Config> {
        let mut config = read_config(self.arguments.config.as_deref())?;
        self.apply(&mut config);
        Ok(config)
    }

    /// The file, when there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.arguments.config.as_deref()
    }

    fn apply(&self, config: &mut Config) {
        let from = &self.arguments;
        let to = &mut config.server;
        if let Some(data) = &from.data {
            to.data.clone_from(data);
        }
        if !from.listen.is_empty() {
            to.listen.clone_from(&from.listen);
        }
        if !from.domain.is_empty() {
            to.domains.clone_from(&from.domain);
        }
        if let Some(workers) = from.workers {
            to.workers = workers;
        }
        if from.advertise.is_some() {
            to.advertise.clone_from(&from.advertise);
        }
        if let Some(auth) = from.auth {
            to.auth = auth;
        }
        to.stage_times |= from.stage_times;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins_over_the_file_and_leaves_the_rest() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "workers = 3\nauth = \"off\"\n[timers]\nt1_ms = 600\n",
        )
        .unwrap();
        let source = Source::new(Arguments {
            config: Some(file.path().to_owned()),
            workers: Some(1),
            stage_times: true,
            listen: vec!["udp://127.0.0.1:5070".parse().unwrap()],
            ..Arguments::default()
        });
        let config = source.read().unwrap();
        assert_eq!(config.server.workers, 1);
        assert!(config.server.stage_times);
        assert_eq!(config.server.listen.len(), 1);
        assert!(!config.server.auth);
        assert_eq!(config.timers.t1_ms, 600);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let source = Source::new(Arguments {
            config: Some("/nonexistent/sipolis.toml".into()),
            ..Arguments::default()
        });
        let failure = source.read().unwrap_err().to_string();
        assert!(failure.contains("/nonexistent/sipolis.toml"), "{failure}");
    }
}
