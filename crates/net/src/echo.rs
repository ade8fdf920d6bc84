//! A server that sends each message back as it came: the floor that a SIP server on these sockets can be held against.
//!
//! Datagrams go back to where they came from, messages of streams on their connection; several in one turn leave together.

use crate::{Handler, Io, Net, Options, SocketOptions, Source, bind_udp, listen_tcp};
use mio::Waker;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// A running echo server; dropping it ends it.
pub struct Echo {
    /// Where it listens for datagrams.
    pub udp: Vec<SocketAddr>,
    /// Where it listens for connections.
    pub tcp: Vec<SocketAddr>,
    ended: Arc<AtomicBool>,
    workers: Vec<(Waker, JoinHandle<io::Result<()>>)>,
}

impl Echo {
    /// Listens on UDP and TCP at each address, with that many threads (at least one). Port 0: any port.
    ///
    /// # Errors
    /// As the system says: address in use, not of this machine, or privileged.
    pub fn start(addresses: &[SocketAddr], workers: u8, options: Options) -> io::Result<Self> {
        let mut echo = Self {
            udp: addresses.to_vec(),
            tcp: addresses.to_vec(),
            ended: Arc::default(),
            workers: Vec::new(),
        };
        for worker in 0..workers.max(1) {
            let mut net = Net::new(Options { worker, ..options })?;
            for address in &mut echo.udp {
                let socket = bind_udp(*address, &SocketOptions::default())?;
                *address = socket.local_addr()?;
                net.add_udp(socket)?;
            }
            for address in &mut echo.tcp {
                let listener = listen_tcp(*address, &SocketOptions::default())?;
                *address = listener.local_addr()?;
                net.add_listener(listener)?;
            }
            let waker = net.waker()?;
            let ended = Arc::clone(&echo.ended);
            let thread = std::thread::Builder::new()
                .name(format!("echo-{worker}"))
                .spawn(move || run(&mut net, &ended))?;
            echo.workers.push((waker, thread));
        }
        Ok(echo)
    }

    /// Waits until it ends, which without a fault it does not by itself.
    ///
    /// # Errors
    /// A poller did not work.
    pub fn join(mut self) -> io::Result<()> {
        for (_, thread) in self.workers.drain(..) {
            thread.join().expect("an echo thread does not panic")?;
        }
        Ok(())
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for (waker, thread) in self.workers.drain(..) {
            let _ = waker.wake();
            let _ = thread.join();
        }
    }
}

fn run(net: &mut Net, ended: &AtomicBool) -> io::Result<()> {
    let start = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        net.wait(None)?;
        net.turn(start.elapsed().as_millis() as u64, &mut SendBack);
        net.flush(&mut SendBack);
    }
    Ok(())
}

struct SendBack;

impl Handler for SendBack {
    fn message(&mut self, io: &mut Io, from: &Source, bytes: &[u8]) {
        io.send_back(from, None, bytes);
    }
}
