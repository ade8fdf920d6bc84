#![allow(unsafe_code)]

use super::BATCH;
use super::raw::{Control, RawAddress};
use crate::{Counters, Stage, Stages, Tag};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

/// Datagrams that wait for one socket: their bytes in one arena, and where they go.
#[derive(Default)]
pub(crate) struct SendQueue {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The kernel took no more: what is here waits for the socket to be writable.
    pub(crate) blocked: bool,
}

struct Entry {
    start: u32,
    len: u32,
    local: Option<IpAddr>,
    peer: SocketAddr,
    tag: Option<Tag>,
}

/// Arena bytes kept for the next turn.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

impl SendQueue {
    pub(crate) fn push(
        &mut self,
        local: Option<IpAddr>,
        peer: SocketAddr,
        tag: Option<Tag>,
        bytes: &[u8],
    ) {
        self.entries.push(Entry {
            start: self.bytes.len() as u32,
            len: bytes.len() as u32,
            local,
            peer,
            tag,
        });
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// Sends all, in batches. What the kernel refuses for good is dropped, and its tags go to `unsent`; when the kernel takes
    /// no more for now, the rest stays and `blocked` is set.
    pub(crate) fn flush(
        &mut self,
        socket: RawFd,
        scratch: &mut SendScratch,
        stages: &mut Stages,
        counters: &mut Counters,
        unsent: &mut Vec<Tag>,
    ) {
        self.blocked = false;
        let mut done = 0;
        while done < self.entries.len() {
            let batch = &self.entries[done..self.entries.len().min(done + BATCH)];
            stages.enter(Stage::Write);
            match scratch.send(socket, &self.bytes, batch) {
                Ok(count) => {
                    counters.datagrams_sent += count as u64;
                    counters.datagram_bytes_sent +=
                        batch[..count].iter().map(|e| u64::from(e.len)).sum::<u64>();
                    done += count;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => {
                        self.blocked = true;
                        break;
                    }
                    // An ICMP error about an earlier datagram, of no use: it names none of ours. The call took it away.
                    Some(libc::ECONNREFUSED) => {}
                    // Too large, no route, our address gone, forbidden, no memory: of the first datagram of the batch.
                    _ => {
                        counters.datagrams_unsent += 1;
                        unsent.extend(batch[0].tag);
                        done += 1;
                    }
                },
            }
        }
        self.drop_first(done);
    }

    fn drop_first(&mut self, count: usize) {
        if count == self.entries.len() {
            self.entries.clear();
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES_MAX);
            return;
        }
        if count == 0 {
            return;
        }
        self.entries.drain(..count);
        let start = self.entries[0].start;
        self.bytes.drain(..start as usize);
        for entry in &mut self.entries {
            entry.start -= start;
        }
    }
}

/// What the kernel is handed with a batch; one for all sockets of a thread.
pub(crate) struct SendScratch {
    names: Box<[RawAddress; BATCH]>,
    controls: Box<[Control; BATCH]>,
    vectors: Box<[libc::iovec; BATCH]>,
    headers: Box<[libc::mmsghdr; BATCH]>,
}

// SAFETY: the raw pointers are written anew for each call and are not followed outside of it.
unsafe impl Send for SendScratch {}

impl SendScratch {
    pub(crate) fn new() -> Self {
        Self {
            names: Box::new([RawAddress::EMPTY; BATCH]),
            controls: Box::new([Control::EMPTY; BATCH]),
            // SAFETY: all zero bytes are a valid value of these plain structures.
            vectors: Box::new(unsafe { std::mem::zeroed() }),
            // SAFETY: the same.
            headers: Box::new(unsafe { std::mem::zeroed() }),
        }
    }

    /// Sends the first entries, at most [`BATCH`]; returns how many the kernel took, at least one.
    fn send(&mut self, socket: RawFd, bytes: &[u8], entries: &[Entry]) -> io::Result<usize> {
        for (i, entry) in entries.iter().enumerate() {
            let message = &bytes[entry.start as usize..][..entry.len as usize];
            self.vectors[i] = libc::iovec {
                iov_base: message.as_ptr().cast_mut().cast(),
                iov_len: message.len(),
            };
            let header = &mut self.headers[i].msg_hdr;
            header.msg_namelen = self.names[i].set(entry.peer);
            header.msg_name = (&raw mut self.names[i]).cast();
            header.msg_iov = &raw mut self.vectors[i];
            header.msg_iovlen = 1;
            header.msg_controllen = entry
                .local
                .map_or(0, |local| self.controls[i].set_local(local))
                as _;
            header.msg_control = if entry.local.is_some() {
                self.controls[i].pointer()
            } else {
                std::ptr::null_mut()
            };
        }
        // SAFETY: the first `entries.len()` headers (at most BATCH, by slicing) have just been pointed at a name, a vector over
        // `bytes`, and a control buffer or none, which all outlive the call; the kernel only reads them.
        let count = unsafe {
            libc::sendmmsg(
                socket,
                self.headers.as_mut_ptr(),
                entries.len() as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
            )
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(count as usize)
    }
}
