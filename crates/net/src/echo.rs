//! A server that sends each message back as it came: the floor that a SIP server on these sockets can be held against.
//!
//! Datagrams go back to where they came from, messages of streams on their connection; several in one turn leave together.

use crate::{Counters, Handler, Io, Net, Options, SocketOptions, Source, bind_udp, listen_tcp};
use mio::Waker;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// A running echo server; dropping it ends it.
pub struct Echo {
    /// Where it listens for datagrams.
    pub udp: Vec<SocketAddr>,
    /// Where it listens for connections.
    pub tcp: Vec<SocketAddr>,
    ender: Ender,
    workers: Vec<JoinHandle<io::Result<Counters>>>,
}

/// Ends an echo server from another thread.
#[derive(Clone, Default)]
pub struct Ender(Arc<Ending>);

#[derive(Default)]
struct Ending {
    asked: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Ender {
    /// Tells all threads to end.
    pub fn end(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
        for waker in self.wakers().iter() {
            let _ = waker.wake(); // a thread that is gone needs none
        }
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.0.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            ender: Ender::default(),
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
            echo.ender.wakers().push(net.waker()?);
            let ender = echo.ender.clone();
            let thread = std::thread::Builder::new()
                .name(format!("echo-{worker}"))
                .spawn(move || run(&mut net, &ender))?;
            echo.workers.push(thread);
        }
        Ok(echo)
    }

    /// What ends it.
    #[must_use]
    pub fn ender(&self) -> Ender {
        self.ender.clone()
    }

    /// Waits until it is ended, which without a fault it does not do by itself. Returns what all threads have counted.
    ///
    /// # Errors
    /// A poller did not work.
    pub fn join(mut self) -> io::Result<Counters> {
        let mut sum = Counters::default();
        for thread in self.workers.drain(..) {
            sum.add(&thread.join().expect("an echo thread does not panic")?);
        }
        Ok(sum)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.ender.end();
        for thread in self.workers.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(net: &mut Net, ender: &Ender) -> io::Result<Counters> {
    let start = Instant::now();
    while !ender.0.asked.load(Ordering::Relaxed) {
        net.wait(None)?;
        net.turn(start.elapsed().as_millis() as u64, &mut SendBack);
        net.flush(&mut SendBack);
    }
    Ok(net.io().counters())
}

struct SendBack;

impl Handler for SendBack {
    fn message(&mut self, io: &mut Io, from: &Source, bytes: &[u8]) {
        io.send_back(from, None, bytes);
    }
}
