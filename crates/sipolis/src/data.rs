use crate::failure::{Failure, Result};
use crate::password;
use location::FileDisk;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A data directory, ours alone while [`DataDir::disk`] lives.
pub(crate) struct DataDir {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// The journal's files, and the lock.
    pub(crate) disk: FileDisk,
}

impl DataDir {
    /// Makes the directory when it is not there (for its owner only), and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let disk = FileDisk::open(path).map_err(|error| Failure::new(error.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            disk,
        })
    }

    /// The key of the tokens in Record-Route: made once, and kept, so that calls outlive a restart.
    pub(crate) fn secret(&self) -> Result<[u8; 16]> {
        let path = self.path.join("secret");
        let failed = |error| Failure::during(path.display(), error);
        match fs::read(&path) {
            Ok(bytes) => bytes.try_into().map_err(|_| {
                Failure::new(format!(
                    "{} is damaged; remove it to have a new one made (calls in progress then lose their way)",
                    path.display()
                ))
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut key = [0; 16];
                password::fill(&mut key)?;
                // Whole or not at all: written aside, then renamed.
                let new = path.with_extension("new");
                let mut file = OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(&new)
                    .map_err(failed)?;
                file.write_all(&key).map_err(failed)?;
                file.sync_all().map_err(failed)?;
                fs::rename(&new, &path).map_err(failed)?;
                Ok(key)
            }
            Err(error) => Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_data_directory_has_one_user_at_a_time_and_the_next_learns_who() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let first = DataDir::open(&path).unwrap();
        let refused = DataDir::open(&path).err().unwrap().to_string();
        assert!(
            refused.contains(&format!("process {}", std::process::id())),
            "{refused}"
        );
        drop(first);
        assert!(DataDir::open(&path).is_ok());
    }

    #[test]
    fn the_secret_is_made_once_for_the_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(dir.path()).unwrap();
        let key = data.secret().unwrap();
        assert_ne!(key, [0; 16]);
        assert_eq!(data.secret().unwrap(), key);
        let mode = fs::metadata(dir.path().join("secret")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        fs::write(dir.path().join("secret"), "short").unwrap();
        assert!(data.secret().is_err());
    }
}
