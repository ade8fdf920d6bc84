//! Ono and Schulzrinne on SCTP: associations that a server holds. Not done yet.

use std::path::Path;

use crate::experiment::{Experiment, Stop};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sctp-memory",
    title: "SCTP: memory of an association",
    paper: "Ono and Schulzrinne (SCTP): one-to-one sockets hold 74,000 associations with 11.1 KB each, one-to-many 90,000 with 8.9 KB each; \
            TCP 419,000 with 2.3 KB each",
    how: "As connections-memory, for both styles of socket.",
    run: |_| Err(Stop::Skip(missing(Path::new("/proc/net/sctp").exists()))),
};

/// Why nothing of SCTP is measured.
pub(super) fn missing(in_kernel: bool) -> String {
    let kernel = if in_kernel {
        "This kernel has SCTP, but"
    } else {
        "This kernel has no SCTP (no /proc/net/sctp; try `modprobe sctp`), and"
    };
    format!(
        "{kernel} neither server, echo server nor load speaks it yet: they get SCTP as a transport in a later version. \
         Then this runs wherever the kernel has it."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_the_kernel_only_where_it_is_the_kernel() {
        assert!(missing(false).contains("modprobe sctp"));
        assert!(!missing(true).contains("modprobe"));
        assert!(missing(true).contains("speaks it yet"));
    }
}
