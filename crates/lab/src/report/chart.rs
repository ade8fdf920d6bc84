//! A chart as SVG: curves with their spread.

use std::collections::BTreeSet;

use plotters::{
    chart::ChartBuilder,
    prelude::{Cartesian2d, ChartContext, SVGBackend},
    style::{Color as _, text_anchor::HPos},
};

use super::{
    axis::Scale,
    bars,
    canvas::{
        Area, Drawn, GRID, Heading, INK, Ink, LINE, MARGIN, Mark, Spot, Stroke, TEXT_SIZE, WIDTH,
        colour, draw, width, wrap, write,
    },
};
use crate::record::{Chart, Curve, Data, Who};

/// Height of the part where the curves are, pixels.
const PLOT: i32 = 330;
type Plane = Cartesian2d<Scale, Scale>;

/// The chart as one SVG: the same chart gives the same bytes.
pub(super) fn svg(chart: &Chart, quick: bool) -> String {
    match &chart.data {
        Data::Lines(curves) => lines(chart, curves, quick),
        Data::Bars(groups) => bars::svg(chart, groups, quick),
    }
}

fn lines(chart: &Chart, curves: &[Curve], quick: bool) -> String {
    let points = || curves.iter().flat_map(|c| &c.points);
    let x = Scale::new(chart.x.log, false, points().map(|p| p.x));
    let drawable = |y: &f64| y.is_finite();
    let y = points().flat_map(|p| [p.y, p.low, p.high]).filter(drawable);
    let y = Scale::new(chart.y.log, true, y);
    let heading = Heading::new(&chart.title, quick);
    let legend = Legend::new(curves);
    let y_label = wrap(&chart.y.label, WIDTH - 2 * MARGIN, TEXT_SIZE, false);
    let x_label = wrap(&chart.x.label, WIDTH - 2 * MARGIN, TEXT_SIZE, false);
    let top = heading.height() + legend.height() + 6 + LINE * y_label.len() as i32 + 8;
    let below = LINE + 10 + LINE * x_label.len() as i32 + MARGIN / 2;
    draw(top + PLOT + below, &chart.title, |area| {
        heading.draw(area)?;
        legend.draw(area, heading.height())?;
        for (index, line) in (0..).zip(&y_label) {
            let at = heading.height() + legend.height() + 6 + LINE * index + LINE / 2;
            write(area, line, (MARGIN, at), Ink::PLAIN)?;
        }
        let frame = Frame { top, x: &x, y: &y };
        let context = frame.mesh(area)?;
        let place = |px: f64, py: f64| Some(context.backend_coord(&(x.place(px)?, y.place(py)?)));
        for (index, line) in (0..).zip(&x_label) {
            let centred = Ink {
                anchor: HPos::Center,
                ..Ink::PLAIN
            };
            let at = (
                WIDTH / 2 + frame.left() / 2,
                top + PLOT + LINE + 10 + LINE * index + LINE / 2,
            );
            write(area, line, at, centred)?;
        }
        if points().all(|p| place(p.x, p.y).is_none()) {
            let centred = Ink {
                anchor: HPos::Center,
                ..Ink::PLAIN
            };
            return write(
                area,
                "no point could be drawn",
                (WIDTH / 2, top + PLOT / 2),
                centred,
            );
        }
        // References first, so that what was measured lies over them.
        let (paper, ours): (Vec<_>, Vec<_>) = curves.iter().partition(|c| c.who == Who::Paper);
        for curve in paper.into_iter().chain(ours) {
            curve_on(
                area,
                curve,
                legend.stroke(curve),
                &place,
                &|low: f64, high: f64| {
                    let end = |v: f64| context.backend_coord(&(x.min, y.place_or_end(v))).1;
                    (end(low), end(high))
                },
            )?;
        }
        Ok(())
    })
}

fn curve_on(
    area: &Area<'_>,
    curve: &Curve,
    stroke: Stroke,
    place: &dyn Fn(f64, f64) -> Option<Spot>,
    heights: &dyn Fn(f64, f64) -> (i32, i32),
) -> Drawn {
    let placed: Vec<_> = curve.points.iter().map(|p| (p, place(p.x, p.y))).collect();
    // What can't be drawn breaks the line: it is not passed over.
    for run in placed.split(|(_, spot)| spot.is_none()) {
        let path: Vec<Spot> = run.iter().filter_map(|(_, spot)| *spot).collect();
        stroke.line(area, &path)?;
    }
    for (point, spot) in placed {
        let Some(spot) = spot else { continue };
        if point.low.is_finite() && point.high.is_finite() && point.low < point.high {
            let (low, high) = heights(point.low, point.high);
            if low - high > 3 {
                stroke.spread(area, spot.0, low, high)?;
            }
        }
        stroke.mark(area, spot)?;
    }
    Ok(())
}

/// Axes and grid.
struct Frame<'a> {
    top: i32,
    x: &'a Scale,
    y: &'a Scale,
}

impl Frame<'_> {
    /// Room for the widest number beside the vertical axis.
    fn left(&self) -> i32 {
        let widest = self
            .y
            .ticks
            .iter()
            .map(|t| width(&self.y.label(*t), TEXT_SIZE, false))
            .max();
        MARGIN + widest.unwrap_or(0) + 8
    }

    fn mesh<'a>(&self, area: &Area<'a>) -> Result<Context<'a>, Failure> {
        let plot = area.clone().shrink(
            (self.left(), self.top),
            ((WIDTH - self.left() - 2 * MARGIN) as u32, PLOT as u32),
        );
        let mut context =
            ChartBuilder::on(&plot).build_cartesian_2d(self.x.clone(), self.y.clone())?;
        context
            .configure_mesh()
            .bold_line_style(GRID.stroke_width(1))
            .light_line_style(GRID.mix(0.0))
            .axis_style(INK.stroke_width(1))
            .draw()?;
        self.numbers(area, &context)?;
        Ok(context)
    }

    fn numbers(&self, area: &Area<'_>, context: &Context<'_>) -> Drawn {
        let beside = Ink {
            anchor: HPos::Right,
            ..Ink::PLAIN
        };
        for tick in &self.y.ticks {
            let (x, y) = context.backend_coord(&(self.x.min, *tick));
            write(area, &self.y.label(*tick), (x - 6, y), beside)?;
        }
        let below = Ink {
            anchor: HPos::Center,
            ..Ink::PLAIN
        };
        let mut free = 0;
        for tick in &self.x.ticks {
            let (x, y) = context.backend_coord(&(*tick, self.y.min));
            let text = self.x.label(*tick);
            let half = width(&text, TEXT_SIZE, false) / 2;
            if x - half < free {
                continue;
            }
            free = x + half + 8;
            // The last number stays on the picture.
            let at = x.min(WIDTH - half - 2);
            write(area, &text, (at, y + LINE / 2 + 4), below)?;
        }
        Ok(())
    }
}

type Context<'a> = ChartContext<'a, SVGBackend<'a>, Plane>;
pub(super) type Failure = plotters::prelude::DrawingAreaErrorKind<std::io::Error>;

/// Under the title, beside no curve: a row for each server, each curve by its mark.
struct Legend<'a> {
    /// The labels in the order of their marks: the same label has the same mark for every server.
    labels: Vec<&'a str>,
    rows: Vec<(Who, Vec<&'a Curve>)>,
}

impl<'a> Legend<'a> {
    fn new(curves: &'a [Curve]) -> Self {
        let mut labels: Vec<&str> = Vec::new();
        for curve in curves {
            if !labels.contains(&curve.label.as_str()) {
                labels.push(&curve.label);
            }
        }
        let mut rows: Vec<(Who, Vec<&Curve>)> = Vec::new();
        let servers: BTreeSet<Who> = curves.iter().map(|c| c.who).collect();
        for who in servers {
            rows.extend(fitting(who, curves.iter().filter(|c| c.who == who)));
        }
        Self { labels, rows }
    }

    fn stroke(&self, curve: &Curve) -> Stroke {
        let index = self.labels.iter().position(|l| *l == curve.label);
        Stroke {
            who: curve.who,
            mark: Mark::nth(index.unwrap_or(0)),
        }
    }

    fn height(&self) -> i32 {
        LINE * self.rows.len() as i32 + 4
    }

    fn draw(&self, area: &Area<'_>, top: i32) -> Drawn {
        let mut shown = None;
        for (index, (who, curves)) in (0..).zip(&self.rows) {
            let y = top + 4 + LINE * index + LINE / 2;
            if shown.replace(*who) != Some(*who) {
                let ink = Ink {
                    bold: true,
                    colour: colour(*who),
                    ..Ink::PLAIN
                };
                write(area, who.name(), (MARGIN, y), ink)?;
            }
            let mut x = MARGIN + LEGEND_NAME;
            for curve in curves {
                let stroke = self.stroke(curve);
                stroke.line(area, &[(x, y), (x + LEGEND_MARK - 6, y)])?;
                stroke.mark(area, (x + LEGEND_MARK / 2 - 3, y))?;
                write(area, &curve.label, (x + LEGEND_MARK, y), Ink::PLAIN)?;
                x += entry(curve);
            }
        }
        Ok(())
    }
}

const LEGEND_NAME: i32 = 80;
const LEGEND_MARK: i32 = 34;

fn entry(curve: &Curve) -> i32 {
    LEGEND_MARK + width(&curve.label, TEXT_SIZE, false) + 10
}

/// A server's curves in rows that fit the width.
fn fitting<'a>(who: Who, curves: impl Iterator<Item = &'a Curve>) -> Vec<(Who, Vec<&'a Curve>)> {
    let mut rows = vec![(who, Vec::new())];
    let mut used = 0;
    for curve in curves {
        let room = WIDTH - 2 * MARGIN - LEGEND_NAME;
        if used > 0 && used + entry(curve) > room {
            rows.push((who, Vec::new()));
            used = 0;
        }
        used += entry(curve);
        rows.last_mut().expect("never empty").1.push(curve);
    }
    rows
}
