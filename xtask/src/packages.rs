//! Debian packages that the tests and comparisons need.

use crate::run::Run;
use std::path::Path;

/// Package, and a file that is there once it is installed.
const PACKAGES: [(&str, &str); 6] = [
    ("sip-tester", "/usr/bin/sipp"),
    ("baresip-core", "/usr/lib/baresip/modules/ausine.so"),
    ("sipsak", "/usr/bin/sipsak"),
    ("valgrind", "/usr/bin/valgrind"),
    ("g++", "/usr/bin/g++"),
    ("kamailio", KAMAILIO),
];

/// The server that ours is compared with.
const KAMAILIO: &str = "/usr/sbin/kamailio";

/// Installs what the tests need.
///
/// # Errors
/// When a package is missing and cannot be installed.
pub(crate) fn install() -> Result<(), String> {
    install_missing(&PACKAGES)
}

/// Installs what comparisons need.
///
/// # Errors
/// When it is missing and cannot be installed.
pub(crate) fn install_peer() -> Result<(), String> {
    install_missing(&[("kamailio", KAMAILIO)])
}

/// Installs what is missing; asks the package manager for nothing when all is there.
fn install_missing(packages: &[(&str, &str)]) -> Result<(), String> {
    let missing: Vec<&str> = packages
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
            "{why}\nThese Debian packages are needed: {}. Install them as root: apt-get install {}",
            missing.join(", "),
            missing.join(" ")
        )
    })
}
