//! Mixes of scenarios: read from a file, or built in.
//!
//! ```toml
//! name = "evening"
//! comment = "what 10,000 phones do after work"
//!
//! [users]
//! count = 10_000
//! domain = "example.com"  # the target's host unless given
//!
//! [[part]]
//! name = "refreshes"      # the scenario's unless given
//! scenario = "register"   # or call, options, notify, message, echo
//! every = "1h"            # each user once in that time; or rate = 2.8, a second
//! poisson = true          # exponential gaps, unless false
//! users = 5_000           # the first so many; all unless given
//! digest = "answer"       # or none, reuse
//! ```
//! `register` has `expires` (a time) and `first`; `options`, `echo` and `message` have `body` (bytes); `call`
//! has the times `ring` and `talk`, and `prack`, `update`, `reinvite`, `cancel`, `busy` in percent
//! of the calls.

use std::{fs, path::Path, time::Duration};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    distribution::{Distribution, parse_us},
    nearest::nearest,
    pace::{Pace, Rate},
    plan::{CallPlan, Kind, PartPlan},
    requests::Digest,
};

/// A mix: whose users do what, how often.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    #[allow(dead_code, reason = "for the summary and the screen")]
    pub(crate) name: String,
    /// What it stands for, in one line; may be empty.
    #[allow(dead_code, reason = "for the summary and the screen")]
    pub(crate) comment: String,
    pub(crate) users: usize,
    /// Domain of the users, unless it is the target's host.
    pub(crate) domain: Option<String>,
    pub(crate) parts: Vec<PartPlan>,
}

/// The mixes that are part of the program, by name.
pub(crate) const BUILT_IN: [(&str, &str); 2] = [
    ("city", include_str!("../mixes/city.toml")),
    ("itsp", include_str!("../mixes/itsp.toml")),
];

/// Parts of a mix at most.
const PARTS_MAX: usize = 32;
/// Users of a mix at most.
const USERS_MAX: i64 = 100_000_000;
const RATE_MAX: f64 = 10_000_000.0;
const BODY_MAX: f64 = 60_000.0;

impl Mix {
    /// One of [`BUILT_IN`].
    pub(crate) fn built_in(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(n, _)| *n == name)?;
        Some(Self::parse(name, text).expect("a test reads each of them"))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It can't be read, or the first fault in it, with its line.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|e| format!("{file}: {e}"))?;
        Self::parse(&file, &text)
    }

    /// Reads text; `file` is its name, for errors.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, String> {
        Self::parse_at(text).map_err(|fault| match text.as_bytes().get(..fault.at) {
            Some(before) => {
                let line = 1 + before.iter().filter(|b| **b == b'\n').count();
                format!("{file}:{line}: {}", fault.text)
            }
            None => format!("{file}: {}", fault.text),
        })
    }

    /// All rates, and the users, times a factor.
    pub(crate) fn scaled(mut self, factor: f64) -> Self {
        let scale = |n: usize| ((n as f64 * factor).round() as usize).max(2);
        self.users = scale(self.users);
        for part in &mut self.parts {
            part.users = 0..scale(part.users.end).min(self.users);
            if let Pace::Open { rate, .. } = &mut part.pace {
                *rate = rate.times(factor);
            }
        }
        self
    }

    fn parse_at(text: &str) -> Result<Self, Fault> {
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(usize::MAX, |span| span.start);
            fault(at, e.message().to_owned())
        })?;
        let root = Table {
            at: usize::MAX,
            table: table.get_ref(),
        };
        root.knows(&["name", "comment", "users", "part"], "")?;
        let users = root.table_of("users")?;
        let users = users.ok_or_else(|| fault(usize::MAX, "it needs [users] with `count`"))?;
        users.knows(&["count", "domain"], "users.")?;
        let count = users.whole("count", 2, USERS_MAX)?;
        let count = count.ok_or_else(|| fault(users.at, "[users] needs `count`"))?;
        let mut parts: Vec<PartPlan> = Vec::new();
        for part in root.tables_of("part")? {
            let plan = part.plan(count)?;
            if parts.iter().any(|p| p.name == plan.name) {
                let text = format!("another part is called `{}`: give it a `name`", plan.name);
                return Err(fault(part.at, text));
            }
            parts.push(plan);
        }
        if parts.is_empty() || parts.len() > PARTS_MAX {
            let text = format!("it needs a [[part]], {PARTS_MAX} at most");
            return Err(fault(usize::MAX, text));
        }
        Ok(Self {
            name: root.text("name")?.unwrap_or("mix").to_owned(),
            comment: root.text("comment")?.unwrap_or_default().to_owned(),
            users: count,
            domain: users.text("domain")?.map(str::to_owned),
            parts,
        })
    }
}

/// What is wrong, and at which byte.
struct Fault {
    at: usize,
    text: String,
}

fn fault(at: usize, text: impl Into<String>) -> Fault {
    let text = text.into();
    Fault { at, text }
}

/// A table, and where it begins.
struct Table<'a> {
    at: usize,
    table: &'a DeTable<'a>,
}

/// Keys that every part may have.
const COMMON: [&str; 6] = ["name", "scenario", "users", "rate", "every", "poisson"];
const SCENARIOS: [(&str, &[&str]); 6] = [
    ("register", &["digest", "expires", "first"]),
    (
        "call",
        &[
            "digest", "ring", "talk", "prack", "update", "reinvite", "cancel", "busy",
        ],
    ),
    ("options", &["body"]),
    ("notify", &["digest"]),
    ("message", &["digest", "body"]),
    ("echo", &["body"]),
];

impl<'a> Table<'a> {
    /// A part of a mix that has so many users.
    fn plan(&self, users: usize) -> Result<PartPlan, Fault> {
        let scenario = self.scenario()?;
        let users = self
            .whole("users", 2, users as i64)?
            .map_or(users, |n| n.min(users));
        let rate = match (self.number("rate", 0.0, RATE_MAX)?, self.duration("every")?) {
            (Some(rate), None) => rate,
            (None, Some(us)) if us > 0 => users as f64 * 1e6 / us as f64,
            (None, Some(_)) => return Err(fault(self.at_of("every"), "`every` is 0")),
            (Some(_), Some(_)) => {
                let text = "`rate` and `every` say the same: leave one out";
                return Err(fault(self.at_of("every"), text));
            }
            (None, None) => {
                let text =
                    "a part needs `rate` (a second) or `every` (each user once in that time)";
                return Err(fault(self.at, text));
            }
        };
        if rate <= 0.0 {
            return Err(fault(self.at_of("rate"), "`rate` is 0: leave the part out"));
        }
        Ok(PartPlan {
            name: self.text("name")?.unwrap_or(scenario).to_owned(),
            users: 0..users,
            kind: self.kind(scenario)?,
            pace: Pace::Open {
                rate: Rate::Constant(rate),
                poisson: self.yes("poisson")?.unwrap_or(true),
            },
        })
    }

    /// The scenario's name, and whether all keys fit it.
    fn scenario(&self) -> Result<&'static str, Fault> {
        let names = SCENARIOS.map(|(name, _)| name);
        let Some(scenario) = self.text("scenario")? else {
            self.knows(&all_keys(), "")?;
            let text = format!("a part needs `scenario`: {}", names.join(", "));
            return Err(fault(self.at, text));
        };
        let known = SCENARIOS.iter().find(|(name, _)| *name == scenario);
        let Some((name, own)) = known else {
            let hint = nearest(scenario, names).map_or_else(
                || names.join(", "),
                |near| format!("did you mean `{near}`?"),
            );
            let text = format!("there is no scenario `{scenario}`: {hint}");
            return Err(fault(self.at_of("scenario"), text));
        };
        let fitting = [&COMMON[..], own].concat();
        for (key, _) in self.table {
            let word = key.get_ref().as_ref();
            if all_keys().contains(&word) && !fitting.contains(&word) {
                let text = format!("`{word}` is nothing that a part of `{name}` has");
                return Err(fault(key.span().start, text));
            }
        }
        self.knows(&fitting, "")?;
        Ok(name)
    }

    fn kind(&self, scenario: &str) -> Result<Kind, Fault> {
        let digest = self.digest()?;
        let body = self.number("body", 0.0, BODY_MAX)?.unwrap_or(0.0) as usize;
        Ok(match scenario {
            "register" => Kind::Register {
                digest,
                expires_s: self.duration("expires")?.map_or(3600, |us| {
                    Duration::from_micros(us).as_secs().min(u64::from(u32::MAX)) as u32
                }),
                first: self.yes("first")?.unwrap_or(false),
            },
            "options" => Kind::Options { body },
            "echo" => Kind::Echo { body },
            "notify" => Kind::Notify { digest },
            "message" => Kind::Message { digest, body },
            _ => Kind::Call(self.call(digest)?),
        })
    }

    fn call(&self, digest: Digest) -> Result<CallPlan, Fault> {
        let percent = |key| Ok(self.number(key, 0.0, 100.0)?.unwrap_or(0.0));
        let call = CallPlan {
            digest,
            ring: self.distribution("ring")?,
            talk: self.distribution("talk")?,
            prack: percent("prack")?,
            update: percent("update")?,
            reinvite: percent("reinvite")?,
            cancel: percent("cancel")?,
            busy: percent("busy")?,
        };
        if call.cancel + call.busy > 100.0 {
            let text = "`cancel` and `busy` are more than all calls together";
            return Err(fault(self.at_of("busy"), text));
        }
        Ok(call)
    }

    fn digest(&self) -> Result<Digest, Fault> {
        Ok(match self.text("digest")? {
            Some("none") => Digest::None,
            None | Some("answer") => Digest::Answer,
            Some("reuse") => Digest::Reuse,
            Some(other) => {
                let text = format!("`digest` is none, answer or reuse, not `{other}`");
                return Err(fault(self.at_of("digest"), text));
            }
        })
    }

    fn distribution(&self, key: &str) -> Result<Distribution, Fault> {
        let read = |text: &str| text.parse().map_err(|e| self.bad(key, e));
        self.text(key)?.map_or(Ok(Distribution::Constant(0)), read)
    }

    /// A time, microseconds.
    fn duration(&self, key: &str) -> Result<Option<u64>, Fault> {
        let read = |text: &str| parse_us(text).map_err(|e| self.bad(key, e));
        self.text(key)?.map(read).transpose()
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, Fault> {
        match self.value(key) {
            None => Ok(None),
            Some(DeValue::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.bad(key, "it is text, in quotes")),
        }
    }

    fn yes(&self, key: &str) -> Result<Option<bool>, Fault> {
        match self.value(key) {
            None => Ok(None),
            Some(DeValue::Boolean(yes)) => Ok(Some(*yes)),
            Some(_) => Err(self.bad(key, "it is true or false")),
        }
    }

    fn number(&self, key: &str, min: f64, max: f64) -> Result<Option<f64>, Fault> {
        let number: Option<f64> = match self.value(key) {
            None => return Ok(None),
            Some(DeValue::Integer(n)) if n.radix() == 10 => n.as_str().parse().ok(),
            Some(DeValue::Float(n)) => n.as_str().parse().ok(),
            Some(_) => None,
        };
        match number {
            Some(n) if (min..=max).contains(&n) => Ok(Some(n)),
            _ => Err(self.bad(key, format!("it is a number from {min} to {max}"))),
        }
    }

    fn whole(&self, key: &str, min: i64, max: i64) -> Result<Option<usize>, Fault> {
        match self.number(key, min as f64, max as f64)? {
            Some(n) if n.fract() != 0.0 => Err(self.bad(key, "it is a whole number")),
            number => Ok(number.map(|n| n as usize)),
        }
    }

    fn table_of(&self, key: &str) -> Result<Option<Table<'a>>, Fault> {
        match self.value(key) {
            None => Ok(None),
            Some(DeValue::Table(table)) => Ok(Some(Table {
                at: self.at_of(key),
                table,
            })),
            Some(_) => Err(self.bad(key, format!("it is a table: [{key}]"))),
        }
    }

    fn tables_of(&self, key: &str) -> Result<Vec<Table<'a>>, Fault> {
        let wrong = || self.bad(key, format!("it is a list of tables: [[{key}]]"));
        let list = match self.value(key) {
            None => return Ok(Vec::new()),
            Some(DeValue::Array(list)) => list,
            Some(_) => return Err(wrong()),
        };
        let table = |value: &'a Spanned<DeValue<'a>>| match value.get_ref() {
            DeValue::Table(table) => Ok(Table {
                at: value.span().start,
                table,
            }),
            _ => Err(wrong()),
        };
        list.iter().map(table).collect()
    }

    /// Whether every key is one of those; the first other one is a fault.
    fn knows(&self, keys: &[&str], prefix: &str) -> Result<(), Fault> {
        for (key, _) in self.table {
            let word = key.get_ref().as_ref();
            if !keys.contains(&word) {
                let hint = nearest(word, keys.iter().copied()).map_or_else(
                    || format!("known are {}", keys.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                let text = format!("unknown key `{prefix}{word}`: {hint}");
                return Err(fault(key.span().start, text));
            }
        }
        Ok(())
    }

    fn value(&self, key: &str) -> Option<&'a DeValue<'a>> {
        self.table.get(key).map(Spanned::get_ref)
    }

    fn at_of(&self, key: &str) -> usize {
        self.table.get(key).map_or(self.at, |v| v.span().start)
    }

    fn bad(&self, key: &str, why: impl std::fmt::Display) -> Fault {
        fault(self.at_of(key), format!("`{key}`: {why}"))
    }
}

fn all_keys() -> Vec<&'static str> {
    let own = SCENARIOS.iter().flat_map(|(_, keys)| keys.iter().copied());
    COMMON.into_iter().chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(mix: &Mix) -> Vec<(&str, f64)> {
        let rate = |p: &PartPlan| match p.pace {
            Pace::Open {
                rate: Rate::Constant(rate),
                poisson: true,
            } => rate,
            _ => panic!("{:?}", p.pace),
        };
        let of = |p| (PartPlan::clone(p), rate(p));
        let rates: Vec<_> = mix.parts.iter().map(of).collect();
        let named = mix.parts.iter().zip(rates);
        named
            .map(|(p, (_, r))| (p.name.as_str(), r.round()))
            .collect()
    }

    #[test]
    fn the_city_has_the_rates_that_its_papers_give_it() {
        let city = Mix::built_in("city").unwrap();
        assert_eq!(city.users, 300_000);
        assert_eq!(rates(&city), [("registrations", 83.0), ("calls", 167.0)]);
        let Kind::Call(call) = &city.parts[1].kind else {
            panic!("{:?}", city.parts[1].kind)
        };
        assert_eq!(call.talk, Distribution::Exponential(180_000_000));
        assert_eq!((call.prack, call.update, call.cancel), (100.0, 100.0, 0.0));
    }

    #[test]
    fn the_provider_has_the_rates_that_it_is_known_for_and_twice_as_many_when_doubled() {
        let itsp = Mix::built_in("itsp").unwrap();
        let once = [
            ("keep-alives", 33_333.0),
            ("refreshes", 167.0),
            ("calls", 100.0),
        ];
        assert_eq!(rates(&itsp), once);
        let million = itsp.clone().scaled(2.0);
        assert_eq!(million.users, 1_000_000);
        assert_eq!(rates(&million)[0], ("keep-alives", 66_667.0));
        let small = itsp.scaled(0.01);
        assert_eq!((small.users, small.parts[1].users.clone()), (5000, 0..5000));
        assert_eq!(rates(&small)[2], ("calls", 1.0));
    }

    #[test]
    fn every_key_has_its_place() {
        let text = "name = \"m\"\n[users]\ncount = 10\ndomain = \"d\"\n[[part]]\nscenario = \"register\"\n\
            rate = 2.5\npoisson = false\nusers = 4\ndigest = \"reuse\"\nexpires = \"1min\"\nfirst = true\n\
            [[part]]\nscenario = \"message\"\nname = \"talk\"\nevery = \"5s\"\nbody = 100\n";
        let mix = Mix::parse("m.toml", text).unwrap();
        assert_eq!(mix.domain.as_deref(), Some("d"));
        let register = &mix.parts[0];
        assert_eq!(
            (&*register.name, register.users.clone()),
            ("register", 0..4)
        );
        let rate = Rate::Constant(2.5);
        let poisson = false;
        assert_eq!(register.pace, Pace::Open { rate, poisson });
        let Kind::Register {
            digest: Digest::Reuse,
            expires_s: 60,
            first: true,
        } = register.kind
        else {
            panic!("{register:?}")
        };
        assert_eq!(
            rates(&Mix {
                parts: vec![mix.parts[1].clone()],
                ..mix
            }),
            [("talk", 2.0)]
        );
    }

    fn fault_of(part: &str) -> String {
        let text = format!("[users]\ncount = 10\n[[part]]\n{part}\n");
        Mix::parse("m.toml", &text).unwrap_err()
    }

    #[test]
    fn faults_are_told_with_their_line_and_what_was_meant() {
        for (part, says) in [
            (
                "scenario = \"register\"\nrat = 5",
                "m.toml:5: unknown key `rat`: did you mean `rate`?",
            ),
            (
                "scenario = \"regster\"\nrate = 5",
                "m.toml:4: there is no scenario `regster`: did you mean `register`?",
            ),
            (
                "scenario = \"options\"\nrate = 5\nring = \"4s\"",
                "m.toml:6: `ring` is nothing that a part of `options` has",
            ),
            (
                "scenario = \"call\"\nrate = 5\nring = \"4\"",
                "m.toml:6: `ring`: `4` has no unit: `4s` or `4ms`?",
            ),
            (
                "scenario = \"call\"\nrate = 5\ncancel = 101",
                "m.toml:6: `cancel`: it is a number from 0 to 100",
            ),
            (
                "scenario = \"call\"\nrate = 5\ncancel = 60\nbusy = 60",
                "m.toml:7: `cancel` and `busy` are more than all calls together",
            ),
            ("scenario = \"call\"", "m.toml:3: a part needs `rate`"),
            ("scenario = \"call\"\nrate = 0", "m.toml:5: `rate` is 0"),
            (
                "scenario = \"call\"\nrate = -1",
                "m.toml:5: `rate`: it is a number from 0",
            ),
            (
                "scenario = \"call\"\nrate = 1\nevery = \"1h\"",
                "m.toml:6: `rate` and `every` say the same",
            ),
            (
                "scenario = \"call\"\nrate = 1\nusers = 11",
                "m.toml:6: `users`: it is a number from 2 to 10",
            ),
            (
                "scenario = \"call\"\nrate = 1\npoisson = 1",
                "m.toml:6: `poisson`: it is true or false",
            ),
            (
                "scenario = \"call\"\nrate = 1\n[[part]]\nscenario = \"call\"\nrate = 1",
                "m.toml:6: another part is called `call`",
            ),
            (
                "rate = 1",
                "m.toml:3: a part needs `scenario`: register, call,",
            ),
            ("scenario = \"call\"\nrate = ", "m.toml:5: "),
        ] {
            let error = fault_of(part);
            assert!(error.starts_with(says), "{part}: {error}");
        }
        let error = Mix::parse("m.toml", "[user]\ncount = 1\n").unwrap_err();
        assert_eq!(error, "m.toml:1: unknown key `user`: did you mean `users`?");
        let error = Mix::parse("m.toml", "[users]\ncount = 10\n").unwrap_err();
        assert_eq!(error, "m.toml: it needs a [[part]], 32 at most");
        assert!(
            Mix::read(Path::new("nowhere.toml"))
                .unwrap_err()
                .starts_with("nowhere.toml: ")
        );
    }
}
