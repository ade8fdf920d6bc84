use sip_wire::{Credentials, Framing, Index, Limits, Name};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// A phone that can register, over UDP.
pub(crate) struct Phone {
    socket: UdpSocket,
    user: String,
    domain: String,
    password: String,
    cseq: u32,
}

impl Phone {
    pub(crate) fn new(server: SocketAddr, user: &str, domain: &str, password: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self {
            socket,
            user: user.to_owned(),
            domain: domain.to_owned(),
            password: password.to_owned(),
            cseq: 0,
        }
    }

    /// Registers, with credentials when it is challenged; the last status.
    pub(crate) fn register(&mut self) -> u16 {
        self.try_register().expect("a response")
    }

    /// As [`Self::register`]; `None`: the server has gone.
    pub(crate) fn try_register(&mut self) -> Option<u16> {
        let (code, challenge) = self.request("")?;
        match challenge {
            Some(challenge) if code == 401 => {
                let credentials = self.answer(&challenge);
                Some(self.request(&credentials)?.0)
            }
            _ => Some(code),
        }
    }

    /// Takes the server for gone when a response takes longer: a request may have come as it ended.
    pub(crate) fn waiting(self, longest: Duration) -> Self {
        self.socket.set_read_timeout(Some(longest)).unwrap();
        self
    }

    /// The port it registers from.
    pub(crate) fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// Sends a REGISTER; status and challenge of the response.
    fn request(&mut self, credentials: &str) -> Option<(u16, Option<String>)> {
        self.cseq += 1;
        let Self {
            user, domain, cseq, ..
        } = self;
        let local = self.socket.local_addr().unwrap();
        let request = format!(
            "REGISTER sip:{domain} SIP/2.0\r\nVia: SIP/2.0/UDP {local};rport;branch=z9hG4bK{}-{cseq}\r\n\
             Max-Forwards: 70\r\nFrom: <sip:{user}@{domain}>;tag=1\r\nTo: <sip:{user}@{domain}>\r\n\
             Call-ID: {local}\r\nCSeq: {cseq} REGISTER\r\nContact: <sip:{user}@{local}>\r\nExpires: 600\r\n\
             {credentials}Content-Length: 0\r\n\r\n",
            local.port()
        );
        self.socket.send(request.as_bytes()).ok()?;
        let mut buffer = [0; 65_536];
        let len = self.socket.recv(&mut buffer).ok()?;
        let mut index = Index::new();
        let bytes = &buffer[..len];
        index
            .parse(bytes, Framing::Datagram, &Limits::default())
            .unwrap();
        let message = index.message(bytes);
        let challenge = message.header(Name::WwwAuthenticate);
        let challenge = challenge.map(|h| String::from_utf8(h.value.to_vec()).unwrap());
        Some((message.code().unwrap(), challenge))
    }

    /// MD5 without qop (RFC 2069), as old phones do.
    fn answer(&self, challenge: &str) -> String {
        let fields = Credentials::parse(challenge.as_bytes()).unwrap();
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        let (realm, nonce) = (text(fields.realm), text(fields.nonce));
        let uri = format!("sip:{}", self.domain);
        let ha1 = admin::control::hex(&sip_core::ha1(&self.user, realm, &self.password).md5);
        let a2 = md5_hex(&format!("REGISTER:{uri}"));
        let response = md5_hex(&format!("{ha1}:{nonce}:{a2}"));
        format!(
            "Authorization: Digest username=\"{}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", \
             response=\"{response}\"\r\n",
            self.user
        )
    }
}

fn md5_hex(text: &str) -> String {
    use md5::Digest;
    admin::control::hex(&md5::Md5::digest(text))
}
