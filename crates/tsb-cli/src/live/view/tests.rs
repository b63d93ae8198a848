//! The picture as text, at several sizes.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tsb_core::latency::Histogram;
use tsb_core::report::{Interval, WatchedUsage};

use super::*;
use tsb_run::{IntervalLatencies, RunInfo};

use crate::live::SharedState;

fn state() -> LiveState {
    let shared = SharedState::new();
    shared.begin(RunInfo {
        store: "memory".to_owned(),
        path: "tcp (tsb)".to_owned(),
        series: 54_000,
        durability: "volatile".to_owned(),
        asked_per_second: Some(54_000.0),
        planned_ns: Some(60_000_000_000),
        interval_ns: 1_000_000_000,
    });
    for second in 1..=30u64 {
        let mut histogram = Histogram::new();
        (0..1_000u64).for_each(|value| histogram.record(20_000 + value * value * second));
        let cells = Cells::new(&histogram);
        let mut watched = WatchedUsage::default();
        watched.pid = 7;
        watched.cpu_ns = 500_000_000;
        let mut interval = Interval::default();
        interval.end_ns = second * 1_000_000_000;
        interval.sent = 54_000;
        interval.accepted = 54_000;
        interval.cpu_ns = 380_000_000;
        interval.rss_bytes = 64 << 20;
        interval.response_cells = cells.clone();
        interval.watched = vec![watched];
        let timed = IntervalLatencies {
            delivery: cells.clone(),
            service: cells.clone(),
            lag: cells,
        };
        shared.add(interval, &timed);
    }
    shared.enter(Phase::Running);
    shared.say("calibrating against a store that forgets");
    let mut state = shared.snapshot(usize::MAX);
    state.elapsed_ns = 30_000_000_000;
    state.accepted = 1_620_000;
    state.totals.samples = 1_620_054;
    state.staleness_ms = Some(990.5);
    state
}

fn picture(width: u16, height: u16, state: &LiveState, settings: ViewSettings) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, settings)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn everything_that_matters_fits_into_80_columns_and_fills_200() {
    for (width, height) in [(80, 24), (120, 40), (200, 50)] {
        let picture = picture(width, height, &state(), ViewSettings::default());
        for words in [
            "memory",
            "54,000 series",
            "volatile",
            "running",
            "30 s of 60 s, 30 s left",
            "asked 54.0 k/s",
            "held 54.0 k/s",
            "990 ms",
            "p99.9",
            "response",
            "delivery",
            "service",
            "lag",
            "sent 1,620,054",
            "accepted 1,620,000",
            "on the way 54",
            "tsb 0.38 cores, 64.00 MiB",
            "pid 7 0.50 cores",
            "the last 30 s",
            "end with the report",
            "\u{2580}",
        ] {
            assert!(
                picture.contains(words),
                "{width} columns do not show {words:?}:\n{picture}"
            );
        }
    }
}

#[test]
fn a_terminal_of_any_size_is_drawn_on_without_a_panic() {
    for (width, height) in [(1, 1), (10, 3), (40, 12), (400, 100)] {
        assert!(!picture(width, height, &state(), ViewSettings::default()).is_empty());
        assert!(!picture(width, height, &LiveState::default(), ViewSettings::default()).is_empty());
    }
}

#[test]
fn signals_of_the_user_are_shown() {
    let mut settings = ViewSettings {
        is_paused: true,
        is_stopping: true,
        ..ViewSettings::default()
    };
    settings.zoom_out();
    let picture = picture(100, 40, &state(), settings);
    for words in ["PAUSED, the run goes on", "ending", "end at once", "2.00 s per column"] {
        assert!(picture.contains(words), "{words}:\n{picture}");
    }
}

#[test]
fn hosts_have_a_line_each_and_lost_ones_are_first() {
    let mut state = state();
    state.hosts = (1..=10)
        .map(|host| HostLine {
            text: format!("host-{host}: running, 54,000 sent, 54,000 accepted, stalest 990 ms"),
            is_lost: false,
        })
        .collect();
    let whole = picture(80, 24, &state, ViewSettings::default());
    for words in [
        "10 hosts, 2 of them not shown",
        "host-8: running",
        "sent",
        "end with the report",
    ] {
        assert!(whole.contains(words), "{words}:\n{whole}");
    }
    assert!(!whole.contains("host-9"), "{whole}");
    state.hosts.truncate(2);
    assert!(picture(80, 24, &state, ViewSettings::default()).contains("2 hosts"));
    assert!(!picture(80, 6, &state, ViewSettings::default()).is_empty());
}

#[test]
fn phases_say_how_far_they_are() {
    let mut state = state();
    state.phase = Phase::ReadingBack(27_000, 54_000);
    assert!(picture(80, 24, &state, ViewSettings::default()).contains("reading back  27,000 of 54,000 series"));
}

#[test]
fn the_help_names_every_key_and_is_whole_at_80_by_24() {
    let settings = ViewSettings {
        is_helped: true,
        ..ViewSettings::default()
    };
    let shown = picture(80, 24, &state(), settings);
    for words in [
        "q, Ctrl-C",
        "p, space",
        "+ -",
        "colours by share of the whole map, or of each column",
        "stop sending, read back, report; twice: end at once",
        "samples accepted per second: since the start, last interval",
        "sent, and no answer came",
        "? or Esc closes",
    ] {
        assert!(shown.contains(words), "{words}:\n{shown}");
    }
    assert!(!picture(80, 24, &state(), ViewSettings::default()).contains("Figures"));
    assert!(!picture(8, 3, &state(), settings).is_empty());
}
