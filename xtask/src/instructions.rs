//! Instruction counts of the hot operations: a regression shows on any machine, however noisy.

use crate::run::{Run, root, target_directory};
use std::collections::BTreeMap;

/// A count may differ from the committed one by this share, in percent.
const TOLERANCE_PERCENT: f64 = 3.0;

/// Packages with an example that runs one named case as often as told, `CASE COUNT`, and names them with `list`.
const PROGRAMS: [(&str, &str); 2] = [
    ("sip-wire", "instructions"),
    ("sip-core", "core_instructions"),
];

/// How often a case runs; the difference of both runs leaves out what happens once.
const COUNTS: [u64; 2] = [200, 1200];

const FILE: &str = "bench/instructions.toml";

/// `package/case` and its instructions per operation.
type Counts = BTreeMap<String, u64>;

/// `[--update]`
///
/// # Errors
/// As [`compare`].
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    match args {
        [] => compare().map(|skipped| {
            skipped
                .into_iter()
                .for_each(|why| println!("skipped: {why}"))
        }),
        [flag] if flag == "--update" => update(),
        _ => Err(String::from("usage: cargo xtask instructions [--update]")),
    }
}

/// Holds the counts of this build against the committed ones; the reason, where they are no measure for it.
///
/// # Errors
/// Operations that cost more, or so much less that the file should say so.
pub(crate) fn compare() -> Result<Option<String>, String> {
    let text = std::fs::read_to_string(root().join(FILE));
    let text = text
        .map_err(|error| format!("{FILE}: {error}; cargo xtask instructions --update writes it"))?;
    let table: toml::Table = text.parse().map_err(|error| format!("{FILE}: {error}"))?;
    let (here, there) = (
        compiler()?,
        table.get("compiler").and_then(toml::Value::as_str),
    );
    if there != Some(here.as_str()) {
        let there = there.unwrap_or("another compiler");
        return Ok(Some(format!("{FILE} is of {there}, this is {here}")));
    }
    let committed = table.get("instructions").and_then(toml::Value::as_table);
    let committed = committed.ok_or_else(|| format!("{FILE} has no [instructions]"))?;
    let mut wrong = Vec::new();
    let measured = measure()?;
    for (case, count) in &measured {
        let before = committed.get(case).and_then(toml::Value::as_integer);
        let change = before.map(|before| (*count as f64 / before as f64 - 1.0) * 100.0);
        println!(
            "{count:>9}  {:>7}  {case}",
            change.map_or(String::from("new"), |change| format!("{change:+.1} %"))
        );
        if change.is_none_or(|change| change.abs() > TOLERANCE_PERCENT) {
            wrong.push(case.as_str());
        }
    }
    let gone = committed
        .keys()
        .filter(|case| !measured.contains_key(*case));
    wrong.extend(gone.map(String::as_str));
    if wrong.is_empty() {
        return Ok(None);
    }
    Err(format!(
        "changed by more than {TOLERANCE_PERCENT} %, new or gone: {}\n\
         If that is meant: cargo xtask instructions --update, and say why in the commit.",
        wrong.join(", ")
    ))
}

fn update() -> Result<(), String> {
    let mut text = format!(
        "# Instructions per operation, by `cargo xtask instructions --update`; `cargo xtask test` allows {TOLERANCE_PERCENT} % either way.\n\
         compiler = \"{}\"\n\n[instructions]\n",
        compiler()?
    );
    for (case, count) in measure()? {
        text += &format!("\"{case}\" = {count}\n");
    }
    print!("{text}");
    let path = root().join(FILE);
    let folder = path.parent().map(std::fs::create_dir_all);
    let written = folder.transpose().and_then(|_| std::fs::write(&path, text));
    written.map_err(|error| format!("{FILE}: {error}"))
}

fn measure() -> Result<Counts, String> {
    let mut counts = Counts::new();
    for (package, example) in PROGRAMS {
        let program = build(package, example)?;
        for case in cases(&program)? {
            let [few, many] = COUNTS.map(|count| instructions(&program, &case, count));
            let each = (many? - few?) / (COUNTS[1] - COUNTS[0]);
            counts.insert(format!("{package}/{case}"), each);
        }
    }
    Ok(counts)
}

fn build(package: &str, example: &str) -> Result<String, String> {
    Run::new("cargo build --quiet --release --package")
        .args([package, "--example", example])
        .run()?;
    let path = target_directory()?.join("release/examples").join(example);
    Ok(path.display().to_string())
}

fn cases(program: &str) -> Result<Vec<String>, String> {
    let list = Run::at(program).args(["list"]).read()?;
    Ok(list.lines().map(String::from).collect())
}

fn instructions(program: &str, case: &str, count: u64) -> Result<u64, String> {
    let said =
        Run::new("valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null")
            .args([program, case, &count.to_string()])
            .capture()?
            .lines;
    let line = said.iter().find_map(|line| line.split_once("refs:"));
    let digits = line.map(|(_, number)| number.replace(',', ""));
    let count = digits.and_then(|digits| digits.trim().parse().ok());
    count.ok_or_else(|| format!("valgrind counted nothing for {case}:\n{}", said.join("\n")))
}

/// Compiler and machine: another one makes other instructions of the same source.
fn compiler() -> Result<String, String> {
    let version = Run::new("rustc --version").read()?;
    let version = version.split_whitespace().nth(1).unwrap_or_default();
    Ok(format!("rustc {version} {}", std::env::consts::ARCH))
}
