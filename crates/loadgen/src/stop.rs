//! Ending a run early.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// Asks a run to end: no operation begins any more. Copies ask together.
#[derive(Clone, Default, Debug)]
pub(crate) struct Stop(Arc<Asked>);

#[derive(Default, Debug)]
struct Asked {
    now: AtomicBool,
    for_good: AtomicBool,
}

impl Stop {
    /// Asks this run to end.
    pub(crate) fn ask(&self) {
        self.0.now.store(true, Ordering::Relaxed);
    }

    /// Asks this run and all after it to end.
    pub(crate) fn ask_for_good(&self) {
        self.0.for_good.store(true, Ordering::Relaxed);
    }

    /// Whether this run is to end.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.now.load(Ordering::Relaxed) || self.is_asked_for_good()
    }

    /// Whether no other run is to begin.
    pub(crate) fn is_asked_for_good(&self) -> bool {
        self.0.for_good.load(Ordering::Relaxed)
    }

    /// Before another run.
    pub(crate) fn renew(&self) {
        self.0.now.store(false, Ordering::Relaxed);
    }

    /// Asks for good when the process is told to end (Ctrl-C, TERM). When it is told again, `leave`
    /// is called and the process ends at once.
    ///
    /// # Errors
    /// The system does not allow it.
    pub(crate) fn on_signals(&self, leave: fn()) -> io::Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let stop = self.clone();
        thread::Builder::new()
            .name(String::from("signals"))
            .spawn(move || {
                for signal in signals.forever() {
                    if stop.is_asked_for_good() {
                        leave();
                        std::process::exit(128 + signal);
                    }
                    stop.ask_for_good();
                }
            })?;
        Ok(())
    }
}
