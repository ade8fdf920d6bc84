//! Licences of every dependency against the list in deny.toml.

use crate::run::{Run, root};

/// Every dependency of the lock file has a licence that deny.toml allows.
///
/// The same file serves cargo-deny, which checks advisories and duplicates too but takes long to build.
///
/// # Errors
/// The packages with another licence, or with none.
pub(crate) fn check() -> Result<(), String> {
    let allowed = allowed()?;
    let text =
        Run::new("cargo metadata --format-version 1 --filter-platform x86_64-unknown-linux-gnu")
            .read()?;
    let metadata: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array();
    let packages = packages.ok_or("cargo metadata lists no packages")?;
    let mut breaches = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        if !satisfied(licence, &allowed) {
            breaches.push(format!(
                "{name}: licence `{licence}` is not in deny.toml; replace the crate, or allow it there with the reason"
            ));
        }
    }
    if breaches.is_empty() {
        println!("licences of {} packages are allowed", packages.len());
        Ok(())
    } else {
        Err(breaches.join("\n"))
    }
}

fn allowed() -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root().join("deny.toml"));
    let text = text.map_err(|error| format!("deny.toml: {error}"))?;
    let table: toml::Table = text
        .parse()
        .map_err(|error| format!("deny.toml: {error}"))?;
    let list = table.get("licenses").and_then(|part| part.get("allow"));
    let list = list.and_then(toml::Value::as_array);
    let list = list.ok_or("deny.toml has no [licenses] allow")?;
    Ok(list
        .iter()
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect())
}

/// SPDX expression: `OR` needs one side, `AND` both; `/` is the old way to write `OR`.
fn satisfied(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ");
    let mut words = tokens(&expression).into_iter().peekable();
    either(&mut words, allowed) && words.next().is_none()
}

type Words = std::iter::Peekable<std::vec::IntoIter<String>>;

fn either(words: &mut Words, allowed: &[String]) -> bool {
    let mut holds = both(words, allowed);
    while words.next_if(|word| word == "OR").is_some() {
        holds |= both(words, allowed);
    }
    holds
}

fn both(words: &mut Words, allowed: &[String]) -> bool {
    let mut holds = one(words, allowed);
    while words.next_if(|word| word == "AND").is_some() {
        holds &= one(words, allowed);
    }
    holds
}

fn one(words: &mut Words, allowed: &[String]) -> bool {
    match words.next() {
        Some(open) if open == "(" => {
            let holds = either(words, allowed);
            words.next_if(|word| word == ")").is_some() && holds
        }
        Some(mut name) => {
            if words.next_if(|word| word == "WITH").is_some() {
                name = format!("{name} WITH {}", words.next().unwrap_or_default());
            }
            allowed.contains(&name)
        }
        None => false,
    }
}

fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    spaced.split_whitespace().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::satisfied;

    #[test]
    fn an_expression_needs_one_side_of_or_and_both_of_and() {
        let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"].map(String::from);
        for good in [
            "MIT",
            "MIT/GPL-3.0",
            "GPL-3.0 OR Apache-2.0 WITH LLVM-exception",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
        ] {
            assert!(satisfied(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(MIT"] {
            assert!(!satisfied(bad, &allowed), "{bad}");
        }
    }
}
