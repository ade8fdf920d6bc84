use crate::server::{DOMAIN, PASSWORD};
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long an answer may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a phone reaches the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Transport {
    Udp,
    Tcp,
}

impl Transport {
    /// As Via and the `transport` parameter write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        }
    }
}

/// A phone that sends what it is told to, byte for byte. It shares no code with the server.
pub struct Phone {
    socket: Socket,
    /// Its own address.
    pub address: SocketAddr,
    /// Read from a stream, and not yet a whole message.
    rest: Vec<u8>,
}

enum Socket {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Phone {
    /// A phone at `local` by UDP; by TCP from any address, connected to `server`.
    ///
    /// # Panics
    /// When the address is taken, or the server refuses.
    #[must_use]
    pub fn new(transport: Transport, local: SocketAddr, server: SocketAddr) -> Self {
        match transport {
            Transport::Udp => Self::udp(local),
            Transport::Tcp => Self::tcp(server),
        }
    }

    /// By UDP.
    ///
    /// # Panics
    /// When the address is taken.
    #[must_use]
    pub fn udp(local: SocketAddr) -> Self {
        let socket = UdpSocket::bind(local).expect("a socket");
        let address = socket.local_addr().expect("its address");
        Self {
            socket: Socket::Udp(socket),
            address,
            rest: Vec::new(),
        }
    }

    /// By TCP.
    ///
    /// # Panics
    /// When the server does not take the connection.
    #[must_use]
    pub fn tcp(server: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&server, PATIENCE).expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        let address = stream.local_addr().expect("its address");
        Self {
            socket: Socket::Tcp(stream),
            address,
            rest: Vec::new(),
        }
    }

    /// What it goes by.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self.socket {
            Socket::Udp(_) => Transport::Udp,
            Socket::Tcp(_) => Transport::Tcp,
        }
    }

    /// Sends the bytes; whether they could be sent.
    pub fn send(&self, bytes: impl AsRef<[u8]>, to: SocketAddr) -> bool {
        let bytes = bytes.as_ref();
        match &self.socket {
            Socket::Udp(socket) => socket.send_to(bytes, to).is_ok(),
            Socket::Tcp(stream) => (&*stream).write_all(bytes).is_ok(),
        }
    }

    /// The next message, when one comes within so many milliseconds.
    pub fn receive_for(&mut self, milliseconds: u64) -> Option<Message> {
        let until = Instant::now() + Duration::from_millis(milliseconds);
        loop {
            if let Some(message) = self.take() {
                return Some(message);
            }
            if self.read(until)? == 0 {
                return None;
            }
        }
    }

    /// The next message.
    ///
    /// # Panics
    /// When none comes; `what` says what was awaited.
    pub fn receive(&mut self, what: &str) -> Message {
        let message = self.receive_for(PATIENCE.as_millis() as u64);
        message.unwrap_or_else(|| panic!("{what}: nothing came"))
    }

    /// The next message that begins so; others are passed over.
    ///
    /// # Panics
    /// When none comes.
    pub fn receive_start(&mut self, start: &str) -> Message {
        loop {
            let message = self.receive(start);
            if message.text.starts_with(start) {
                return message;
            }
        }
    }

    /// Sends a request, again when a datagram got lost, and gives its final response.
    pub fn ask(&mut self, request: &str, to: SocketAddr) -> Option<Message> {
        let until = Instant::now() + PATIENCE;
        self.send(request, to);
        while Instant::now() < until {
            match self.receive_for(1000) {
                Some(answer) if answer.status() >= 200 => return Some(answer),
                Some(_) => {}
                None if self.transport() == Transport::Udp => {
                    self.send(request, to);
                }
                None if self.is_closed() => return None,
                None => {}
            }
        }
        None
    }

    /// Whether the other side has closed the connection; what it still sent is read before.
    pub fn is_closed(&mut self) -> bool {
        loop {
            match self.read(Instant::now() + Duration::from_millis(1)) {
                Some(0) => return true,
                Some(_) => {}
                None => return false,
            }
        }
    }

    /// Ends our side of a connection.
    pub fn hang_up(&self) {
        if let Socket::Tcp(stream) = &self.socket {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Reads once: how many bytes, 0 when the other side closed, nothing when the time is over.
    fn read(&mut self, until: Instant) -> Option<usize> {
        let left = until.checked_duration_since(Instant::now())?;
        let left = Some(left.max(Duration::from_millis(1)));
        let mut buffer = [0; 65_536];
        let done = match &self.socket {
            Socket::Udp(socket) => {
                socket.set_read_timeout(left).ok()?;
                socket.recv(&mut buffer)
            }
            Socket::Tcp(stream) => {
                stream.set_read_timeout(left).ok()?;
                (&*stream).read(&mut buffer)
            }
        };
        match done {
            Ok(count) => {
                self.rest.extend_from_slice(&buffer[..count]);
                Some(count)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                None
            }
            Err(_) => Some(0),
        }
    }

    /// Takes a whole message out of what was read.
    fn take(&mut self) -> Option<Message> {
        while self.rest.starts_with(b"\r\n") {
            self.rest.drain(..2);
        }
        let head = self.rest.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&self.rest[..head]).into_owned();
        let body = Message { text }.header("Content-Length");
        let body: usize = body.and_then(|length| length.parse().ok()).unwrap_or(0);
        let whole = match self.socket {
            Socket::Udp(_) => self.rest.len(),
            Socket::Tcp(_) => head + body,
        };
        if self.rest.len() < whole {
            return None;
        }
        let bytes: Vec<u8> = self.rest.drain(..whole).collect();
        Some(Message {
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }
}

/// Requests, ready to send.
impl Phone {
    /// OPTIONS to the server itself.
    #[must_use]
    pub fn options(&self, server: SocketAddr) -> String {
        self.request(
            "OPTIONS",
            &format!("sip:{server}"),
            "probe",
            &token(),
            1,
            "",
        )
    }

    /// A request outside of any dialog. `more` is further header lines.
    #[must_use]
    pub fn request(
        &self,
        method: &str,
        uri: &str,
        user: &str,
        call_id: &str,
        cseq: u32,
        more: &str,
    ) -> String {
        let (via, local) = (self.transport().name(), self.address);
        let mut text = format!("{method} {uri} SIP/2.0\r\n");
        let _ = write!(
            text,
            "Via: SIP/2.0/{via} {local};rport;branch=z9hG4bK{}\r\n",
            token()
        );
        let _ = write!(
            text,
            "From: <sip:{user}@{DOMAIN}>;tag=f{call_id}\r\nTo: <{uri}>\r\n"
        );
        let _ = write!(
            text,
            "Call-ID: {call_id}\r\nCSeq: {cseq} {method}\r\nMax-Forwards: 70\r\n"
        );
        let _ = write!(text, "{more}Content-Length: 0\r\n\r\n");
        text
    }

    /// REGISTER of this phone for `user`. `more` is further header lines.
    #[must_use]
    pub fn register(&self, user: &str, call_id: &str, cseq: u32, more: &str) -> String {
        let contact = self.contact(user);
        self.register_raw(
            user,
            call_id,
            cseq,
            &format!("Contact: <{contact}>\r\n{more}"),
        )
    }

    /// REGISTER with just these further header lines; none: it asks what is there.
    #[must_use]
    pub fn register_raw(&self, user: &str, call_id: &str, cseq: u32, more: &str) -> String {
        let to = format!("To: <sip:{user}@{DOMAIN}>\r\n");
        let uri = format!("sip:{DOMAIN}");
        let text = self.request("REGISTER", &uri, user, call_id, cseq, more);
        text.replace(&format!("To: <{uri}>\r\n"), &to)
    }

    /// The URI that reaches this phone.
    #[must_use]
    pub fn contact(&self, user: &str) -> String {
        match self.transport() {
            Transport::Udp => format!("sip:{user}@{}", self.address),
            Transport::Tcp => format!("sip:{user}@{};transport=tcp", self.address),
        }
    }

    /// Registers with digest: the answer in the end.
    ///
    /// # Panics
    /// When no answer comes.
    pub fn register_with_digest(
        &mut self,
        user: &str,
        call_id: &str,
        cseq: u32,
        server: SocketAddr,
    ) -> Message {
        let contact = format!("Contact: <{}>\r\n", self.contact(user));
        self.register_raw_with_digest(user, call_id, cseq, &contact, server)
    }

    /// The Contacts that are bound to the user.
    ///
    /// # Panics
    /// When the server does not say.
    pub fn bindings(&mut self, user: &str, server: SocketAddr) -> Vec<String> {
        let answer = self.register_raw_with_digest(user, &token(), 1, "", server);
        assert_eq!(answer.status(), 200, "{}", answer.text);
        let values: Vec<String> = answer.headers("Contact").collect();
        values
            .iter()
            .flat_map(|value| value.split(", <").map(String::from))
            .collect()
    }

    fn register_raw_with_digest(
        &mut self,
        user: &str,
        call_id: &str,
        cseq: u32,
        more: &str,
        server: SocketAddr,
    ) -> Message {
        let request = self.register_raw(user, call_id, cseq, more);
        let challenge = self.ask(&request, server).expect("an answer to REGISTER");
        if challenge.status() != 401 {
            return challenge;
        }
        let credentials =
            challenge.credentials("REGISTER", &format!("sip:{DOMAIN}"), user, PASSWORD);
        let request = self.register_raw(user, call_id, cseq + 1, &format!("{more}{credentials}"));
        self.ask(&request, server)
            .expect("an answer to REGISTER with credentials")
    }

    /// An answer to a request that came: status line, the headers that go back, and more header lines.
    #[must_use]
    pub fn answer(request: &Message, status: &str, to_tag: &str, more: &str) -> String {
        let mut text = format!("SIP/2.0 {status}\r\n");
        for line in request
            .text
            .split("\r\n")
            .take_while(|line| !line.is_empty())
        {
            let name = line
                .split(':')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            match name.as_str() {
                "via" | "from" | "call-id" | "cseq" | "record-route" => {
                    text += &format!("{line}\r\n")
                }
                "to" if line.contains(";tag=") => text += &format!("{line}\r\n"),
                "to" => text += &format!("{line};tag={to_tag}\r\n"),
                _ => {}
            }
        }
        text + more + "Content-Length: 0\r\n\r\n"
    }
}

/// A message as it came.
#[derive(Clone, Debug)]
pub struct Message {
    /// All of it; bytes that are no UTF-8 are replaced.
    pub text: String,
}

impl Message {
    /// Of a response; 0 for a request.
    #[must_use]
    pub fn status(&self) -> u16 {
        let line = self.text.strip_prefix("SIP/2.0 ");
        line.and_then(|line| line.get(..3)?.parse().ok())
            .unwrap_or(0)
    }

    /// The first header of that name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers(name).next()
    }

    /// All headers of that name.
    pub fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = String> + 'a {
        let lines = self
            .text
            .split("\r\n")
            .take_while(|line| !line.is_empty())
            .skip(1);
        lines.filter_map(move |line| {
            let (key, value) = line.split_once(':')?;
            key.trim()
                .eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    }

    /// The header line that answers this challenge (RFC 2617 section 3.2.2, MD5, qop auth).
    ///
    /// # Panics
    /// When the response is no MD5 challenge.
    #[must_use]
    pub fn credentials(&self, method: &str, uri: &str, user: &str, password: &str) -> String {
        let (challenge, name) = match self.status() {
            407 => ("Proxy-Authenticate", "Proxy-Authorization"),
            _ => ("WWW-Authenticate", "Authorization"),
        };
        let mut challenges = self.headers(challenge);
        let md5 = challenges.find(|value| !value.contains("SHA"));
        let value = md5.unwrap_or_else(|| panic!("no MD5 challenge in {}", self.text));
        let part = |name: &str| {
            let at = value.find(&format!("{name}=\""))? + name.len() + 2;
            value[at..].split('"').next()
        };
        let (realm, nonce) = (
            part("realm").expect("a realm"),
            part("nonce").expect("a nonce"),
        );
        let ha1 = md5_hex(&format!("{user}:{realm}:{password}"));
        let ha2 = md5_hex(&format!("{method}:{uri}"));
        let response = md5_hex(&format!("{ha1}:{nonce}:00000001:cafe:auth:{ha2}"));
        format!(
            "{name}: Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", \
             response=\"{response}\", algorithm=MD5, qop=auth, nc=00000001, cnonce=\"cafe\"\r\n"
        )
    }
}

/// Unlike every other of this process.
#[must_use]
pub(crate) fn token() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!(
        "{}x{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

fn md5_hex(text: &str) -> String {
    use md5::Digest;
    let hash = md5::Md5::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
