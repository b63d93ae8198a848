//! A chart of several series of marks over a logarithmic axis, as SVG without a script.

use super::axis::{Axis, BOTTOM, LEFT, RIGHT, TOP, WIDTH, ends};
use super::markup::Markup;
use super::plot_frame::PlotFrame;
use tsb_run::units;

/// Height of a drawing, in its own units.
const HEIGHT: f64 = 320.0;
const MARK: f64 = 4.0;
/// Room beside the marks at both ends, as a factor; a single mark is in the middle.
const MARGIN: f64 = 1.15;
/// Colours that series have in turn.
const TONES: usize = 6;

/// A mark: where it is, whether it is good, and what it says.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) x: f64,
    pub(super) y: f64,
    /// The ends of its interval.
    pub(super) interval: Option<(f64, f64)>,
    pub(super) is_good: bool,
    pub(super) about: String,
}

/// A series of marks with a line through them, or a curve.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) marks: Vec<Mark>,
    /// Whether the marks are points of a curve, which is drawn without them.
    pub(super) is_curve: bool,
}

/// Adds a mark to the line of this name, which is begun if there is none.
pub(super) fn add_mark(lines: &mut Vec<Line>, name: &str, mark: Mark) {
    match lines.iter_mut().find(|line| line.name == name) {
        Some(line) => line.marks.push(mark),
        None => lines.push(Line {
            name: name.to_owned(),
            marks: vec![mark],
            is_curve: false,
        }),
    }
}

/// A chart.
#[derive(Clone, Debug)]
pub(super) struct Chart<'a> {
    pub(super) caption: &'a str,
    pub(super) about: &'a str,
    pub(super) lines: Vec<Line>,
    /// Whether the vertical axis is logarithmic.
    pub(super) is_log: bool,
    pub(super) show: fn(f64) -> String,
}

/// An axis on which all values have room.
fn axis(values: impl Iterator<Item = f64>, is_log: bool, places: (f64, f64)) -> Axis {
    /// What smaller values are drawn as.
    const FLOOR: f64 = 1e-3;
    let (low, high) = ends(values);
    let high = high.max(1.0) * 1.1;
    if is_log {
        Axis::logarithmic((low.max(FLOOR).min(high / 2.0) / 1.1, high), FLOOR, places)
    } else {
        Axis::linear(high, places)
    }
}

impl Chart<'_> {
    /// Draws it; nothing if it has no mark.
    pub(super) fn draw(&self, page: &mut Markup) {
        let marks = || self.lines.iter().flat_map(|line| &line.marks);
        if marks().next().is_none() {
            return;
        }
        let (least, most) = ends(marks().map(|mark| mark.x));
        let x = Axis::logarithmic((least / MARGIN, most * MARGIN), 1.0, (LEFT, WIDTH - RIGHT));
        let reach = marks().flat_map(|mark| [mark.y, mark.interval.map_or(mark.y, |(_, high)| high)]);
        let y = axis(reach, self.is_log, (HEIGHT - BOTTOM, TOP));
        let frame = PlotFrame {
            caption: self.caption,
            about: self.about,
            size: (WIDTH, HEIGHT),
        };
        let named = self.lines.iter().enumerate();
        let key = named.map(|(number, line)| (number % TONES, line.name.as_str()));
        frame.around(key, page, |page| {
            self.axes(x, y, page);
            for (number, line) in self.lines.iter().enumerate() {
                draw_line(line, number % TONES, x, y, page);
            }
        });
    }

    fn axes(&self, x: Axis, y: Axis, page: &mut Markup) {
        y.grid(self.show, page);
        let mut sizes: Vec<f64> = self
            .lines
            .iter()
            .filter(|line| !line.is_curve)
            .flat_map(|line| &line.marks)
            .map(|mark| mark.x)
            .collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        let mut free_from = 0.0;
        for size in sizes {
            let at = x.place(size);
            // A label has room for itself.
            if at < free_from {
                continue;
            }
            free_from = at + 70.0;
            page.raw(&format!(
                "<text class=\"label\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">",
                HEIGHT - BOTTOM + 20.0
            ));
            page.element("", &units::count(size as u64), "</text>\n");
        }
    }
}

fn draw_line(line: &Line, tone: usize, x: Axis, y: Axis, page: &mut Markup) {
    let places: Vec<String> = line
        .marks
        .iter()
        .map(|mark| format!("{:.1},{:.1}", x.place(mark.x), y.place(mark.y)))
        .collect();
    page.raw(&format!(
        "<g class=\"tone-{tone}\"><polyline class=\"series\" points=\"{}\"/>\n",
        places.join(" ")
    ));
    for mark in line.marks.iter().filter(|_| !line.is_curve) {
        let (at, up) = (x.place(mark.x), y.place(mark.y));
        page.raw("<g>");
        if let Some((low, high)) = mark.interval {
            page.raw(&format!(
                "<line class=\"reach\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                y.place(low),
                y.place(high)
            ));
        }
        let class = if mark.is_good { "mark" } else { "mark failed" };
        page.raw(&format!(
            "<circle class=\"{class}\" cx=\"{at:.1}\" cy=\"{up:.1}\" r=\"{MARK}\"/>"
        ));
        page.element("<title>", &mark.about, "</title></g>\n");
    }
    page.raw("</g>\n");
}
