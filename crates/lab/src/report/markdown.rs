//! The report as Markdown, its pictures beside it.

use std::fmt::Write as _;

use super::story::{self, Section, Story, own_warnings};
use crate::record::{Outcome, Table};

pub(super) fn page(story: &Story<'_>) -> String {
    let mut page = format!("# {}\n\n{}\n\n", story::TITLE, story::PREFACE);
    for alarm in story.alarms() {
        let _ = writeln!(page, "> [!CAUTION]\n> **{}**\n", text(&alarm));
    }
    page += &machines(story);
    page += &summary(story);
    page += &ratios(story);
    page += &not_done(story);
    for section in &story.sections {
        page += &experiment(story, section);
    }
    page
}

fn machines(story: &Story<'_>) -> String {
    let mut out = String::new();
    for (index, machine) in (1..).zip(&story.machines) {
        let number = if story.machines.len() > 1 {
            format!(" {index}")
        } else {
            String::new()
        };
        let _ = writeln!(out, "| measured on{number} | |\n|---|---|");
        for (name, value) in story::machine(machine) {
            let _ = writeln!(out, "| {name} | {} |", text(&value));
        }
        if story.machines.len() == 1 {
            let _ = writeln!(out, "| when | {} |", story.dates());
        }
        out.push('\n');
    }
    for warning in &story.warnings {
        out += &note(warning);
    }
    let _ = write!(
        out,
        "{} The same as [one page](index.html). Measured and written again by:\n\n```sh\n{}\n```\n\n",
        story::PINNED,
        story::AGAIN
    );
    out
}

fn summary(story: &Story<'_>) -> String {
    let mut out = format!("## Summary\n\n{}\n\n", text(&story.counts()));
    out += "| experiment | the paper | here | agrees |\n|---|---|---|---|\n";
    for section in &story.sections {
        let anchor = story::file_name(&section.record.name);
        let quick = if section.record.quick {
            " **(quick)**"
        } else {
            ""
        };
        let mut name = format!("[{}](#{anchor}){quick}", text(section.title));
        for finding in section.findings() {
            let _ = writeln!(
                out,
                "| {name} | {} | {} | {} |",
                text(&finding.paper),
                text(&finding.here),
                story::verdict(finding.agrees)
            );
            name = String::new();
        }
        match &section.record.outcome {
            Outcome::Measured(_) if section.findings().is_empty() => {
                let _ = writeln!(
                    out,
                    "| {name} | | measured; nothing was concluded from it | |"
                );
            }
            Outcome::Measured(_) => {}
            Outcome::Skipped(why) => {
                let _ = writeln!(out, "| {name} | | skipped: {} | |", text(why));
            }
            Outcome::Failed(why) => {
                let _ = writeln!(
                    out,
                    "| {name} | | **failed**: {} | |",
                    text(story::first_line(why))
                );
            }
        }
    }
    out + "\n"
}

fn ratios(story: &Story<'_>) -> String {
    let (servers, ratios) = story.ratios();
    if ratios.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "## Ratios\n\nOne figure divided by another of the same server; 1 is equal.\n\n| ratio |",
    );
    for who in &servers {
        let _ = write!(out, " {} |", who.name());
    }
    let _ = write!(
        out,
        " experiment |\n|---|{}---|\n",
        "---:|".repeat(servers.len())
    );
    for (section, ratio) in ratios {
        let _ = write!(out, "| {} |", text(&ratio.label));
        for who in &servers {
            let _ = write!(out, " {} |", story::ratio(ratio, *who));
        }
        let name = story::file_name(&section.record.name);
        let quick = if section.record.quick {
            " **(quick)**"
        } else {
            ""
        };
        let _ = writeln!(out, " [{name}](#{name}){quick} |");
    }
    out + "\n"
}

fn not_done(story: &Story<'_>) -> String {
    if story.absent.is_empty() {
        return String::new();
    }
    format!("Not run, no record: {}.\n\n", story.absent.join(", "))
}

fn experiment(story: &Story<'_>, section: &Section<'_>) -> String {
    let record = section.record;
    let anchor = story::file_name(&record.name);
    let mut out = format!("<a id=\"{anchor}\"></a>\n\n## {}\n\n", text(section.title));
    if record.quick {
        let _ = writeln!(out, "> [!CAUTION]\n> **{}**\n", story::QUICK);
    }
    let _ = writeln!(out, "**The paper:** {}\n", text(section.paper));
    if !section.how.is_empty() {
        let _ = writeln!(out, "**Here:** {}\n", text(section.how));
    }
    match &record.outcome {
        Outcome::Skipped(why) => {
            let _ = writeln!(out, "**Skipped:** {}\n", text(why));
        }
        Outcome::Failed(why) => {
            let first = story::first_line(why);
            let _ = writeln!(out, "**Failed:** {}\n", text(first));
            if first != why.as_str() {
                out += &fenced("", why);
            }
        }
        Outcome::Measured(measured) => {
            for finding in &measured.findings {
                let verdict = story::verdict(finding.agrees);
                let _ = writeln!(
                    out,
                    "- {} — the paper: {} — agrees: **{verdict}**",
                    text(&finding.here),
                    text(&finding.paper)
                );
            }
            out.push('\n');
            for picture in &section.pictures {
                let _ = writeln!(out, "![{}]({})\n", text(&picture.title), picture.file);
            }
            out.extend(measured.tables.iter().map(table));
        }
    }
    out + &foot(story, section)
}

/// Warnings, commands, where the raw data is.
fn foot(story: &Story<'_>, section: &Section<'_>) -> String {
    let record = section.record;
    let mut out = String::new();
    for warning in own_warnings(story, section) {
        out += &note(warning);
    }
    if !record.commands.is_empty() {
        let commands = record.commands.join("\n");
        let _ = write!(
            out,
            "<details><summary>Commands ({})</summary>\n\n{}</details>\n\n",
            record.commands.len(),
            fenced("sh", &commands)
        );
    }
    let _ = write!(out, "{}.", section.when());
    if story.machines.len() > 1 {
        let _ = write!(
            out,
            " Measured on {}: {}.",
            section.machine + 1,
            text(&story::machine_line(&record.machine))
        );
    }
    let _ = writeln!(out, " [Raw data]({}/{})\n", story.data, section.file());
    out
}

fn table(table: &Table) -> String {
    let mut out = String::new();
    if !table.title.is_empty() {
        let _ = writeln!(out, "**{}**\n", text(&table.title));
    }
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|c| text(c)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    out += &line(&table.columns);
    let rest = table.columns.len().saturating_sub(1);
    let _ = writeln!(out, "|---|{}", "---:|".repeat(rest));
    for row in &table.rows {
        out += &line(row);
    }
    out + "\n"
}

fn note(warning: &str) -> String {
    format!("> [!WARNING]\n> {}\n\n", text(warning))
}

/// Text as it is, behind more backquotes than are in it.
fn fenced(language: &str, raw: &str) -> String {
    let fence = "`".repeat(longest_run(raw).max(2) + 1);
    format!("{fence}{language}\n{raw}\n{fence}\n\n")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text that stays text: nothing in it is markup, but `code` between two of these.
fn text(raw: &str) -> String {
    let raw = raw.split_whitespace().collect::<Vec<_>>().join(" ");
    let pieces: Vec<&str> = raw.split('`').collect();
    let paired = pieces.len() % 2 == 1;
    let mut out = String::new();
    for (index, piece) in pieces.iter().enumerate() {
        if paired && index % 2 == 1 {
            let _ = write!(out, "`{}`", piece.replace('|', "\\|"));
            continue;
        }
        if !paired && index > 0 {
            out += "\\`";
        }
        for letter in piece.chars() {
            match letter {
                '<' => out += "&lt;",
                '>' => out += "&gt;",
                '&' => out += "&amp;",
                '\\' | '*' | '_' | '[' | ']' | '|' | '~' => out.extend(['\\', letter]),
                other => out.push(other),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_stays_text() {
        assert_eq!(text("a|b *c* <i>\n# d"), "a\\|b \\*c\\* &lt;i&gt; # d");
        assert_eq!(
            text("the cache `sock_inode_cache`"),
            "the cache `sock_inode_cache`"
        );
        assert_eq!(text("one ` alone <b>"), "one \\` alone &lt;b&gt;");
        assert_eq!(text("![x](http://evil)"), "!\\[x\\](http://evil)");
    }
}
