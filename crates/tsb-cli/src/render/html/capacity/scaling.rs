//! The capacity against workers or requests in flight, with the law and what it predicts.

use tsb_core::report::capacity::{CapacityReport, Scaling, ScalingLaw, ScalingPoint};
use tsb_run::capacity::counted;
use tsb_run::units;

use crate::render::capacity::load;
use crate::render::html::chart::{Chart, Line, Mark};
use crate::render::html::markup::Markup;
use crate::render::scaling::{cells, sentences};

/// Points by which the curve of the law is drawn.
const CURVE_POINTS: u32 = 60;

/// Draws the section; nothing if one count was searched.
pub(super) fn draw(report: &CapacityReport, page: &mut Markup) {
    let Some(scaling) = &report.scaling else { return };
    page.section(
        "scaling",
        &format!("Capacity by {}", scaling.over),
        "The universal scalability law is fitted to the capacities. Contention is the share of the work that one at a time does; coherency is what each pair costs to keep in agreement.",
    );
    page.list(&sentences(scaling, &report.find));
    let mut lines = vec![measured(scaling, &report.find)];
    if let Some(law) = &scaling.law {
        lines.push(curve(law));
        lines.push(predicted(law, scaling, &report.find));
    }
    Chart {
        caption: "Capacity",
        about: if scaling.law.is_some() {
            "With its 95 % interval, by count, both on a log axis. The last mark is predicted, not measured."
        } else {
            "With its 95 % interval, by count, both on a log axis."
        },
        lines,
        is_log: true,
        show: units::scaled,
    }
    .draw(page);
    table(scaling, page);
    page.end_section();
}

fn measured(scaling: &Scaling, find: &str) -> Line {
    let mark = |point: &ScalingPoint| {
        let (x, y) = point.found()?;
        let capacity = &point.capacity;
        Some(Mark {
            x,
            y,
            interval: capacity.low_per_second.zip(capacity.high_per_second),
            is_good: true,
            about: format!("{}: {}", counted(point.count, &scaling.over), load(y, find)),
        })
    };
    Line {
        name: "measured".to_owned(),
        marks: scaling.points.iter().filter_map(mark).collect(),
        is_curve: false,
    }
}

/// The law from one to the count of the prediction, at equal distances of a log axis.
fn curve(law: &ScalingLaw) -> Line {
    let mark = |index: u32| {
        let share = f64::from(index) / f64::from(CURVE_POINTS - 1);
        let count = f64::from(law.predicted_count).powf(share);
        Mark {
            x: count,
            y: law.parameters.at(count),
            interval: None,
            is_good: true,
            about: String::new(),
        }
    };
    Line {
        name: "the law".to_owned(),
        marks: (0..CURVE_POINTS).map(mark).collect(),
        is_curve: true,
    }
}

fn predicted(law: &ScalingLaw, scaling: &Scaling, find: &str) -> Line {
    let predicted = law.predicted_per_second;
    Line {
        name: "predicted".to_owned(),
        marks: vec![Mark {
            x: f64::from(law.predicted_count),
            y: predicted.value,
            interval: Some((predicted.low, predicted.high)),
            is_good: true,
            about: format!(
                "predicted, not measured, at {}: {}",
                counted(law.predicted_count, &scaling.over),
                load(predicted.value, find)
            ),
        }],
        is_curve: false,
    }
}

fn table(scaling: &Scaling, page: &mut Markup) {
    let head = [
        scaling.over.as_str(),
        "capacity",
        "95 % interval",
        "law",
        "why it ended",
    ];
    let row = |point: &ScalingPoint| {
        let mut row = Vec::from(cells(point, scaling.law.as_ref()));
        row.push(point.capacity.why.clone());
        row
    };
    page.table("capacities", &head, scaling.points.iter().map(row));
}
