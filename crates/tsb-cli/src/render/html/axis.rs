//! Axes of drawings in SVG: from a value to a place, and the grid and labels of the vertical one.

use super::markup::Markup;

/// Width of a drawing, in its own units.
pub(super) const WIDTH: f64 = 960.0;
/// Room for the labels of the axes.
pub(super) const LEFT: f64 = 84.0;
pub(super) const RIGHT: f64 = 40.0;
pub(super) const TOP: f64 = 12.0;
pub(super) const BOTTOM: f64 = 30.0;
/// Labels per axis.
const LABELS: usize = 5;

/// From values between two ends to places along an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    /// Of a logarithmic axis, the value that all smaller ones are drawn as.
    floor: Option<f64>,
    from: f64,
    to: f64,
}

impl Axis {
    /// From 0 to `high`, between two places.
    pub(super) const fn linear(high: f64, (from, to): (f64, f64)) -> Self {
        Self {
            low: 0.0,
            high,
            floor: None,
            from,
            to,
        }
    }

    /// Logarithmic from `low` to `high`, between two places.
    pub(super) const fn logarithmic((low, high): (f64, f64), floor: f64, (from, to): (f64, f64)) -> Self {
        Self {
            low,
            high,
            floor: Some(floor),
            from,
            to,
        }
    }

    fn scaled(&self, value: f64) -> f64 {
        self.floor.map_or(value, |floor| value.max(floor).ln())
    }

    /// The place of a value; one beyond an end is at that end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let (low, high) = (self.scaled(self.low), self.scaled(self.high));
        let part = (self.scaled(value) - low) / (high - low).max(f64::MIN_POSITIVE);
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Values at equal distances along the axis.
    pub(super) fn labels(&self) -> impl Iterator<Item = f64> {
        let (low, high) = (self.scaled(self.low), self.scaled(self.high));
        let at = move |index: usize| low + (high - low) * index as f64 / (LABELS - 1) as f64;
        let is_log = self.floor.is_some();
        (0..LABELS)
            .map(at)
            .map(move |value| if is_log { value.exp() } else { value })
    }

    /// Draws a line across the drawing at each label of a vertical axis, and the label.
    pub(super) fn grid(&self, show: fn(f64) -> String, page: &mut Markup) {
        for value in self.labels() {
            let at = self.place(value);
            page.raw(&format!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">",
                WIDTH - RIGHT,
                LEFT - 8.0,
                at + 4.0
            ));
            page.element("", &show(value), "</text>\n");
        }
    }
}

/// The smallest and the largest of positive values.
pub(super) fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}
