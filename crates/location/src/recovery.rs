use std::fmt;
use std::io;
use std::ops::Range;

use crate::journal::decode_records;
use crate::{Disk, Location, Wall};

/// What a start found on disk. Shown to a person as a line, and one more for each damage.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// Bindings that are in memory again.
    pub bindings: u64,
    /// Their addresses-of-record.
    pub aors: u64,
    /// Journal records read on top of the snapshot.
    pub records: u64,
    /// Bytes of a write that a crash cut short, nothing that was acknowledged: removed from the end of the journal.
    pub cut_bytes: u64,
    /// What should be there and can't be read: acknowledged registrations may be missing.
    pub damage: Vec<Damage>,
}

/// A part of the journal that can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Which of its bytes; `None`: the file is missing.
    pub bytes: Option<Range<u64>>,
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bindings of {} users recovered",
            self.bindings, self.aors
        )?;
        if self.cut_bytes > 0 {
            write!(
                f,
                "; {} bytes of an unfinished write, of nothing acknowledged, cut off",
                self.cut_bytes
            )?;
        }
        self.damage
            .iter()
            .try_for_each(|damage| write!(f, "\n{damage}"))
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.bytes {
            Some(bytes) => write!(
                f,
                "{}: bytes {} to {} can't be read and were passed over",
                self.file, bytes.start, bytes.end
            )?,
            None => write!(f, "{} is missing", self.file)?,
        }
        f.write_str("; some phones may be unreachable until they register again; check the disk")
    }
}

/// A file of the journal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) len: u64,
}

/// What the writer goes on with.
pub(crate) struct JournalState {
    pub(crate) segments: Vec<Segment>,
    pub(crate) snapshot_len: u64,
    /// Number of the next segment, higher than any that was ever used.
    pub(crate) next: u32,
}

/// Name of a journal segment's file.
pub(crate) fn segment_name(number: u32) -> String {
    format!("journal-{number:08}.log")
}

/// Reads snapshot and journal into an empty `location`, cuts an unfinished write off the journal, and removes segments
/// that the snapshot has made unnecessary.
pub(crate) fn recover(
    location: &Location,
    disk: &mut impl Disk,
    now: Wall,
) -> io::Result<(JournalState, Recovery)> {
    let mut recovery = Recovery::default();
    let snapshot =
        disk.snapshot_read(&mut |aor, binding| location.restore_one(aor, binding, now))?;
    let covers = snapshot.map_or(0, |s| s.covers);
    let numbers = remaining_segments(disk, covers)?;
    let mut segments: Vec<Segment> = Vec::new();
    for &number in &numbers {
        let expected = segments.last().map_or(number, |s| s.number + 1);
        let expected = if segments.is_empty() && snapshot.is_some() {
            covers + 1
        } else {
            expected
        };
        recovery
            .damage
            .extend((expected..number).map(|missing| Damage {
                file: segment_name(missing),
                bytes: None,
            }));
        let is_last = numbers.last() == Some(&number);
        let len = read_segment(location, disk, now, number, is_last, &mut recovery)?;
        segments.push(Segment { number, len });
    }
    (recovery.bindings, recovery.aors) = location.counts();
    let state = JournalState {
        snapshot_len: snapshot.map_or(0, |s| s.bytes),
        next: segments.last().map_or(covers, |s| s.number) + 1,
        segments,
    };
    Ok((state, recovery))
}

/// Numbers of the segments not covered by the snapshot, in order. A crash may have come before the others were removed.
fn remaining_segments(disk: &mut impl Disk, covers: u32) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for file in disk.list()? {
        let Some(number) = segment_number(&file) else {
            continue;
        };
        if number <= covers {
            disk.remove(&file)?;
        } else {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn segment_number(file: &str) -> Option<u32> {
    let number = file.strip_prefix("journal-")?.strip_suffix(".log")?;
    number.parse().ok()
}

/// Applies a segment; its length afterwards.
fn read_segment(
    location: &Location,
    disk: &mut impl Disk,
    now: Wall,
    number: u32,
    is_last: bool,
    recovery: &mut Recovery,
) -> io::Result<u64> {
    let file = segment_name(number);
    let bytes = disk.read(&file)?;
    let decoded = decode_records(&bytes, |aor, bindings| location.restore(aor, bindings, now));
    recovery.records += decoded.count;
    let mut damage = decoded.damage;
    let mut len = bytes.len();
    if decoded.end < len {
        if is_last {
            disk.truncate(&file, decoded.end as u64)?;
            recovery.cut_bytes = (len - decoded.end) as u64;
            len = decoded.end;
        } else {
            damage.push(decoded.end..len);
        }
    }
    recovery
        .damage
        .extend(damage.into_iter().map(|range| Damage {
            file: file.clone(),
            bytes: Some(range.start as u64..range.end as u64),
        }));
    Ok(len as u64)
}
