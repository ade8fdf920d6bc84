use crate::failure::{Failure, Result};
use sip_wire::{Frame, Framer, Framing, Index, Limits, Message};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// A phone's socket to its server.
pub(crate) enum Wire {
    Udp(UdpSocket),
    /// With what has arrived and is not a whole message yet.
    Tcp(TcpStream, Vec<u8>),
}

impl Wire {
    pub(crate) fn udp(server: SocketAddr) -> Result<Self> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(server)?;
        Ok(Self::Udp(socket))
    }

    pub(crate) fn tcp(server: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        Ok(Self::Tcp(stream, Vec::new()))
    }

    /// As in a Via.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Udp(_) => "UDP",
            Self::Tcp(..) => "TCP",
        }
    }

    pub(crate) fn local(&self) -> Result<SocketAddr> {
        Ok(match self {
            Self::Udp(socket) => socket.local_addr()?,
            Self::Tcp(stream, _) => stream.local_addr()?,
        })
    }

    pub(crate) fn send(&mut self, message: &[u8]) -> Result {
        match self {
            Self::Udp(socket) => socket.send(message).map(drop)?,
            Self::Tcp(stream, _) => stream.write_all(message)?,
        }
        Ok(())
    }

    /// The next message; `None` when none came in time.
    pub(crate) fn receive(&mut self, wait: Duration) -> Result<Option<Incoming>> {
        match self {
            Self::Udp(socket) => {
                socket.set_read_timeout(Some(wait))?;
                let mut buffer = vec![0; 65_536];
                match socket.recv(&mut buffer) {
                    Ok(len) => {
                        buffer.truncate(len);
                        Incoming::parse(buffer, Framing::Datagram).map(Some)
                    }
                    Err(error) if is_timeout(&error) => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            Self::Tcp(stream, rest) => {
                stream.set_read_timeout(Some(wait))?;
                receive_stream(stream, rest)
            }
        }
    }
}

fn receive_stream(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Result<Option<Incoming>> {
    let mut framer = Framer::default();
    let mut buffer = [0; 16_384];
    loop {
        match framer.next(rest, &Limits::default()) {
            Frame::Blank { len, .. } => drop(rest.drain(..len)),
            Frame::Message { len } => {
                let bytes = rest.drain(..len).collect();
                return Incoming::parse(bytes, Framing::Stream).map(Some);
            }
            Frame::Broken(error) => return Err(Failure::during("the server sent nonsense", error)),
            Frame::Incomplete => match stream.read(&mut buffer) {
                Ok(0) => return Err(Failure::new("the server closed the connection")),
                Ok(len) => rest.extend_from_slice(&buffer[..len]),
                Err(error) if is_timeout(&error) => return Ok(None),
                Err(error) => return Err(error.into()),
            },
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    // A read that timed out says either, and one that a signal interrupted is tried again by the caller.
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// A message that has come.
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    index: Index,
}

impl Incoming {
    fn parse(bytes: Vec<u8>, framing: Framing) -> Result<Self> {
        let mut index = Index::new();
        index
            .parse(&bytes, framing, &Limits::default())
            .map_err(|error| Failure::during("the server sent nonsense", error))?;
        Ok(Self { bytes, index })
    }

    pub(crate) fn message(&self) -> Message<'_> {
        self.index.message(&self.bytes)
    }
}
