use super::protocol::RESPONSE_BYTES_MAX;
use super::{Request, Response, SOCKET_NAME};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The command line's end of the control socket.
pub struct Client {
    stream: BufReader<UnixStream>,
}

/// Why there was no response.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The socket broke, or the server took too long.
    #[error("the server's control socket: {0}; is the server still running?")]
    Socket(#[from] io::Error),
    /// Not a response.
    #[error("the server's control socket gave no sense ({0}); is the server of another version?")]
    Format(#[from] serde_json::Error),
}

impl Client {
    /// Connects to the server on a data directory; `None` when none runs there.
    ///
    /// # Errors
    /// The socket is there but may not be used, by another user for example.
    pub fn connect(data: &Path) -> io::Result<Option<Self>> {
        let stream = match UnixStream::connect(data.join(SOCKET_NAME)) {
            Ok(stream) => stream,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_write_timeout(Some(Duration::from_secs(60)))?;
        Ok(Some(Self {
            stream: BufReader::new(stream),
        }))
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// The connection can't be used any more after one.
    pub fn call(&mut self, request: &Request) -> Result<Response, CallError> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        line.clear();
        let limit = RESPONSE_BYTES_MAX as u64;
        (&mut self.stream)
            .take(limit)
            .read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(serde_json::from_slice(&line)?)
    }
}
