use std::io;

/// The file operations the journal and the snapshot need, so that a simulation can fail and tear them.
pub trait Disk: Send {
    /// Appends to a file, creating it, and flushes it to stable storage. After an error the file's tail is unknown.
    /// # Errors
    /// As the system says.
    fn append(&mut self, file: &str, bytes: &[u8]) -> io::Result<()>;
    /// Cuts a file to a length and flushes.
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
}

/// A directory of the file system.
pub struct FileDisk {}
