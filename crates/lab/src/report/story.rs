//! What the report says, before it is dressed as Markdown or as a page.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{axis::readable, chart};
use crate::{
    experiment::Experiment,
    record::{Agreement, Machine, Measured, Outcome, Ratio, Record, Who},
};

/// All that both forms show.
pub(super) struct Story<'a> {
    pub(super) machines: Vec<&'a Machine>,
    pub(super) sections: Vec<Section<'a>>,
    /// Warnings that every record has: said once for all.
    pub(super) warnings: Vec<&'a str>,
    /// Names of experiments of which there is no record.
    pub(super) absent: Vec<&'static str>,
    /// Directory of the records, as a link.
    pub(super) data: String,
}

/// One experiment.
pub(super) struct Section<'a> {
    pub(super) record: &'a Record,
    pub(super) title: &'a str,
    pub(super) paper: &'a str,
    pub(super) how: &'a str,
    pub(super) pictures: Vec<Picture>,
    /// The place of its machine among the story's.
    pub(super) machine: usize,
}

pub(super) struct Picture {
    pub(super) file: String,
    pub(super) title: String,
    pub(super) svg: String,
}

pub(super) const TITLE: &str = "The papers' experiments, repeated";
pub(super) const PREFACE: &str = "What published papers measured of SIP servers, measured again on one machine: sipolis, a bare echo server as \
    the floor and, where it is installed, Kamailio, under the same load in the same run. The papers' hardware is of 2006 to 2010: \
    what can be held against them is the shape of a curve and the ratio of two figures, not the figures themselves.";
pub(super) const PINNED: &str = "Servers run on the first core, the load on the others, over loopback, each held there by taskset; what a \
    machine could not give stands with the experiment as a warning. Points are medians of the repeats, their bars go from the lowest to the highest.";
pub(super) const AGAIN: &str = "sipolis lab run all --peer kamailio && sipolis lab report";
pub(super) const QUICK: &str =
    "Quick run: it shows that the experiment works. No figure of it counts.";

impl<'a> Story<'a> {
    /// In the order of `experiments`; records of none of them come last.
    pub(super) fn new(records: &'a [Record], experiments: &[Experiment], data: &str) -> Self {
        let place = |r: &Record| experiments.iter().position(|e| e.name == r.name);
        let mut sorted: Vec<&Record> = records.iter().collect();
        sorted.sort_by_key(|r| (place(r).unwrap_or(usize::MAX), &r.name));
        let mut machines: Vec<&Machine> = Vec::new();
        let mut sections = Vec::new();
        for record in sorted {
            if !machines.contains(&&record.machine) {
                machines.push(&record.machine);
            }
            let machine = machines
                .iter()
                .position(|m| **m == record.machine)
                .unwrap_or(0);
            let known = place(record).map(|index| &experiments[index]);
            sections.push(Section {
                record,
                title: known.map_or(&record.name, |e| e.title),
                paper: known.map_or("(an experiment that this version does not have)", |e| {
                    e.paper
                }),
                how: known.map_or("", |e| e.how),
                pictures: pictures(record),
                machine,
            });
        }
        let warnings = in_all(records);
        let recorded: BTreeSet<&str> = records.iter().map(|r| r.name.as_str()).collect();
        let absent = experiments
            .iter()
            .map(|e| e.name)
            .filter(|n| !recorded.contains(n))
            .collect();
        Self {
            machines,
            sections,
            warnings,
            absent,
            data: data.to_owned(),
        }
    }

    /// File names and texts of all pictures.
    pub(super) fn pictures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sections
            .iter()
            .flat_map(|s| &s.pictures)
            .map(|p| (p.file.as_str(), p.svg.as_str()))
    }

    /// How many of each outcome, and of each agreement.
    pub(super) fn counts(&self) -> String {
        let of = |what: fn(&Outcome) -> bool| {
            self.sections
                .iter()
                .filter(|s| what(&s.record.outcome))
                .count()
        };
        let measured = of(|o| matches!(o, Outcome::Measured(_)));
        let skipped = of(|o| matches!(o, Outcome::Skipped(_)));
        let failed = of(|o| matches!(o, Outcome::Failed(_)));
        let mut text = format!("{measured} measured, {skipped} skipped, {failed} failed");
        if !self.absent.is_empty() {
            let _ = write!(text, ", {} not run", self.absent.len());
        }
        let quick = self.sections.iter().filter(|s| s.record.quick).count();
        if quick > 0 {
            let _ = write!(
                text,
                "; {quick} of them in the quick size, which counts for nothing"
            );
        }
        let found = |agrees| {
            let findings = self.sections.iter().flat_map(Section::findings);
            findings.filter(|f| f.agrees == agrees).count()
        };
        let _ = write!(
            text,
            ". Findings that agree with the papers: {}; partly: {}; that do not: {}; not comparable: {}.",
            found(Agreement::Yes),
            found(Agreement::Partly),
            found(Agreement::No),
            found(Agreement::NotComparable)
        );
        text
    }

    /// What a reader has to know before any figure; empty when all is from one full run.
    pub(super) fn alarms(&self) -> Vec<String> {
        let mut alarms = Vec::new();
        let quick = self.sections.iter().filter(|s| s.record.quick).count();
        if quick > 0 {
            let all = if quick == self.sections.len() {
                "All"
            } else {
                "Some"
            };
            alarms.push(format!(
                "{all} of these experiments ({quick} of {}) were run in the quick size: they show that they work, and no figure of them counts.",
                self.sections.len()
            ));
        }
        if self.machines.len() > 1 {
            alarms.push(format!(
                "These records are of {} different machines, kernels, versions or commits: figures of different ones can't be held against each \
                 other. Each experiment says which is its own.",
                self.machines.len()
            ));
        }
        if self
            .machines
            .iter()
            .any(|m| m.commit.ends_with("with changes"))
        {
            alarms.push("Measured with changes that are in no commit.".to_owned());
        }
        alarms
    }

    /// From the first to the last measurement.
    pub(super) fn dates(&self) -> String {
        let all = || self.sections.iter().map(|s| s.record.at);
        match (all().min(), all().max()) {
            (Some(first), Some(last)) if day(first) != day(last) => {
                format!("{} to {}", day(first), day(last))
            }
            (Some(first), _) => day(first),
            _ => String::new(),
        }
    }

    /// The servers that any ratio is of, in the order of the table, and the ratios with their experiments.
    pub(super) fn ratios(&self) -> (Vec<Who>, Vec<(&Section<'a>, &Ratio)>) {
        let ratios: Vec<_> = self
            .sections
            .iter()
            .flat_map(|s| s.ratios().iter().map(move |r| (s, r)))
            // Of which nothing was measured there is nothing to compare.
            .filter(|(_, ratio)| ratio.of.keys().any(|who| *who != Who::Paper))
            .collect();
        let order = [Who::Paper, Who::Echo, Who::Kamailio, Who::Sipolis];
        let shown = order
            .into_iter()
            .filter(|w| ratios.iter().any(|(_, r)| r.of.contains_key(w)));
        (shown.collect(), ratios)
    }
}

/// The warnings that all records have, in their order; none of a single record.
fn in_all(records: &[Record]) -> Vec<&str> {
    let Some((first, others)) = records
        .split_first()
        .filter(|(_, others)| !others.is_empty())
    else {
        return Vec::new();
    };
    let shared = first
        .warnings
        .iter()
        .filter(|w| others.iter().all(|r| r.warnings.contains(w)));
    shared.map(String::as_str).collect()
}

impl Section<'_> {
    pub(super) fn measured(&self) -> Option<&Measured> {
        match &self.record.outcome {
            Outcome::Measured(measured) => Some(measured),
            _ => None,
        }
    }

    pub(super) fn findings(&self) -> &[crate::record::Finding] {
        self.measured().map_or(&[], |m| &m.findings)
    }

    fn ratios(&self) -> &[Ratio] {
        self.measured().map_or(&[], |m| &m.ratios)
    }

    /// When, how long, how often.
    pub(super) fn when(&self) -> String {
        let record = self.record;
        let repeats = match record.repeats {
            1 => "each point once".to_owned(),
            n => format!("each point {n} times"),
        };
        format!(
            "{}, {} s, {repeats}",
            moment(record.at),
            readable(record.seconds.round())
        )
    }

    /// File of its record.
    pub(super) fn file(&self) -> String {
        format!("{}.json", file_name(&self.record.name))
    }
}

/// Warnings of one experiment that were not said for all.
pub(super) fn own_warnings<'a>(
    story: &'a Story<'_>,
    section: &'a Section<'_>,
) -> impl Iterator<Item = &'a str> {
    let warnings = section.record.warnings.iter().map(String::as_str);
    warnings.filter(|warning| !story.warnings.contains(warning))
}

pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// In a word or two, what became of it.
pub(super) fn verdict(agrees: Agreement) -> &'static str {
    match agrees {
        Agreement::Yes => "yes",
        Agreement::Partly => "partly",
        Agreement::No => "no",
        Agreement::NotComparable => "not comparable",
    }
}

/// A ratio as the table shows it; a line where there is none.
pub(super) fn ratio(ratio: &Ratio, who: Who) -> String {
    match ratio.of.get(&who) {
        None => "–".to_owned(),
        Some(value) if value.abs() < 10.0 => format!("{value:.2}"),
        Some(value) => readable(*value),
    }
}

/// A machine's lines: name and text.
pub(super) fn machine(machine: &Machine) -> Vec<(&'static str, String)> {
    vec![
        (
            "machine",
            format!(
                "{}, {} cores, {} GiB",
                machine.processor, machine.cores, machine.memory_gib
            ),
        ),
        ("kernel", format!("Linux {}", machine.kernel)),
        ("sipolis", format!("commit {}", machine.commit)),
        ("Kamailio", machine.kamailio.clone()),
    ]
}

/// The machine in one line.
pub(super) fn machine_line(of: &Machine) -> String {
    let parts = machine(of).into_iter().map(|(name, text)| match name {
        "sipolis" | "Kamailio" => format!("{name} {text}"),
        _ => text,
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn pictures(record: &Record) -> Vec<Picture> {
    let Outcome::Measured(measured) = &record.outcome else {
        return Vec::new();
    };
    let draw = |chart: &crate::record::Chart| Picture {
        file: format!("{}-{}.svg", file_name(&record.name), file_name(&chart.id)),
        title: chart.title.clone(),
        svg: chart::svg(chart, record.quick),
    };
    measured.charts.iter().map(draw).collect()
}

/// Only what is harmless in a file name and an anchor.
pub(super) fn file_name(text: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    text.chars().map(safe).take(80).collect()
}

/// `2026-11-22`, UTC.
fn day(seconds: u64) -> String {
    let (mut year, mut days) = (1970, seconds / 86_400);
    let leap = |y: u64| (y.is_multiple_of(4) && !y.is_multiple_of(100)) || y.is_multiple_of(400);
    // Beyond the year 9999 nothing was measured.
    while year < 9999 && days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 1;
    for length in &lengths[..11] {
        if days < *length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", (days + 1).min(31))
}

/// `2026-11-22 00:04 UTC`.
fn moment(seconds: u64) -> String {
    format!(
        "{} {:02}:{:02} UTC",
        day(seconds),
        seconds / 3600 % 24,
        seconds / 60 % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_that_of_the_calendar() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_709_164_800), "2024-02-29");
        assert_eq!(day(1_735_603_200), "2024-12-31");
        assert_eq!(moment(1_795_305_894), "2026-11-22 00:04 UTC");
        assert_eq!(day(u64::MAX), "9999-12-31");
    }

    #[test]
    fn a_file_name_can_not_leave_its_directory() {
        assert_eq!(file_name("../../etc/passwd"), "------etc-passwd");
        assert_eq!(file_name("register-rate"), "register-rate");
    }
}
