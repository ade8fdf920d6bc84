use crate::define::{Section, dotted};
use crate::nearest::nearest;
use crate::{Config, Problem, Problems, SECTIONS};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

impl Config {
    /// Reads a settings file; what it does not mention has its default. `file` is its name, for messages.
    ///
    /// # Errors
    /// Every fault that was found, each with its line.
    pub fn parse(file: &str, text: &str) -> Result<Self, Problems> {
        let mut reader = Reader {
            file,
            text,
            config: Self::default(),
            seen: BTreeMap::new(),
            problems: Vec::new(),
        };
        match DeTable::parse(text) {
            Ok(table) => reader.root(table.get_ref()),
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                reader.problem(at, error.message().to_owned());
            }
        }
        if reader.problems.is_empty() {
            for (key, message) in reader.config.contradictions() {
                let at = reader.seen.get(key).copied().unwrap_or(usize::MAX);
                reader.problem(at, message);
            }
        }
        if reader.problems.is_empty() {
            return Ok(reader.config);
        }
        reader.problems.sort_by_key(|problem| problem.line);
        Err(Problems(reader.problems))
    }

    /// Pairs of keys that do not fit together: the key to change, and what is wrong.
    fn contradictions(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut at_most = |key, value: u64, other: &str, other_value: u64| {
            if value > other_value {
                found.push((
                    key,
                    format!("`{key}` is {value}, more than `{other}`, which is {other_value}"),
                ));
            }
        };
        let r = &self.registrar;
        let (min, default, max) = (r.expires_min_s, r.expires_default_s, r.expires_max_s);
        at_most(
            "registrar.expires_min_s",
            min.into(),
            "registrar.expires_default_s",
            default.into(),
        );
        at_most(
            "registrar.expires_default_s",
            default.into(),
            "registrar.expires_max_s",
            max.into(),
        );
        at_most(
            "timers.t1_ms",
            self.timers.t1_ms.into(),
            "timers.t2_ms",
            self.timers.t2_ms.into(),
        );
        let l = &self.limits;
        at_most(
            "limits.header_bytes_max",
            l.header_bytes_max.into(),
            "limits.head_bytes_max",
            l.head_bytes_max.into(),
        );
        at_most(
            "limits.head_bytes_max",
            l.head_bytes_max.into(),
            "limits.message_bytes_max",
            l.message_bytes_max.into(),
        );
        at_most(
            "limits.message_bytes_max",
            l.message_bytes_max.into(),
            "connections.pushed_back_bytes_max",
            self.connections.pushed_back_bytes_max.into(),
        );
        if self.server.listen.is_empty() {
            let text = "`listen` is empty: leave it out to listen on UDP and TCP 5060 everywhere";
            found.push(("listen", text.to_owned()));
        }
        found
    }
}

/// A file being read.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    config: Config,
    /// Where each key stands, for faults that show up later.
    seen: BTreeMap<String, usize>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    /// Notes a fault at a byte of the file; beyond its end: about no line.
    fn problem(&mut self, at: usize, message: String) {
        let line = match self.text.as_bytes().get(..at) {
            Some(before) => 1 + before.iter().filter(|&&b| b == b'\n').count(),
            None => 0,
        };
        self.problems.push(Problem {
            file: self.file.to_owned(),
            line,
            message,
        });
    }

    fn root(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let section = SECTIONS
                .iter()
                .find(|s| !s.name.is_empty() && s.name == name);
            match (section, value.get_ref()) {
                (Some(section), DeValue::Table(inner)) => self.section(section, inner),
                (Some(_), _) => self.problem(
                    key.span().start,
                    format!("`{name}` is a table: write `[{name}]` and its keys below"),
                ),
                (None, DeValue::Table(_)) => self.unknown_section(name, key.span().start),
                (None, _) => self.key(&SECTIONS[0], key.span().start, name, value),
            }
        }
    }

    fn section(&mut self, section: &Section, table: &DeTable<'_>) {
        for (key, value) in table {
            self.key(section, key.span().start, key.get_ref(), value);
        }
    }

    fn key(&mut self, section: &Section, at: usize, name: &str, value: &Spanned<DeValue<'_>>) {
        let Some(key) = section.keys.iter().find(|key| key.name == name) else {
            return self.unknown_key(section, name, at);
        };
        match self.config.set(section.name, key.name, value.get_ref()) {
            Ok(()) => {
                self.seen.insert(dotted(section.name, key.name), at);
            }
            Err(message) => self.problem(
                value.span().start,
                format!("`{}`: {message}", dotted(section.name, key.name)),
            ),
        }
    }

    fn unknown_key(&mut self, section: &Section, name: &str, at: usize) {
        let full = dotted(section.name, name);
        let elsewhere = SECTIONS
            .iter()
            .find(|other| other.keys.iter().any(|key| key.name == name));
        let near = nearest(name, section.keys.iter().map(|key| key.name));
        let hint = match (elsewhere, near) {
            (Some(other), _) if other.name.is_empty() => {
                format!(
                    "it stands before the first table, not in [{}]",
                    section.name
                )
            }
            (Some(other), _) => format!("it belongs in [{}]", other.name),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => {
                let all = SECTIONS
                    .iter()
                    .flat_map(|s| s.keys.iter().map(move |k| (s, k)));
                match nearest(name, all.clone().map(|(_, key)| key.name)) {
                    Some(near) => {
                        let place = all.clone().find(|(_, key)| key.name == near);
                        let place = place.map_or("", |(section, _)| section.name);
                        format!("did you mean `{}`?", dotted(place, near))
                    }
                    None => format!("there are: {}", names(section.keys.iter().map(|k| k.name))),
                }
            }
        };
        self.problem(at, format!("unknown key `{full}`: {hint}"));
    }

    fn unknown_section(&mut self, name: &str, at: usize) {
        let sections = || SECTIONS.iter().map(|s| s.name).filter(|n| !n.is_empty());
        let hint = match nearest(name, sections()) {
            Some(near) => format!("did you mean [{near}]?"),
            None => format!("there are: {}", names(sections())),
        };
        self.problem(at, format!("unknown table [{name}]: {hint}"));
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        Config::parse("sipolis.toml", text)
            .expect_err("the file has a fault")
            .to_string()
    }

    #[test]
    fn an_empty_file_is_the_defaults() {
        assert_eq!(Config::parse("f", "").unwrap(), Config::default());
    }

    #[test]
    fn every_key_of_a_full_file_is_taken() {
        let text = r#"
listen = ["udp://127.0.0.1:5070", "tcp://[::1]:5070"]
data = "/var/lib/sipolis"
domains = ["Example.com", "example.net"]
advertise = "sip.example.com"
workers = 2
auth = "off"
[registrar]
expires_min_s = 30
[proxy]
timer_c_s = 200
[dns]
nameservers = ["192.0.2.53", "[2001:db8::53]:5353"]
"#;
        let config = Config::parse("f", text).unwrap();
        assert_eq!(config.server.listen.len(), 2);
        assert_eq!(config.server.domains[0].0, "example.com");
        assert_eq!(config.server.workers, 2);
        assert!(!config.server.auth);
        assert_eq!(config.registrar.expires_min_s, 30);
        assert_eq!(config.proxy.timer_c_s, 200);
        assert_eq!(config.dns.nameservers[0].0.port(), 53);
    }

    #[test]
    fn a_fault_names_file_line_key_and_what_is_right() {
        for (text, expected) in [
            (
                "workers = 1\nlisten_on = []",
                "sipolis.toml:2: unknown key `listen_on`: did you mean `listen`?",
            ),
            (
                "[registrar]\n\nexpire_min_s = 60",
                "sipolis.toml:3: unknown key `registrar.expire_min_s`: did you mean `expires_min_s`?",
            ),
            (
                "[registrar]\ntimer_c_s = 200",
                "sipolis.toml:2: unknown key `registrar.timer_c_s`: it belongs in [proxy]",
            ),
            (
                "[proxy]\nworkers = 2",
                "sipolis.toml:2: unknown key `proxy.workers`: it stands before the first table, not in [proxy]",
            ),
            (
                "t1_sm = 500",
                "sipolis.toml:1: unknown key `t1_sm`: did you mean `timers.t1_ms`?",
            ),
            (
                "[registar]\nexpires_min_s = 60",
                "sipolis.toml:1: unknown table [registar]: did you mean [registrar]?",
            ),
            (
                "registrar = 5",
                "sipolis.toml:1: `registrar` is a table: write `[registrar]` and its keys below",
            ),
            (
                "workers = \"two\"",
                "sipolis.toml:1: `workers`: expected a number from 0 to 128, found the text \"two\"",
            ),
            (
                "workers = 129",
                "sipolis.toml:1: `workers`: expected a number from 0 to 128, found 129",
            ),
            (
                "workers = -1",
                "sipolis.toml:1: `workers`: expected a number from 0 to 128, found -1",
            ),
            (
                "auth = \"no\"",
                "sipolis.toml:1: `auth`: expected \"on\" or \"off\", found the text \"no\"",
            ),
            (
                "domains = \"example.com\"",
                "sipolis.toml:1: `domains`: expected a list of host names, found the text \"example.com\"",
            ),
            (
                "domains = [\"sip:example.com\"]",
                "sipolis.toml:1: `domains`: `sip:example.com` is not a host; \
                 write a name like `example.com`, without scheme, user or port",
            ),
            (
                "[proxy]\ntimer_c_s = 60",
                "sipolis.toml:2: `proxy.timer_c_s`: expected a number from 181 to 3600, found 60",
            ),
            (
                "[registrar]\nexpires_max_s = 1800",
                "sipolis.toml: `registrar.expires_default_s` is 3600, more than `registrar.expires_max_s`, which is 1800",
            ),
            (
                "[registrar]\nexpires_max_s = 1800\nexpires_default_s = 2000",
                "sipolis.toml:3: `registrar.expires_default_s` is 2000, more than `registrar.expires_max_s`, which is 1800",
            ),
            (
                "listen = []",
                "sipolis.toml:1: `listen` is empty: leave it out to listen on UDP and TCP 5060 everywhere",
            ),
        ] {
            assert_eq!(problems(text), expected, "for {text:?}");
        }
    }

    #[test]
    fn broken_toml_names_the_line() {
        for (text, line) in [("a = 1\nb = = 2", 2), ("workers = 1\n\nworkers = 2", 3)] {
            let text = problems(text);
            assert!(
                text.starts_with(&format!("sipolis.toml:{line}: ")),
                "{text}"
            );
        }
    }

    #[test]
    fn all_faults_are_named_at_once_in_the_order_of_the_lines() {
        let text = problems("[timers]\nt9 = 1\n[limits]\nvia_count_max = 1000\n");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("sipolis.toml:2: "), "{text}");
        assert!(lines[1].starts_with("sipolis.toml:4: "), "{text}");
    }

    #[test]
    fn a_reload_takes_what_it_can_and_names_the_rest() {
        let old = Config::default();
        let new = Config::parse("f", "workers = 3\ndomains = [\"a.example\"]").unwrap();
        let (merged, kept) = old.reloaded(&new);
        assert_eq!(kept, ["workers"]);
        assert_eq!(merged.server.workers, old.server.workers);
        assert_eq!(merged.server.domains[0].0, "a.example");
    }

    #[test]
    fn a_file_with_every_default_written_out_is_read_back_as_the_defaults() {
        let mut text = String::new();
        let mut last = "";
        Config::default().each(|section, key, value| {
            if section != last {
                text += &format!("[{section}]\n");
                last = section;
            }
            if value != "not set" {
                text += &format!("{key} = {value}\n");
            }
        });
        assert_eq!(Config::parse("f", &text).unwrap(), Config::default());
    }
}
