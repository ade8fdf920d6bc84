//! `sipolis load`: one load against one server, from the command line or from a benchmark.

use std::{
    io::{self, Write as _},
    process::ExitCode,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

pub use crate::args::LoadArgs;
use crate::{
    crew::Crew,
    driver::Work,
    find_max::{self, Found, Settings},
    io::Transport,
    pace::Pace,
    plan::{Lifetime, Plan},
    processes,
    screen::{self, Screen},
    statistics::Statistics,
    stop::Stop,
    summary::{Expected, Summary},
    words::Paint,
};

/// Runs `sipolis load`: prints the figures, and fails if a bound does not hold.
///
/// Exit status: 0 all bounds held, 1 a bound was missed, 2 it could not run.
#[must_use]
pub fn run(args: &LoadArgs) -> ExitCode {
    let done = match args.connections.child {
        Some(_) => be_a_child(args).map(|()| true),
        None => carry_out(args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(text) => {
            // A child has told its parent.
            if args.connections.child.is_none() {
                eprintln!("error: {text}");
            }
            ExitCode::from(2)
        }
    }
}

fn be_a_child(args: &LoadArgs) -> Result<(), String> {
    let plan = args.plan()?;
    let error = |e: io::Error| e.to_string();
    plan.stop.on_signals(|| ()).map_err(error)?;
    processes::serve(&plan).map_err(error)
}

/// Whether all bounds held.
fn carry_out(args: &LoadArgs) -> Result<bool, String> {
    let error = |e: io::Error| e.to_string();
    let plan = args.plan()?;
    plan.stop.on_signals(screen::restore).map_err(error)?;
    let mut screen = args.screen(&plan);
    let processes = args.connections.processes;
    let mut crew = Crew::prepare(&plan, processes, &mut |p| screen.preparing(p)).map_err(error)?;
    if args.output.wait {
        screen.waiting();
        eprintln!("sipolis load: ready");
        // Its end is as good as a line.
        listen(&plan.stop, || {
            drop(io::stdin().read_line(&mut String::new()))
        });
    }
    let mut summary = args.measure(&plan, &mut crew, &mut screen).map_err(error)?;
    drop(screen);
    summary.processes_lost = crew.lost();
    summary.describe(args, &plan);
    print(&summary, args.output.json);
    if args.output.stay && !plan.stop.is_asked_for_good() {
        eprintln!("sipolis load: done");
        listen(&plan.stop, || {
            drop(io::copy(&mut io::stdin().lock(), &mut io::sink()))
        });
    }
    Ok(summary.is_good())
}

/// Waits until `read` has read what it wants of standard input, or the run is asked to end.
fn listen(stop: &Stop, read: impl FnOnce() + Send + 'static) {
    let (reading, done) = mpsc::channel::<()>();
    thread::spawn(move || {
        read();
        drop(reading);
    });
    while done.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && !stop.is_asked() {}
}

/// Between two looks at whether the run is asked to end.
const LOOK: Duration = Duration::from_millis(50);

/// Writes the figures, and the bounds that were missed. Whoever closed the output does not want them.
fn print(summary: &Summary, json: bool) {
    let mut out = io::stdout().lock();
    let text = match json {
        true => serde_json::to_string_pretty(summary).expect("text keys and numbers only"),
        false => summary.written(Paint::on(&io::stdout())),
    };
    let _ = writeln!(out, "{}", text.trim_end());
    let _ = out.flush();
    // The text for a person has said so already.
    for bound in summary
        .expectations
        .iter()
        .filter(|bound| json && !bound.held)
    {
        eprintln!("missed: {}, found {}", bound.text, bound.written);
    }
}

impl LoadArgs {
    fn screen(&self, plan: &Plan) -> Screen {
        let title = format!("sipolis load {} to {}", plan.name, plan.target);
        let is_open_loop = plan.parts.iter().all(|part| part.pace.offered().is_some());
        // Who waits to be told on standard input is no person.
        let lines = self.output.no_screen || self.output.wait;
        Screen::begin(title, self.work(), is_open_loop, lines)
    }

    /// Runs what the plan says, or searches.
    fn measure(&self, plan: &Plan, crew: &mut Crew, screen: &mut Screen) -> io::Result<Summary> {
        let Some(range) = self.pace.find_max else {
            screen.running_begins();
            return Ok(crew.run(self.work(), &mut |s| screen.running(s))?.summary());
        };
        let rates: Vec<f64> = plan.parts.iter().filter_map(|p| p.pace.offered()).collect();
        let all: f64 = rates.iter().sum();
        let settings = Settings {
            range,
            within: self.pace.within.clone(),
            trial: self.pace.trial,
            poisson: self.pace.poisson,
            shares: rates.iter().map(|rate| rate / all).collect(),
            nominal: (rates.len() > 1).then_some(all / 8.0),
        };
        let found = find_max::search(crew, &settings, &plan.stop, screen)?;
        Ok(Summary::of_search(found))
    }
}

/// A load that is ready to run.
pub struct Load {
    crew: Crew,
}

impl Load {
    /// Prepares a load.
    ///
    /// # Errors
    /// No users, a connection that can't be opened, callees that can't register.
    pub fn new(args: &LoadArgs) -> io::Result<Self> {
        let plan = args.plan().map_err(io::Error::other)?;
        let crew = Crew::prepare(&plan, args.connections.processes, &mut |_| {})?;
        Ok(Self { crew })
    }

    /// Begins so many operations and waits for their end.
    ///
    /// # Errors
    /// The poller fails.
    pub fn operations(&mut self, count: u64) -> io::Result<Summary> {
        let work = Work {
            operations: Some(count),
            duration: None,
        };
        let statistics: Statistics = self.crew.run(work, &mut |_| {})?;
        Ok(statistics.summary())
    }
}

impl Summary {
    fn of_search(found: Found) -> Self {
        Self {
            searched: true,
            steps: found.trials,
            max_rate: found.rate,
            bottleneck: found.bottleneck,
            ..found.statistics.summary()
        }
    }

    /// Whether all bounds held, and the search found something if it was one.
    fn is_good(&self) -> bool {
        let found = !self.searched || self.max_rate.is_some();
        found && self.processes_lost == 0 && self.expectations.iter().all(|bound| bound.held)
    }

    /// Says what was done, and whether the bounds hold.
    fn describe(&mut self, args: &LoadArgs, plan: &Plan) {
        let words = std::env::args_os().skip(1);
        let words: Vec<_> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        self.command = format!("sipolis {}", words.join(" "));
        self.scenario.clone_from(&plan.name);
        self.comment.clone_from(&plan.comment);
        self.transport = plan.connections.transport.name();
        self.target = plan.target.to_string();
        self.lifetime = plan.connections.lifetime.to_string();
        self.threads = args.connections.threads;
        self.processes = args.connections.processes;
        let planned = plan.parts.iter().map(|part| part.pace.offered());
        let offered: Vec<Option<f64>> = match (self.searched, self.steps.last()) {
            (true, Some(step)) => {
                let all: f64 = planned.clone().flatten().sum();
                planned
                    .map(|rate| rate.map(|r| step.rate * r / all))
                    .collect()
            }
            _ => planned.collect(),
        };
        for (part, offered) in self.parts.iter_mut().zip(&offered) {
            part.offered_per_second = *offered;
        }
        self.offered_per_second = offered.into_iter().sum();
        let expectations = args.expectations();
        self.expectations = expectations
            .iter()
            .map(|bound| {
                let (held, found) = bound.check(self);
                Expected {
                    text: bound.to_string(),
                    held,
                    found,
                    written: bound.written(found),
                }
            })
            .collect();
    }
}

impl Pace {
    /// Operations a second that are due, on average.
    fn offered(&self) -> Option<f64> {
        match self {
            Self::Outstanding(_) => None,
            Self::Open { rate, .. } => Some(rate.mean()),
        }
    }
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

impl std::fmt::Display for crate::target::Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.transport.name(), self.address)
    }
}

impl std::fmt::Display for Lifetime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Persistent => f.write_str("persistent"),
            Self::PersistentOpen => f.write_str("persistent-open"),
            Self::Operations(count) => write!(f, "{count}"),
            Self::Dialog => f.write_str("dialog"),
            Self::Transaction => f.write_str("transaction"),
        }
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+[]".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
