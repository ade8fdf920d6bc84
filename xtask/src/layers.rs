//! The arrows between crates, and what a layer must not know (ARCHITECTURE.md).

use crate::run::{Run, root};
use std::path::{Path, PathBuf};

/// Which workspace crates a crate may depend on, tests included.
const ARROWS: [(&str, &[&str]); 13] = [
    ("sip-wire", &[]),
    ("location", &[]),
    ("sip-core", &["sip-wire", "location"]),
    ("net", &["sip-wire"]),
    ("edge", &["net", "sip-core", "location", "sip-wire"]),
    ("config", &[]),
    ("admin", &["config", "edge", "location", "sip-core"]),
    ("loadgen", &["net", "sip-wire"]),
    ("lab", &["loadgen"]),
    ("sim", &["sip-core", "location", "sip-wire"]),
    (
        "sipolis",
        &[
            "admin", "config", "edge", "lab", "loadgen", "location", "net", "sip-core", "sip-wire",
        ],
    ),
    ("interop", &[]),
    ("xtask", &[]),
];

/// Crates on the path of every message, and what must not be linked into them.
const DATA_PLANE: [&str; 5] = ["sip-wire", "sip-core", "location", "net", "edge"];
const CONTROL_ONLY: [&str; 6] = [
    "tokio",
    "serde",
    "tracing",
    "tracing-subscriber",
    "rand",
    "getrandom",
];

/// Crates whose clippy.toml refuses clocks, sockets, files and threads.
const SANS_IO: [&str; 2] = ["sip-wire", "sip-core"];

/// The one crate that may hold `unsafe`.
const UNSAFE_CRATE: &str = "net";

/// Checks them all; prints one line for each that holds.
///
/// # Errors
/// Every breach, one a line, with what to do.
pub(crate) fn check() -> Result<(), String> {
    let members = members()?;
    let mut breaches = arrows(&members);
    breaches.extend(data_plane()?);
    breaches.extend(lint_leavers(&members));
    breaches.extend(clippy_lists()?);
    if !breaches.is_empty() {
        return Err(breaches.join("\n"));
    }
    println!("crate arrows go down only: {} crates", members.len());
    println!("data plane is free of {}", CONTROL_ONLY.join(", "));
    println!("unsafe code only in {UNSAFE_CRATE}");
    println!("no clock, socket, file or thread in {}", SANS_IO.join(", "));
    Ok(())
}

/// The crates without clock, socket, file and thread have the same list of what clippy refuses there.
fn clippy_lists() -> Result<Vec<String>, String> {
    let read = |name: &&str| {
        let path = root().join("crates").join(name).join("clippy.toml");
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let lists: Vec<String> = SANS_IO.iter().map(read).collect::<Result<_, _>>()?;
    let same = lists.windows(2).all(|pair| pair[0] == pair[1]);
    let breach = || {
        format!(
            "clippy.toml of {} differ; copy one over the other",
            SANS_IO.join(" and ")
        )
    };
    Ok((!same).then(breach).into_iter().collect())
}

/// A workspace member: its name, its folder, the workspace crates it names.
struct Member {
    name: String,
    folder: PathBuf,
    uses: Vec<String>,
}

fn members() -> Result<Vec<Member>, String> {
    let text = Run::new("cargo metadata --format-version 1 --no-deps").read()?;
    let metadata: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array();
    let packages = packages.ok_or("cargo metadata lists no packages")?;
    Ok(packages.iter().map(member).collect())
}

fn member(package: &serde_json::Value) -> Member {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let dependencies = package["dependencies"].as_array();
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    Member {
        name: text(&package["name"]),
        folder: manifest.parent().map(PathBuf::from).unwrap_or_default(),
        uses: dependencies
            .into_iter()
            .flatten()
            .filter(|dependency| dependency["path"].is_string())
            .map(|dependency| text(&dependency["name"]))
            .collect(),
    }
}

fn arrows(members: &[Member]) -> Vec<String> {
    let mut breaches = Vec::new();
    for Member { name, uses, .. } in members {
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| from == name) else {
            breaches.push(format!(
                "{name}: a crate without a layer; give it a line in xtask/src/layers.rs and in ARCHITECTURE.md"
            ));
            continue;
        };
        for to in uses.iter().filter(|to| !allowed.contains(&to.as_str())) {
            breaches.push(format!(
                "{name} -> {to}: not an arrow of ARCHITECTURE.md; let {to} hand in what {name} needs"
            ));
        }
    }
    breaches
}

/// Asks `cargo tree`, which resolves features for the one crate as it is built alone; `cargo metadata` unites them.
fn data_plane() -> Result<Vec<String>, String> {
    let mut breaches = Vec::new();
    for name in DATA_PLANE {
        let tree = Run::new("cargo tree --edges normal --prefix none --format {p} --package")
            .args([name])
            .read()?;
        let linked = tree.lines().filter_map(|line| line.split(' ').next());
        let mut found: Vec<&str> = linked.filter(|name| CONTROL_ONLY.contains(name)).collect();
        found.sort_unstable();
        found.dedup();
        breaches.extend(found.into_iter().map(|banned| {
            format!("{name} links {banned}: see cargo tree --package {name} --edges normal --invert {banned}")
        }));
    }
    Ok(breaches)
}

/// The compiler denies `unsafe` where the workspace's lints are in force, so look for who left them.
fn lint_leavers(members: &[Member]) -> Vec<String> {
    let lint = concat!("unsafe", "_code");
    let mut breaches = Vec::new();
    for Member { name, folder, .. } in members.iter().filter(|member| member.name != UNSAFE_CRATE) {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        let inherits = manifest
            .parse::<toml::Table>()
            .ok()
            .and_then(|table| table.get("lints")?.get("workspace")?.as_bool());
        if inherits != Some(true) {
            breaches.push(format!(
                "{name}: Cargo.toml lacks `[lints] workspace = true`, which denies unsafe code"
            ));
        }
        breaches.extend(
            sources(folder)
                .into_iter()
                .filter(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(lint)))
                .map(|path| {
                    let path = path
                        .strip_prefix(root())
                        .map(Path::to_owned)
                        .unwrap_or(path);
                    format!(
                        "{}: lifts {lint}; unsafe belongs in {UNSAFE_CRATE}",
                        path.display()
                    )
                }),
        );
    }
    breaches
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Member, arrows};
    use std::path::PathBuf;

    fn member(name: &str, uses: &[&str]) -> Member {
        Member {
            name: name.to_owned(),
            folder: PathBuf::new(),
            uses: uses.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn an_arrow_upwards_and_a_crate_without_a_layer_are_breaches() {
        let good = [
            member("edge", &["net", "sip-core"]),
            member("sip-wire", &[]),
        ];
        assert_eq!(arrows(&good), Vec::<String>::new());
        let bad = [member("sip-core", &["sip-wire", "net"]), member("new", &[])];
        let breaches = arrows(&bad);
        assert_eq!(breaches.len(), 2, "{breaches:?}");
        assert!(
            breaches[0].starts_with("sip-core -> net:"),
            "{}",
            breaches[0]
        );
        assert!(
            breaches[1].starts_with("new: a crate without a layer"),
            "{}",
            breaches[1]
        );
    }
}
