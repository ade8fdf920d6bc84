use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// The port of every party of a case; each has an address of its own.
const PORT: u16 = 23060;

/// One test: its addresses, and its folder, which is kept when the test fails.
pub struct Case {
    name: String,
    folder: Option<tempfile::TempDir>,
    number: u8,
}

impl Case {
    /// `name` is for the folder's.
    ///
    /// # Panics
    /// When no folder can be made.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(&format!("sipolis-{name}-"))
            .tempdir();
        Self {
            name: name.to_owned(),
            folder: Some(folder.expect("a folder for the case")),
            number: free_number(),
        }
    }

    /// The address of a party: 1 is the server. 127.P.N.party, where P tells processes apart and N cases.
    #[must_use]
    pub fn host(&self, party: u8) -> IpAddr {
        host(self.number, party)
    }

    /// Address and port of a party.
    #[must_use]
    pub fn address(&self, party: u8) -> SocketAddr {
        SocketAddr::new(self.host(party), PORT)
    }

    /// A path in the case's folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder
            .as_ref()
            .map_or_else(PathBuf::new, |folder| folder.path().join(name))
    }

    /// Writes a file into the case's folder.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let parent = path.parent().map(std::fs::create_dir_all);
        parent.transpose().expect("a folder");
        std::fs::write(&path, text).expect("a file in the case's folder");
        path
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            eprintln!(
                "{}: logs and messages are in {}",
                self.name,
                folder.keep().display()
            );
        }
    }
}

/// A number that no other case has, not even one of another process whose id ends alike.
fn free_number() -> u8 {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    within(1, "an address that nobody uses", || {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        UdpSocket::bind((host(number, 1), PORT))
            .ok()
            .map(|_| number)
    })
}

fn host(number: u8, party: u8) -> IpAddr {
    let process = 1 + (std::process::id() % 250) as u8;
    Ipv4Addr::new(127, process, number, party).into()
}

/// Asks until there is an answer.
///
/// # Panics
/// When there is none after `seconds`; `what` says what was awaited.
pub fn within<T>(seconds: u64, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "{what}: not within {seconds} s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Says why a test cannot run here, past the harness's capture, so that `cargo xtask test` counts it.
pub fn skip(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
}

/// The text of a file; empty when there is none.
pub(crate) fn text(path: &Path) -> String {
    std::fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}
