use crate::define::{Key, Reload, Section};
use crate::{SECTIONS, define::dotted};
use std::fmt::Write;

/// The text of `docs/configuration.md`: `sipolis check --reference` prints it.
#[must_use]
pub fn reference_page() -> String {
    let mut page = String::from(INTRODUCTION);
    for section in SECTIONS {
        write_section(section, &mut page);
    }
    page
}

const INTRODUCTION: &str = "\
# Configuration

`sipolis serve` needs no configuration. To change something, write a file and name it: `sipolis serve --config sipolis.toml`.

- The file is [TOML](https://toml.io). A key that is not there has its default; a key that is not known is an error.
- `sipolis check --config sipolis.toml` reads the file and says what is wrong with it, and with the machine.
- Options on the command line (`--listen`, `--data`, `--domain`, `--advertise`, `--workers`, `--auth`) win over the file.
- `kill -HUP` makes a running server read the file again: the whole new one, or, when anything is wrong with it, the old one. Keys marked
  *waits for a restart* keep their old value until the next start, and the log names them.

This page is made from the definition in `crates/config/src/settings.rs` by `sipolis check --reference > docs/configuration.md`.
";

fn write_section(section: &Section, page: &mut String) {
    let title = match section.name {
        "" => String::from("Before the first table"),
        name => format!("[{name}]"),
    };
    let _ = write!(page, "\n## {title}\n");
    if !section.name.is_empty() {
        let _ = write!(page, "\n{}\n", joined(section.doc));
    }
    for key in section.keys {
        write_key(section, key, page);
    }
}

fn write_key(section: &Section, key: &Key, page: &mut String) {
    let reload = match key.reload {
        Reload::Hup => "taken over",
        Reload::Restart => "waits for a restart",
    };
    let default = match (key.default)() {
        text if text == "not set" => text,
        text => format!("`{text}`"),
    };
    let _ = write!(
        page,
        "\n### {}\n\n{}\n\n- Default: {default} ({})\n- Allowed: {}\n- Cost when raised: {}\n- On HUP: {reload}\n",
        dotted(section.name, key.name),
        joined(key.doc),
        key.unit,
        (key.allowed)(),
        key.cost,
    );
}

/// The lines of a doc comment as one paragraph.
fn joined(doc: &[&str]) -> String {
    let lines: Vec<_> = doc.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_the_one_that_the_definition_makes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let there = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            there == reference_page(),
            "docs/configuration.md is out of date: run `cargo run -- check --reference > docs/configuration.md`"
        );
    }

    #[test]
    fn every_key_says_what_it_means_and_costs() {
        for key in SECTIONS.iter().flat_map(|section| section.keys) {
            assert!(joined(key.doc).len() > 20, "{}", key.name);
            assert!(!key.unit.is_empty() && !key.cost.is_empty(), "{}", key.name);
        }
    }
}
