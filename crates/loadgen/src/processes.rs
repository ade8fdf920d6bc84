//! Several processes as one load: children of this program, each with its share.
//!
//! The parent tells a child what to do in lines of JSON on its standard input; the child says how far it
//! is in lines of JSON on its standard output. When its standard input ends, a child ends.

use std::{
    env,
    io::{self, BufRead as _, BufReader, Write as _},
    process::{self, Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    driver::Work,
    fleet::{Fleet, Preparation},
    pace::{self, Pace},
    plan::Plan,
    screen,
    statistics::Statistics,
    stop::Stop,
};

/// Children that are ready to run.
pub(crate) struct Processes {
    children: Vec<OneChild>,
    heard: Receiver<(usize, Said)>,
    stop: Stop,
    /// Of all together, for the next run; as planned without.
    paces: Option<Vec<Pace>>,
}

struct OneChild {
    process: Child,
    stdin: Option<ChildStdin>,
    state: State,
    preparation: Preparation,
    /// Of the run that goes on.
    statistics: Statistics,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Preparing,
    Ready,
    Running,
    /// It ended when it should not have.
    Lost,
}

/// What the parent tells a child.
#[derive(Serialize, Deserialize)]
enum Told {
    Run {
        operations: Option<u64>,
        duration: Option<Duration>,
        /// Of each part; as before without.
        paces: Option<Vec<Pace>>,
    },
    Stop,
}

/// What a child says.
#[derive(Serialize, Deserialize)]
enum Said {
    Preparing(Preparation),
    Ready,
    /// What has come of the run so far, without its timeline.
    Counts(Box<Statistics>),
    Done(Box<Statistics>),
    Failed(String),
    /// Its output has ended.
    Ended,
}

/// How long the children are listened to before the parent looks around.
const LOOK: Duration = Duration::from_millis(250);

impl Processes {
    /// Starts the children with this process' own arguments, and waits until they are ready.
    ///
    /// # Errors
    /// A child can't be started, or can't prepare; with what it said.
    pub(crate) fn prepare(
        count: usize,
        stop: &Stop,
        watch: &mut dyn FnMut(&Preparation),
    ) -> io::Result<Self> {
        let (sender, heard) = channel();
        let mut all = Self {
            children: Vec::new(),
            heard,
            stop: stop.clone(),
            paces: None,
        };
        for number in 0..count {
            all.children.push(OneChild::start(number, count, &sender)?);
        }
        while all.any(State::Preparing) {
            all.listen()?;
            let each = all.children.iter().map(|child| child.preparation);
            watch(&each.fold(Preparation::default(), Preparation::plus));
            if stop.is_asked() {
                return Err(io::Error::other("ended before it began"));
            }
        }
        match all.lost() {
            0 => Ok(all),
            _ => Err(io::Error::other("a process ended while it prepared")),
        }
    }

    /// Paces the next runs, all processes together.
    pub(crate) fn pace(&mut self, paces: &[Pace]) {
        self.paces = Some(paces.to_vec());
    }

    /// Does the work, shared by all.
    ///
    /// # Errors
    /// All children have died, or one says that it can't go on.
    pub(crate) fn run(
        &mut self,
        work: Work,
        watch: &mut dyn FnMut(&Statistics),
    ) -> io::Result<Statistics> {
        let of = self.children.len();
        for (number, child) in self.children.iter_mut().enumerate() {
            let paces = self.paces.as_ref();
            child.run(&Told::Run {
                operations: work
                    .operations
                    .map(|n| pace::share(n as usize, number, of) as u64),
                duration: work.duration,
                paces: paces.map(|all| all.iter().map(|pace| pace.share(number, of)).collect()),
            });
        }
        let mut stopping = false;
        while self.any(State::Running) {
            self.listen()?;
            watch(&self.together());
            if self.stop.is_asked() && !std::mem::replace(&mut stopping, true) {
                for child in &mut self.children {
                    child.tell(&Told::Stop);
                }
            }
        }
        match self.lost() == of {
            true => Err(io::Error::other("all processes have died")),
            false => Ok(self.together()),
        }
    }

    /// Children that died.
    pub(crate) fn lost(&self) -> usize {
        let lost = |child: &&OneChild| child.state == State::Lost;
        self.children.iter().filter(lost).count()
    }

    fn any(&self, state: State) -> bool {
        self.children.iter().any(|child| child.state == state)
    }

    fn together(&self) -> Statistics {
        let mut sum = Statistics::default();
        for child in &self.children {
            if !child.statistics.parts.is_empty() {
                sum.add(&child.statistics);
            }
        }
        sum
    }

    /// Takes in what the children say, for a while.
    fn listen(&mut self) -> io::Result<()> {
        let mut next = self.heard.recv_timeout(LOOK).ok();
        while let Some((number, said)) = next {
            self.take(number, said)?;
            next = self.heard.try_recv().ok();
        }
        Ok(())
    }

    fn take(&mut self, number: usize, said: Said) -> io::Result<()> {
        let of = self.children.len();
        let child = &mut self.children[number];
        match said {
            Said::Preparing(preparation) => child.preparation = preparation,
            Said::Ready => child.state = State::Ready,
            Said::Counts(statistics) => child.statistics = *statistics,
            Said::Done(statistics) => {
                child.statistics = *statistics;
                child.state = State::Ready;
            }
            Said::Failed(text) => return Err(io::Error::other(text)),
            Said::Ended => child.die(number, of),
        }
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.stdin = None; // all are told before one is waited for
        }
        for child in &mut self.children {
            let _ = child.process.wait();
        }
    }
}

impl OneChild {
    fn start(number: usize, of: usize, sender: &Sender<(usize, Said)>) -> io::Result<Self> {
        let mut process = Command::new(env::current_exe()?)
            .args(env::args_os().skip(1))
            .args(["--child", &format!("{number}/{of}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = process.stdout.take();
        let sender = sender.clone();
        thread::spawn(move || {
            let lines = stdout.map(|pipe| BufReader::new(pipe).lines());
            for line in lines.into_iter().flatten() {
                let said = line.map_err(|e| e.to_string());
                let said = said.and_then(|l| serde_json::from_str(&l).map_err(|e| e.to_string()));
                let said = said.unwrap_or_else(|e| Said::Failed(format!("from a process: {e}")));
                if sender.send((number, said)).is_err() {
                    return;
                }
            }
            let _ = sender.send((number, Said::Ended)); // nobody may be there any more
        });
        Ok(Self {
            stdin: process.stdin.take(),
            process,
            state: State::Preparing,
            preparation: Preparation::default(),
            statistics: Statistics::default(),
        })
    }

    fn run(&mut self, told: &Told) {
        self.statistics = Statistics::default();
        if self.state != State::Lost {
            self.state = State::Running;
            self.tell(told);
        }
    }

    /// One that can't be told has died, which is heard.
    fn tell(&mut self, told: &Told) {
        let line = serde_json::to_string(told).expect("plain data has a JSON form");
        let _ = self.stdin.as_mut().map(|pipe| writeln!(pipe, "{line}"));
    }

    /// What was under way in it has failed, for want of a process.
    fn die(&mut self, number: usize, of: usize) {
        let why = self.process.wait();
        let why = why.map_or_else(|e| e.to_string(), |status| status.to_string());
        let number = number + 1;
        screen::tell(format!(
            "sipolis load: process {number} of {of} has died: {why}"
        ));
        self.state = State::Lost;
        for part in &mut self.statistics.parts {
            let ended = part.succeeded + part.failures.total();
            part.failures.local += part.begun.saturating_sub(ended);
        }
        self.statistics.under_way = 0;
        self.statistics.connections_open = 0;
    }
}

impl Preparation {
    fn plus(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            connections_wanted: self.connections_wanted + other.connections_wanted,
            callees: self.callees + other.callees,
            callees_wanted: self.callees_wanted + other.callees_wanted,
        }
    }
}

/// Is a child: prepares its share and runs when told to, until standard input ends.
///
/// # Errors
/// It can't prepare or run; the parent has been told.
pub(crate) fn serve(plan: &Plan) -> io::Result<()> {
    let done = serve_runs(plan);
    if let Err(e) = &done {
        say(&Said::Failed(e.to_string()));
    }
    done
}

fn serve_runs(plan: &Plan) -> io::Result<()> {
    let (sender, told) = channel();
    let stop = plan.stop.clone();
    thread::spawn(move || hear(&stop, &sender));
    let mut fleet = Fleet::prepare(plan, &mut |preparation| say(&Said::Preparing(*preparation)))?;
    say(&Said::Ready);
    for (work, paces) in told {
        for (part, pace) in paces.into_iter().flatten().enumerate() {
            fleet.set_pace(part, pace);
        }
        let done = fleet.run(work, &mut |statistics| {
            let mut counts = statistics.clone();
            counts.timeline.clear();
            say(&Said::Counts(Box::new(counts)));
        })?;
        say(&Said::Done(Box::new(done)));
    }
    Ok(())
}

/// Hands over what the parent tells. Ends the process when it has gone.
fn hear(stop: &Stop, runs: &Sender<(Work, Option<Vec<Pace>>)>) {
    for line in io::stdin().lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Told::Stop) => stop.ask(),
            Ok(Told::Run {
                operations,
                duration,
                paces,
            }) => {
                stop.renew();
                let work = Work {
                    operations,
                    duration,
                };
                let _ = runs.send((work, paces)); // it fails when the other side reports why
            }
            Err(e) => eprintln!("sipolis load: told what can't be understood: {e}"),
        }
    }
    process::exit(0);
}

/// A parent that does not listen has gone, which ends this process.
fn say(said: &Said) {
    let line = serde_json::to_string(said).expect("plain data has a JSON form");
    let _ = writeln!(io::stdout().lock(), "{line}");
}
