//! The surface that charts are drawn on: colours, marks, text that fits.

use plotters::{
    coord::Shift,
    element::{Circle, Cross, DashedPathElement, PathElement, Polygon, Rectangle, Text},
    prelude::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, SVGBackend},
    style::{
        Color, FontStyle, FontTransform, IntoFont, RGBAColor, RGBColor, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

use crate::record::Who;

/// Writing to memory does not fail; the type has to be named.
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Pixels from the left upper corner.
pub(super) type Spot = (i32, i32);

pub(super) const WIDTH: i32 = 760;
pub(super) const MARGIN: i32 = 14;
/// Height of a line of text, pixels.
pub(super) const LINE: i32 = 20;
pub(super) const TEXT_SIZE: f64 = 14.0;
pub(super) const TITLE_SIZE: f64 = 16.0;

pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const GRID: RGBColor = RGBColor(0xDD, 0xDD, 0xDD);
pub(super) const PAPER_WHITE: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);
pub(super) const ALARM: RGBColor = RGBColor(0xB0, 0x00, 0x20);

/// One colour each everywhere; three that people who see few colours tell apart, and grey.
pub(super) fn colour(who: Who) -> RGBColor {
    match who {
        Who::Sipolis => RGBColor(0x00, 0x72, 0xB2),
        Who::Kamailio => RGBColor(0xD5, 0x5E, 0x00),
        Who::Echo => RGBColor(0x00, 0x9E, 0x73),
        Who::Paper => RGBColor(0x77, 0x77, 0x77),
    }
}

/// As drawn on white, and the same on a dark page.
pub(super) const DARK: &[(&str, &str)] = &[
    ("#222222", "#E4E4E4"),
    ("#DDDDDD", "#3C3F44"),
    ("#FFFFFF", "#16181B"),
    ("#B00020", "#FF7B8A"),
    ("#0072B2", "#4FA8E8"),
    ("#D55E00", "#F28A45"),
    ("#009E73", "#35C598"),
    ("#777777", "#A3A6AB"),
];

/// Draws on a white page of this height and gives the SVG's text.
pub(super) fn draw(height: i32, what: &str, paint: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    let size = (WIDTH as u32, height.clamp(1, 20_000) as u32);
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&PAPER_WHITE)
            .and_then(|()| paint(&area))
            .and_then(|()| area.present())
            .expect("drawing into memory can't fail");
    }
    let named = format!(
        "<svg role=\"img\" aria-label=\"{}\" ",
        super::html::escape(what)
    );
    svg.replacen("<svg ", &named, 1)
}

/// How text is set; `anchor` says which point of it the spot is.
#[derive(Clone, Copy)]
pub(super) struct Ink {
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) colour: RGBColor,
    pub(super) anchor: HPos,
}

impl Ink {
    pub(super) const PLAIN: Self = Self {
        size: TEXT_SIZE,
        bold: false,
        colour: INK,
        anchor: HPos::Left,
    };

    pub(super) fn style(self) -> TextStyle<'static> {
        let style = if self.bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        // The backend divides sizes by 1.24; what comes out is written in whole pixels.
        ("sans-serif", self.size * 1.24, style)
            .into_font()
            .transform(FontTransform::None)
            .color(&self.colour)
            .pos(Pos::new(self.anchor, VPos::Center))
    }
}

/// Text whose middle line is at the spot.
pub(super) fn write(area: &Area<'_>, text: &str, at: Spot, ink: Ink) -> Drawn {
    area.draw(&Text::new(text.to_owned(), at, ink.style()))
}

/// Width of a text, pixels; a little more than most fonts need.
pub(super) fn width(text: &str, size: f64, bold: bool) -> i32 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.31,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '-' | '/' => 0.38,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
        'A'..='Z' => 0.70,
        c if c.is_ascii() => 0.61,
        _ => 1.0,
    };
    let sum: f64 = text.chars().map(of).sum();
    (sum * size * if bold { 1.08 } else { 1.0 }).ceil() as i32
}

/// Breaks text between words, and inside a word that is longer than a line.
pub(super) fn wrap(text: &str, pixels: i32, size: f64, bold: bool) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("never empty");
        if !line.is_empty() && width(&format!("{line} {word}"), size, bold) > pixels {
            lines.push(String::new());
        }
        let line = lines.last_mut().expect("never empty");
        if !line.is_empty() {
            line.push(' ');
        }
        for letter in word.chars() {
            let line = lines.last_mut().expect("never empty");
            let alone = line.is_empty();
            line.push(letter);
            if !alone && width(line, size, bold) > pixels {
                line.pop();
                lines.push(letter.to_string());
            }
        }
    }
    lines
}

/// What tells curves of the same server apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Down,
}

impl Mark {
    pub(super) fn nth(index: usize) -> Self {
        const ALL: [Mark; 6] = [
            Mark::Circle,
            Mark::Square,
            Mark::Triangle,
            Mark::Diamond,
            Mark::Cross,
            Mark::Down,
        ];
        ALL[index % ALL.len()]
    }
}

/// A curve's look; the paper's are grey, dashed and hollow.
#[derive(Clone, Copy)]
pub(super) struct Stroke {
    pub(super) who: Who,
    pub(super) mark: Mark,
}

impl Stroke {
    pub(super) fn line(self, area: &Area<'_>, path: &[Spot]) -> Drawn {
        if path.len() < 2 {
            return Ok(());
        }
        let style = colour(self.who).stroke_width(2);
        match self.who {
            Who::Paper => area.draw(&DashedPathElement::new(path.iter().copied(), 6, 4, style)),
            _ => area.draw(&PathElement::new(path.to_vec(), style)),
        }
    }

    pub(super) fn spread(self, area: &Area<'_>, x: i32, low: i32, high: i32) -> Drawn {
        let style = colour(self.who).stroke_width(1);
        area.draw(&PathElement::new(vec![(x, low), (x, high)], style))?;
        for y in [low, high] {
            area.draw(&PathElement::new(vec![(x - 4, y), (x + 4, y)], style))?;
        }
        Ok(())
    }

    pub(super) fn mark(self, area: &Area<'_>, (x, y): Spot) -> Drawn {
        let r = 5;
        let edge = match self.mark {
            Mark::Circle => return self.circle(area, (x, y)),
            Mark::Cross => {
                return area.draw(&Cross::new((x, y), r - 1, colour(self.who).stroke_width(2)));
            }
            Mark::Square => vec![
                (x - 4, y - 4),
                (x + 4, y - 4),
                (x + 4, y + 4),
                (x - 4, y + 4),
            ],
            Mark::Triangle => vec![(x, y - r), (x + r, y + 4), (x - r, y + 4)],
            Mark::Down => vec![(x, y + r), (x + r, y - 4), (x - r, y - 4)],
            Mark::Diamond => vec![(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)],
        };
        let inside = if self.who == Who::Paper {
            PAPER_WHITE
        } else {
            colour(self.who)
        };
        area.draw(&Polygon::new(edge.clone(), inside.filled()))?;
        let closed: Vec<Spot> = edge.iter().chain(edge.first()).copied().collect();
        area.draw(&PathElement::new(closed, colour(self.who).stroke_width(1)))
    }

    fn circle(self, area: &Area<'_>, at: Spot) -> Drawn {
        if self.who == Who::Paper {
            area.draw(&Circle::new(at, 4, PAPER_WHITE.filled()))?;
            return area.draw(&Circle::new(at, 4, colour(self.who).stroke_width(1)));
        }
        area.draw(&Circle::new(at, 4, colour(self.who).filled()))
    }
}

/// A filled rectangle; its opacity tells parts of a bar apart, on a white page and on a dark one.
pub(super) fn block(area: &Area<'_>, from: Spot, to: Spot, colour: RGBAColor) -> Drawn {
    area.draw(&Rectangle::new([from, to], colour.filled()))
}

/// A title and, of a quick run, what must not be overlooked; gives the height used.
pub(super) struct Heading {
    lines: Vec<String>,
    quick: bool,
}

impl Heading {
    pub(super) fn new(title: &str, quick: bool) -> Self {
        Self {
            lines: wrap(title, WIDTH - 2 * MARGIN, TITLE_SIZE, true),
            quick,
        }
    }

    pub(super) fn height(&self) -> i32 {
        MARGIN / 2 + LINE * (self.lines.len() + usize::from(self.quick)) as i32
    }

    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        let mut y = MARGIN / 2 + LINE / 2;
        let title = Ink {
            size: TITLE_SIZE,
            bold: true,
            ..Ink::PLAIN
        };
        for line in &self.lines {
            write(area, line, (MARGIN, y), title)?;
            y += LINE;
        }
        if self.quick {
            let alarm = Ink {
                bold: true,
                colour: ALARM,
                ..Ink::PLAIN
            };
            write(
                area,
                "Quick run: shows that it works; no figure of it counts.",
                (MARGIN, y),
                alarm,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_inside_long_ones() {
        let lines = wrap("persistent TCP with the open", 100, 14.0, false);
        assert!(lines.len() > 1);
        assert_eq!(lines.join(" "), "persistent TCP with the open");
        let lines = wrap(&"x".repeat(200), 100, 14.0, false);
        assert!(lines.iter().all(|l| width(l, 14.0, false) <= 100));
        assert_eq!(lines.concat(), "x".repeat(200));
        assert_eq!(wrap("", 100, 14.0, false), [""]);
    }

    #[test]
    fn every_colour_of_a_chart_has_one_for_a_dark_page() {
        let of = |RGBColor(r, g, b): RGBColor| format!("#{r:02X}{g:02X}{b:02X}");
        let servers = [Who::Echo, Who::Kamailio, Who::Sipolis, Who::Paper].map(colour);
        for colour in servers.into_iter().chain([INK, GRID, PAPER_WHITE, ALARM]) {
            assert!(
                DARK.iter().any(|(light, _)| *light == of(colour)),
                "{}",
                of(colour)
            );
        }
    }
}
