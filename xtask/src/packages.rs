//! Debian packages that the tests need.

use crate::run::Run;
use std::path::Path;

/// Package, and a file that is there once it is installed.
const PACKAGES: [(&str, &str); 5] = [
    ("sip-tester", "/usr/bin/sipp"),
    ("baresip-core", "/usr/lib/baresip/modules/ausine.so"),
    ("sipsak", "/usr/bin/sipsak"),
    ("valgrind", "/usr/bin/valgrind"),
    ("g++", "/usr/bin/g++"),
];

/// Installs what is missing; asks the package manager for nothing when all is there.
///
/// # Errors
/// When a package is missing and cannot be installed.
pub(crate) fn install() -> Result<(), String> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, file)| !Path::new(file).exists())
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        println!("all packages are there");
        return Ok(());
    }
    let install = Run::new("apt-get install --yes --no-install-recommends")
        .args(&missing)
        .env("DEBIAN_FRONTEND", "noninteractive");
    // A fresh image has no package lists; they are also what a stale one needs.
    let done = Run::new("apt-get update")
        .run()
        .and_then(|()| install.run());
    done.map_err(|why| {
        format!(
            "{why}\nThe tests need these Debian packages: {}. Install them as root: apt-get install {}",
            missing.join(", "),
            missing.join(" ")
        )
    })
}
