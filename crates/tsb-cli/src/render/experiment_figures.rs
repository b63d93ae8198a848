//! Figures of published experiments, as their texts and pages print them.

use tsb_core::report::experiment::records::Spread;
use tsb_core::report::experiment::{Figure, Row};
use tsb_run::units;

/// What stands for a figure that does not exist.
pub fn dash() -> String {
    "-".to_owned()
}

/// The mean over the rounds.
pub fn mean(figure: Option<Figure>, digits: usize) -> String {
    figure.map_or_else(dash, |figure| format!("{:.digits$}", figure.mean))
}

/// The mean over the rounds and half of its interval.
pub fn mean_and_half(figure: Option<Figure>, digits: usize) -> String {
    match figure {
        Some(Figure {
            mean, high: Some(high), ..
        }) => format!("{mean:.digits$} +-{:.digits$}", high - mean),
        other => mean(other, digits),
    }
}

/// The mean of samples, and their standard deviation.
pub fn mean_and_sigma(spread: Option<Spread>, digits: usize) -> (String, String) {
    let sigma = spread.and_then(|spread| spread.sigma);
    (
        mean(spread.map(|spread| spread.figure), digits),
        sigma.map_or_else(dash, |sigma| format!("{sigma:.digits$}")),
    )
}

/// A figure of a row, by the unit of the row.
pub fn number_of(row: &Row, value: f64) -> String {
    match row.unit.as_str() {
        "KiB" | "rows" | "samples/s" | "records/s" => units::count(value.round() as u64),
        "%" | "MB" => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
