use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::Ha1;
use crate::disk::{make_private_dir, open_private};
use crate::snapshot::{bytes_at, text};

/// The subscribers on disk, `subscribers.db`: a SQLite table that the server and a command beside it may have open at once.
/// A command that is not the server edits through this, and has nothing to load first.
pub struct SubscriberTable {
    database: Connection,
}

/// Why subscribers can't be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum SubscribersError {
    /// Not `user@domain`.
    #[error("{0} is not of the form user@domain")]
    NotAnAor(String),
    /// The file can't be made.
    #[error("can't open {path}: {source}; the data directory must be writable by you")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// SQLite refuses.
    #[error("can't read or change subscribers.db in the data directory: {0}")]
    Database(#[from] rusqlite::Error),
}

impl SubscriberTable {
    /// Opens the table of a data directory, making both when they are not there.
    ///
    /// # Errors
    /// As the system or SQLite says.
    pub fn open(dir: &Path) -> Result<Self, SubscribersError> {
        let path = dir.join(FILE);
        // Made here and not by SQLite, so that only its owner can read it; SQLite gives its other files the same mode.
        make_private_dir(dir)
            .and_then(|()| open_private(OpenOptions::new().write(true), &path))
            .map_err(|source| SubscribersError::File {
                path: path.clone(),
                source,
            })?;
        let database = Connection::open(&path)?;
        database.busy_timeout(BUSY_TIME_MAX)?;
        database.execute_batch(SCHEMA)?;
        Ok(Self { database })
    }

    /// Adds or replaces one; on disk when this returns.
    ///
    /// # Errors
    /// When `aor` is not `user@domain`, or as SQLite says.
    pub fn put(&mut self, aor: &[u8], ha1: Ha1) -> Result<(), SubscribersError> {
        self.put_many([(aor, ha1)]).map(drop)
    }

    /// Adds or replaces many, all or none; how many. A million take some seconds.
    ///
    /// # Errors
    /// When one is not `user@domain`, or as SQLite says: nothing was changed.
    pub fn put_many<A: AsRef<[u8]>>(
        &mut self,
        subscribers: impl IntoIterator<Item = (A, Ha1)>,
    ) -> Result<u64, SubscribersError> {
        let mut count = 0;
        let transaction = self.database.transaction()?;
        let mut upsert = transaction.prepare_cached(UPSERT)?;
        for (aor, ha1) in subscribers {
            let (user, domain) = split(aor.as_ref())?;
            upsert.execute(params![
                text(domain),
                text(user),
                hex(&ha1.md5),
                hex(&ha1.sha256)
            ])?;
            count += 1;
        }
        drop(upsert);
        transaction.commit()?;
        Ok(count)
    }

    /// Removes one; whether it was there.
    ///
    /// # Errors
    /// When `aor` is not `user@domain`, or as SQLite says.
    pub fn remove(&mut self, aor: &[u8]) -> Result<bool, SubscribersError> {
        let (user, domain) = split(aor)?;
        let mut delete = self.database.prepare_cached(DELETE)?;
        Ok(delete.execute(params![text(domain), text(user)])? > 0)
    }

    /// The hashes of one.
    ///
    /// # Errors
    /// When `aor` is not `user@domain`, or as SQLite says.
    pub fn ha1(&self, aor: &[u8]) -> Result<Option<Ha1>, SubscribersError> {
        let (user, domain) = split(aor)?;
        let mut select = self.database.prepare_cached(SELECT_ONE)?;
        let found = select.query_row(params![text(domain), text(user)], |row| {
            Ok(subscriber(row)?.1)
        });
        Ok(found.optional()?)
    }

    /// How many there are.
    ///
    /// # Errors
    /// As SQLite says.
    pub fn count(&self) -> Result<u64, SubscribersError> {
        let count: i64 = self
            .database
            .query_row("SELECT count(*) FROM subscriber", [], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// Up to `limit` of them, ordered by domain and then user, from behind `after` on.
    ///
    /// # Errors
    /// When `after` is not `user@domain`, or as SQLite says.
    pub fn page(
        &self,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Vec<(Vec<u8>, Ha1)>, SubscribersError> {
        let (user, domain) = after.map_or(Ok((&b""[..], &b""[..])), split)?;
        let mut select = self.database.prepare_cached(SELECT_PAGE)?;
        let rows = select.query_map(params![text(domain), text(user), limit], subscriber)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Shows all to `each`.
    ///
    /// # Errors
    /// As SQLite says.
    pub(crate) fn all(&self, mut each: impl FnMut(&[u8], Ha1)) -> Result<(), SubscribersError> {
        let mut select = self.database.prepare(SELECT_ALL)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (aor, ha1) = subscriber(row)?;
            each(&aor, ha1);
        }
        Ok(())
    }
}

const FILE: &str = "subscribers.db";
/// How long to wait for another process that writes.
const BUSY_TIME_MAX: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA journal_size_limit = 4194304;  -- else the log of a large import stays
    CREATE TABLE IF NOT EXISTS subscriber (
        user TEXT NOT NULL,
        domain TEXT NOT NULL,
        ha1 TEXT,         -- MD5 of user:realm:password; NULL: not known
        ha1_sha256 TEXT,  -- SHA-256 of the same; NULL: not known
        PRIMARY KEY (domain, user)
    ) WITHOUT ROWID;";
const UPSERT: &str = "INSERT INTO subscriber (domain, user, ha1, ha1_sha256) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET ha1 = excluded.ha1, ha1_sha256 = excluded.ha1_sha256";
const DELETE: &str = "DELETE FROM subscriber WHERE domain = ? AND user = ?";
const SELECT_ALL: &str = "SELECT user, domain, ha1, ha1_sha256 FROM subscriber";
const SELECT_ONE: &str =
    "SELECT user, domain, ha1, ha1_sha256 FROM subscriber WHERE domain = ? AND user = ?";
const SELECT_PAGE: &str = "SELECT user, domain, ha1, ha1_sha256 FROM subscriber
    WHERE (domain, user) > (?, ?) ORDER BY domain, user LIMIT ?";

fn subscriber(row: &Row<'_>) -> rusqlite::Result<(Vec<u8>, Ha1)> {
    let aor = [bytes_at(row, 0)?, b"@", bytes_at(row, 1)?].concat();
    let ha1 = Ha1 {
        md5: unhex(bytes_at(row, 2)?),
        sha256: unhex(bytes_at(row, 3)?),
    };
    Ok((aor, ha1))
}

/// User and domain.
fn split(aor: &[u8]) -> Result<(&[u8], &[u8]), SubscribersError> {
    let at = aor.iter().rposition(|b| *b == b'@');
    match at.map(|at| (&aor[..at], &aor[at + 1..])) {
        Some((user, domain)) if !user.is_empty() && !domain.is_empty() => Ok((user, domain)),
        _ => Err(SubscribersError::NotAnAor(
            String::from_utf8_lossy(aor).into_owned(),
        )),
    }
}

/// `None` for a hash that is not known.
fn hex(hash: &[u8]) -> Option<String> {
    if hash.iter().all(|b| *b == 0) {
        return None;
    }
    let digit = |b: u8| char::from_digit(b.into(), 16).expect("four bits");
    Some(
        hash.iter()
            .flat_map(|b| [digit(b >> 4), digit(b & 15)])
            .collect(),
    )
}

/// All zero, so that nobody can log in, for what is not a hash.
fn unhex<const N: usize>(text: &[u8]) -> [u8; N] {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let mut hash = [0; N];
    if text.len() != 2 * N {
        return hash;
    }
    for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
        match (digit(pair[0]), digit(pair[1])) {
            (Some(high), Some(low)) => *byte = high << 4 | low,
            _ => return [0; N],
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_as_it_was_written() {
        let hash: [u8; 4] = [0x00, 0x1f, 0xa0, 0xff];
        assert_eq!(hex(&hash).as_deref(), Some("001fa0ff"));
        assert_eq!(unhex(b"001fa0ff"), hash);
        assert_eq!(unhex(b"001FA0FF"), hash);
        assert_eq!(hex(&[0; 16]), None);
        for wrong in ["", "001fa0f", "001fa0ff0", "001fa0fg"] {
            assert_eq!(unhex(wrong.as_bytes()), [0; 4]);
        }
    }

    #[test]
    fn an_address_of_record_has_a_user_and_a_domain() {
        assert_eq!(split(b"a@b@c").unwrap(), (&b"a@b"[..], &b"c"[..]));
        for wrong in ["", "alice", "@example.com", "alice@"] {
            let error = split(wrong.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, format!("{wrong} is not of the form user@domain"));
        }
    }
}
