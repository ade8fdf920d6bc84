use crate::WorkerStatus;
use location::Flow;
use net::{ConnectionId, OpenSet, Waker};
use sip_core::{Origin, ResolveId, Settings, Target};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What reaches a worker from outside.
pub enum Mail {
    /// A message for a transaction of that worker, which came to another one.
    HandedOver {
        /// The way that it came.
        flow: Flow,
        /// The message.
        bytes: Box<[u8]>,
    },
    /// To be sent on a connection of that worker.
    Send {
        /// The connection's flow.
        flow: Flow,
        /// Who is told when it could not be sent: the worker and its name for the message.
        origin: Option<(u8, Origin)>,
        /// The message.
        bytes: Box<[u8]>,
    },
    /// What that worker had another one send could not be sent.
    SendFailed(Origin),
    /// The resolver's answer.
    Resolved {
        /// To which question.
        id: ResolveId,
        /// The answer; empty: none.
        targets: Vec<Target>,
    },
    /// A new configuration.
    Settings(Arc<Settings>),
    /// Asks for the worker's state.
    Status(SyncSender<WorkerStatus>),
    /// Close this connection.
    CloseConnection(ConnectionId),
    /// End in order.
    ShutDown,
}

impl Mail {
    /// Whether it may be dropped when much is waiting. What may not is bounded by who sends it.
    fn may_be_dropped(&self) -> bool {
        matches!(
            self,
            Self::HandedOver { .. } | Self::Send { .. } | Self::SendFailed(_)
        )
    }
}

/// The way to the workers, for each other and for the control plane. Cheap to clone. Nothing here blocks, except for [`Post::status`].
#[derive(Clone)]
pub struct Post {
    mailboxes: Arc<[Mailbox]>,
}

pub(crate) struct Mailbox {
    pub(crate) waker: Waker,
    pub(crate) open: Arc<OpenSet>,
    pub(crate) letters_max: usize,
    pub(crate) queue: Mutex<VecDeque<Mail>>,
    pub(crate) dropped: AtomicU64,
    /// Answers wait in this worker for the journal.
    pub(crate) waits_for_disk: AtomicBool,
}

impl Post {
    pub(crate) fn new(mailboxes: Vec<Mailbox>) -> Self {
        Self {
            mailboxes: mailboxes.into(),
        }
    }

    /// Number of workers.
    #[must_use]
    pub fn workers(&self) -> u8 {
        self.mailboxes.len() as u8
    }

    /// Puts something into a worker's mailbox. `false`: the mailbox is full, and this is dropped and counted; or there is no such worker.
    pub fn send(&self, worker: u8, mail: Mail) -> bool {
        let Some(mailbox) = self.mailboxes.get(usize::from(worker)) else {
            return false;
        };
        let mut queue = lock(&mailbox.queue);
        if queue.len() >= mailbox.letters_max && mail.may_be_dropped() {
            mailbox.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let was_empty = queue.is_empty();
        queue.push_back(mail);
        drop(queue);
        if was_empty {
            // Full or interrupted: then it is awake already.
            let _ = mailbox.waker.wake();
        }
        true
    }

    /// Gives the resolver's answer; empty: none found.
    pub fn resolved(&self, worker: u8, id: ResolveId, targets: Vec<Target>) {
        self.send(worker, Mail::Resolved { id, targets });
    }

    /// To be called by the journal's writer after each batch, written or failed: the workers look at what waits for it.
    pub fn committed(&self) {
        for mailbox in &*self.mailboxes {
            if mailbox.waits_for_disk.swap(false, Ordering::SeqCst) {
                let _ = mailbox.waker.wake();
            }
        }
    }

    /// Gives all workers a new configuration.
    pub fn set_settings(&self, settings: &Arc<Settings>) {
        for worker in 0..self.workers() {
            self.send(worker, Mail::Settings(Arc::clone(settings)));
        }
    }

    /// Closes a connection, whichever worker has it.
    pub fn close_connection(&self, id: ConnectionId) {
        self.send(id.worker(), Mail::CloseConnection(id));
    }

    /// Asks all workers to end in order.
    pub fn shut_down(&self) {
        for worker in 0..self.workers() {
            self.send(worker, Mail::ShutDown);
        }
    }

    /// The state of each worker, those left out that do not answer within `timeout`. Blocks until then: not for workers.
    #[must_use]
    pub fn status(&self, timeout: Duration) -> Vec<WorkerStatus> {
        let (sender, receiver) = sync_channel(self.mailboxes.len());
        for worker in 0..self.workers() {
            self.send(worker, Mail::Status(sender.clone()));
        }
        drop(sender);
        let until = Instant::now() + timeout;
        let mut all = Vec::new();
        while let Ok(status) =
            receiver.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            all.push(status);
        }
        all.sort_by_key(|status| status.worker);
        all
    }

    pub(crate) fn is_open(&self, id: ConnectionId) -> bool {
        self.mailboxes
            .get(usize::from(id.worker()))
            .is_some_and(|mailbox| mailbox.open.contains(id))
    }

    pub(crate) fn mailbox(&self, worker: u8) -> &Mailbox {
        &self.mailboxes[usize::from(worker)]
    }
}

impl Mailbox {
    /// Takes all mail, and leaves an empty queue's room in its place.
    pub(crate) fn take(&self, into: &mut VecDeque<Mail>) {
        debug_assert!(into.is_empty(), "all mail was handled");
        std::mem::swap(&mut *lock(&self.queue), into);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing that holds it can leave the queue half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
