//! The pictures and lines that show how far a load is.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use ratatui::{
    Frame,
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

/// What is shown.
pub(crate) struct View {
    /// What is done, and to whom.
    title: String,
    phase: Phase,
    work: Work,
    /// Operations begin at a rate, not when others end.
    is_open_loop: bool,
    began: Instant,
    /// What was counted when, within the last second or a little more.
    recent: VecDeque<Moment>,
    /// Operations that succeeded in each second of the last minute.
    minute: VecDeque<u64>,
    second: (Instant, u64),
    trial: Option<Trial>,
}

#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    begun: u64,
    succeeded: u64,
}

/// What a load is at.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Phase {
    Preparing,
    Waiting,
    Running,
    Measuring,
    Recovering,
}

/// One trial of a search.
#[derive(Clone, Copy)]
pub(crate) struct Trial {
    pub(crate) number: usize,
    pub(crate) rate: f64,
    pub(crate) length: Duration,
    /// The highest rate that was sustained so far.
    pub(crate) sustained: Option<f64>,
}

/// Seconds of the little chart.
const MINUTE: usize = 60;

impl View {
    /// Of a load that prepares.
    pub(crate) fn new(title: String, work: Work, is_open_loop: bool) -> Self {
        let now = Instant::now();
        Self {
            title,
            phase: Phase::Preparing,
            work,
            is_open_loop,
            began: now,
            recent: VecDeque::new(),
            minute: VecDeque::new(),
            second: (now, 0),
            trial: None,
        }
    }

    /// When the phase began.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Whether the highest rate is searched.
    pub(crate) fn is_search(&self) -> bool {
        self.trial.is_some()
    }

    /// Another trial of a search begins.
    pub(crate) fn begin_trial(&mut self, trial: Trial) {
        self.trial = Some(trial);
        self.begin(Phase::Running);
    }

    /// Another phase begins.
    pub(crate) fn begin(&mut self, phase: Phase) {
        let now = Instant::now();
        if self.phase == Phase::Recovering && phase == Phase::Recovering {
            return;
        }
        self.phase = phase;
        self.began = now;
        self.recent.clear();
        self.second = (now, 0);
    }

    /// Takes in what has come of the run so far.
    pub(crate) fn count(&mut self, statistics: &Statistics) {
        let now = Moment {
            at: Instant::now(),
            begun: statistics.begun(),
            succeeded: statistics.succeeded(),
        };
        let Moment { at, succeeded, .. } = now;
        if self
            .recent
            .back()
            .is_some_and(|last| last.begun > now.begun)
        {
            self.recent.clear(); // another run
            self.second = (at, 0);
        }
        self.recent.push_back(now);
        while self.recent.len() > 2 && at - self.recent[1].at > Duration::from_secs(1) {
            self.recent.pop_front();
        }
        let (since, before) = self.second;
        if at - since >= Duration::from_secs(1) {
            let rate = succeeded.saturating_sub(before) as f64 / (at - since).as_secs_f64();
            self.minute.push_back(rate as u64);
            self.second = (at, succeeded);
        }
        while self.minute.len() > MINUTE {
            self.minute.pop_front();
        }
    }

    /// Operations of the last second or a little more, a second: of those that were due, and of those that succeeded.
    fn rates(&self) -> (f64, f64) {
        match (self.recent.front(), self.recent.back()) {
            (Some(from), Some(to)) if to.at > from.at => {
                let seconds = (to.at - from.at).as_secs_f64();
                let due = (to.begun - from.begun) as f64 / seconds;
                (
                    due,
                    to.succeeded.saturating_sub(from.succeeded) as f64 / seconds,
                )
            }
            _ => (0.0, 0.0),
        }
    }

    /// How much of the work is done, 0 to 1.
    fn progress(&self, statistics: &Statistics) -> f64 {
        let of_count = self.work.operations.map(|n| {
            let ended = statistics.begun().saturating_sub(statistics.under_way);
            ended as f64 / n.max(1) as f64
        });
        let length = match (self.trial, self.phase) {
            (Some(trial), Phase::Running) => Some(trial.length),
            (Some(_), _) => None,
            (None, _) => self.work.duration,
        };
        let of_time = length.map(|d| self.began.elapsed().as_secs_f64() / d.as_secs_f64());
        of_count.unwrap_or(0.0).max(of_time.unwrap_or(0.0)).min(1.0)
    }

    /// How far the run is, in a line.
    pub(crate) fn line(&self, statistics: &Statistics) -> String {
        let times = statistics.latency_us();
        let failed = match statistics.failed() {
            0 => String::new(),
            _ => format!("  {}", causes(&statistics.failures())),
        };
        format!(
            "  {:>4.0} s  {}  {} succeeded  p50 {}  p99 {}  {} under way{failed}",
            self.began.elapsed().as_secs_f64(),
            rate(self.rates().1),
            share(statistics.succeeded(), ended(statistics)),
            time(times.0.value_at_quantile(0.5)),
            time(times.0.value_at_quantile(0.99)),
            grouped(statistics.under_way),
        )
    }

    /// A picture of the preparation.
    pub(crate) fn draw_preparation(&self, frame: &mut Frame, preparation: &Preparation) {
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

    /// A picture of the run.
    pub(crate) fn draw(&self, frame: &mut Frame, statistics: &Statistics) {
        let rows = if statistics.parts.len() > 1 {
            statistics.parts.len() as u16 + 2
        } else {
            0
        };
        let [head, bar, figures, parts, minute, _, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(1),
            Constraint::Length(9),
            Constraint::Length(rows),
            Constraint::Max(6),
            Constraint::Length(1),
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
        let (due, achieved) = self.rates();
        let offered = match self.is_open_loop {
            true => format!(" of {} due", rate(due)),
            false => String::new(),
        };
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
                bold(rate(achieved)),
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

/// How far the preparation is.
pub(crate) fn preparation_line(preparation: &Preparation) -> String {
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
fn causes(failures: &Failures) -> String {
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

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;

    fn view() -> View {
        let title = String::from("sipolis load city to tcp://192.0.2.1:5060");
        let work = Work {
            operations: Some(400),
            duration: None,
        };
        let mut view = View::new(title, work, true);
        view.begin(Phase::Running);
        view
    }

    fn statistics() -> Statistics {
        let mut statistics =
            Statistics::new(["registrations", "calls"].map(String::from).into_iter());
        for (part, us) in statistics.parts.iter_mut().zip([1500, 40_000]) {
            part.begun = 100;
            part.succeeded = 97;
            part.failures.timeout = 2;
            (0..97).for_each(|_| part.latency_us.record(us));
        }
        statistics.under_way = 2;
        statistics.connections_open = 15_000;
        statistics.retransmissions = 7;
        statistics
    }

    fn picture(draw: impl FnOnce(&mut Frame)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(92, 26)).expect("in memory");
        terminal.draw(draw).expect("in memory");
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_shows_rates_success_times_failures_and_parts() {
        let (mut view, statistics) = (view(), statistics());
        view.minute.extend([100, 900, 1200, 2500]);
        view.count(&statistics);
        let shown = picture(|frame| view.draw(frame, &statistics));
        for text in [
            "city to tcp://192.0.2.1:5060",
            "50%",
            "of 0/s due",
            "97.98 %   194 of 198",
            "p50 1.50 ms",
            "99.9 40.0 ms",
            "on 15,000 connections",
            "7 messages",
            "timeout 4",
            "registrations",
            "up to 2,500/s",
            "Ctrl-C",
        ] {
            assert!(shown.contains(text), "{text}:\n{shown}");
        }
    }

    #[test]
    fn a_small_terminal_is_no_reason_to_panic() {
        let (view, statistics) = (view(), statistics());
        for (width, height) in [(1, 1), (5, 3), (40, 8), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("in memory");
            terminal
                .draw(|frame| view.draw(frame, &statistics))
                .expect("in memory");
        }
    }

    #[test]
    fn while_it_prepares_it_shows_what_is_there_of_what_is_wanted() {
        let preparation = Preparation {
            connections: 500,
            connections_wanted: 1000,
            callees: 0,
            callees_wanted: 1000,
        };
        let shown = picture(|frame| {
            View {
                phase: Phase::Preparing,
                ..view()
            }
            .draw_preparation(frame, &preparation)
        });
        assert!(shown.contains("500 of 1,000 connections open"), "{shown}");
        assert!(shown.contains("0 of 1,000 callees registered"), "{shown}");
        assert!(shown.contains("25%"), "{shown}");
    }

    #[test]
    fn a_line_tells_the_same_in_short() {
        let line = view().line(&statistics());
        for text in [
            "97.98 % succeeded",
            "p99 40.0 ms",
            "2 under way",
            "timeout 4",
        ] {
            assert!(line.contains(text), "{text}: {line}");
        }
    }
}
