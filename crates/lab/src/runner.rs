//! `sipolis lab list` and `sipolis lab run`: experiments one after the other, each kept as it ends.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Instant, SystemTime},
};

use clap::{Args, ValueEnum};

use crate::{
    experiment::{Experiment, Stop},
    experiments,
    lab::Lab,
    machine,
    record::{Agreement, Machine, Measured, Outcome, Record, Who},
    servers::Servers,
};

/// What to run, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// Experiments by name, or `all`.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// In a smaller size, each in some seconds: shows that it works, and no figure of it counts.
    #[arg(long)]
    quick: bool,
    /// Another server beside ours, under the same load.
    #[arg(long, value_enum)]
    peer: Option<Peer>,
    /// Runs of each point; the median counts. 3 unless given, 1 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: Option<u32>,
    /// Where to keep what was measured, a file for each experiment.
    #[arg(long, value_name = "DIR", default_value = "docs/lab/data")]
    data: PathBuf,
    /// Port of the servers, UDP and TCP; some experiments use a few after it.
    #[arg(long, default_value_t = 22_060)]
    port: u16,
}

/// A server to be held against.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Peer {
    Kamailio,
}

/// How to list.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListArgs {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Names every experiment.
pub(crate) fn list(args: &ListArgs) -> ExitCode {
    let all = experiments::ALL;
    if args.json {
        let all: Vec<_> = all
            .iter()
            .map(|e| serde_json::json!({"name": e.name, "title": e.title, "paper": e.paper, "how": e.how}))
            .collect();
        println!("{:#}", serde_json::Value::from(all));
        return ExitCode::SUCCESS;
    }
    let width = all.iter().map(|e| e.name.len()).max().unwrap_or(0);
    for experiment in all {
        println!("{:width$}  {}", experiment.name, experiment.title);
        for line in lines(experiment.paper, LINE) {
            println!("{:width$}    {line}", "");
        }
    }
    println!("\nRun them with: sipolis lab run NAME..., or all");
    ExitCode::SUCCESS
}

/// Characters of what is said of an experiment on one line.
const LINE: usize = 90;

/// A text in lines of at most so many characters, broken between words.
fn lines(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Runs experiments; fails when one of them did.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    match chosen(&args.names).map(|chosen| run_all(args, &chosen)) {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        Ok(Ok(false)) => ExitCode::FAILURE,
        Ok(Err(e)) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::from(2)
        }
    }
}

/// The experiments of these names, each once, in the report's order.
fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, String> {
    let all = experiments::ALL;
    for name in names {
        if name != "all" && !all.iter().any(|e| e.name == name) {
            let nearest = all
                .iter()
                .min_by_key(|e| strsim::osa_distance(e.name, name));
            let nearest = nearest.map_or("", |e| e.name);
            return Err(format!(
                "there is no experiment {name:?}; did you mean {nearest:?}? `sipolis lab list` names all"
            ));
        }
    }
    let wanted = |e: &&Experiment| names.iter().any(|name| name == "all" || name == e.name);
    Ok(all.iter().filter(wanted).collect())
}

/// Whether none failed.
fn run_all(args: &RunArgs, chosen: &[&'static Experiment]) -> io::Result<bool> {
    fs::create_dir_all(&args.data)?;
    let repeats = args.repeats.unwrap_or(if args.quick { 1 } else { 3 });
    let mut machine_warnings = machine::warnings();
    let servers = Servers::find(None, args.port)?;
    let mut who = vec![Who::Echo];
    match (args.peer, servers.missing(Who::Kamailio)) {
        (Some(Peer::Kamailio), None) => who.push(Who::Kamailio),
        (Some(Peer::Kamailio), Some(why)) => machine_warnings.push(why.to_owned()),
        (None, _) => {}
    }
    who.push(Who::Sipolis);
    let machine = machine::describe(servers.kamailio.as_ref());
    let mut lab = Lab::new(servers, who, repeats, args.quick)?;
    for warning in &machine_warnings {
        eprintln!("warning: {warning}");
    }
    let mut records = Vec::new();
    for (n, experiment) in (1..).zip(chosen) {
        eprintln!(
            "\n== {n}/{} {}: {}",
            chosen.len(),
            experiment.name,
            experiment.title
        );
        let record = record(&mut lab, experiment, &machine, &machine_warnings);
        eprintln!("{}", summary(&record));
        write(&args.data, &record)?;
        records.push(record);
    }
    println!("{}", table(&records));
    Ok(!records
        .iter()
        .any(|r| matches!(r.outcome, Outcome::Failed(_))))
}

/// Runs one experiment.
fn record(
    lab: &mut Lab,
    experiment: &Experiment,
    machine: &Machine,
    warnings: &[String],
) -> Record {
    let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let begin = Instant::now();
    let outcome = match (experiment.run)(lab) {
        Ok(measured) => Outcome::Measured(measured),
        Err(Stop::Skip(why)) => Outcome::Skipped(why),
        Err(Stop::Fail(why)) => Outcome::Failed(why),
    };
    let (noted, commands) = lab.take_notes();
    Record {
        name: experiment.name.to_owned(),
        machine: machine.clone(),
        quick: lab.quick,
        repeats: lab.repeats,
        at: at.map_or(0, |d| d.as_secs()),
        seconds: begin.elapsed().as_secs_f64(),
        warnings: warnings.iter().cloned().chain(noted).collect(),
        commands,
        outcome,
    }
}

/// Whole or not at all, so that an interrupted run spoils nothing.
fn write(data: &Path, record: &Record) -> io::Result<()> {
    let file = data.join(format!("{}.json", record.name));
    let new = file.with_extension("json.new");
    fs::write(&new, serde_json::to_string_pretty(record)? + "\n")?;
    fs::rename(new, file)
}

/// A line of one experiment.
fn summary(record: &Record) -> String {
    let (word, text) = outcome(&record.outcome);
    format!("{}: {word} in {:.0} s: {text}", record.name, record.seconds)
}

/// A word for the outcome, and more about it.
fn outcome(outcome: &Outcome) -> (&'static str, String) {
    match outcome {
        Outcome::Measured(measured) => ("measured", findings(measured)),
        Outcome::Skipped(why) => ("skipped", why.clone()),
        Outcome::Failed(why) => ("FAILED", why.clone()),
    }
}

fn findings(measured: &Measured) -> String {
    let count = |wanted| {
        let findings = measured.findings.iter();
        findings.filter(|f| f.agrees == wanted).count()
    };
    format!(
        "{} runs; of the paper's findings {} hold here, {} in part, {} do not, {} can't be compared",
        measured.samples.len(),
        count(Agreement::Yes),
        count(Agreement::Partly),
        count(Agreement::No),
        count(Agreement::NotComparable)
    )
}

/// All experiments, and how many came to what.
fn table(records: &[Record]) -> String {
    let width = records.iter().map(|r| r.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut counts = [0; 3];
    for record in records {
        let (word, more) = outcome(&record.outcome);
        let first = more.lines().next().unwrap_or_default();
        let _ = writeln!(
            text,
            "{:width$}  {word:8}  {:4.0} s  {first}",
            record.name, record.seconds
        );
        counts[match record.outcome {
            Outcome::Measured(_) => 0,
            Outcome::Skipped(_) => 1,
            Outcome::Failed(_) => 2,
        }] += 1;
    }
    let [measured, skipped, failed] = counts;
    let _ = write!(
        text,
        "{measured} measured, {skipped} skipped, {failed} failed"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_one() {
        let error = chosen(&["regster-rat".to_owned()]).unwrap_err();
        assert!(error.contains("did you mean \"register-rate\"?"), "{error}");
    }

    #[test]
    fn names_of_experiments_are_unique_and_all_means_each_once() {
        let all = chosen(&["all".to_owned(), "all".to_owned()]).unwrap();
        let mut names: Vec<&str> = all.iter().map(|e| e.name).collect();
        assert_eq!(names.len(), experiments::ALL.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), experiments::ALL.len());
    }

    #[test]
    fn the_table_counts_what_was_skipped_and_what_failed() {
        let record = |name: &str, outcome| Record {
            name: name.to_owned(),
            machine: Machine::default(),
            quick: true,
            repeats: 1,
            at: 0,
            seconds: 2.0,
            warnings: Vec::new(),
            commands: Vec::new(),
            outcome,
        };
        let text = table(&[
            record("city", Outcome::Measured(Measured::default())),
            record("sctp", Outcome::Skipped("no SCTP".to_owned())),
            record(
                "itsp",
                Outcome::Failed("it ended\nwith more lines".to_owned()),
            ),
        ]);
        assert!(text.contains("sctp  skipped      2 s  no SCTP\n"), "{text}");
        assert!(
            text.contains("itsp  FAILED       2 s  it ended\n"),
            "{text}"
        );
        assert!(text.ends_with("1 measured, 1 skipped, 1 failed"), "{text}");
    }
}
