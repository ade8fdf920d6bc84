//! The snapshot: a SQLite database that an operator can open with its shell.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row, Statement, ToSql, params};

use crate::disk::{open_private, sync_dir};
use crate::journal::{decode_records, encode_record};
use crate::{Binding, BindingParts, Flow, SnapshotJob, SnapshotRead, Transport, Wall};

const FILE: &str = "bindings.db";
const FILE_UNFINISHED: &str = "bindings.db.tmp";

const SCHEMA: &str = "
    CREATE TABLE about (
        -- format, covers_segment (journal-NNNNNNNN.log up to this number are in here), written_at (unix seconds)
        key TEXT PRIMARY KEY,
        value
    );
    CREATE TABLE binding (
        aor TEXT NOT NULL,
        contact TEXT NOT NULL,
        params TEXT NOT NULL,
        q REAL NOT NULL,
        expires_at REAL NOT NULL,   -- unix seconds: datetime(expires_at, 'unixepoch')
        transport TEXT NOT NULL,
        peer TEXT NOT NULL,         -- address that the phone was seen at
        local TEXT NOT NULL,        -- our address that it was seen from
        listener INTEGER NOT NULL,  -- index of the listener; 65535: a connection that the server opened
        behind_nat INTEGER NOT NULL,
        call_id TEXT NOT NULL,
        cseq INTEGER NOT NULL,
        instance TEXT NOT NULL,
        reg_id INTEGER NOT NULL,
        path TEXT NOT NULL,
        user_agent TEXT NOT NULL
    );";
const INDEX: &str = "CREATE INDEX binding_aor ON binding (aor);";
const INSERT: &str = "INSERT INTO binding VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
const SELECT: &str =
    "SELECT aor, contact, params, q, expires_at, transport, peer, local, listener, behind_nat,
    call_id, cseq, instance, reg_id, path, user_agent FROM binding ORDER BY rowid";
const FORMAT: u32 = 1;

/// Writes a snapshot beside the present one and then puts it in its place. Its size.
pub(crate) fn write(dir: &Path, job: &SnapshotJob, cancel: &AtomicBool) -> io::Result<u64> {
    let unfinished = dir.join(FILE_UNFINISHED);
    let written = write_unfinished(&unfinished, job, cancel);
    let replaced = written.and_then(|len| {
        fs::rename(&unfinished, dir.join(FILE))?;
        sync_dir(dir)?;
        Ok(len)
    });
    if replaced.is_err() {
        // The room may be needed: most errors are a full disk.
        let _ = fs::remove_file(&unfinished);
    }
    replaced
}

fn write_unfinished(path: &Path, job: &SnapshotJob, cancel: &AtomicBool) -> io::Result<u64> {
    let file = open_private(OpenOptions::new().write(true).truncate(true), path)?;
    let mut database = Connection::open(path).map_err(io::Error::other)?;
    // It is flushed here, and thrown away when it does not get to the end.
    database
        .execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;",
        )
        .map_err(io::Error::other)?;
    let transaction = database.transaction().map_err(io::Error::other)?;
    transaction
        .execute_batch(SCHEMA)
        .map_err(io::Error::other)?;
    write_about(&transaction, job).map_err(io::Error::other)?;
    {
        let mut insert = transaction.prepare(INSERT).map_err(io::Error::other)?;
        write_bindings(&mut insert, &file, job, cancel)?;
    }
    transaction.execute_batch(INDEX).map_err(io::Error::other)?;
    transaction.commit().map_err(io::Error::other)?;
    database
        .close()
        .map_err(|(_, error)| io::Error::other(error))?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

fn write_about(database: &Connection, job: &SnapshotJob) -> rusqlite::Result<()> {
    let mut insert = database.prepare("INSERT INTO about VALUES (?, ?)")?;
    insert.execute(params!["format", FORMAT])?;
    insert.execute(params!["covers_segment", job.covers])?;
    insert.execute(params!["written_at", seconds(job.now)])?;
    Ok(())
}

/// A shard at a time: copied under its lock, written without. An index at the end costs less than sorting a million keys first.
fn write_bindings(
    insert: &mut Statement<'_>,
    file: &File,
    job: &SnapshotJob,
    cancel: &AtomicBool,
) -> io::Result<()> {
    let mut records = Vec::new();
    let mut page = Some(0);
    let mut busy = Duration::ZERO;
    while let Some(number) = page {
        if cancel.load(Ordering::Relaxed) {
            return Err(io::Error::other("given up, the server ends"));
        }
        let started = Instant::now();
        records.clear();
        page = job.location.scan(number, job.now, &mut |aor, bindings| {
            encode_record(&mut records, aor, bindings);
        });
        let mut result = Ok(());
        decode_records(&records, |aor, bindings| {
            for binding in &*bindings {
                if result.is_ok() {
                    result = insert_binding(insert, aor, &binding.parts());
                }
            }
        });
        result.map_err(io::Error::other)?;
        // Phones come first: on a busy machine this takes no more than a third of a core.
        busy += started.elapsed();
        if busy >= BUSY_MAX {
            // Bit by bit: the journal's flushes would wait for one large flush at the end.
            file.sync_data()?;
            std::thread::sleep(2 * busy.min(10 * BUSY_MAX));
            busy = Duration::ZERO;
        }
    }
    Ok(())
}

/// Before a pause of twice as long.
const BUSY_MAX: Duration = Duration::from_millis(5);

fn insert_binding(
    insert: &mut Statement<'_>,
    aor: &[u8],
    b: &BindingParts<'_>,
) -> rusqlite::Result<()> {
    insert.execute(params![
        text(aor),
        text(b.contact),
        text(b.params),
        f64::from(b.q) / 1000.0,
        seconds(b.expires),
        transport_name(b.flow.transport),
        b.flow.peer.to_string(),
        b.flow.local.to_string(),
        b.flow.listener,
        b.behind_nat,
        text(b.call_id),
        b.cseq,
        text(b.instance),
        b.reg_id,
        text(b.path),
        text(b.user_agent),
    ])?;
    Ok(())
}

/// Reads the snapshot, when there is one.
pub(crate) fn read(
    dir: &Path,
    each: &mut dyn FnMut(&[u8], Binding),
) -> io::Result<Option<SnapshotRead>> {
    // What a crash left of the next one.
    let _ = fs::remove_file(dir.join(FILE_UNFINISHED));
    let path = dir.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let bytes = fs::metadata(&path)?.len();
    let covers = read_database(&path, each).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "can't read {}: {error}; put back a copy of it, or move it away: then only \
                 registrations since it was written are known, until the phones register again",
                path.display()
            ),
        )
    })?;
    Ok(Some(SnapshotRead { covers, bytes }))
}

fn read_database(path: &Path, each: &mut dyn FnMut(&[u8], Binding)) -> Result<u32, Unreadable> {
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let about = |key: &str| {
        database.query_row("SELECT value FROM about WHERE key = ?", [key], |row| {
            row.get(0)
        })
    };
    let format: u32 = about("format")?;
    if format != FORMAT {
        return Err(Unreadable::Format(format));
    }
    let covers = about("covers_segment")?;
    let mut select = database.prepare(SELECT)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let aor = bytes_at(row, 0)?;
        let binding = read_binding(row)?
            .ok_or_else(|| Unreadable::Binding(String::from_utf8_lossy(aor).into_owned()))?;
        each(aor, binding);
    }
    Ok(covers)
}

#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("{0}")]
    Database(#[from] rusqlite::Error),
    #[error("it has format {0}, from another version of the server")]
    Format(u32),
    #[error("a binding of {0} has a transport or an address that is none")]
    Binding(String),
}

fn read_binding(row: &Row<'_>) -> rusqlite::Result<Option<Binding>> {
    let address = |column| {
        Ok::<_, rusqlite::Error>(
            std::str::from_utf8(bytes_at(row, column)?)
                .ok()
                .and_then(|a| a.parse().ok()),
        )
    };
    let (Some(transport), Some(peer), Some(local)) =
        (transport_named(bytes_at(row, 5)?), address(6)?, address(7)?)
    else {
        return Ok(None);
    };
    Ok(Some(Binding::new(&BindingParts {
        contact: bytes_at(row, 1)?,
        params: bytes_at(row, 2)?,
        q: (row.get::<_, f64>(3)? * 1000.0).round() as u16,
        expires: Wall((row.get::<_, f64>(4)? * 1000.0).round() as u64),
        flow: Flow {
            transport,
            listener: row.get(8)?,
            connection: 0,
            local,
            peer,
        },
        behind_nat: row.get(9)?,
        call_id: bytes_at(row, 10)?,
        cseq: row.get(11)?,
        instance: bytes_at(row, 12)?,
        reg_id: row.get(13)?,
        path: bytes_at(row, 14)?,
        user_agent: bytes_at(row, 15)?,
    })))
}

/// Text where it is text, so that the shell shows it; else the bytes.
pub(crate) fn text(bytes: &[u8]) -> impl ToSql + '_ {
    match std::str::from_utf8(bytes) {
        Ok(text) => TextOrBytes(ValueRef::Text(text.as_bytes())),
        Err(_) => TextOrBytes(ValueRef::Blob(bytes)),
    }
}

struct TextOrBytes<'a>(ValueRef<'a>);

impl ToSql for TextOrBytes<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(rusqlite::types::ToSqlOutput::Borrowed(self.0))
    }
}

/// The bytes of a text or of a blob; none for anything else.
pub(crate) fn bytes_at<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<&'r [u8]> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        _ => &[],
    })
}

fn seconds(time: Wall) -> f64 {
    time.0 as f64 / 1000.0
}

const TRANSPORTS: [(Transport, &str); 6] = [
    (Transport::Udp, "udp"),
    (Transport::Tcp, "tcp"),
    (Transport::Tls, "tls"),
    (Transport::Ws, "ws"),
    (Transport::Wss, "wss"),
    (Transport::Sctp, "sctp"),
];

fn transport_name(transport: Transport) -> &'static str {
    TRANSPORTS[transport as usize].1
}

fn transport_named(name: &[u8]) -> Option<Transport> {
    let named = TRANSPORTS.iter().find(|(_, n)| n.as_bytes() == name);
    named.map(|(transport, _)| *transport)
}
