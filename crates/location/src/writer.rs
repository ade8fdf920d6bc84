use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use crate::recovery::{JournalState, Segment, recover, segment_name};
use crate::{Disk, Location, Recovery, SnapshotJob, Wall};

/// Writes the journal: takes what waits, appends it, flushes, says so. One for each [`Location`].
///
/// A segment that has grown is followed by a new one. Once all of them are much larger than the last snapshot, a new snapshot
/// is written beside, and the segments that it covers are removed.
pub struct Writer<D> {
    location: Arc<Location>,
    disk: D,
    options: WriterOptions,
    /// Those before the present one, oldest first.
    older: Vec<Segment>,
    present: Segment,
    /// Since when the journal can't be written; what stands behind `present.len` is unknown then.
    failing: Option<Wall>,
    snapshot: Snapshot,
    snapshot_len: u64,
    notices: Vec<Notice>,
}

/// When the journal is made smaller, and how often it is flushed.
#[derive(Clone, Copy, Debug)]
pub struct WriterOptions {
    /// A segment that has so many bytes is followed by a new one. As much memory is needed to read it at a start.
    pub segment_len_max: u64,
    /// A journal smaller than this is not worth a snapshot, in bytes.
    pub journal_len_min: u64,
    /// Time from one flush to the next under load, so that more changes share it; the first after a pause is at once.
    pub commit_interval: Duration,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            segment_len_max: 64 << 20,
            journal_len_min: 64 << 20,
            commit_interval: Duration::from_millis(2),
        }
    }
}

/// What [`Writer::step`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Nothing waits.
    Idle,
    /// A batch is on disk: tickets have become durable.
    Committed,
    /// The journal can't be written: tickets have failed.
    Failed,
    /// The journal can't be written, and it is too early to try again.
    Pausing,
}

/// Something for the log.
#[derive(Debug)]
pub enum Notice {
    /// Registrations are refused from now on. Said once.
    JournalFails(io::Error),
    /// Registrations are taken again.
    JournalWorks,
    /// A snapshot is written, of that many bytes.
    SnapshotWritten(u64),
    /// It is not; the journal grows until one is.
    SnapshotFailed(io::Error),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JournalFails(error) => write!(
                f,
                "can't write the journal: {error}; registrations are refused until it can be written, calls go on; \
                 make room on the disk of the data directory"
            ),
            Self::JournalWorks => {
                f.write_str("the journal can be written again, registrations are taken")
            }
            Self::SnapshotWritten(bytes) => {
                write!(f, "snapshot of the bindings written, {bytes} bytes")
            }
            Self::SnapshotFailed(error) => write!(
                f,
                "can't write the snapshot of the bindings: {error}; the journal grows until it can be, tried again in a minute"
            ),
        }
    }
}

/// What a [`Writer`] on a thread of its own calls.
pub struct Hooks {
    /// Tickets have become durable, or have failed: wake who waits for them. No lock is held.
    pub on_commit: Box<dyn FnMut() + Send>,
    /// Something for the log.
    pub on_notice: Box<dyn FnMut(Notice) + Send>,
}

enum Snapshot {
    None,
    Running { covers: u32 },
    Failed { at: Wall },
}

impl<D: Disk> Writer<D> {
    /// Recovers what the disk has into `location`, which must be empty, and goes on with a new segment.
    ///
    /// # Errors
    /// When the disk can't be read, or the snapshot is damaged. Damage in the journal is no error, but is in the [`Recovery`].
    pub fn open(
        location: Arc<Location>,
        mut disk: D,
        options: WriterOptions,
        now: Wall,
    ) -> io::Result<(Self, Recovery)> {
        let (state, recovery) = recover(&location, &mut disk, now)?;
        let JournalState {
            segments,
            snapshot_len,
            next,
        } = state;
        let writer = Self {
            location,
            disk,
            options,
            older: segments,
            present: Segment {
                number: next,
                len: 0,
            },
            failing: None,
            snapshot: Snapshot::None,
            snapshot_len,
            notices: Vec::new(),
        };
        Ok((writer, recovery))
    }

    /// Writes what waits, if anything does, and sees to the snapshot. In a simulation to be called over and over; else see [`Self::spawn`].
    pub fn step(&mut self, now: Wall) -> Step {
        self.poll_snapshot(now);
        if let Some(since) = self.failing {
            if now.0.abs_diff(since.0) < RETRY_MS {
                return Step::Pausing;
            }
            // The segments that it makes unnecessary may be what fills the disk: it gets what room there is first.
            self.start_snapshot_if_due(now);
            if matches!(self.snapshot, Snapshot::Running { .. }) {
                return Step::Pausing;
            }
            if let Err(error) = self.cut_unknown_tail() {
                return self.fail(error, now);
            }
        }
        let Some(batch) = self.location.take_batch() else {
            return Step::Idle;
        };
        let name = segment_name(self.present.number);
        if let Err(error) = self.disk.append(&name, &batch.bytes) {
            self.location.batch_failed(batch);
            // At once, for it takes room; what matters is that it succeeds before the next attempt.
            let _ = self.cut_unknown_tail();
            return self.fail(error, now);
        }
        self.present.len += batch.bytes.len() as u64;
        self.location.batch_written(batch);
        if self.failing.take().is_some() {
            self.notices.push(Notice::JournalWorks);
        }
        if self.present.len >= self.options.segment_len_max {
            self.begin_segment();
        }
        self.start_snapshot_if_due(now);
        Step::Committed
    }

    /// What happened since the last call, for the log.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn fail(&mut self, error: io::Error, now: Wall) -> Step {
        if self.failing.replace(now).is_none() {
            self.notices.push(Notice::JournalFails(error));
        }
        Step::Failed
    }

    fn cut_unknown_tail(&mut self) -> io::Result<()> {
        let name = segment_name(self.present.number);
        self.disk.truncate(&name, self.present.len)
    }

    fn begin_segment(&mut self) {
        if self.present.len > 0 {
            self.older.push(self.present);
            self.present = Segment {
                number: self.present.number + 1,
                len: 0,
            };
        }
    }

    fn start_snapshot_if_due(&mut self, now: Wall) {
        match self.snapshot {
            Snapshot::Running { .. } => return,
            Snapshot::Failed { at } if now.0.abs_diff(at.0) < SNAPSHOT_RETRY_MS => return,
            _ => {}
        }
        let journal_len = self.present.len + self.older.iter().map(|s| s.len).sum::<u64>();
        let due = journal_len > self.options.journal_len_min.max(2 * self.snapshot_len);
        if !due && self.older.len() < SEGMENT_COUNT_MAX {
            return;
        }
        // What changes from here on is in the new segment; what the snapshot sees of it besides does no harm.
        self.begin_segment();
        let covers = self.present.number - 1;
        self.snapshot = Snapshot::Running { covers };
        self.disk.snapshot_start(SnapshotJob {
            location: Arc::clone(&self.location),
            covers,
            now,
        });
    }

    fn poll_snapshot(&mut self, now: Wall) {
        let Snapshot::Running { covers } = self.snapshot else {
            return;
        };
        match self.disk.snapshot_poll() {
            None => {}
            Some(Err(error)) => {
                self.notices.push(Notice::SnapshotFailed(error));
                self.snapshot = Snapshot::Failed { at: now };
            }
            Some(Ok(len)) => {
                self.snapshot = Snapshot::None;
                self.snapshot_len = len;
                for segment in self.older.extract_if(.., |s| s.number <= covers) {
                    // One that stays is removed at the next start.
                    let _ = self.disk.remove(&segment_name(segment.number));
                }
                self.notices.push(Notice::SnapshotWritten(len));
            }
        }
    }
}

impl<D: Disk + 'static> Writer<D> {
    /// Runs on a thread of its own until the handle is dropped.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn spawn(self, hooks: Hooks) -> io::Result<WriterThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let location = Arc::clone(&self.location);
        let thread = std::thread::Builder::new().name("journal".into()).spawn({
            let stop = Arc::clone(&stop);
            move || self.run(hooks, &stop)
        })?;
        Ok(WriterThread {
            stop,
            location,
            thread: Some(thread),
        })
    }

    fn run(mut self, mut hooks: Hooks, stop: &AtomicBool) {
        let mut expired_at = Instant::now();
        loop {
            // Before the step: what was queued before the end was asked for is written.
            let is_last = stop.load(Ordering::Acquire);
            let started = Instant::now();
            let step = self.step(wall_now());
            if matches!(step, Step::Committed | Step::Failed) {
                (hooks.on_commit)();
            }
            self.take_notices()
                .into_iter()
                .for_each(&mut hooks.on_notice);
            if is_last {
                return;
            }
            if started.duration_since(expired_at) >= EXPIRE_INTERVAL {
                expired_at = started;
                self.location.expire(wall_now());
            }
            match step {
                Step::Idle => self.location.queue().wait(EXPIRE_INTERVAL),
                Step::Committed => {
                    let rest = self
                        .options
                        .commit_interval
                        .saturating_sub(started.elapsed());
                    std::thread::sleep(rest);
                }
                Step::Failed | Step::Pausing => std::thread::park_timeout(EXPIRE_INTERVAL),
            }
        }
    }
}

/// A [`Writer`] at work. Dropped, it writes what waits and ends.
pub struct WriterThread {
    stop: Arc<AtomicBool>,
    location: Arc<Location>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            self.location.queue().wake();
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn wall_now() -> Wall {
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Wall(since_1970.as_millis() as u64)
}

const RETRY_MS: u64 = 1000;
const SNAPSHOT_RETRY_MS: u64 = 60_000;
/// Also with little in them: each restart begins one.
const SEGMENT_COUNT_MAX: usize = 256;
const EXPIRE_INTERVAL: Duration = Duration::from_millis(100);
