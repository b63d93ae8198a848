//! What the pages of all experiments have: the head with links, the story, the mistakes and the
//! foot.

use tsb_core::report::Written;

use crate::render::html::begin;
use crate::render::html::markup::Markup;

/// Begins a page: its title, styles, and the links to its sections.
pub(super) fn begin_page(title: &str, styles: &[&str], links: &str) -> Markup {
    let mut page = Markup::new();
    begin(title, styles, "report", &mut page);
    page.raw(links);
    page.element("<main id=\"main\">\n<h1>", title, "</h1>\n");
    page
}

/// Begins the story; what was found follows.
pub(super) fn begin_story(parts: &[&str], page: &mut Markup) {
    page.section("story", "The story", "");
    for part in parts {
        page.element("<p>", part, "</p>\n");
    }
}

/// Lists the mistakes of the original.
pub(super) fn mistakes(heading: &str, mistakes: &[String], page: &mut Markup) {
    page.section("mistakes", heading, "");
    page.list(mistakes);
    page.end_section();
}

/// Ends a page with where it was written; `seed` if something was drawn.
pub(super) fn end_page(written: &Written, seed: Option<u64>, took_seconds: f64, mut page: Markup) -> String {
    let machine = written.machine.cpu.as_deref().unwrap_or("an unknown processor");
    let seed = seed.map_or_else(String::new, |seed| format!("seed {seed}; "));
    let foot = format!(
        "Written by tsb {}, report schema {}; {seed}took {took_seconds:.0} s on {machine}.",
        written.tsb_version, written.schema_version
    );
    page.element("</main>\n<footer><p>", &foot, "</p></footer>\n</body>\n</html>\n");
    page.finish()
}
