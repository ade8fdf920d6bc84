//! All drivers of a load together, a thread each.

use std::{
    io,
    ops::Range,
    panic,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    driver::{Driver, Part, Setup, Work},
    io::Transport,
    monitor::Monitor,
    pace::{Pace, share},
    parts,
    plan::{Lifetime, PartPlan, Plan},
    statistics::Statistics,
};

/// Drivers that are ready to run: users made, connections open, callees registered.
pub(crate) struct Fleet {
    workers: Vec<Worker>,
}

/// What works in one thread.
struct Worker {
    driver: Driver,
    parts: Vec<Part>,
    monitor: Arc<Monitor>,
}

/// How far a preparation is, of all threads together.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Preparation {
    pub(crate) connections: u64,
    pub(crate) connections_wanted: u64,
    pub(crate) callees: u64,
    pub(crate) callees_wanted: u64,
}

/// How often those who watch are told.
const WATCHED_EVERY: Duration = Duration::from_millis(200);

impl Fleet {
    /// Prepares a load. `watch` is told a few times a second how far it is.
    ///
    /// # Errors
    /// A connection that can't be opened, callees that can't register; or `plan.stop` is asked.
    pub(crate) fn prepare(plan: &Plan, watch: &mut dyn FnMut(&Preparation)) -> io::Result<Self> {
        let plan = &parts::narrowed(plan);
        let callees = parts::callees(&plan.parts);
        let wanted = wanted(plan);
        // What can't be raised shows when descriptors run out.
        let _ = net::limits::raise_descriptors();
        let plans = plan.shares();
        let monitors: Vec<Arc<Monitor>> = plans.iter().map(|_| Arc::default()).collect();
        let work = plans
            .iter()
            .zip(&monitors)
            .enumerate()
            .map(|(number, (own, monitor))| {
                let (threads, monitor) = (plans.len(), Arc::clone(monitor));
                let callees = &callees;
                move || Worker::prepare(own, callees, number, threads, monitor)
            });
        let mut registered = vec![0; plans.len()];
        let workers = together(work.collect(), &mut || {
            for (count, monitor) in registered.iter_mut().zip(&monitors) {
                *count = monitor.take().map_or(*count, |s| s.succeeded());
                monitor.ask();
            }
            watch(&Preparation {
                connections: monitors.iter().map(|m| m.opened()).sum(),
                callees: registered.iter().sum::<u64>().min(wanted.callees_wanted),
                ..wanted
            });
        })?;
        Ok(Self { workers })
    }

    /// Does the work. `watch` is told a few times a second what has come of it so far.
    ///
    /// # Errors
    /// A poller fails.
    pub(crate) fn run(
        &mut self,
        work: Work,
        watch: &mut dyn FnMut(&Statistics),
    ) -> io::Result<Statistics> {
        let threads = self.workers.len();
        let monitors: Vec<_> = self
            .workers
            .iter()
            .map(|c| Arc::clone(&c.monitor))
            .collect();
        for monitor in &monitors {
            monitor.take(); // an answer that was asked for in the run before
        }
        let mut latest: Vec<Statistics> = vec![Statistics::default(); threads];
        let runs = self.workers.iter_mut().enumerate().map(|(number, worker)| {
            let work = work.share(number, threads);
            move || worker.driver.run(&mut worker.parts, work)
        });
        let all = together(runs.collect(), &mut || {
            for (known, monitor) in latest.iter_mut().zip(&monitors) {
                if let Some(told) = monitor.take() {
                    *known = told;
                }
                monitor.ask();
            }
            let known = sum(&latest);
            if !known.parts.is_empty() {
                watch(&known);
            }
        })?;
        let all = sum(&all);
        watch(&all);
        Ok(all)
    }

    /// Paces a part anew for the next run.
    pub(crate) fn set_pace(&mut self, part: usize, pace: Pace) {
        let threads = self.workers.len();
        for (number, worker) in self.workers.iter_mut().enumerate() {
            worker.parts[part].pace = pace.share(number, threads);
        }
    }
}

impl Worker {
    fn prepare(
        plan: &Plan,
        callees: &Range<usize>,
        number: usize,
        threads: usize,
        monitor: Arc<Monitor>,
    ) -> io::Result<Self> {
        net::exact_timeouts();
        let mut driver = Driver::new(Setup {
            target: plan.target.address,
            users: plan.users.clone(),
            connections: plan.connections.clone(),
            outstanding_max: plan.outstanding_max,
            timeout: plan.timeout,
            number,
            threads,
            stop: plan.stop.clone(),
            monitor: Arc::clone(&monitor),
        })?;
        driver.open(plan.parts.iter().any(|p| p.kind.callees().is_some()))?;
        parts::register_callees(&mut driver, &plan.parts)?;
        let mut parts = parts::parts(&plan.parts, callees);
        if plan.warm_up > 0 {
            warm_up(&mut driver, &mut parts, plan.warm_up)?;
        }
        Ok(Self {
            driver,
            parts,
            monitor,
        })
    }
}

/// Operations under way while warming up, whatever the pace of the run is.
const WARM_UP_OUTSTANDING: usize = 64;

fn warm_up(driver: &mut Driver, parts: &mut [Part], operations: u64) -> io::Result<()> {
    let pace = |_| Pace::Outstanding(WARM_UP_OUTSTANDING);
    let paces: Vec<Pace> = parts
        .iter_mut()
        .map(|part| std::mem::replace(&mut part.pace, pace(())))
        .collect();
    let work = Work {
        operations: Some(operations),
        duration: None,
    };
    driver.prepare(parts, work)?;
    for (part, pace) in parts.iter_mut().zip(paces) {
        part.pace = pace;
    }
    Ok(())
}

/// Has each do its work in a thread of its own, and calls `watch` meanwhile. Returns all results, in order, or the first error.
fn together<T: Send>(
    works: Vec<impl FnOnce() -> io::Result<T> + Send>,
    watch: &mut dyn FnMut(),
) -> io::Result<Vec<T>> {
    thread::scope(|scope| {
        // Nothing is sent: that all senders are gone says that all threads are done.
        let (alive, done) = mpsc::channel::<()>();
        let threads: Vec<_> = works
            .into_iter()
            .map(|work| {
                let alive = alive.clone();
                scope.spawn(move || {
                    let _alive = alive;
                    net::exact_timeouts();
                    work()
                })
            })
            .collect();
        drop(alive);
        while done.recv_timeout(WATCHED_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
            watch();
        }
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|p| panic::resume_unwind(p)))
            .collect()
    })
}

fn sum(all: &[Statistics]) -> Statistics {
    let mut sum = Statistics::default();
    for one in all.iter().filter(|s| !s.parts.is_empty()) {
        sum.add(one);
    }
    sum
}

impl Work {
    /// One thread's share.
    fn share(self, number: usize, of: usize) -> Self {
        let whole = self.operations;
        Self {
            operations: whole.map(|n| share(n as usize, number, of) as u64),
            ..self
        }
    }
}

impl Plan {
    /// What each thread does. Users are shared out in pairs, so that who calls and who is called are of one thread; there are no more
    /// threads than pairs in any part. Each thread has a connection at least. The users stay all: a part's range says whose they are.
    fn shares(&self) -> Vec<Self> {
        let pairs = self.parts.iter().map(|p| p.users.len() / 2).min();
        let threads = self.threads.min(pairs.unwrap_or(1)).max(1);
        let share_of = |number: usize| Self {
            parts: self
                .parts
                .iter()
                .map(|part| part.share(number, threads))
                .collect(),
            connections: crate::plan::Connections {
                count: share(self.connections.count.max(threads), number, threads),
                sources: rotated(&self.connections.sources, number),
                ..self.connections.clone()
            },
            outstanding_max: share(self.outstanding_max, number, threads),
            warm_up: share(self.warm_up as usize, number, threads) as u64,
            ..self.clone()
        };
        (0..threads).map(share_of).collect()
    }

    fn has_callees(&self) -> bool {
        self.parts.iter().any(|p| p.kind.callees().is_some())
    }
}

impl PartPlan {
    fn share(&self, number: usize, of: usize) -> Self {
        let pairs = self.users.len() / 2;
        let before = |n: usize| 2 * (0..n).map(|i| share(pairs, i, of)).sum::<usize>();
        let start = self.users.start + before(number);
        let end = match number + 1 == of {
            true => self.users.end, // with the one that is left over
            false => self.users.start + before(number + 1),
        };
        Self {
            users: start..end,
            pace: self.pace.share(number, of),
            ..self.clone()
        }
    }
}

/// The same addresses, from another one on: threads do not all begin with the same.
fn rotated<T: Clone>(list: &[T], by: usize) -> Vec<T> {
    let mut list = list.to_vec();
    let count = list.len().max(1);
    list.rotate_left(by % count);
    list
}

/// What is to be opened and registered before a run.
fn wanted(plan: &Plan) -> Preparation {
    let count = plan.connections.count.max(plan.threads) as u64;
    let connections = &plan.connections;
    let persistent = connections.lifetime == Lifetime::Persistent;
    let callers = connections.transport == Transport::Tcp && persistent;
    let callees = connections.callee_transport == Transport::Tcp && plan.has_callees();
    let with_callees = plan.parts.iter().filter(|p| p.kind.callees().is_some());
    Preparation {
        connections_wanted: count * (u64::from(callers) + u64::from(callees)),
        callees_wanted: with_callees.map(|p| p.users.len() as u64 / 2).sum(),
        ..Preparation::default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use clap::Parser as _;
    use net::{Options, echo::Echo};

    use super::*;

    fn plan(line: &str) -> Plan {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            load: crate::load::LoadArgs,
        }
        let words = ["load"].into_iter().chain(line.split_whitespace());
        let line = Line::try_parse_from(words).expect("is understood");
        line.load.plan().expect("is a plan")
    }

    fn work(operations: u64) -> Work {
        Work {
            operations: Some(operations),
            duration: None,
        }
    }

    #[test]
    fn a_run_that_is_asked_to_end_ends_what_is_under_way_and_says_so() {
        let silent = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let address = silent.local_addr().expect("has an address");
        let plan = plan(&format!("options udp://{address} --outstanding 3"));
        let mut fleet = Fleet::prepare(&plan, &mut |_| {}).expect("prepares");
        let stop = plan.stop.clone();
        let mut watched = 0;
        let counts = fleet.run(work(1000), &mut |_| {
            watched += 1;
            stop.ask();
        });
        let counts = counts.expect("runs");
        assert!(watched >= 2 && counts.stopped && !counts.gave_up);
        assert_eq!((counts.begun(), counts.succeeded()), (3, 0));
        assert_eq!(counts.parts[0].failures.gave_up, 3);
    }

    #[test]
    fn a_run_counts_nothing_of_the_one_before() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let echo = Echo::start(&[any], 1, Options::default()).expect("starts");
        let line = format!(
            "options tcp://{} --connections 5 --threads 2 --warm-up 50",
            echo.tcp[0]
        );
        let mut fleet = Fleet::prepare(&plan(&line), &mut |_| {}).expect("prepares");
        for opened in [5, 0, 0] {
            let counts = fleet.run(work(101), &mut |_| {}).expect("runs");
            assert_eq!((counts.begun(), counts.succeeded()), (101, 101));
            assert_eq!(counts.connections_opened, opened);
            assert_eq!((counts.connections_open, counts.strays), (5, 0));
        }
    }
}
