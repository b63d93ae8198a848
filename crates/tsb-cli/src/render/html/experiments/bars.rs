//! Horizontal bars of several parts, with a mark for what was published, as SVG without a script.

use crate::render::html::axis::WIDTH;
use crate::render::html::markup::Markup;
use crate::render::html::plot_frame::PlotFrame;

/// Room for names before the bars, and for values behind them.
const LEFT: f64 = 260.0;
const RIGHT: f64 = 190.0;
/// Height of a bar with the gap below it, and of the bar alone.
const ROW: f64 = 32.0;
const BAR: f64 = 18.0;
const TOP: f64 = 10.0;

/// A part of a bar.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Its colour, by the index of its name in the key.
    pub(super) tone: usize,
    pub(super) value: f64,
}

/// A bar.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<Part>,
    /// What was published of the same.
    pub(super) published: Option<f64>,
    /// What stands behind it.
    pub(super) about: String,
}

impl Bar {
    fn length(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }
}

/// A drawing of bars over one linear axis from 0.
#[derive(Clone, Debug)]
pub(super) struct BarChart<'a> {
    pub(super) caption: &'a str,
    pub(super) about: &'a str,
    /// The names of the parts; empty where each bar has one.
    pub(super) key: &'a [&'a str],
    pub(super) bars: Vec<Bar>,
}

impl BarChart<'_> {
    /// Draws them; nothing without a bar.
    pub(super) fn draw(&self, page: &mut Markup) {
        if self.bars.is_empty() {
            return;
        }
        let reach = self
            .bars
            .iter()
            .flat_map(|bar| [bar.length(), bar.published.unwrap_or_default()]);
        let most = reach.fold(f64::MIN_POSITIVE, f64::max);
        let place = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * value / most;
        let height = TOP + ROW * self.bars.len() as f64;
        let frame = PlotFrame {
            caption: self.caption,
            about: self.about,
            size: (WIDTH, height),
        };
        frame.around(self.key.iter().copied().enumerate(), page, |page| {
            for (number, bar) in self.bars.iter().enumerate() {
                draw_bar(bar, TOP + ROW * number as f64, place, page);
            }
        });
    }
}

fn draw_bar(bar: &Bar, top: f64, place: impl Fn(f64) -> f64, page: &mut Markup) {
    let baseline = top + BAR * 0.75;
    page.raw(&format!(
        "<text class=\"label\" x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">",
        LEFT - 12.0
    ));
    page.element("", &bar.name, "</text>\n");
    let mut from = 0.0;
    for part in &bar.parts {
        let (start, end) = (place(from), place(from + part.value));
        from += part.value;
        page.raw(&format!(
            "<rect class=\"part tone-{}\" x=\"{start:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR}\"/>\n",
            part.tone,
            end - start
        ));
    }
    if let Some(published) = bar.published {
        let at = place(published);
        page.raw(&format!(
            "<line class=\"found\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\n",
            top - 3.0,
            top + BAR + 3.0
        ));
    }
    let behind = place(bar.length().max(bar.published.unwrap_or_default())) + 10.0;
    page.raw(&format!("<text class=\"label\" x=\"{behind:.1}\" y=\"{baseline:.1}\">"));
    page.element("", &bar.about, "</text>\n");
}
