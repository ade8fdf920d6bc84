//! The report as one page: pictures and style inside, no script, nothing loaded.

use std::fmt::Write as _;

use super::{
    canvas,
    story::{self, Section, Story, own_warnings},
};
use crate::record::{Agreement, Outcome, Table};

pub(super) fn page(story: &Story<'_>) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n",
        escape(story::TITLE),
        STYLE,
        dark_pictures()
    );
    let _ = writeln!(
        page,
        "<h1>{}</h1>\n<p>{}</p>",
        escape(story::TITLE),
        text(story::PREFACE)
    );
    for alarm in story.alarms() {
        let _ = writeln!(page, "<p class=\"alarm\">{}</p>", text(&alarm));
    }
    page += &machines(story);
    page += &summary(story);
    page += &ratios(story);
    if !story.absent.is_empty() {
        let _ = writeln!(
            page,
            "<p>Not run, no record: {}.</p>",
            text(&story.absent.join(", "))
        );
    }
    for section in &story.sections {
        page += &experiment(story, section);
    }
    page + "</main>\n</body>\n</html>\n"
}

fn machines(story: &Story<'_>) -> String {
    let mut out = String::new();
    for (index, machine) in (1..).zip(&story.machines) {
        if story.machines.len() > 1 {
            let _ = writeln!(out, "<h2>Measured on {index}</h2>");
        }
        out += "<dl>\n";
        for (name, value) in story::machine(machine) {
            let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", text(&value));
        }
        if story.machines.len() == 1 {
            let _ = writeln!(out, "<dt>when</dt><dd>{}</dd>", text(&story.dates()));
        }
        out += "</dl>\n";
    }
    for warning in &story.warnings {
        out += &note(warning);
    }
    let _ = writeln!(
        out,
        "<p>{}</p>\n<p>Measured and written again by <code>{}</code>.</p>",
        text(story::PINNED),
        escape(story::AGAIN)
    );
    out
}

fn summary(story: &Story<'_>) -> String {
    let mut out = format!(
        "<h2>Summary</h2>\n<p>{}</p>\n<div class=\"wide\"><table class=\"summary\">\n\
         <thead><tr><th>experiment</th><th>the paper</th><th>here</th><th>agrees</th></tr></thead>\n<tbody>\n",
        text(&story.counts())
    );
    for section in &story.sections {
        out += &summary_rows(section);
    }
    out + "</tbody></table></div>\n"
}

fn summary_rows(section: &Section<'_>) -> String {
    let quick = if section.record.quick {
        " <b class=\"quick\">quick</b>"
    } else {
        ""
    };
    let head = |rows: usize| {
        format!(
            "<th scope=\"rowgroup\" rowspan=\"{rows}\"><a href=\"#{}\">{}</a>{quick}</th>",
            story::file_name(&section.record.name),
            text(section.title)
        )
    };
    let reason = |class: &str, word: &str, why: &str| {
        format!(
            "<tr class=\"first\">{}<td colspan=\"3\"><b class=\"{class}\">{word}</b> {}</td></tr>\n",
            head(1),
            text(why)
        )
    };
    let findings = section.findings();
    match &section.record.outcome {
        Outcome::Skipped(why) => return reason("skipped", "skipped", why),
        Outcome::Failed(why) => return reason("no", "failed", story::first_line(why)),
        Outcome::Measured(_) if findings.is_empty() => {
            return reason("skipped", "measured", "nothing was concluded from it");
        }
        Outcome::Measured(_) => {}
    }
    let mut out = String::new();
    for (index, finding) in findings.iter().enumerate() {
        let (row, head) = if index == 0 {
            ("<tr class=\"first\">", head(findings.len()))
        } else {
            ("<tr>", String::new())
        };
        let _ = writeln!(
            out,
            "{row}{head}<td data-name=\"the paper\">{}</td><td data-name=\"here\">{}</td><td>{}</td></tr>",
            text(&finding.paper),
            text(&finding.here),
            badge(finding.agrees)
        );
    }
    out
}

fn badge(agrees: Agreement) -> String {
    let class = match agrees {
        Agreement::Yes => "yes",
        Agreement::Partly => "partly",
        Agreement::No => "no",
        Agreement::NotComparable => "skipped",
    };
    format!("<b class=\"{class}\">{}</b>", story::verdict(agrees))
}

fn ratios(story: &Story<'_>) -> String {
    let (servers, ratios) = story.ratios();
    if ratios.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>Ratios</h2>\n<p>One figure divided by another of the same server; 1 is equal.</p>\n\
         <div class=\"wide\"><table class=\"figures\"><thead><tr><th>ratio</th>",
    );
    for who in &servers {
        let _ = write!(out, "<th>{}</th>", who.name());
    }
    out += "<th>experiment</th></tr></thead>\n<tbody>\n";
    for (section, ratio) in ratios {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", text(&ratio.label));
        for who in &servers {
            let _ = write!(out, "<td>{}</td>", story::ratio(ratio, *who));
        }
        let name = story::file_name(&section.record.name);
        let quick = if section.record.quick {
            " <b class=\"quick\">quick</b>"
        } else {
            ""
        };
        let _ = writeln!(out, "<td><a href=\"#{name}\">{name}</a>{quick}</td></tr>");
    }
    out + "</tbody></table></div>\n"
}

fn experiment(story: &Story<'_>, section: &Section<'_>) -> String {
    let record = section.record;
    let mut out = format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n",
        story::file_name(&record.name),
        text(section.title)
    );
    if record.quick {
        let _ = writeln!(out, "<p class=\"alarm\">{}</p>", story::QUICK);
    }
    let _ = writeln!(out, "<p><b>The paper:</b> {}</p>", text(section.paper));
    if !section.how.is_empty() {
        let _ = writeln!(out, "<p><b>Here:</b> {}</p>", text(section.how));
    }
    match &record.outcome {
        Outcome::Skipped(why) => {
            let _ = writeln!(out, "<p class=\"note\"><b>Skipped:</b> {}</p>", text(why));
        }
        Outcome::Failed(why) => {
            let first = story::first_line(why);
            let _ = writeln!(out, "<p class=\"alarm\"><b>Failed:</b> {}</p>", text(first));
            if first != why.as_str() {
                let _ = writeln!(out, "<pre>{}</pre>", escape(why));
            }
        }
        Outcome::Measured(measured) => {
            out += "<ul class=\"findings\">\n";
            for finding in &measured.findings {
                let _ = writeln!(
                    out,
                    "<li>{} {} <small>The paper: {}</small></li>",
                    badge(finding.agrees),
                    text(&finding.here),
                    text(&finding.paper)
                );
            }
            out += "</ul>\n";
            for picture in &section.pictures {
                let _ = writeln!(out, "<figure>{}</figure>", picture.svg);
            }
            out.extend(measured.tables.iter().map(table));
        }
    }
    out + &foot(story, section) + "</section>\n"
}

/// Warnings, commands, where the raw data is.
fn foot(story: &Story<'_>, section: &Section<'_>) -> String {
    let record = section.record;
    let mut out = String::new();
    for warning in own_warnings(story, section) {
        out += &note(warning);
    }
    if !record.commands.is_empty() {
        let _ = writeln!(
            out,
            "<details><summary>Commands ({})</summary><pre>{}</pre></details>",
            record.commands.len(),
            escape(&record.commands.join("\n"))
        );
    }
    let _ = write!(out, "<p class=\"foot\">{}.", text(&section.when()));
    if story.machines.len() > 1 {
        let _ = write!(
            out,
            " Measured on {}: {}.",
            section.machine + 1,
            text(&story::machine_line(&record.machine))
        );
    }
    let _ = writeln!(
        out,
        " <a href=\"{}/{}\">Raw data</a></p>",
        escape(&story.data),
        section.file()
    );
    out
}

fn note(warning: &str) -> String {
    format!("<p class=\"note\"><b>Note:</b> {}</p>\n", text(warning))
}

fn table(table: &Table) -> String {
    let mut out = String::from("<div class=\"wide\"><table class=\"figures\">");
    if !table.title.is_empty() {
        let _ = write!(out, "<caption>{}</caption>", text(&table.title));
    }
    out += "\n<thead><tr>";
    for column in &table.columns {
        let _ = write!(out, "<th>{}</th>", text(column));
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        out += "<tr>";
        for (index, cell) in row.iter().enumerate() {
            let _ = match index {
                0 => write!(out, "<th scope=\"row\">{}</th>", text(cell)),
                _ => write!(out, "<td>{}</td>", text(cell)),
            };
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}

/// Text in which nothing is markup, between quotes too.
pub(super) fn escape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for letter in raw.chars() {
        match letter {
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            other => out.push(other),
        }
    }
    out
}

/// Escaped, with `code` between two of these.
fn text(raw: &str) -> String {
    let pieces: Vec<String> = raw.split('`').map(escape).collect();
    if pieces.len().is_multiple_of(2) {
        return pieces.join("`");
    }
    let mut out = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        let _ = match index % 2 {
            0 => write!(out, "{piece}"),
            _ => write!(out, "<code>{piece}</code>"),
        };
    }
    out
}

/// Pictures are drawn for white; on a dark page each of their colours has another.
fn dark_pictures() -> String {
    let mut style = String::from("@media screen and (prefers-color-scheme: dark) {\n");
    for (light, dark) in canvas::DARK {
        let _ = writeln!(
            style,
            "svg [fill=\"{light}\"] {{ fill: {dark} }} svg [stroke=\"{light}\"] {{ stroke: {dark} }}"
        );
    }
    style + "}\n"
}

const STYLE: &str = "\
:root { --page: #ffffff; --ink: #222222; --soft: #5a5f66; --line: #d9dce0; --shade: #f5f6f8; --link: #0b5cad;
  --yes: #d9f2e3; --partly: #fff0c9; --no: #ffdcd8; --plain: #e8eaed; --alarm: #b00020; }
@media screen and (prefers-color-scheme: dark) {
  :root { --page: #16181b; --ink: #e4e4e4; --soft: #a3a6ab; --line: #3c3f44; --shade: #1f2226; --link: #7cb8f5;
    --yes: #15472d; --partly: #56420a; --no: #66231c; --plain: #33373d; --alarm: #ff7b8a; }
}
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100% }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 62rem; margin: 0 auto; padding: 1rem }
h1 { line-height: 1.2 }
h2 { margin: 2.5rem 0 .5rem; padding-top: .5rem; border-top: 1px solid var(--line); line-height: 1.25 }
p, li, dl { max-width: 46rem } p, li, td, th { overflow-wrap: break-word }
a { color: var(--link) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 1rem 0 }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
code, pre { font: .875em/1.5 ui-monospace, monospace }
code { background: var(--shade); padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere }
pre { background: var(--shade); padding: .75rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere }
.wide { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .9375rem }
caption { text-align: left; font-weight: 600; padding: .35rem 0 }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line); font-weight: normal }
thead th { color: var(--soft); border-bottom-width: 2px }
.summary { width: 100% } .summary thead th { width: 35% } .summary thead th:first-child { width: 20% } .summary thead th:last-child { width: 10% }
.figures th[scope=row] { min-width: 9rem } .figures td { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } .figures thead th:not(:first-child) { text-align: right }
b.yes, b.partly, b.no, b.skipped, b.quick { display: inline-block; padding: 0 .5em; border-radius: 1em; font-size: .8125rem; font-weight: 600; white-space: nowrap }
b.yes { background: var(--yes) } b.partly { background: var(--partly) } b.no { background: var(--no) } b.skipped { background: var(--plain) }
b.quick { background: var(--alarm); color: var(--page) }
.alarm { border: 2px solid var(--alarm); border-radius: 6px; padding: .6rem .9rem; color: var(--alarm); font-weight: 600 }
.note { border-left: 4px solid var(--line); padding: .2rem .9rem }
.findings { list-style: none; padding: 0 } .findings li { margin: .6rem 0 } .findings small { display: block; color: var(--soft) }
figure { margin: 1.25rem 0; overflow-x: auto } figure svg { display: block; width: 100%; max-width: 760px; min-width: 30rem; height: auto }
.foot { color: var(--soft); font-size: .875rem }
@media (max-width: 40rem) {
  .summary, .summary tbody, .summary tr, .summary th, .summary td { display: block; width: auto !important; border: 0; padding: .15rem 0 }
  .summary thead { display: none } .summary tr { padding: .4rem 0; border-bottom: 1px solid var(--line) } .summary th { font-weight: 600 }
  .summary td[data-name]::before { content: attr(data-name) ': '; color: var(--soft) }
}
@media print {
  body { font-size: 10pt } main { max-width: none; padding: 0 } a { color: inherit; text-decoration: none }
  figure, tr, .alarm, .note { break-inside: avoid } h2 { break-after: avoid } figure svg { min-width: 0; max-width: 100% }
  .wide, figure { overflow: visible } b[class] { border: 1px solid #888 } thead { display: table-header-group }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_marked_and_all_else_escaped() {
        assert_eq!(text("a `b<c` \"d\""), "a <code>b&lt;c</code> &quot;d&quot;");
        assert_eq!(text("one ` <i>"), "one ` &lt;i&gt;");
    }
}
