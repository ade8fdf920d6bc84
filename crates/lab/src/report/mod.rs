//! The report: a Markdown file with pictures, and one self-contained page. Made from the records alone.

mod axis;
mod bars;
mod canvas;
mod chart;
mod html;
mod markdown;
mod story;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;

use crate::record::Record;
use story::Story;

pub(crate) use axis::readable;

/// Where from and where to.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Directory of the records that `lab run` keeps.
    #[arg(long, value_name = "DIR", default_value = "docs/lab/data")]
    data: PathBuf,
    /// Directory of the report: README.md with its pictures, index.html.
    #[arg(long, value_name = "DIR", default_value = "docs/lab")]
    out: PathBuf,
}

pub(crate) fn run(args: &ReportArgs) -> ExitCode {
    match write(&args.data, &args.out) {
        Ok(written) => {
            println!("{written}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("sipolis lab report: {error}");
            ExitCode::from(2)
        }
    }
}

/// Writes the whole report; gives one line on what it is.
fn write(data: &Path, out: &Path) -> Result<String, String> {
    let records = read_all(data)?;
    let story = Story::new(&records, crate::experiments::ALL, &link(data, out));
    let to = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    for (name, svg) in story.pictures() {
        to(&out.join(name), svg)?;
    }
    to(&out.join("README.md"), &markdown::page(&story))?;
    to(&out.join("index.html"), &html::page(&story))?;
    Ok(format!(
        "{} and index.html: {}",
        out.join("README.md").display(),
        story.counts()
    ))
}

/// The records of a directory by name. A file that can't be read is an error: a report that leaves it out would mislead.
fn read_all(data: &Path) -> Result<Vec<Record>, String> {
    let advice = "measure first: sipolis lab run all --quick";
    let files =
        fs::read_dir(data).map_err(|error| format!("{}: {error}; {advice}", data.display()))?;
    let mut paths: Vec<PathBuf> = files
        .map(|entry| entry.map(|e| e.path()))
        .collect::<io::Result<_>>()
        .map_err(|error| format!("{}: {error}", data.display()))?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: no records; {advice}", data.display()));
    }
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Record, String> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| {
        format!(
            "{}: {error}; measure it again or remove the file",
            path.display()
        )
    })
}

/// How the report's files name the directory of the records.
fn link(data: &Path, out: &Path) -> String {
    let relative = data.strip_prefix(out).unwrap_or(data);
    relative.display().to_string()
}

#[cfg(test)]
mod tests;
