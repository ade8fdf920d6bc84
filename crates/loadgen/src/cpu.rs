//! Processor time of threads and processes, from `/proc`.

use std::{fs, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

/// Processor time. The total is exact to the nanosecond where the kernel keeps scheduler
/// statistics; the user part is exact to a clock tick, 10 ms.
#[derive(Clone, Copy, Default, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuTime {
    /// In user space and in the kernel.
    pub total: Duration,
    /// In user space.
    pub user: Duration,
    /// Ready to work, and without a processor.
    pub waiting: Duration,
}

impl CpuTime {
    /// Of the calling thread.
    #[must_use]
    pub fn of_this_thread() -> Self {
        Self::of_task(Path::new("/proc/thread-self"))
    }

    /// Of all threads of processes. One that is gone counts as nothing, so a count that spans a
    /// thread's end is too small.
    #[must_use]
    pub fn of_processes(pids: &[u32]) -> Self {
        let mut sum = Self::default();
        for pid in pids {
            let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
                continue;
            };
            for task in tasks.flatten() {
                sum.add(Self::of_task(&task.path()));
            }
        }
        sum
    }

    /// What was used since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let total = self.total.saturating_sub(earlier.total);
        Self {
            total,
            user: self.user.saturating_sub(earlier.user).min(total),
            waiting: self.waiting.saturating_sub(earlier.waiting),
        }
    }

    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: Self) {
        self.total += other.total;
        self.user += other.user;
        self.waiting += other.waiting;
    }

    fn of_task(task: &Path) -> Self {
        let read = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
        let (user, system) = ticks(&read("stat"));
        let schedstat = read("schedstat");
        let mut exact = schedstat
            .split_whitespace()
            .map(|n| Duration::from_nanos(n.parse().unwrap_or(0)));
        let (ran, waited) = (exact.next(), exact.next());
        let exact = ran.unwrap_or_default();
        let total = if exact.is_zero() {
            user + system
        } else {
            exact
        };
        let waiting = waited.unwrap_or_default();
        Self {
            total,
            user,
            waiting,
        }
    }
}

/// User and system time of a `stat` line: fields 14 and 15 (proc(5)), ticks of 10 ms.
fn ticks(stat: &str) -> (Duration, Duration) {
    // The command name, in parentheses, may hold spaces.
    let rest = stat.rfind(')').map_or("", |end| &stat[end + 1..]);
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || {
        let ticks = fields.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        Duration::from_millis(10 * ticks)
    };
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) b (c) R 1 1 1 0 -1 4194304 90 0 0 0 12 34 0 0 20 0 1 0 5";
        let expected = (Duration::from_millis(120), Duration::from_millis(340));
        assert_eq!(ticks(line), expected);
    }

    #[test]
    fn a_thread_that_works_uses_time() {
        let before = CpuTime::of_this_thread();
        let mut spent = CpuTime::default();
        let mut rounds = 0u64;
        while spent.total.is_zero() {
            rounds = std::hint::black_box(rounds + 1);
            spent = CpuTime::of_this_thread().since(before);
            assert!(rounds < 10_000_000, "the thread's time stands still");
        }
        assert!(CpuTime::of_processes(&[std::process::id()]).total >= spent.total);
    }
}
