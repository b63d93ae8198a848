//! The charts of records, as the original's plotter has them: by size for the fewest and the most
//! requests in flight, and by requests in flight for the smallest and the largest size.

use tsb_core::report::experiment::Figure;
use tsb_core::report::experiment::records::{AppCell, BatchFigures, RecordCell, Spread};
use tsb_run::units;

use crate::render::html::chart::{Chart, Line, Mark, add_mark};
use crate::render::html::markup::Markup;
use crate::render::keyed_names::KeyedNames;

/// A chart of cells of records.
struct RecordChart {
    caption: &'static str,
    about: &'static str,
    axis: RecordAxis,
    figure: fn(&RecordCell) -> Option<Figure>,
    show: fn(f64) -> String,
}

/// What the horizontal axis is of; lines are of the ends of the other.
#[derive(Clone, Copy)]
enum RecordAxis {
    Size,
    InFlight,
}

impl RecordAxis {
    const fn place(self, cell: &RecordCell) -> usize {
        match self {
            Self::Size => cell.size,
            Self::InFlight => cell.in_flight,
        }
    }

    const fn other(self, cell: &RecordCell) -> usize {
        match self {
            Self::Size => cell.in_flight,
            Self::InFlight => cell.size,
        }
    }

    /// The name of the line of a cell of a store.
    fn name(self, store: &str, cell: &RecordCell) -> String {
        match self {
            Self::Size => format!("{store}, {} in flight", cell.in_flight),
            Self::InFlight => format!("{store}, {} bytes", cell.size),
        }
    }
}

const CHARTS: [RecordChart; 6] = [
    RecordChart {
        caption: "Records written per second, by size",
        about: "By bytes of a record.",
        axis: RecordAxis::Size,
        figure: |cell| Some(cell.write?.records_per_second.figure),
        show: count,
    },
    RecordChart {
        caption: "MiB written per second, by size",
        about: "By bytes of a record.",
        axis: RecordAxis::Size,
        figure: |cell| Some(cell.write?.mib_per_second.figure),
        show: mib,
    },
    RecordChart {
        caption: "Records read per second, by size",
        about: "By bytes of a record.",
        axis: RecordAxis::Size,
        figure: |cell| Some(cell.read?.records_per_second.figure),
        show: count,
    },
    RecordChart {
        caption: "MiB read per second, by size",
        about: "By bytes of a record.",
        axis: RecordAxis::Size,
        figure: |cell| Some(cell.read?.mib_per_second.figure),
        show: mib,
    },
    RecordChart {
        caption: "Records written per second, by requests in flight",
        about: "By requests in flight.",
        axis: RecordAxis::InFlight,
        figure: |cell| Some(cell.write?.records_per_second.figure),
        show: count,
    },
    RecordChart {
        caption: "Duration of a write, by requests in flight",
        about: "By requests in flight; below 100 ms a delay of 10 ms is a tenth of it or more.",
        axis: RecordAxis::InFlight,
        figure: |cell| cell.write.map(milliseconds),
        show: ms,
    },
];

fn count(rate: f64) -> String {
    units::count(rate as u64)
}

fn mib(rate: f64) -> String {
    format!("{rate:.2}")
}

fn ms(ms: f64) -> String {
    units::nanos((ms * 1e6) as u64)
}

fn milliseconds(figures: BatchFigures) -> Figure {
    figures.seconds.figure.scaled(1e3)
}

/// Draws the charts of records.
pub(super) fn of_records(cells: &[RecordCell], names: &KeyedNames<'_>, page: &mut Markup) {
    for chart in &CHARTS {
        let others = || cells.iter().map(|cell| chart.axis.other(cell));
        let (least, most) = (others().min(), others().max());
        let mut lines = Vec::new();
        for cell in cells {
            let other = Some(chart.axis.other(cell));
            let Some(figure) = (chart.figure)(cell).filter(|_| other == least || other == most) else {
                continue;
            };
            let store = names.of(&cell.store);
            let name = chart.axis.name(store, cell);
            let about = format!(
                "{store}, {} bytes, {} in flight: {}",
                cell.size,
                cell.in_flight,
                (chart.show)(figure.mean)
            );
            let is_good = cell.samples_right == cell.samples;
            add_mark(&mut lines, &name, mark(chart.axis.place(cell), figure, is_good, about));
        }
        draw(chart.caption, chart.about, lines, chart.show, page);
    }
}

/// A time of a heartbeat.
type AppTime = fn(&AppCell) -> Option<Spread>;

/// Draws the charts of heartbeats.
pub(super) fn of_apps(cells: &[AppCell], names: &KeyedNames<'_>, page: &mut Markup) {
    let charts: [(&str, &str, AppTime); 3] = [
        ("WRITE", "By number of apps.", |cell| cell.write_seconds),
        ("READ", "By number of apps; with a copy of every value.", |cell| {
            cell.read_seconds
        }),
        ("DELETE", "By number of apps.", |cell| cell.delete_seconds),
    ];
    for (caption, about, of) in charts {
        let mut lines = Vec::new();
        for cell in cells {
            let Some(figure) = of(cell).map(|spread| spread.figure.scaled(1e3)) else {
                continue;
            };
            let store = names.of(&cell.store);
            let said = format!("{store}, {} apps: {}", units::count(cell.apps as u64), ms(figure.mean));
            let is_good = cell.samples_right == cell.samples;
            add_mark(&mut lines, store, mark(cell.apps, figure, is_good, said));
        }
        draw(caption, about, lines, ms, page);
    }
}

fn mark(x: usize, figure: Figure, is_good: bool, about: String) -> Mark {
    Mark {
        x: x as f64,
        y: figure.mean,
        interval: figure.low.zip(figure.high),
        is_good,
        about,
    }
}

fn draw(caption: &str, about: &str, lines: Vec<Line>, show: fn(f64) -> String, page: &mut Markup) {
    let chart = Chart {
        caption,
        about,
        lines,
        is_log: true,
        show,
    };
    chart.draw(page);
}
