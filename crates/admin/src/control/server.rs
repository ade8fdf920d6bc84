use super::protocol::REQUEST_BYTES_MAX;
use super::{Answer, Request, Response, SOCKET_NAME};
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Clients at once; one more is told so and closed.
const CLIENTS_MAX: usize = 16;
/// A client that says nothing for so long is closed.
const IDLE: Duration = Duration::from_secs(60);

/// The server's end of the control socket. Dropping it closes the socket and removes it from the directory.
pub struct Server {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Opens the socket in a data directory and answers on threads of its own. The caller holds the directory's lock: a socket
    /// that is there is a left-over.
    ///
    /// # Errors
    /// As the system says; a path over 100 bytes is too long for a socket.
    pub fn start(data: &Path, answer: Arc<dyn Answer>) -> io::Result<Self> {
        let path = data.join(SOCKET_NAME);
        let listener = bind_private(&path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name(String::from("control"))
            .spawn(move || accept(&listener, &answer, &seen))?;
        Ok(Self {
            path,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the accepting thread, which then sees the flag.
        let woken = UnixStream::connect(&self.path).is_ok();
        let _ = fs::remove_file(&self.path);
        if let (true, Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// Binds under another name and renames, so that the socket never stands there open to others.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let listener = UnixListener::bind(&new)?;
    fs::set_permissions(&new, Permissions::from_mode(0o600))?;
    fs::rename(&new, path)?;
    Ok(listener)
}

fn accept(listener: &UnixListener, answer: &Arc<dyn Answer>, stop: &AtomicBool) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if stop.load(Ordering::Acquire) {
            return;
        }
        match stream {
            Ok(stream) => admit(stream, answer, &clients),
            // Out of descriptors: they come back when connections close.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn admit(mut stream: UnixStream, answer: &Arc<dyn Answer>, clients: &Arc<AtomicUsize>) {
    let _ = stream.set_read_timeout(Some(IDLE));
    let _ = stream.set_write_timeout(Some(IDLE));
    if clients.fetch_add(1, Ordering::AcqRel) >= CLIENTS_MAX {
        clients.fetch_sub(1, Ordering::AcqRel);
        let message = format!("{CLIENTS_MAX} others use the control socket; try again later");
        let _ = respond(&mut stream, &Response::Error { message });
        return;
    }
    let slot = Slot(Arc::clone(clients));
    let answer = Arc::clone(answer);
    // When no thread can be made, the stream is dropped and the client sees the end.
    let _ = thread::Builder::new()
        .name(String::from("control-client"))
        .spawn(move || {
            let _slot = slot;
            let _ = converse(stream, &*answer);
        });
}

/// One of the places for clients; free again when dropped.
struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn converse(stream: UnixStream, answer: &dyn Answer) -> io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = REQUEST_BYTES_MAX as u64;
        (&mut input).take(limit).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            if line.len() == REQUEST_BYTES_MAX {
                let message = format!("a request has at most {REQUEST_BYTES_MAX} bytes");
                respond(&mut out, &Response::Error { message })?;
            }
            return Ok(());
        }
        let response = match serde_json::from_slice::<Request>(&line) {
            Ok(request) => answer.answer(request),
            Err(error) => Response::Error {
                message: format!("not a request: {error}"),
            },
        };
        respond(&mut out, &response)?;
    }
}

fn respond(stream: &mut UnixStream, response: &Response) -> io::Result<()> {
    let mut line = serde_json::to_vec(response)?;
    line.push(b'\n');
    stream.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Client;

    struct Echo;
    impl Answer for Echo {
        fn answer(&self, request: Request) -> Response {
            Response::Error {
                message: format!("{request:?}"),
            }
        }
    }

    #[test]
    fn a_client_gets_the_answer_to_each_of_its_requests() {
        let data = tempfile::tempdir().unwrap();
        let _server = Server::start(data.path(), Arc::new(Echo)).unwrap();
        let mut client = Client::connect(data.path()).unwrap().expect("it runs");
        for request in [
            Request::Ping,
            Request::UserShow {
                aor: String::from("alice@example.com"),
            },
            Request::UsersPut {
                users: Vec::new(),
                replace: true,
            },
        ] {
            let message = format!("{request:?}");
            assert_eq!(client.call(&request).unwrap(), Response::Error { message });
        }
    }

    #[test]
    fn nonsense_is_answered_and_too_long_a_request_ends_the_connection() {
        let data = tempfile::tempdir().unwrap();
        let _server = Server::start(data.path(), Arc::new(Echo)).unwrap();
        let mut stream = UnixStream::connect(data.path().join(SOCKET_NAME)).unwrap();
        stream.write_all(b"{\"op\":\"dance\"}\n").unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains("not a request"), "{line}");
        // The server may close before it has read everything, which is an error here.
        let _ = stream.write_all(&vec![b'x'; REQUEST_BYTES_MAX]);
        line.clear();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains("at most"), "{line}");
        assert_eq!(lines.read_line(&mut line).unwrap_or(0), 0);
    }

    #[test]
    fn one_client_too_many_is_told_so_and_a_place_is_free_again_later() {
        let data = tempfile::tempdir().unwrap();
        let _server = Server::start(data.path(), Arc::new(Echo)).unwrap();
        let connect = || Client::connect(data.path()).unwrap().unwrap();
        let mut clients: Vec<_> = (0..CLIENTS_MAX).map(|_| connect()).collect();
        for client in &mut clients {
            client.call(&Request::Ping).unwrap();
        }
        let mut late = BufReader::new(UnixStream::connect(data.path().join(SOCKET_NAME)).unwrap());
        let mut line = String::new();
        late.read_line(&mut line).unwrap();
        assert!(line.contains("try again later"), "{line}");
        clients.clear();
        // The places come free as the threads see the end of their streams.
        let served =
            |response| matches!(response, Ok(Response::Error { message }) if message == "Ping");
        while !served(connect().call(&Request::Ping)) {
            thread::yield_now();
        }
    }

    #[test]
    fn only_the_owner_may_use_the_socket_and_it_goes_with_the_server() {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(data.path(), Arc::new(Echo)).unwrap();
        let path = data.path().join(SOCKET_NAME);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(server);
        assert!(!path.exists());
        assert!(Client::connect(data.path()).unwrap().is_none());
    }
}
