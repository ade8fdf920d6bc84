//! What is seen while a load runs: one screen on a terminal, elsewhere a line now and then.
//!
//! Both go to standard error; standard output is for the figures.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal as _, Stderr},
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor, execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen},
    },
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Gauge, Paragraph, Sparkline},
};

use crate::{
    cause::Failures,
    driver::Work,
    fleet::Preparation,
    statistics::{PartStatistics, Statistics},
    words::{self, counted, grouped, rate, share, time},
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

/// What is shown.
pub(crate) struct View {
    /// What is done, and to whom.
    title: String,
    phase: Phase,
    work: Work,
    offered: Option<f64>,
    began: Instant,
    /// What was counted when, within the last second or a little more.
    recent: VecDeque<(Instant, u64)>,
    /// Operations that succeeded in each second of the last minute.
    minute: VecDeque<u64>,
    second: (Instant, u64),
    trial: Option<Trial>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    Preparing,
    Waiting,
    Running,
    Measuring,
    Recovering,
}

#[derive(Clone, Copy)]
struct Trial {
    number: usize,
    rate: f64,
    sustained: Option<f64>,
}

/// Between two pictures.
const PICTURE: Duration = Duration::from_millis(200);
/// Between two lines.
const LINE: Duration = Duration::from_secs(2);
/// Seconds of the little chart.
const MINUTE: usize = 60;

impl Screen {
    /// On the terminal if standard error is one and `lines` are not wanted.
    pub(crate) fn begin(title: String, work: Work, offered: Option<f64>, lines: bool) -> Self {
        let now = Instant::now();
        Self {
            output: match lines || !io::stderr().is_terminal() {
                true => Output::Lines,
                false => terminal().map_or(Output::Lines, Output::Terminal),
            },
            view: View {
                title,
                phase: Phase::Preparing,
                work,
                offered,
                began: now,
                recent: VecDeque::new(),
                minute: VecDeque::new(),
                second: (now, 0),
                trial: None,
            },
            drawn: None,
        }
    }

    /// How far the preparation is.
    pub(crate) fn preparing(&mut self, preparation: &Preparation) {
        self.view.phase = Phase::Preparing;
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
        self.view.phase = Phase::Waiting;
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
    pub(crate) fn trial(&mut self, number: usize, rate: f64, sustained: Option<f64>) {
        self.view.trial = Some(Trial {
            number,
            rate,
            sustained,
        });
        self.view.offered = Some(rate);
        self.view.begin(Phase::Running);
        if matches!(self.output, Output::Lines) {
            let so_far = sustained.map_or(String::from("none so far"), |rate| words::rate(rate));
            eprintln!(
                "  trial {number}: {}; sustained: {so_far}",
                words::rate(rate)
            );
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
        let now = self.is_due(self.view.trial.is_some());
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
        let last = self.drawn.unwrap_or(self.view.began);
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
        if matches!(self.output, Output::Terminal(_)) {
            restore();
        }
    }
}

/// Whether the terminal shows the screen, and not what was there before.
static SHOWN: AtomicBool = AtomicBool::new(false);
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

/// Gives the terminal back as it was. May be called at any time, and more than once.
pub(crate) fn restore() {
    if SHOWN.swap(false, Ordering::Relaxed) {
        let _ = execute!(io::stderr(), LeaveAlternateScreen, cursor::Show);
    }
}

impl View {
    fn begin(&mut self, phase: Phase) {
        let now = Instant::now();
        if self.phase == Phase::Recovering && phase == Phase::Recovering {
            return;
        }
        self.phase = phase;
        self.began = now;
        self.recent.clear();
        self.second = (now, 0);
    }

    fn count(&mut self, statistics: &Statistics) {
        let now = Instant::now();
        let succeeded = statistics.succeeded();
        if self
            .recent
            .back()
            .is_some_and(|(_, before)| *before > succeeded)
        {
            self.recent.clear(); // another run
            self.second = (now, 0);
        }
        self.recent.push_back((now, succeeded));
        while self.recent.len() > 2 && now - self.recent[1].0 > Duration::from_secs(1) {
            self.recent.pop_front();
        }
        let (since, before) = self.second;
        if now - since >= Duration::from_secs(1) {
            let seconds = (now - since).as_secs_f64();
            self.minute
                .push_back(((succeeded - before) as f64 / seconds) as u64);
            self.second = (now, succeeded);
        }
        while self.minute.len() > MINUTE {
            self.minute.pop_front();
        }
    }

    /// Operations that succeeded, a second, of the last second.
    fn achieved(&self) -> f64 {
        match (self.recent.front(), self.recent.back()) {
            (Some((from, before)), Some((to, now))) if to > from => {
                (now - before) as f64 / (*to - *from).as_secs_f64()
            }
            _ => 0.0,
        }
    }

    /// How much of the work is done, 0 to 1.
    fn progress(&self, statistics: &Statistics) -> f64 {
        let of_count = self.work.operations.map(|n| {
            let ended = statistics.begun().saturating_sub(statistics.under_way);
            ended as f64 / n.max(1) as f64
        });
        let length = self.work.duration.filter(|_| self.trial.is_none());
        let of_time = length.map(|d| self.began.elapsed().as_secs_f64() / d.as_secs_f64());
        of_count.unwrap_or(0.0).max(of_time.unwrap_or(0.0)).min(1.0)
    }

    fn line(&self, statistics: &Statistics) -> String {
        let times = statistics.latency_us();
        let failed = match statistics.failed() {
            0 => String::new(),
            _ => format!("  {}", causes(&statistics.failures())),
        };
        format!(
            "  {:>4.0} s  {}  {} succeeded  p50 {}  p99 {}  {} under way{failed}",
            self.began.elapsed().as_secs_f64(),
            rate(self.achieved()),
            share(statistics.succeeded(), ended(statistics)),
            time(times.0.value_at_quantile(0.5)),
            time(times.0.value_at_quantile(0.99)),
            grouped(statistics.under_way),
        )
    }

    fn draw_preparation(&self, frame: &mut Frame, preparation: &Preparation) {
        let [head, bar, text, _] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(1),
            Constraint::Length(3),
            Constraint::Fill(1),
        ])
        .areas(inner(frame));
        frame.render_widget(self.head(), head);
        let wanted = preparation.connections_wanted + preparation.callees_wanted;
        let there = preparation.connections + preparation.callees;
        bar_of(frame, bar, there as f64 / wanted.max(1) as f64);
        let text_lines = match self.phase {
            Phase::Waiting => String::from("ready; it begins with a line on standard input"),
            _ => preparation_line(preparation),
        };
        frame.render_widget(
            Paragraph::new(vec![Line::default(), Line::from(text_lines)]),
            text,
        );
    }

    fn draw(&self, frame: &mut Frame, statistics: &Statistics) {
        let rows = if statistics.parts.len() > 1 {
            statistics.parts.len() as u16 + 2
        } else {
            0
        };
        let [head, bar, figures, parts, minute, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(1),
            Constraint::Length(9),
            Constraint::Length(rows),
            Constraint::Max(6),
            Constraint::Min(1),
        ])
        .areas(inner(frame));
        frame.render_widget(self.head(), head);
        bar_of(frame, bar, self.progress(statistics));
        frame.render_widget(Paragraph::new(self.figures(statistics)), figures);
        frame.render_widget(Paragraph::new(part_lines(&statistics.parts)), parts);
        self.draw_minute(frame, minute);
        let hint = "Ctrl-C ends it and prints what was done";
        frame.render_widget(Paragraph::new(Line::styled(hint, faint())), foot);
    }

    fn head(&self) -> Paragraph<'_> {
        let spent = self.began.elapsed().as_secs_f64();
        let state = match (self.phase, self.trial) {
            (Phase::Preparing, _) => String::from("preparing"),
            (Phase::Waiting, _) => String::from("waiting"),
            (Phase::Measuring, _) => String::from("finding out where to begin"),
            (Phase::Recovering, _) => String::from("letting the server recover"),
            (Phase::Running, Some(trial)) => {
                let sustained = trial.sustained.map_or(String::from("none yet"), rate);
                format!(
                    "trial {} at {}; sustained: {sustained}",
                    trial.number,
                    rate(trial.rate)
                )
            }
            (Phase::Running, None) => match self.work.duration {
                Some(length) => format!("{spent:.0} s of {:.0} s", length.as_secs_f64()),
                None => format!("{spent:.0} s"),
            },
        };
        let title = Span::styled(
            self.title.clone(),
            Style::new().add_modifier(Modifier::BOLD),
        );
        Paragraph::new(Line::from(vec![
            title,
            Span::raw("   "),
            Span::styled(state, faint()),
        ]))
    }

    fn figures(&self, statistics: &Statistics) -> Vec<Line<'static>> {
        let times = statistics.latency_us();
        let quantile = |q| time(times.0.value_at_quantile(q));
        let offered = self
            .offered
            .map_or(String::new(), |r| format!(" of {} offered", rate(r)));
        let (succeeded, failed) = (statistics.succeeded(), statistics.failed());
        let ended = succeeded + failed;
        let success = match (ended, failed) {
            (0, _) => faint(),
            (_, 0) => colour(Color::Green),
            _ => colour(Color::Red),
        };
        let failures = match failed {
            0 => Line::from(vec![label("failures"), Span::styled("none", faint())]),
            _ => {
                let causes = causes(&statistics.failures());
                Line::from(vec![
                    label("failures"),
                    Span::styled(causes, colour(Color::Red)),
                ])
            }
        };
        let late = time(statistics.late_us.0.value_at_quantile(0.99));
        let busy = match statistics.busy_percent > 90.0 {
            true => colour(Color::Yellow),
            false => Style::new(),
        };
        vec![
            Line::default(),
            Line::from(vec![
                label("rate"),
                bold(rate(self.achieved())),
                Span::raw(offered),
            ]),
            Line::from(vec![
                label("success"),
                Span::styled(
                    share(succeeded, ended),
                    success.add_modifier(Modifier::BOLD),
                ),
                Span::raw(format!("   {} of {}", grouped(succeeded), grouped(ended))),
            ]),
            Line::from(vec![
                label("latency"),
                Span::raw(format!("p50 {}   p90 {}   ", quantile(0.5), quantile(0.9))),
                bold(format!("p99 {}", quantile(0.99))),
                Span::raw(format!(
                    "   p99.9 {}   max {}",
                    quantile(0.999),
                    time(times.0.max())
                )),
            ]),
            Line::from(vec![
                label("under way"),
                Span::raw(format!(
                    "{}   on {}",
                    grouped(statistics.under_way),
                    counted(statistics.connections_open, "connection", "connections")
                )),
            ]),
            Line::from(vec![
                label("sent again"),
                Span::raw(counted(statistics.retransmissions, "message", "messages")),
            ]),
            failures,
            Line::from(vec![
                label("this tool"),
                Span::styled(format!("{:.0} % busy", statistics.busy_percent), busy),
                Span::raw(format!("   begins 99 % within {late} of when they are due")),
            ]),
        ]
    }

    fn draw_minute(&self, frame: &mut Frame, area: Rect) {
        let most = self.minute.iter().max().copied().unwrap_or(0);
        let title = format!(
            "succeeded in each of the last {MINUTE} s, up to {}",
            rate(most as f64)
        );
        let block = Block::new().title(Span::styled(title, faint()));
        let values: Vec<u64> = self.minute.iter().copied().collect();
        let chart = Sparkline::default()
            .block(block)
            .data(values)
            .style(colour(Color::Cyan));
        frame.render_widget(chart, area);
    }
}

fn preparation_line(preparation: &Preparation) -> String {
    let of = |there, wanted, what| match wanted {
        0 => String::new(),
        _ => format!("{} of {} {what}   ", grouped(there), grouped(wanted)),
    };
    let p = preparation;
    let connections = of(p.connections, p.connections_wanted, "connections open");
    connections + &of(p.callees, p.callees_wanted, "callees registered")
}

/// One line for each part of a mix.
fn part_lines(parts: &[PartStatistics]) -> Vec<Line<'static>> {
    let head = format!(
        "{:<18}{:>12}{:>10}{:>12}{:>12}",
        "part", "done", "success", "p50", "p99"
    );
    let mut lines = vec![Line::styled(head, faint())];
    lines.extend(parts.iter().map(|part| {
        let ended = part.succeeded + part.failures.total();
        let quantile = |q| time(part.latency_us.0.value_at_quantile(q));
        Line::from(format!(
            "{:<18}{:>12}{:>10}{:>12}{:>12}",
            part.name.chars().take(17).collect::<String>(),
            grouped(ended),
            share(part.succeeded, ended),
            quantile(0.5),
            quantile(0.99)
        ))
    }));
    lines
}

/// The causes that there are, with how often.
pub(crate) fn causes(failures: &Failures) -> String {
    let named = failures.named().into_iter().filter(|(_, count)| *count > 0);
    let causes: Vec<String> = named
        .map(|(name, n)| format!("{name} {}", grouped(n)))
        .collect();
    causes.join("   ")
}

fn ended(statistics: &Statistics) -> u64 {
    statistics.succeeded() + statistics.failed()
}

fn inner(frame: &Frame) -> Rect {
    let mut area = frame.area();
    if area.width > 4 && area.height > 2 {
        area.x += 2;
        area.width -= 4;
        area.y += 1;
        area.height -= 1;
    }
    area
}

fn bar_of(frame: &mut Frame, area: Rect, progress: f64) {
    let bar = Gauge::default()
        .gauge_style(colour(Color::Cyan).bg(if words::wanted() {
            Color::DarkGray
        } else {
            Color::Reset
        }))
        .use_unicode(true)
        .ratio(progress.clamp(0.0, 1.0));
    frame.render_widget(bar, area);
}

fn label(text: &str) -> Span<'static> {
    Span::styled(format!("{text:<12}"), faint())
}

fn bold(text: String) -> Span<'static> {
    Span::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn colour(colour: Color) -> Style {
    match words::wanted() {
        true => Style::new().fg(colour),
        false => Style::new(),
    }
}
