//! A small stateless proxy and registrar (RFC 3261 sections 16.11 and 10) that loses datagrams: what is sent again is sent
//! again by the tool.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    net::{SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// What it does besides.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ways {
    /// Every so many datagrams one that came in is lost; 0: none.
    pub(crate) loses_every: u64,
    /// It records routes as a strict router, of RFC 2543.
    pub(crate) strict: bool,
    /// It asks for credentials.
    pub(crate) challenges: bool,
}

/// A running proxy; ends when dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(crate) fn start(ways: Ways) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let wait = Some(Duration::from_millis(20));
        socket.set_read_timeout(wait).expect("a wait");
        let address = socket.local_addr().expect("an address");
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let mut router = Router {
                own: address.to_string(),
                ways,
                bindings: HashMap::new(),
            };
            let (mut buffer, mut came) = ([0; 8192], 0u64);
            while !ended.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else {
                    continue;
                };
                came += 1;
                if ways.loses_every > 0 && came % ways.loses_every == 0 {
                    continue;
                }
                let message = std::str::from_utf8(&buffer[..length]).expect("text");
                if let Some((to, message)) = router.route(message, from) {
                    socket.send_to(message.as_bytes(), to).expect("is sent");
                }
            }
        });
        Self {
            address,
            ends,
            thread: Some(thread),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let joined = self.thread.take().map(JoinHandle::join);
        assert!(
            thread::panicking() || matches!(joined, Some(Ok(()))),
            "the proxy got what it could not route"
        );
    }
}

struct Router {
    own: String,
    ways: Ways,
    bindings: HashMap<String, String>,
}

/// Value of the first header field of that name, as the tool writes it.
fn field<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    let head = &message[..message.find("\r\n\r\n")?];
    let line = |line: &'a str| line.strip_prefix(name)?.strip_prefix(": ");
    head.split("\r\n").skip(1).find_map(line)
}

/// What is between angle brackets.
fn bracketed(value: &str) -> &str {
    let start = value.find('<').map_or(0, |at| at + 1);
    let rest = &value[start..];
    &rest[..rest.find('>').unwrap_or(rest.len())]
}

/// Host and port of a SIP URI.
fn host(uri: &str) -> &str {
    let rest = uri.strip_prefix("sip:").expect("a SIP URI");
    let rest = rest.split_once('@').map_or(rest, |(_, host)| host);
    rest.split(';').next().unwrap_or(rest)
}

fn without_line<'a>(message: &'a str, name: &str, value: &str) -> std::borrow::Cow<'a, str> {
    message
        .replacen(&format!("{name}: {value}\r\n"), "", 1)
        .into()
}

impl Router {
    /// Where a message goes and how it looks then; `None`: nowhere.
    fn route(&mut self, message: &str, from: SocketAddr) -> Option<(SocketAddr, String)> {
        if message.starts_with("SIP/2.0 ") {
            let via = field(message, "Via")?;
            assert!(via.contains(&self.own), "a response that is not for us");
            let rest = without_line(message, "Via", via).into_owned();
            let next = field(&rest, "Via")?;
            let sent_by = next.split([' ', ';']).nth(1)?.parse();
            return Some((sent_by.expect("an address"), rest));
        }
        let method = &message[..message.find(' ')?];
        let to = field(message, "To")?;
        let is_own = to.contains("tag=challenged");
        if method == "REGISTER" {
            self.register(to, field(message, "Contact")?);
            return Some((from, answer(message, "200 OK", "")));
        }
        if method == "ACK" && is_own {
            return None;
        }
        let asks = matches!(method, "INVITE" | "MESSAGE") && !to.contains("tag=");
        if self.ways.challenges && asks && field(message, "Proxy-Authorization").is_none() {
            let challenge = "Proxy-Authenticate: Digest realm=\"r\",nonce=\"n\"\r\n";
            let status = "407 Proxy Authentication Required";
            return Some((from, answer(message, status, challenge)));
        }
        Some(self.forward(method, message))
    }

    fn register(&mut self, to: &str, contact: &str) {
        let aor = bracketed(to).to_owned();
        match contact {
            "*" => self.bindings.remove(&aor),
            contact => self.bindings.insert(aor, bracketed(contact).to_owned()),
        };
    }

    fn forward(&self, method: &str, message: &str) -> (SocketAddr, String) {
        let (line, head) = message.split_once("\r\n").expect("a line");
        let mut uri = line.split(' ').nth(1).expect("a URI").to_owned();
        let mut head = head.to_owned();
        if host(&uri) == self.own {
            // A strict router is the Request-URI itself; the rest is in the Route (RFC 3261 section 16.4).
            assert!(self.ways.strict, "{message}");
            let last = field(message, "Route")
                .expect("the remote target")
                .to_owned();
            head = without_line(&head, "Route", &last).into_owned();
            uri = bracketed(&last).to_owned();
        } else if let Some(route) = field(message, "Route") {
            assert_eq!(host(bracketed(route)), self.own, "{message}");
            head = without_line(&head, "Route", route).into_owned();
        }
        if let Some(contact) = self.bindings.get(&uri) {
            uri = contact.clone();
        }
        let mut hasher = DefaultHasher::new();
        let via = field(message, "Via").expect("a Via");
        via.hash(&mut hasher);
        // The CANCEL and the ACK of a refusal have the Via of their INVITE, and so does what we add.
        let branch = hasher.finish();
        let lr = if self.ways.strict { "" } else { ";lr" };
        let route = format!("Record-Route: <sip:{}{lr}>\r\n", self.own);
        let record = if method == "INVITE" { &*route } else { "" };
        let message = format!(
            "{method} {uri} SIP/2.0\r\nVia: SIP/2.0/UDP {};branch=z9hG4bK{branch:x}\r\n{record}{head}",
            self.own
        );
        (host(&uri).parse().expect("an address"), message)
    }
}

/// A response that keeps nothing behind.
fn answer(request: &str, status: &str, more: &str) -> String {
    let copied = ["Via", "From", "To", "Call-ID", "CSeq"].map(|name| {
        let value = field(request, name).expect("every request has them");
        let tag = match name == "To" && !value.contains("tag=") {
            true => ";tag=challenged",
            false => "",
        };
        format!("{name}: {value}{tag}\r\n")
    });
    format!(
        "SIP/2.0 {status}\r\n{}{more}Content-Length: 0\r\n\r\n",
        copied.concat()
    )
}
