use location::Wall;
use sip_core::{Mono, Now};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The one place that reads clocks, but for those of [`net::Stages`], by which nothing is decided. All workers count from the same start.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(crate) fn now(self) -> Now {
        // A clock that is before 1970 reads as 1970.
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            mono: self.mono(),
            wall: Wall(wall.as_millis() as u64),
        }
    }

    pub(crate) fn mono(self) -> Mono {
        Mono(self.start.elapsed().as_micros() as u64)
    }
}
