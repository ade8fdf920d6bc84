//! Bars, lying: their names stay readable however many there are.

use plotters::coord::ranged1d::Ranged as _;
use plotters::style::{Color as _, text_anchor::HPos};

use super::{
    axis::{Scale, readable},
    canvas::{
        Area, Drawn, GRID, Heading, INK, Ink, LINE, MARGIN, PAPER_WHITE, TEXT_SIZE, WIDTH, block,
        colour, draw, width, wrap, write,
    },
};
use crate::record::{Bar, Chart, Group};

const BAR: i32 = 16;
/// Room for names at most, pixels.
const NAMES_MAX: i32 = 250;

pub(super) fn svg(chart: &Chart, groups: &[Group], quick: bool) -> String {
    let heading = Heading::new(&chart.title, quick);
    let parts = part_labels(groups);
    let sheet = Sheet::new(chart, groups, heading.height() + legend_height(&parts));
    draw(sheet.height(), &chart.title, |area| {
        heading.draw(area)?;
        legend(area, &parts, heading.height())?;
        sheet.grid(area)?;
        for row in &sheet.rows {
            sheet.row(area, row, &parts)?;
        }
        Ok(())
    })
}

/// One line of the picture.
enum Row<'a> {
    Group(i32, String),
    Bar(i32, &'a Bar, Vec<String>),
}

struct Sheet<'a> {
    rows: Vec<Row<'a>>,
    scale: Scale,
    label: Vec<String>,
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl<'a> Sheet<'a> {
    fn new(chart: &Chart, groups: &'a [Group], top: i32) -> Self {
        let bars = || groups.iter().flat_map(|g| &g.bars);
        let ends = bars()
            .flat_map(|b| [total(b), b.low, b.high])
            .filter(|v| v.is_finite());
        // On a log axis the shortest bar, too, has a length.
        let least = ends.clone().filter(|v| *v > 0.0).reduce(f64::min);
        let shorter = least.filter(|_| chart.y.log).map(|v| v / 2.0);
        let names = bars()
            .map(|b| width(&full_name(b), TEXT_SIZE, false))
            .max()
            .unwrap_or(0);
        let names = names.min(NAMES_MAX);
        let mut rows = Vec::new();
        let mut y = top + 6;
        for group in groups {
            for line in wrap(&group.label, WIDTH - 2 * MARGIN, TEXT_SIZE, true) {
                rows.push(Row::Group(y + LINE / 2, line));
                y += LINE + 2;
            }
            for bar in &group.bars {
                let lines = wrap(&full_name(bar), names.max(40), TEXT_SIZE, false);
                let height = (LINE - 3) * lines.len() as i32 + 5;
                rows.push(Row::Bar(y + height / 2, bar, lines));
                y += height;
            }
            y += 6;
        }
        let values = bars()
            .map(|b| width(&readable(total(b)), TEXT_SIZE, false))
            .max()
            .unwrap_or(0);
        Self {
            rows,
            scale: Scale::new(chart.y.log, true, ends.chain(shorter)),
            label: wrap(&chart.y.label, WIDTH - 2 * MARGIN, TEXT_SIZE, false),
            left: MARGIN + names + 10,
            right: WIDTH - MARGIN - values - 10,
            top: top + 6,
            bottom: y.max(top + 6 + LINE),
        }
    }

    fn height(&self) -> i32 {
        self.bottom + LINE + 4 + LINE * self.label.len() as i32 + MARGIN / 2
    }

    fn at(&self, value: f64) -> i32 {
        self.scale.map(&value, (self.left, self.right))
    }

    fn grid(&self, area: &Area<'_>) -> Drawn {
        let mut free = 0;
        for tick in &self.scale.ticks {
            let x = self.at(*tick);
            block(area, (x, self.top), (x + 1, self.bottom), GRID.mix(1.0))?;
            let text = self.scale.label(*tick);
            let half = width(&text, TEXT_SIZE, false) / 2;
            if x - half >= free {
                free = x + half + 8;
                let below = Ink {
                    anchor: HPos::Center,
                    ..Ink::PLAIN
                };
                write(area, &text, (x, self.bottom + LINE / 2 + 2), below)?;
            }
        }
        for (index, line) in (0..).zip(&self.label) {
            let centred = Ink {
                anchor: HPos::Center,
                ..Ink::PLAIN
            };
            let y = self.bottom + LINE + 4 + LINE * index + LINE / 2;
            write(area, line, ((self.left + self.right) / 2, y), centred)?;
        }
        Ok(())
    }

    fn row(&self, area: &Area<'_>, row: &Row<'_>, parts: &[&str]) -> Drawn {
        let (y, bar, lines) = match row {
            Row::Group(y, label) => return heading(area, label, *y),
            Row::Bar(y, bar, lines) => (*y, bar, lines),
        };
        let beside = Ink {
            anchor: HPos::Right,
            ..Ink::PLAIN
        };
        let first = y - (LINE - 3) * (lines.len() as i32 - 1) / 2;
        for (index, line) in (0..).zip(lines) {
            write(
                area,
                line,
                (self.left - 8, first + (LINE - 3) * index),
                beside,
            )?;
        }
        let mut sum = 0.0;
        let mut from = self.at(self.scale.place_or_end(0.0));
        for (index, part) in bar.parts.iter().enumerate() {
            sum += if part.value.is_finite() {
                part.value
            } else {
                0.0
            };
            let to = self.at(self.scale.place_or_end(sum));
            let shade = colour(bar.who).mix(shade(parts, &part.label));
            let (begin, end) = (from.min(to), from.max(to));
            // A gap between parts, where it does not swallow one.
            let begin = begin + i32::from(index > 0 && end - begin > 3);
            if begin < end {
                block(area, (begin, y - BAR / 2), (end, y + BAR / 2), shade)?;
            }
            from = to;
        }
        let end = self.spread(area, bar, y)?.max(from);
        write(area, &readable(total(bar)), (end + 6, y), Ink::PLAIN)
    }

    /// A thin line from the lowest to the highest; gives where it ends.
    fn spread(&self, area: &Area<'_>, bar: &Bar, y: i32) -> Result<i32, super::chart::Failure> {
        if !(bar.low.is_finite() && bar.high.is_finite() && bar.low < bar.high) {
            return Ok(0);
        }
        let [low, high] = [bar.low, bar.high].map(|v| self.at(self.scale.place_or_end(v)));
        if high - low > 2 {
            block(area, (low, y), (high, y + 1), INK.mix(1.0))?;
            for x in [low, high] {
                block(area, (x, y - 4), (x + 1, y + 5), INK.mix(1.0))?;
            }
        }
        Ok(high)
    }
}

/// Over the grid, which does not go through it.
fn heading(area: &Area<'_>, text: &str, y: i32) -> Drawn {
    let end = MARGIN + width(text, TEXT_SIZE, true) + 4;
    block(
        area,
        (MARGIN, y - LINE / 2),
        (end, y + LINE / 2),
        PAPER_WHITE.mix(1.0),
    )?;
    write(
        area,
        text,
        (MARGIN, y),
        Ink {
            bold: true,
            ..Ink::PLAIN
        },
    )
}

fn full_name(bar: &Bar) -> String {
    if bar.label.is_empty() || bar.label == bar.who.name() {
        return bar.who.name().to_owned();
    }
    format!("{}, {}", bar.who.name(), bar.label)
}

/// Of all its parts; not a number when none is.
fn total(bar: &Bar) -> f64 {
    let finite = || bar.parts.iter().map(|p| p.value).filter(|v| v.is_finite());
    if finite().count() == 0 {
        f64::NAN
    } else {
        finite().sum()
    }
}

/// Names of parts in order, where bars have more than one.
fn part_labels(groups: &[Group]) -> Vec<&str> {
    let bars = || groups.iter().flat_map(|g| &g.bars);
    let mut labels: Vec<&str> = Vec::new();
    if bars().all(|b| b.parts.len() < 2) {
        return labels;
    }
    for part in bars().flat_map(|b| &b.parts) {
        if !labels.contains(&part.label.as_str()) {
            labels.push(&part.label);
        }
    }
    labels
}

/// How full a part's colour is. Of few parts from full to light; of many, neighbours differ most: full and light in turn.
fn shade(parts: &[&str], label: &str) -> f64 {
    let index = parts.iter().position(|p| *p == label).unwrap_or(0);
    let last = parts.len().saturating_sub(1).max(1);
    let (from, to) = match (last, index % 2) {
        (..=3, _) => (100.0, 22.0),
        (_, 0) => (100.0, 60.0),
        _ => (48.0, 15.0),
    };
    // Two decimals, so that the text of the picture stays short.
    (from - (from - to) * index as f64 / last as f64).round() / 100.0
}

/// Where each part's name stands: line and place in it.
fn legend_places(parts: &[&str]) -> Vec<(i32, i32)> {
    let (mut line, mut x) = (0, MARGIN);
    let mut places = Vec::new();
    for part in parts {
        let wide = 24 + width(part, TEXT_SIZE, false) + 16;
        if x > MARGIN && x + wide > WIDTH - MARGIN {
            (line, x) = (line + 1, MARGIN);
        }
        places.push((line, x));
        x += wide;
    }
    places
}

fn legend_height(parts: &[&str]) -> i32 {
    legend_places(parts)
        .last()
        .map_or(0, |(line, _)| LINE * (line + 1) + 4)
}

fn legend(area: &Area<'_>, parts: &[&str], top: i32) -> Drawn {
    for (part, (line, x)) in parts.iter().zip(legend_places(parts)) {
        let y = top + 4 + LINE * line + LINE / 2;
        block(
            area,
            (x, y - 7),
            (x + 16, y + 7),
            INK.mix(shade(parts, part)),
        )?;
        write(area, part, (x + 24, y), Ink::PLAIN)?;
    }
    Ok(())
}
