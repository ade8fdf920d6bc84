//! What other threads see of a driver while it works.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::statistics::Statistics;

/// Where a driver tells how far it is. It does so only when asked: the copy costs.
#[derive(Default)]
pub(crate) struct Monitor {
    asked: AtomicBool,
    latest: Mutex<Option<Statistics>>,
    opened: AtomicU64,
}

impl Monitor {
    /// Asks the driver for its counts.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked, since it was asked this last.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) && self.asked.swap(false, Ordering::Relaxed)
    }

    /// The driver answers.
    pub(crate) fn tell(&self, statistics: Statistics) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(statistics);
    }

    /// Takes the last answer that has not been taken.
    pub(crate) fn take(&self) -> Option<Statistics> {
        self.latest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// In preparation: so many connections have been opened.
    pub(crate) fn has_opened(&self, count: u64) {
        self.opened.store(count, Ordering::Relaxed);
    }

    /// How many connections have been opened in preparation.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }
}
