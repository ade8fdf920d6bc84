#![allow(unsafe_code)]

use super::BATCH;
use super::raw::{self, Control, RawAddress, Said};
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// Bytes of the largest datagram, rounded up.
const DATAGRAM_BYTES: usize = 64 * 1024;
/// From one datagram's buffer to the next: not a power of two, so that the first bytes of 32 datagrams do not compete for the same
/// lines of the cache.
const STRIDE: usize = DATAGRAM_BYTES + 640;

/// Buffers for a batch of datagrams, used again for each batch. Memory is touched only as far as datagrams reach.
pub(crate) struct ReceiveBatch {
    buffers: Box<[u8]>,
    names: Box<[RawAddress; BATCH]>,
    // Only the kernel writes these two, by the headers, which point into all four; none of them is ever moved or resized.
    _controls: Box<[Control; BATCH]>,
    _vectors: Box<[libc::iovec; BATCH]>,
    headers: Box<[libc::mmsghdr; BATCH]>,
    used: usize,
}

// SAFETY: the raw pointers in the headers lead only into boxes that this value owns.
unsafe impl Send for ReceiveBatch {}

/// One datagram of a batch.
pub(crate) struct Datagram<'a> {
    pub(crate) peer: SocketAddr,
    pub(crate) said: Said,
    pub(crate) bytes: &'a [u8],
}

impl ReceiveBatch {
    pub(crate) fn new() -> Self {
        // Zeroed memory comes from the system untouched.
        let mut buffers = vec![0; STRIDE * BATCH].into_boxed_slice();
        let mut names = Box::new([RawAddress::EMPTY; BATCH]);
        let mut controls = Box::new([Control::EMPTY; BATCH]);
        let mut vectors = Box::new(
            [libc::iovec {
                iov_base: std::ptr::null_mut(),
                iov_len: DATAGRAM_BYTES,
            }; BATCH],
        );
        // SAFETY: all zero bytes are a valid value of this plain structure.
        let mut headers: Box<[libc::mmsghdr; BATCH]> = Box::new(unsafe { std::mem::zeroed() });
        for (i, buffer) in buffers.chunks_exact_mut(STRIDE).enumerate() {
            vectors[i].iov_base = buffer.as_mut_ptr().cast();
        }
        for (i, header) in headers.iter_mut().enumerate() {
            header.msg_hdr.msg_name = (&raw mut names[i]).cast();
            header.msg_hdr.msg_iov = &raw mut vectors[i];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = controls[i].pointer();
        }
        Self {
            buffers,
            names,
            _controls: controls,
            _vectors: vectors,
            headers,
            used: BATCH,
        }
    }

    /// Receives what is there, up to [`BATCH`] datagrams; returns how many. Does not block.
    pub(crate) fn receive(&mut self, socket: RawFd) -> io::Result<usize> {
        // The kernel has overwritten these in the headers that it used.
        for header in &mut self.headers[..self.used] {
            header.msg_hdr.msg_namelen = RawAddress::SIZE;
            header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        }
        self.used = 0;
        // SAFETY: each of the BATCH headers points to a name, a vector and a control buffer of its own, with their sizes, all owned by
        // `self` and not borrowed now; the kernel writes within them.
        let count = unsafe {
            libc::recvmmsg(
                socket,
                self.headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        self.used = count as usize;
        Ok(self.used)
    }

    /// A datagram of the last batch; `None` when it was cut off or came from nowhere.
    pub(crate) fn datagram(&self, index: usize) -> Option<Datagram<'_>> {
        assert!(index < self.used, "of the last batch");
        let header = &self.headers[index];
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let start = STRIDE * index;
        Some(Datagram {
            peer: self.names[index].get()?,
            // SAFETY: the header is of the last receive call (asserted above), and its control buffer has not been touched since.
            said: unsafe { raw::said(&header.msg_hdr) },
            bytes: &self.buffers[start..start + header.msg_len as usize],
        })
    }
}

/// Takes the start of a datagram back that was sent from a socket and could not be delivered, as an ICMP message told; `None`: there is no more.
pub(crate) fn take_back(socket: RawFd, buffer: &mut [u8]) -> Option<&[u8]> {
    // SAFETY: the kernel writes at most the buffer's length into it.
    let count = unsafe {
        libc::recv(
            socket,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT,
        )
    };
    (count >= 0).then(|| &buffer[..count as usize])
}
