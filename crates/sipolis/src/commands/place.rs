use crate::data::DataDir;
use crate::failure::{Failure, Result};
use admin::control::{Answer, Client, Operations, Request, Response};
use location::{FileDisk, Subscribers};
use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which server's data.
#[derive(clap::Args, Clone)]
pub(crate) struct Place {
    /// Data directory of the server [default: ./sipolis-data]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data: Option<PathBuf>,
    /// Settings file that names the data directory
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
}

impl Place {
    /// The data directory.
    pub(crate) fn data(&self) -> Result<PathBuf> {
        match (&self.data, &self.config) {
            (Some(data), _) => Ok(data.clone()),
            (None, config) => Ok(read_config(config.as_deref())?.server.data),
        }
    }

    /// The running server.
    pub(crate) fn server(&self) -> Result<Server> {
        let data = self.data()?;
        match connect(&data)? {
            Some(client) => Ok(Server::Running(client)),
            None => Err(Failure::new(format!(
                "no server runs on {}; start one with `sipolis serve`, or name its directory with --data",
                data.display()
            ))),
        }
    }

    /// The running server, or, when none runs, its database. `make`: a directory that is not there is made.
    pub(crate) fn server_or_database(&self, make: bool) -> Result<Server> {
        let data = self.data()?;
        if let Some(client) = connect(&data)? {
            return Ok(Server::Running(client));
        }
        if !make && !data.exists() {
            return Err(Failure::new(format!(
                "there is no data directory {}; name the server's with --data",
                data.display()
            )));
        }
        let dir = DataDir::open(&data)?;
        let subscribers = open_subscribers(&dir)?;
        let operations = Operations {
            subscribers: Arc::new(subscribers),
            running: None,
        };
        Ok(Server::Stopped(operations, dir.disk))
    }
}

/// What answers requests.
pub(crate) enum Server {
    /// A running server, through its control socket.
    Running(Client),
    /// Its database; the directory stays locked meanwhile.
    Stopped(
        Operations,
        #[expect(dead_code, reason = "held for its lock")] FileDisk,
    ),
}

impl Server {
    /// Asks; an error that the server reports is a failure.
    pub(crate) fn call(&mut self, request: Request) -> Result<Response> {
        let response = match self {
            Self::Running(client) => client
                .call(&request)
                .map_err(|error| Failure::new(error.to_string()))?,
            Self::Stopped(operations, _) => operations.answer(request),
        };
        match response {
            Response::Error { message } => Err(Failure::new(message)),
            response => Ok(response),
        }
    }

    /// Whether a server runs, so that changes are seen at once.
    pub(crate) const fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }
}

fn connect(data: &Path) -> Result<Option<Client>> {
    Client::connect(data).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::PermissionDenied => "; run this as the user that runs the server",
            _ => "",
        };
        let name = data.display();
        Failure::new(format!("the control socket in {name}: {error}{hint}"))
    })
}

/// Opens the subscribers of a data directory.
pub(crate) fn open_subscribers(dir: &DataDir) -> Result<Subscribers> {
    let mut key = [0; 16];
    crate::password::fill(&mut key)?;
    let (a, b) = key.split_at(8);
    let number = |bytes: &[u8]| bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b));
    Subscribers::open(&dir.path, [number(a), number(b)]).map_err(|error| {
        Failure::during(format_args!("subscribers in {}", dir.path.display()), error)
    })
}

/// The settings of a file, or the defaults without one.
pub(crate) fn read_config(file: Option<&Path>) -> Result<config::Config> {
    let Some(path) = file else {
        return Ok(config::Config::default());
    };
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| Failure::during(&name, error))?;
    config::Config::parse(&name, &text).map_err(|problems| Failure::new(problems.to_string()))
}

/// A response that does not fit its request: another version's.
pub(crate) fn unexpected(response: impl std::fmt::Debug) -> Failure {
    let text = format!("{response:?}");
    let short: String = text.chars().take(80).collect();
    Failure::new(format!(
        "the server gave an answer that was not asked for ({short}); is it of another version?"
    ))
}

/// A canonical address-of-record, its user and its domain, from what a person wrote.
pub(crate) struct Address {
    /// `user@domain` as the server looks it up.
    pub(crate) aor: String,
    /// User part as a phone sends it in its credentials.
    pub(crate) user: String,
    /// Domain, lower case: the realm.
    pub(crate) domain: String,
}

impl Address {
    /// From `alice@example.com` or `sip:alice@example.com`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        let wrong = || format!("`{text}` is not an address; write it like `alice@example.com`");
        let bare = text
            .strip_prefix("sip:")
            .or_else(|| text.strip_prefix("sips:"))
            .unwrap_or(text);
        let (user, domain) = bare.rsplit_once('@').ok_or_else(wrong)?;
        Self::new(user, domain).map_err(|_| wrong())
    }

    /// From its parts.
    pub(crate) fn new(user: &str, domain: &str) -> std::result::Result<Self, String> {
        let domain: config::Domain = domain.parse()?;
        let wrong = || format!("`{user}` is not a user name");
        if user.is_empty() || user.len() > 128 {
            return Err(wrong());
        }
        let uri = format!("sip:{}@{domain}", escaped(user));
        let uri = sip_wire::Uri::parse(uri.as_bytes()).map_err(|_| wrong())?;
        let mut aor = Vec::new();
        uri.write_aor(&mut aor);
        Ok(Self {
            aor: String::from_utf8(aor).map_err(|_| wrong())?,
            user: user.to_owned(),
            domain: domain.0,
        })
    }
}

/// A user name with what may not stand in a URI escaped (RFC 3261 section 25.1); an escape that is there is kept.
fn escaped(user: &str) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for byte in user.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'!' | b'~' | b'*' | b'\'' | b'(' | b')' | b'&' | b'=' | b'+'
            | b'$' | b',' | b';' | b'?' | b'/' | b'%' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

impl Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.user, self.domain)
    }
}
