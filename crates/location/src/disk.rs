use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::{Binding, Location, Wall, snapshot};

/// The file operations the journal and the snapshot need, so that a simulation can fail and tear them.
pub trait Disk: Send {
    /// Appends to a file, creating it, and flushes it to stable storage. After an error the file's tail is unknown.
    /// # Errors
    /// As the system says.
    fn append(&mut self, file: &str, bytes: &[u8]) -> io::Result<()>;
    /// Cuts a file to a length and flushes. A file that is not there is cut already.
    /// # Errors
    /// As the system says.
    fn truncate(&mut self, file: &str, len: u64) -> io::Result<()>;
    /// Reads a whole file.
    /// # Errors
    /// As the system says.
    fn read(&mut self, file: &str) -> io::Result<Vec<u8>>;
    /// Names of the files there.
    /// # Errors
    /// As the system says.
    fn list(&mut self) -> io::Result<Vec<String>>;
    /// Removes a file.
    /// # Errors
    /// As the system says.
    fn remove(&mut self, file: &str) -> io::Result<()>;
    /// Begins to write a snapshot that takes the place of the one before, all or nothing. Does not wait for it.
    fn snapshot_start(&mut self, job: SnapshotJob);
    /// How the snapshot begun last went, its size in bytes; `None` while it is being written, and once that was told.
    fn snapshot_poll(&mut self) -> Option<io::Result<u64>>;
    /// Reads the snapshot, binding by binding, oldest first within an address-of-record. `None`: there is none.
    /// # Errors
    /// As the system says, or because what is there is not a snapshot.
    fn snapshot_read(
        &mut self,
        each: &mut dyn FnMut(&[u8], Binding),
    ) -> io::Result<Option<SnapshotRead>>;
}

/// What to write a snapshot of.
pub struct SnapshotJob {
    /// To be walked with [`Location::scan`].
    pub location: Arc<Location>,
    /// The last journal segment that the snapshot makes unnecessary.
    pub covers: u32,
    /// Bindings that end before are left out.
    pub now: Wall,
}

/// What a snapshot says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotRead {
    /// The last journal segment that it makes unnecessary.
    pub covers: u32,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A directory of the file system, locked against a second server for as long as this lives.
pub struct FileDisk {
    dir: PathBuf,
    /// The file appended to last, kept open.
    appending: Option<(String, File)>,
    /// The thread that writes a snapshot, or why there is none.
    snapshot: Option<io::Result<JoinHandle<io::Result<u64>>>>,
    snapshot_cancel: Arc<AtomicBool>,
    /// The lock ends with it.
    _lock: File,
}

/// Why a data directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server has it.
    #[error(
        "the data directory {dir} is in use by another server{}: stop that one, or give this one a directory of its own",
        process_in(.process)
    )]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// Process id of the other server as it wrote it down; empty when it did not.
        process: String,
    },
    /// The system refuses.
    #[error(
        "can't use the data directory {dir}: {source}; it must be writable by the user that runs the server"
    )]
    Io {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

fn process_in(process: &str) -> String {
    if process.is_empty() {
        String::new()
    } else {
        format!(" (process {process})")
    }
}

impl FileDisk {
    /// Opens a directory, making it (mode 0700) when it is not there, and locks it.
    ///
    /// # Errors
    /// When another server has it, or the system refuses.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let io_error = |source| OpenError::Io {
            dir: dir.to_owned(),
            source,
        };
        make_private_dir(dir).map_err(io_error)?;
        let lock_path = dir.join(LOCK_FILE);
        let mut lock = open_private(OpenOptions::new().read(true).write(true), &lock_path)
            .map_err(io_error)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let process = fs::read_to_string(&lock_path).unwrap_or_default();
                return Err(OpenError::InUse {
                    dir: dir.to_owned(),
                    process: process.trim().to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(io_error(source)),
        }
        // For people only: a full disk must not keep the server from starting.
        let _ = lock
            .set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        Ok(Self {
            dir: dir.to_owned(),
            appending: None,
            snapshot: None,
            snapshot_cancel: Arc::default(),
            _lock: lock,
        })
    }

    fn open_to_append(&mut self, file: &str) -> io::Result<&mut File> {
        if self.appending.as_ref().is_none_or(|(name, _)| name != file) {
            let path = self.dir.join(file);
            let opened = open_private(OpenOptions::new().append(true), &path)?;
            // Also when it was there: an attempt before may have failed between making it and this.
            sync_dir(&self.dir)?;
            self.appending = Some((file.to_owned(), opened));
        }
        Ok(&mut self.appending.as_mut().expect("set just now").1)
    }
}

impl Disk for FileDisk {
    fn append(&mut self, file: &str, bytes: &[u8]) -> io::Result<()> {
        let file = self.open_to_append(file)?;
        file.write_all(bytes)?;
        file.sync_data()
    }

    fn truncate(&mut self, file: &str, len: u64) -> io::Result<()> {
        self.appending = None;
        match OpenOptions::new().write(true).open(self.dir.join(file)) {
            Ok(opened) => {
                opened.set_len(len)?;
                opened.sync_all()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn read(&mut self, file: &str) -> io::Result<Vec<u8>> {
        fs::read(self.dir.join(file))
    }

    fn list(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            // What is not UTF-8 is none of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn remove(&mut self, file: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(file))
    }

    fn snapshot_start(&mut self, job: SnapshotJob) {
        let dir = self.dir.clone();
        let cancel = Arc::clone(&self.snapshot_cancel);
        let thread = std::thread::Builder::new().name("snapshot".into());
        self.snapshot = Some(thread.spawn(move || snapshot::write(&dir, &job, &cancel)));
    }

    fn snapshot_poll(&mut self) -> Option<io::Result<u64>> {
        let is_over = |started: &mut io::Result<JoinHandle<_>>| {
            started.as_ref().map_or(true, JoinHandle::is_finished)
        };
        let panicked = |_| Err(io::Error::other("the snapshot's thread panicked"));
        let started = self.snapshot.take_if(is_over)?;
        Some(started.and_then(|thread| thread.join().unwrap_or_else(panicked)))
    }

    fn snapshot_read(
        &mut self,
        each: &mut dyn FnMut(&[u8], Binding),
    ) -> io::Result<Option<SnapshotRead>> {
        snapshot::read(&self.dir, each)
    }
}

impl Drop for FileDisk {
    /// Gives up a snapshot that is being written: what it would replace is still there.
    fn drop(&mut self) {
        self.snapshot_cancel.store(true, Ordering::Relaxed);
        if let Some(Ok(thread)) = self.snapshot.take() {
            let _ = thread.join();
        }
    }
}

/// Makes a directory that only its owner can enter; leaves alone one that is there.
pub(crate) fn make_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Opens a file, making it readable by its owner only.
pub(crate) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.create(true).mode(0o600).open(path)
}

/// Makes what was created, renamed or removed in a directory survive a crash of the machine.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

const LOCK_FILE: &str = "lock";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_is_for_one_server_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("data");
        let first = FileDisk::open(&dir).unwrap();
        let Err(error) = FileDisk::open(&dir) else {
            panic!("opened twice");
        };
        let message = error.to_string();
        assert!(
            message.contains(&format!("(process {})", std::process::id())),
            "{message}"
        );
        drop(first);
        assert!(FileDisk::open(&dir).is_ok());
    }

    #[test]
    fn what_is_made_is_for_its_owner_only() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("data");
        let mut disk = FileDisk::open(&dir).unwrap();
        disk.append("journal-00000001.log", b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&dir.join("journal-00000001.log")), 0o600);
        assert_eq!(mode(&dir.join(LOCK_FILE)), 0o600);
    }

    #[test]
    fn appending_goes_on_behind_a_cut() {
        let dir = tempfile::tempdir().unwrap();
        let mut disk = FileDisk::open(dir.path()).unwrap();
        disk.truncate("a", 0).unwrap();
        disk.append("a", b"12345").unwrap();
        disk.truncate("a", 3).unwrap();
        disk.append("a", b"xy").unwrap();
        assert_eq!(disk.read("a").unwrap(), b"123xy");
        disk.remove("a").unwrap();
        assert_eq!(disk.list().unwrap(), [LOCK_FILE]);
    }
}
