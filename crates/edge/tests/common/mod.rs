//! A whole server on loopback, without authentication; the test is the disk and the resolver.
#![allow(dead_code, unreachable_pub)]

use edge::{Busy, Listen, Log, Options, Post, Resolver, Server};
use location::{Location, Subscribers, Transport, Wall};
use sip_core::{Digest, Domains, ResolveId, ResolveRequest, Settings, Shared};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than anything here takes; a test that reaches it has failed.
pub const LONG: Duration = Duration::from_secs(10);

/// A host at whose name the resolver panics, in the worker.
pub const PANIC: &str = "panic.example.net";

pub struct Rig {
    pub server: Option<Server>,
    pub post: Post,
    pub location: Arc<Location>,
    pub asked: Arc<Asked>,
    pub log: LogText,
    pub udp: SocketAddr,
    pub tcp: SocketAddr,
    pub settings: Settings,
}

#[derive(Default)]
pub struct Asked {
    pub busy: bool,
    pub questions: Mutex<Vec<(u8, ResolveId, ResolveRequest)>>,
}

impl Resolver for Asked {
    fn ask(&self, worker: u8, id: ResolveId, request: ResolveRequest) -> Result<(), Busy> {
        assert_ne!(request.host, PANIC, "as the test wants");
        if self.busy {
            return Err(Busy);
        }
        let mut questions = self.questions.lock().expect("whole");
        questions.push((worker, id, request));
        Ok(())
    }
}

#[derive(Clone, Default)]
pub struct LogText(Arc<Mutex<Vec<u8>>>);

impl Write for LogText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("whole").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl LogText {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("whole")).into_owned()
    }
}

pub fn listen(transport: Transport) -> Listen {
    Listen {
        transport,
        address: "127.0.0.1:0".parse().expect("an address"),
    }
}

impl Rig {
    pub fn new(workers: u8) -> Self {
        Self::with(workers, false)
    }

    pub fn with(workers: u8, resolver_busy: bool) -> Self {
        let options = Options {
            workers,
            ..Options::default()
        };
        Self::with_options(options, resolver_busy)
    }

    pub fn with_options(options: Options, resolver_busy: bool) -> Self {
        let bound = Server::bind(Options {
            listen: vec![listen(Transport::Udp), listen(Transport::Tcp)],
            seed: 1,
            ..options
        })
        .expect("ports are free");
        let listeners = bound.listeners();
        let (udp, tcp) = (listeners[0].address, listeners[1].address);
        let location = Arc::new(Location::new(location::Options {
            hash_key: [1, 2],
            waiting_bytes_max: 1 << 20,
            aor_count_max: 1000,
        }));
        let shared = Arc::new(Shared {
            location: Arc::clone(&location),
            subscribers: Arc::new(Subscribers::in_memory([3, 4])),
            digest: Digest::new([5; 16], 1024, Wall(0)),
            token_key: [6; 16],
        });
        let settings = Settings {
            domains: Domains {
                primary: String::from("example.com"),
                names: vec![String::from("example.com")],
                aliases: vec![String::from("127.0.0.1")],
                ports: vec![udp.port(), tcp.port()],
            },
            auth: false,
            ..Settings::default()
        };
        let asked = Arc::new(Asked {
            busy: resolver_busy,
            ..Asked::default()
        });
        let resolver: Arc<dyn Resolver> = asked.clone();
        let post = bound.post().clone();
        let log = LogText::default();
        let server = bound
            .start(
                &shared,
                &Arc::new(settings.clone()),
                &resolver,
                &Log::to(log.clone()),
            )
            .expect("threads");
        Self {
            server: Some(server),
            post,
            location,
            asked,
            log,
            udp,
            tcp,
            settings,
        }
    }

    /// The disk takes all that waits.
    pub fn commit(&self) {
        while let Some(batch) = self.location.take_batch() {
            self.location.batch_written(batch);
        }
        self.post.committed();
    }

    /// The disk takes nothing.
    pub fn fail_commit(&self) {
        if let Some(batch) = self.location.take_batch() {
            self.location.batch_failed(batch);
        }
        self.post.committed();
    }

    pub fn answers_waiting(&self) -> u64 {
        self.post
            .status(LONG)
            .iter()
            .map(|status| status.answers_waiting)
            .sum()
    }

    pub fn udp_phone(&self) -> Phone {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(self.udp).expect("connected");
        socket.set_read_timeout(Some(LONG)).expect("set");
        Phone::Udp(socket)
    }

    pub fn tcp_phone(&self) -> Phone {
        let stream = TcpStream::connect(self.tcp).expect("accepted");
        stream.set_read_timeout(Some(LONG)).expect("set");
        stream.set_nodelay(true).expect("set");
        Phone::Tcp(stream, Vec::new())
    }

    /// Registers `user` and waits for the 200.
    pub fn register(&self, phone: &mut Phone, user: &str) {
        phone.send(&phone.register(user, 1));
        let mut commits = 0;
        while self.answers_waiting() == 0 {
            commits += 1;
            assert!(commits < 1000, "the REGISTER of {user} has not come");
        }
        self.commit();
        let answer = phone.receive();
        assert!(answer.starts_with("SIP/2.0 200 "), "{answer}");
    }

    pub fn end(mut self) {
        self.post.shut_down();
        let server = self.server.take().expect("running");
        server.join().expect("an orderly end");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.post.shut_down();
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

pub enum Phone {
    Udp(UdpSocket),
    Tcp(TcpStream, Vec<u8>),
}

impl Phone {
    pub fn local(&self) -> SocketAddr {
        match self {
            Self::Udp(socket) => socket.local_addr(),
            Self::Tcp(stream, _) => stream.local_addr(),
        }
        .expect("bound")
    }

    pub fn request(&self, method: &str, uri: &str, to: &str, cseq: u32, more: &str) -> String {
        let transport = match self {
            Self::Udp(_) => "UDP",
            Self::Tcp(..) => "TCP",
        };
        let local = self.local();
        format!(
            "{method} {uri} SIP/2.0\r\n\
             Via: SIP/2.0/{transport} {local};rport;branch=z9hG4bK{method}{cseq}{port}\r\n\
             Max-Forwards: 70\r\n\
             From: <sip:tester@example.com>;tag=1\r\n\
             To: <{to}>\r\n\
             Call-ID: {method}{port}\r\n\
             CSeq: {cseq} {method}\r\n\
             {more}Content-Length: 0\r\n\r\n",
            port = local.port()
        )
    }

    pub fn register(&self, user: &str, cseq: u32) -> String {
        let contact = match self {
            Self::Udp(_) => format!("Contact: <sip:{user}@{}>\r\n", self.local()),
            Self::Tcp(..) => format!("Contact: <sip:{user}@{};transport=tcp>\r\n", self.local()),
        };
        let aor = format!("sip:{user}@example.com");
        let request = self.request("REGISTER", "sip:example.com", &aor, cseq, &contact);
        request.replace("<sip:tester@example.com>", &format!("<{aor}>"))
    }

    pub fn options(&self, cseq: u32) -> String {
        let server = "sip:example.com";
        self.request("OPTIONS", server, server, cseq, "")
    }

    pub fn send(&mut self, message: &str) {
        match self {
            Self::Udp(socket) => {
                socket.send(message.as_bytes()).expect("sent");
            }
            Self::Tcp(stream, _) => stream.write_all(message.as_bytes()).expect("sent"),
        }
    }

    /// The next message, which has no body.
    pub fn receive(&mut self) -> String {
        match self {
            Self::Udp(socket) => {
                let mut buffer = [0; 65_536];
                let count = socket.recv(&mut buffer).expect("a message in time");
                String::from_utf8(buffer[..count].to_vec()).expect("text")
            }
            Self::Tcp(stream, rest) => loop {
                if let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") {
                    let message = rest.drain(..end + 4).collect();
                    return String::from_utf8(message).expect("text");
                }
                let mut buffer = [0; 65_536];
                let count = stream.read(&mut buffer).expect("a message in time");
                assert!(count > 0, "closed, after {rest:?}");
                rest.extend_from_slice(&buffer[..count]);
            },
        }
    }
}

/// The 200 of a phone to a request without a body.
pub fn ok_to(request: &str) -> String {
    let kept = request.lines().filter(|line| {
        ["Via:", "From:", "To:", "Call-ID:", "CSeq:"]
            .iter()
            .any(|name| line.starts_with(name))
    });
    let lines: Vec<&str> = kept.collect();
    format!(
        "SIP/2.0 200 OK\r\n{}\r\nContent-Length: 0\r\n\r\n",
        lines.join("\r\n")
    )
}
