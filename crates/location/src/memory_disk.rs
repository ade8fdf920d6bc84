use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::journal::{decode_records, encode_record};
use crate::{Binding, Disk, SnapshotJob, SnapshotRead};

/// A disk in memory that runs full, tears its last write and forgets what was not flushed, when told to. For tests and
/// the simulation. Clones are the same disk, so that it survives the crash of a server that it was given to.
#[derive(Clone, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

/// What a crash leaves of the bytes that an interrupted append had not written yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tear {
    /// The file ends before them.
    Short,
    /// The file is as long as it should be, with zeros for them: its length was written before its data.
    Zeros,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    snapshot: Option<Snapshot>,
    /// Complete, but not yet in the place of the one before; or why there is none.
    snapshot_pending: Option<io::Result<Snapshot>>,
    capacity: Option<u64>,
    crash: Option<(u64, Tear)>,
    crashed: bool,
}

struct Snapshot {
    covers: u32,
    records: Vec<u8>,
}

impl MemoryDisk {
    /// An empty disk without a limit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes that there is room for; an append beyond writes what fits and fails, a snapshot beyond leaves the old one. `None`: no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity = bytes;
    }

    /// After so many more bytes appended, in the middle of an append or not, everything fails, until [`Self::restart`].
    pub fn crash_after(&self, bytes: u64, tear: Tear) {
        self.lock().crash = Some((bytes, tear));
    }

    /// The machine is up again, with what the disk has. Without a crash before: one between two writes.
    pub fn restart(&self) {
        let mut state = self.lock();
        state.crash = None;
        state.crashed = false;
        state.snapshot_pending = None;
    }

    /// Changes a byte of a file, as a failing disk does.
    ///
    /// # Panics
    /// When there is no such byte.
    pub fn spoil(&self, file: &str, at: usize) {
        self.lock().files.get_mut(file).expect("a file that exists")[at] ^= 0xff;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_alive(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.crashed {
            return Err(io::Error::other("the machine has crashed"));
        }
        Ok(state)
    }
}

impl State {
    fn room(&self) -> usize {
        let files: usize = self.files.values().map(Vec::len).sum();
        let used = files + self.snapshot.as_ref().map_or(0, |s| s.records.len());
        let left = |capacity: u64| capacity.saturating_sub(used as u64) as usize;
        self.capacity.map_or(usize::MAX, left)
    }
}

impl Disk for MemoryDisk {
    fn append(&mut self, file: &str, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock_alive()?;
        let room = state.room();
        let crash = state.crash.filter(|(left, _)| *left < bytes.len() as u64);
        let content = state.files.entry(file.to_owned()).or_default();
        if let Some((left, tear)) = crash {
            content.extend_from_slice(&bytes[..left as usize]);
            if tear == Tear::Zeros {
                content.resize(content.len() + bytes.len() - left as usize, 0);
            }
            state.crashed = true;
            return Err(io::Error::other("the machine crashes"));
        }
        let written = bytes.len().min(room);
        content.extend_from_slice(&bytes[..written]);
        if let Some((left, _)) = &mut state.crash {
            *left -= written as u64;
        }
        if written < bytes.len() {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn truncate(&mut self, file: &str, len: u64) -> io::Result<()> {
        if let Some(content) = self.lock_alive()?.files.get_mut(file) {
            content.truncate(len as usize);
        }
        Ok(())
    }

    fn read(&mut self, file: &str) -> io::Result<Vec<u8>> {
        let state = self.lock_alive()?;
        let content = state.files.get(file).ok_or(ErrorKind::NotFound)?;
        Ok(content.clone())
    }

    fn list(&mut self) -> io::Result<Vec<String>> {
        Ok(self.lock_alive()?.files.keys().cloned().collect())
    }

    fn remove(&mut self, file: &str) -> io::Result<()> {
        let removed = self.lock_alive()?.files.remove(file);
        removed.map(drop).ok_or(ErrorKind::NotFound.into())
    }

    fn snapshot_start(&mut self, job: SnapshotJob) {
        let mut records = Vec::new();
        let mut page = Some(0);
        while let Some(number) = page {
            page = job.location.scan(number, job.now, &mut |aor, bindings| {
                encode_record(&mut records, aor, bindings);
            });
        }
        let mut state = self.lock();
        state.snapshot_pending = Some(if records.len() > state.room() {
            Err(ErrorKind::StorageFull.into())
        } else {
            Ok(Snapshot {
                covers: job.covers,
                records,
            })
        });
    }

    fn snapshot_poll(&mut self) -> Option<io::Result<u64>> {
        let mut state = match self.lock_alive() {
            Ok(state) => state,
            Err(error) => return Some(Err(error)),
        };
        Some(state.snapshot_pending.take()?.map(|snapshot| {
            let bytes = snapshot.records.len() as u64;
            state.snapshot = Some(snapshot);
            bytes
        }))
    }

    fn snapshot_read(
        &mut self,
        each: &mut dyn FnMut(&[u8], Binding),
    ) -> io::Result<Option<SnapshotRead>> {
        let state = self.lock_alive()?;
        let Some(snapshot) = &state.snapshot else {
            return Ok(None);
        };
        decode_records(&snapshot.records, |aor, bindings| {
            bindings.iter().for_each(|b| each(aor, b.clone()));
        });
        Ok(Some(SnapshotRead {
            covers: snapshot.covers,
            bytes: snapshot.records.len() as u64,
        }))
    }
}
