//! The frame of a drawing: its caption, the key of its colours, and the SVG around what is drawn.

use super::markup::Markup;

/// The frame of a drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotFrame<'a> {
    pub(super) caption: &'a str,
    pub(super) about: &'a str,
    /// Width and height, in its own units.
    pub(super) size: (f64, f64),
}

impl PlotFrame<'_> {
    /// Writes the frame around what `draw` writes. `key` names the colours: the number of each, and
    /// what has it.
    pub(super) fn around<'k>(
        &self,
        key: impl IntoIterator<Item = (usize, &'k str)>,
        page: &mut Markup,
        draw: impl FnOnce(&mut Markup),
    ) {
        page.element(
            "<figure class=\"plot\">\n<figcaption><strong>",
            self.caption,
            "</strong> ",
        );
        page.element("", self.about, "</figcaption>\n");
        let mut key = key.into_iter().peekable();
        if key.peek().is_some() {
            page.raw("<ul class=\"key\">\n");
            for (tone, name) in key {
                page.raw(&format!("<li class=\"tone-{tone}\">"));
                page.element("", name, "</li>\n");
            }
            page.raw("</ul>\n");
        }
        page.element(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Plot: ",
            self.caption,
            "\">",
        );
        let (width, height) = self.size;
        page.raw(&format!(
            "<svg class=\"curve\" viewBox=\"0 0 {width} {height}\" role=\"img\""
        ));
        page.element(" aria-label=\"", self.caption, "\">\n");
        draw(page);
        page.raw("</svg></div>\n</figure>\n");
    }
}
