//! One curve: a figure of every probe against its load, as SVG.

use std::fmt::Write;

use tsb_core::report::capacity::{CapacityReport, ProbeReport};
use tsb_run::units;

use crate::render::capacity::result;
use crate::render::html::axis::{Axis, BOTTOM, LEFT, RIGHT, TOP, WIDTH, ends};
use crate::render::html::markup::Markup;

/// Height of a drawing, in its own units.
const HEIGHT: f64 = 300.0;
/// A curve shows the loads from the capacity divided by this to the capacity times this.
const AROUND: f64 = 2.1;
/// Half the size of a mark.
const MARK: f64 = 5.0;

/// A figure of the probes.
#[derive(Clone, Copy)]
pub(super) struct Curve {
    pub(super) caption: &'static str,
    pub(super) about: &'static str,
    /// Whether the axis of the figure is logarithmic.
    pub(super) is_log: bool,
    pub(super) of: fn(&ProbeReport) -> Option<f64>,
    pub(super) show: fn(f64) -> String,
}

/// An axis on which all values have room.
fn axis(values: impl Iterator<Item = f64>, is_log: bool, places: (f64, f64)) -> Axis {
    let (low, high) = ends(values);
    if is_log {
        Axis::logarithmic((low.max(1.0) / 1.1, high.max(2.0) * 1.1), 1.0, places)
    } else {
        Axis::linear(high.max(1.0) * 1.05, places)
    }
}

impl Curve {
    /// Draws the figure of each probe near the capacity; nothing if no probe has it.
    pub(super) fn draw(&self, report: &CapacityReport, page: &mut Markup) {
        let capacity = &report.capacity;
        let is_near = |load: f64| {
            capacity
                .found_per_second
                .is_none_or(|found| (found / AROUND..=found * AROUND).contains(&load))
        };
        let points: Vec<(&ProbeReport, f64, f64)> = capacity
            .probes
            .iter()
            .filter_map(|probe| Some((probe, probe.load_per_second as f64, (self.of)(probe)?)))
            .filter(|(_, load, _)| is_near(*load))
            .collect();
        if points.is_empty() {
            return;
        }
        let x = axis(points.iter().map(|point| point.1), true, (LEFT, WIDTH - RIGHT));
        let y = axis(points.iter().map(|point| point.2), self.is_log, (HEIGHT - BOTTOM, TOP));
        page.element(
            "<figure class=\"plot\">\n<figcaption><strong>",
            self.caption,
            "</strong> ",
        );
        page.element("", self.about, "</figcaption>\n");
        page.raw(&format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Plot: {}\"><svg class=\"curve\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{} by load\">\n",
            self.caption, self.caption
        ));
        self.axes(&x, &y, page);
        band(report, &x, page);
        for (probe, load, value) in points {
            let about = format!(
                "probe {}: {} /s, {}; {}",
                probe.number,
                units::count(load as u64),
                (self.show)(value),
                result(probe)
            );
            page.raw(&mark(&probe.result, x.place(load), y.place(value)));
            page.element("<title>", &about, "</title></g>\n");
        }
        page.raw("</svg></div>\n</figure>\n");
    }

    fn axes(&self, x: &Axis, y: &Axis, page: &mut Markup) {
        y.grid(self.show, page);
        for value in x.labels() {
            page.raw(&format!(
                "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">",
                x.place(value),
                HEIGHT - BOTTOM + 20.0
            ));
            page.element("", &format!("{}/s", units::scaled(value)), "</text>\n");
        }
    }
}

/// The capacity as a line, and its interval as a band.
fn band(report: &CapacityReport, x: &Axis, page: &mut Markup) {
    let capacity = &report.capacity;
    let Some(found) = capacity.found_per_second else { return };
    let end = |load: Option<f64>| x.place(load.unwrap_or(found));
    let (low, found, high) = (
        end(capacity.low_per_second),
        x.place(found),
        end(capacity.high_per_second),
    );
    let (top, bottom) = (TOP, HEIGHT - BOTTOM);
    page.raw(&format!(
        "<rect class=\"interval\" x=\"{low:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{:.1}\"/><line class=\"found\" x1=\"{found:.1}\" x2=\"{found:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>\n",
        (high - low).max(0.0),
        bottom - top
    ));
}

/// The beginning of a mark, which `</g>` ends.
fn mark(result: &str, x: f64, y: f64) -> String {
    let mut out = String::from("<g>");
    let (left, right, top, bottom) = (x - MARK, x + MARK, y - MARK, y + MARK);
    let _ = match result {
        "held" => write!(out, "<circle class=\"held\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{MARK}\"/>"),
        "broke" => write!(
            out,
            "<path class=\"broke\" d=\"M{left:.1} {top:.1}L{right:.1} {bottom:.1}M{left:.1} {bottom:.1}L{right:.1} {top:.1}\"/>"
        ),
        _ => write!(
            out,
            "<path class=\"void\" d=\"M{x:.1} {top:.1}L{right:.1} {bottom:.1}L{left:.1} {bottom:.1}Z\"/>"
        ),
    };
    out
}
