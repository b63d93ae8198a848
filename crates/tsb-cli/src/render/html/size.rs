//! The size section: bytes per sample by kind, next to the information in a sample, and CPU.

use serde_json::Value;

use super::PageRun;
use super::markup::Markup;
use crate::render::figures::{COST, OFFERED, PROJECTION, SIZE, SIZE_SAMPLES};
use tsb_run::units;

pub(super) fn section(shown: &[PageRun<'_>], page: &mut Markup) {
    page.section(
        "size",
        "Size and cost of a sample",
        "Bytes mean little without what was offered: values that repeat cost nothing to store well, random ones cannot be compressed.",
    );
    for run in shown {
        page.run_heading(run);
        projection(run, page);
        bits(run, page);
        page.raw("<div class=\"columns\"><div><h3 class=\"sub\">Offered</h3>\n");
        page.figures(run, OFFERED);
        page.raw("</div><div><h3 class=\"sub\">A sample</h3>\n");
        page.figures(run, COST);
        if let Some(below) = run.run.cost.store_cpu_below {
            let bound = units::nanos_each(below.ns_per_sample);
            let words = format!("CPU, store: below what can be measured, {bound} for a sample.");
            page.element("<p class=\"method\">", &words, "</p>\n");
        }
        page.element("<p class=\"method\">", &run.run.cost.method, "</p>\n</div></div>\n");
        kinds(run, page);
        place(run, page);
    }
    page.end_section();
}

/// Bits per sample at each stage, on one scale.
fn bits(shown: &PageRun<'_>, page: &mut Markup) {
    let bits_of = |at: &str| shown.json.pointer(at).and_then(Value::as_f64);
    let bars = [
        (
            "offered",
            bits_of("/offered/entropy_bits"),
            "information in a value",
            "is-offered",
        ),
        (
            "sealed",
            bits_of("/cost/sealed_bytes_per_sample").map(|bytes| bytes * 8.0),
            "value and timestamp, sealed",
            "",
        ),
        (
            "wire",
            bits_of("/cost/wire_bytes_per_sample").map(|bytes| bytes * 8.0),
            "on the wire",
            "",
        ),
        (
            "stored",
            bits_of("/cost/bytes_per_sample").map(|bytes| bytes * 8.0),
            "everything the store occupied",
            "",
        ),
        (
            "plain",
            Some(128.0),
            "a timestamp and a value of 64 bits each",
            "is-plain",
        ),
    ];
    let most = bars.iter().filter_map(|(_, bits, ..)| *bits).fold(1.0_f64, f64::max);
    page.raw("<table class=\"bars\"><caption>Bits of one sample</caption><tbody>\n");
    for (name, bits, about, class) in bars {
        let Some(bits) = bits else { continue };
        page.raw(&format!(
            "<tr class=\"{class}\"><th scope=\"row\">{name}</th><td class=\"number\">{bits:.2}</td>"
        ));
        page.raw(&format!(
            "<td class=\"track\"><span style=\"width:{:.3}%\"></span></td>",
            bits * 100.0 / most
        ));
        page.element("<td class=\"meaning\">", about, "</td></tr>\n");
    }
    page.raw("</tbody></table>\n");
}

/// The size of the store by kind, as a bar and as figures.
fn kinds(shown: &PageRun<'_>, page: &mut Markup) {
    if shown.run.size.is_none() {
        return;
    }
    page.raw("<h3 class=\"sub\">Occupied at the end, by kind</h3>\n<div class=\"stack\" aria-hidden=\"true\">");
    let parts: Vec<f64> = SIZE.iter().map(|figure| figure.of(shown.json).unwrap_or(0.0)).collect();
    let all = parts.iter().sum::<f64>().max(1.0);
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| **part > 0.0) {
        page.raw(&format!(
            "<span class=\"kind-{index}\" style=\"width:{:.3}%\"></span>",
            part * 100.0 / all
        ));
    }
    page.raw("</div>\n<div class=\"kinds\">");
    page.figures(shown, SIZE);
    page.raw("</div>\n");
    page.figures(shown, SIZE_SAMPLES);
}

/// Where the samples are, and the command that removes them.
fn place(shown: &PageRun<'_>, page: &mut Markup) {
    let Some(place) = &shown.run.place else { return };
    let size = place
        .bytes
        .map_or(String::new(), |bytes| format!(", {}", units::bytes(bytes as f64)));
    let earlier = if place.earlier.is_some() {
        " with what was there before"
    } else {
        ""
    };
    page.raw("<h3 class=\"sub\">Place</h3>\n");
    let what = format!("{} {}{size}{earlier}.", place.kind, place.name);
    page.element("<p class=\"method\">", &what, "</p>\n");
    if let Some(command) = &place.remove {
        page.raw("<p class=\"method\">To remove it: ");
        page.element("<code>", command, "</code></p>\n");
    }
}

fn projection(shown: &PageRun<'_>, page: &mut Markup) {
    let cost = &shown.run.cost;
    if let Some(why) = &cost.projection_absent {
        page.element(
            "<p class=\"method\">A day and a week were not projected: ",
            why,
            ".</p>\n",
        );
    }
    let Some(projection) = &cost.projection else {
        return;
    };
    page.raw("<h3 class=\"sub\">Projection</h3>\n");
    page.figures(shown, PROJECTION);
    page.raw("<p class=\"method\">Basis: ");
    page.text(&projection.basis);
    page.raw(".</p>\n");
}
