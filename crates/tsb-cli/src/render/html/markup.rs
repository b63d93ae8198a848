//! Writes HTML: escapes text, and gives every figure its exact number and JSON pointer.

use std::fmt::Write;

use serde_json::Value;

use super::PageRun;
use crate::render::figures::{Figure, Unit};
use crate::render::names::letter;
use tsb_run::foreign;

/// A column of a table with a cell longer than this, in bytes, is text, and broken into lines.
const SENTENCE: usize = 40;

/// The page being written.
#[derive(Debug, Default)]
pub(super) struct Markup {
    out: String,
}

impl Markup {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Appends markup unchanged.
    pub(super) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// Appends escaped text.
    pub(super) fn text(&mut self, text: &str) {
        for c in foreign::lines(text).chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                c => self.out.push(c),
            }
        }
    }

    /// Appends escaped text between two pieces of markup.
    pub(super) fn element(&mut self, start: &str, text: &str, end: &str) {
        self.raw(start);
        self.text(text);
        self.raw(end);
    }

    /// Begins a section; [`Self::end_section`] ends it.
    pub(super) fn section(&mut self, id: &str, heading: &str, about: &str) {
        let _ = writeln!(
            self.out,
            "<section id=\"{id}\" aria-labelledby=\"{id}-heading\">\n<h2 id=\"{id}-heading\">{heading}</h2>"
        );
        if !about.is_empty() {
            self.element("<p class=\"about\">", about, "</p>\n");
        }
    }

    pub(super) fn end_section(&mut self) {
        self.raw("</section>\n");
    }

    /// Writes a list of texts.
    pub(super) fn list(&mut self, items: &[String]) {
        self.raw("<ul>\n");
        for item in items {
            self.element("<li>", item, "</li>\n");
        }
        self.raw("</ul>\n");
    }

    /// Writes a table of texts, which scrolls where it is too wide. The first of a row is its heading.
    pub(super) fn table(&mut self, name: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
        self.element(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of ",
            name,
            "\"><table><thead><tr>",
        );
        let rows: Vec<Vec<String>> = rows.collect();
        let is_words = |column: usize| {
            let mut cells = rows.iter().filter_map(|cells| cells.get(column));
            cells.any(|cell| cell.len() > SENTENCE)
        };
        let classes: Vec<&str> = (0..head.len())
            .map(|column| if is_words(column) { " class=\"words\"" } else { "" })
            .collect();
        for (column, class) in head.iter().zip(&classes) {
            self.raw(&format!("<th scope=\"col\"{class}>"));
            self.element("", column, "</th>");
        }
        self.raw("</tr></thead><tbody>\n");
        for cells in rows {
            self.raw("<tr>");
            for (place, (cell, class)) in cells.iter().zip(&classes).enumerate() {
                let (start, end) = match place {
                    0 => ("<th scope=\"row\"", "</th>"),
                    _ => ("<td", "</td>"),
                };
                self.raw(&format!("{start}{class}>"));
                self.element("", cell, end);
            }
            self.raw("</tr>\n");
        }
        self.raw("</tbody></table></div>\n");
    }

    /// Writes the heading of a run, if the page shows several.
    pub(super) fn run_heading(&mut self, shown: &PageRun<'_>) {
        if shown.is_one_of_several {
            let _ = write!(self.out, "<h3><span class=\"letter run-{}\">", shown.index % 6);
            self.text(&letter(shown.index));
            self.raw("</span> ");
            self.text(shown.name);
            self.raw("</h3>\n");
        }
    }

    /// Writes the number at a JSON pointer of a run; a dash if it is absent.
    pub(super) fn number(&mut self, shown: &PageRun<'_>, at: &str, unit: Unit) {
        let Some(value @ Value::Number(number)) = shown.json.pointer(at) else {
            self.raw("<span class=\"absent\">-</span>");
            return;
        };
        let text = unit.show(value.as_f64().unwrap_or_default());
        let _ = write!(
            self.out,
            "<data data-at=\"/{}{at}\" data-unit=\"{unit:?}\" value=\"{number}\" title=\"{number}\">{text}</data>",
            shown.index
        );
    }

    /// Writes the number of a figure.
    pub(super) fn figure(&mut self, shown: &PageRun<'_>, figure: &Figure) {
        self.number(shown, figure.at, figure.unit);
    }

    /// Writes figures with their meanings; those that the run lacks are left out.
    pub(super) fn figures(&mut self, shown: &PageRun<'_>, figures: &[Figure]) {
        self.raw("<dl class=\"figures\">\n");
        for figure in figures.iter().filter(|figure| figure.of(shown.json).is_some()) {
            self.raw("<div>");
            self.element("<dt>", figure.name, "</dt><dd class=\"number\">");
            self.figure(shown, figure);
            self.element("</dd><dd class=\"meaning\">", figure.meaning, "</dd></div>\n");
        }
        self.raw("</dl>\n");
    }

    /// Begins a table that may be wider than the page; `</table></div>` ends it.
    pub(super) fn wide_table(&mut self, shown: &PageRun<'_>, name: &str) {
        let run = if shown.is_one_of_several {
            format!(", {}", letter(shown.index))
        } else {
            String::new()
        };
        let _ = write!(
            self.out,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of {name}{run}\"><table>"
        );
    }

    /// Writes the frame of a plot for the script to fill: its description, and a place for its
    /// table.
    pub(super) fn plot(&mut self, kind: &str, run: Option<usize>, caption: &str, about: &str) {
        let run = run.map_or(String::new(), |run| format!(" data-run=\"{run}\""));
        let _ = write!(
            self.out,
            "<figure class=\"plot\" data-plot=\"{kind}\"{run}>\n<figcaption><strong>"
        );
        self.text(caption);
        self.raw("</strong> ");
        self.text(about);
        self.raw("</figcaption>\n<div class=\"canvas\"></div>\n<details class=\"behind\"><summary>Table of ");
        self.text(&caption.to_lowercase());
        self.raw("</summary><div class=\"table\"></div></details>\n</figure>\n");
    }
}
