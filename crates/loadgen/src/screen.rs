//! What is seen while a load runs: one screen on a terminal, elsewhere a line now and then.
//!
//! Both go to standard error; standard output is for the figures.

use std::{
    io::{self, IsTerminal as _, Stderr},
    sync::{
        Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor, execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen},
    },
};

use crate::{
    driver::Work,
    fleet::Preparation,
    statistics::Statistics,
    view::{Phase, Trial, View, preparation_line},
    words,
};

/// Shows how far a load is.
pub(crate) struct Screen {
    output: Output,
    view: View,
    drawn: Option<Instant>,
}

enum Output {
    Terminal(Terminal<CrosstermBackend<Stderr>>),
    Lines,
}

/// Between two pictures.
const PICTURE: Duration = Duration::from_millis(200);
/// Between two lines.
const LINE: Duration = Duration::from_secs(2);
impl Screen {
    /// On the terminal if standard error is one and `lines` are not wanted.
    pub(crate) fn begin(title: String, work: Work, is_open_loop: bool, lines: bool) -> Self {
        Self {
            output: match lines || !io::stderr().is_terminal() {
                true => Output::Lines,
                false => terminal().map_or(Output::Lines, Output::Terminal),
            },
            view: View::new(title, work, is_open_loop),
            drawn: None,
        }
    }

    /// How far the preparation is.
    pub(crate) fn preparing(&mut self, preparation: &Preparation) {
        let line = preparation_line(preparation);
        if self.is_due(false) {
            match &mut self.output {
                Output::Terminal(terminal) => {
                    let view = &self.view;
                    let _ = terminal.draw(|frame| view.draw_preparation(frame, preparation));
                }
                Output::Lines if preparation.connections_wanted > 0 => eprintln!("  {line}"),
                Output::Lines => {}
            }
        }
    }

    /// Prepared, and waits to be told to begin.
    pub(crate) fn waiting(&mut self) {
        self.view.begin(Phase::Waiting);
        if let Output::Terminal(terminal) = &mut self.output {
            let view = &self.view;
            let _ = terminal.draw(|frame| view.draw_preparation(frame, &Preparation::default()));
        }
    }

    /// A run begins.
    pub(crate) fn running_begins(&mut self) {
        self.view.begin(Phase::Running);
    }

    /// A trial of a search begins.
    pub(crate) fn trial(&mut self, trial: Trial) {
        self.view.begin_trial(trial);
        if matches!(self.output, Output::Lines) {
            let so_far = trial
                .sustained
                .map_or(String::from("none so far"), words::rate);
            let rate = words::rate(trial.rate);
            eprintln!("  trial {}: {rate}; sustained: {so_far}", trial.number);
        }
    }

    /// A search finds out where to begin.
    pub(crate) fn measuring(&mut self) {
        self.view.begin(Phase::Measuring);
    }

    /// A search waits for the server.
    pub(crate) fn recovering(&mut self) {
        self.view.begin(Phase::Recovering);
    }

    /// What has come of the run so far.
    pub(crate) fn running(&mut self, statistics: &Statistics) {
        self.view.count(statistics);
        let now = self.is_due(self.view.is_search());
        match &mut self.output {
            Output::Terminal(terminal) if now => {
                let view = &self.view;
                let _ = terminal.draw(|frame| view.draw(frame, statistics));
            }
            Output::Lines if now => eprintln!("{}", self.view.line(statistics)),
            _ => {}
        }
    }

    /// Whether something is to be shown now; lines of a search only say which trial it is at.
    fn is_due(&mut self, searching: bool) -> bool {
        let gap = match self.output {
            Output::Terminal(_) => PICTURE,
            Output::Lines if searching => return false,
            Output::Lines => LINE,
        };
        let last = self.drawn.unwrap_or(self.view.began());
        let first_picture = self.drawn.is_none() && gap == PICTURE;
        let due = first_picture || last.elapsed() >= gap;
        if due {
            self.drawn = Some(Instant::now());
        }
        due
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Whether the terminal shows the screen, and not what was there before.
static SHOWN: AtomicBool = AtomicBool::new(false);
/// Lines for afterwards; one for each process at most.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
static ON_PANIC: Once = Once::new();

fn terminal() -> io::Result<Terminal<CrosstermBackend<Stderr>>> {
    ON_PANIC.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            report(panic);
        }));
    });
    let terminal = Terminal::new(CrosstermBackend::new(io::stderr()))?;
    SHOWN.store(true, Ordering::Relaxed);
    execute!(io::stderr(), EnterAlternateScreen, cursor::Hide)?;
    Ok(terminal)
}

/// Gives the terminal back as it was, with what was told meanwhile. May be called at any time, and more than once.
pub(crate) fn restore() {
    if SHOWN.swap(false, Ordering::Relaxed) {
        let _ = execute!(io::stderr(), LeaveAlternateScreen, cursor::Show);
    }
    told().drain(..).for_each(|line| eprintln!("{line}"));
}

/// A line on standard error: now, or as soon as it would not disturb the screen.
pub(crate) fn tell(line: String) {
    match SHOWN.load(Ordering::Relaxed) {
        true => told().push(line),
        false => eprintln!("{line}"),
    }
}

fn told() -> MutexGuard<'static, Vec<String>> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}
