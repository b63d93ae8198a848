//! Draws the live view: a pure function from the state of a run to a picture.

use std::fmt::Write;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, RenderDirection, Sparkline};
use tsb_core::latency::Cells;

use tsb_run::Phase;

use super::heat_map::{HeatMap, columns_in};
use super::help;
use super::state::{CoarseHistogram, HostLine, LiveState};
use tsb_run::units::{bytes, count, nanos, scaled};

/// From this width on, the heat map is beside the figures.
const WIDE: u16 = 140;

/// Width of the figures there.
const FIGURES: u16 = 78;

/// The user's settings of the view.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ViewSettings {
    /// Whether the picture is frozen; the run continues.
    pub is_paused: bool,
    /// Whether the run was asked to end.
    pub is_stopping: bool,
    /// Whether the help is open.
    pub is_helped: bool,
    /// Whether heat shows the share of each column instead of the whole map.
    pub is_by_column: bool,
    // A column of the heat map takes 2 to the power of this many intervals.
    coarse: u32,
}

impl ViewSettings {
    /// Reporting intervals per column of the heat map.
    pub(super) const fn intervals_per_column(self) -> usize {
        1 << self.coarse
    }

    /// Shows less time per column.
    pub(super) const fn zoom_in(&mut self) {
        self.coarse = self.coarse.saturating_sub(1);
    }

    /// Shows more time per column, up to 64 intervals.
    pub(super) const fn zoom_out(&mut self) {
        if self.coarse < 6 {
            self.coarse += 1;
        }
    }
}

/// Number of intervals that a terminal of this width can show.
pub(super) const fn intervals_wanted(width: usize, settings: ViewSettings) -> usize {
    width * settings.intervals_per_column()
}

const FAINT: Style = Style::new().fg(Color::DarkGray);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws the whole view.
pub(super) fn draw(frame: &mut Frame<'_>, state: &LiveState, settings: ViewSettings) {
    let rows = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(hosts_height(state)),
        Constraint::Length(1),
    ]);
    let [head, gauge, body, below, foot] = rows.areas(frame.area());
    frame.render_widget(header(state, settings), head);
    progress(frame, state, gauge);
    if body.width >= WIDE {
        let [left, right] = Layout::horizontal([Constraint::Length(FIGURES), Constraint::Min(0)])
            .spacing(2)
            .areas(body);
        figures(frame, state, left, true);
        heat(frame, state, settings, right);
    } else {
        // The heat map gets what the figures leave; without room for it, it is left out.
        let [above, below] = Layout::vertical([Constraint::Length(FIGURE_LINES), Constraint::Min(0)]).areas(body);
        figures(frame, state, above, false);
        heat(frame, state, settings, below);
    }
    hosts(frame, state, below);
    frame.render_widget(keys(settings), foot);
    if settings.is_helped {
        help::overlay(frame);
    }
}

fn header(state: &LiveState, settings: ViewSettings) -> Paragraph<'_> {
    let subject = &state.subject;
    let first = Line::from(vec![
        Span::styled("tsb ", FAINT),
        Span::styled(subject.store.as_str(), STRONG),
        Span::raw(format!(" over {}, {} series, ", subject.path, count(subject.series))),
        Span::raw(format!("durability {}", subject.durability)),
    ]);
    let mut second = vec![Span::styled(state.phase.name(), STRONG), Span::raw(left(state))];
    if settings.is_stopping {
        second.push(Span::styled("  ending", STRONG.fg(Color::Yellow)));
    }
    if settings.is_paused {
        second.push(Span::styled("  PAUSED, the run goes on", STRONG.fg(Color::Yellow)));
    }
    Paragraph::new(vec![first, Line::from(second)])
}

/// The progress as text.
fn left(state: &LiveState) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    match (state.phase, state.subject.planned_ns) {
        (Phase::Running, Some(planned)) => format!(
            "  {:.0} s of {:.0} s, {:.0} s left",
            seconds(state.elapsed_ns),
            seconds(planned),
            seconds(planned.saturating_sub(state.elapsed_ns))
        ),
        (Phase::Running, None) => format!("  for {:.0} s", seconds(state.elapsed_ns)),
        (Phase::ReadingBack(done, all), _) => format!("  {} of {} series", count(done), count(all)),
        _ => String::new(),
    }
}

fn progress(frame: &mut Frame<'_>, state: &LiveState, area: Rect) {
    let share = |done: u64, all: u64| (done as f64 / all.max(1) as f64).clamp(0.0, 1.0);
    let ratio = match (state.phase, state.subject.planned_ns) {
        (Phase::Running, Some(planned)) => share(state.elapsed_ns, planned),
        (Phase::ReadingBack(done, all), _) => share(done, all),
        (Phase::Flushing | Phase::Reporting, _) => 1.0,
        _ => 0.0,
    };
    let width = usize::from(area.width);
    let done = (ratio * width as f64).round() as usize;
    let bar = Line::from(vec![
        Span::styled("\u{2501}".repeat(done), Style::new().fg(Color::Indexed(31))),
        Span::styled(
            "\u{2501}".repeat(width.saturating_sub(done)),
            Style::new().fg(Color::Indexed(238)),
        ),
    ]);
    frame.render_widget(Paragraph::new(bar), area);
}

/// Most hosts that have a line.
const HOSTS_MAX: usize = 8;

/// Height of the lines of hosts, with their heading.
fn hosts_height(state: &LiveState) -> u16 {
    match state.hosts.len() {
        0 => 0,
        hosts => hosts.min(HOSTS_MAX) as u16 + 1,
    }
}

/// A line for each host, as far as there is room: lost ones first.
fn hosts(frame: &mut Frame<'_>, state: &LiveState, area: Rect) {
    let hosts = &state.hosts;
    let hidden = hosts.len().saturating_sub(HOSTS_MAX);
    let heading = match hidden {
        0 => format!("{} hosts", hosts.len()),
        hidden => format!("{} hosts, {hidden} of them not shown", hosts.len()),
    };
    let line = |host: &'_ HostLine| {
        let style = if host.is_lost {
            STRONG.fg(Color::Red)
        } else {
            Style::new()
        };
        Line::styled(host.text.clone(), style)
    };
    let lines = hosts.iter().take(HOSTS_MAX).map(line);
    let lines = std::iter::once(Line::styled(heading, FAINT)).chain(lines);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

/// Height of the figures if the heat map is below them.
const FIGURE_LINES: u16 = 14;

/// Width of one column of the heat map or the history, in characters. A short run is stretched
/// so that its planned intervals fill the width.
fn stretch(state: &LiveState, settings: ViewSettings, width: usize) -> usize {
    let subject = &state.subject;
    let planned = subject.planned_ns.unwrap_or(0) / subject.interval_ns.max(1);
    let columns = (planned as usize)
        .max(state.intervals.len())
        .div_ceil(settings.intervals_per_column());
    (width / columns.max(1)).clamp(1, 8)
}

fn figures(frame: &mut Frame<'_>, state: &LiveState, area: Rect, is_tall: bool) {
    let spark = if is_tall { 4 } else { 1 };
    let rows = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(spark),
        Constraint::Length(7),
        Constraint::Length(if is_tall { 5 } else { 3 }),
        Constraint::Min(0),
    ]);
    let [rate, history, latency, rest, messages] = rows.areas(area);
    frame.render_widget(rates(state), rate);
    let columns = stretch(state, ViewSettings::default(), usize::from(history.width));
    rate_history(frame, state, history, columns);
    frame.render_widget(latencies(state), latency);
    frame.render_widget(ledger_and_cost(state), rest);
    let sentences = state.messages.iter().map(|text| Line::styled(text.as_str(), FAINT));
    frame.render_widget(Paragraph::new(sentences.collect::<Vec<_>>()), messages);
}

fn interval_seconds(state: &LiveState, index: usize) -> f64 {
    let intervals = &state.intervals;
    let before = index.checked_sub(1).and_then(|index| intervals.get(index));
    let from = match before {
        Some(before) => before.end_ns,
        // The oldest interval that is kept is as long as the one behind it, but for the first.
        None => intervals.get(1).map_or(0, |next| {
            let end = intervals.front().map_or(0, |interval| interval.end_ns);
            end.saturating_sub(next.end_ns.saturating_sub(end))
        }),
    };
    let end = intervals.get(index).map_or(0, |interval| interval.end_ns);
    (end.saturating_sub(from)).max(1) as f64 / 1e9
}

fn rates(state: &LiveState) -> Paragraph<'_> {
    let last = state.intervals.len().checked_sub(1);
    let now = last.map_or(0.0, |index| {
        state.intervals[index].accepted as f64 / interval_seconds(state, index)
    });
    let held = state.accepted as f64 * 1e9 / state.elapsed_ns.max(1) as f64;
    let asked = state
        .asked_per_second()
        .map_or("nothing".to_owned(), |asked| format!("{}/s", scaled(asked)));
    let staleness = state.staleness_ms.map_or("-".to_owned(), |ms| nanos((ms * 1e6) as u64));
    Paragraph::new(vec![
        Line::default(),
        Line::from(vec![
            Span::styled("asked ", FAINT),
            Span::raw(format!("{asked:<12}")),
            Span::styled("held ", FAINT),
            Span::styled(format!("{:<11}", format!("{}/s", scaled(held))), STRONG),
            Span::styled("now ", FAINT),
            Span::raw(format!("{:<12}", format!("{}/s", scaled(now)))),
            Span::styled("stalest ", FAINT),
            Span::styled(staleness, STRONG),
        ]),
    ])
}

fn rate_history(frame: &mut Frame<'_>, state: &LiveState, area: Rect, columns: usize) {
    let newest = (0..state.intervals.len()).rev().take(usize::from(area.width));
    let rates: Vec<u64> = newest
        .map(|index| (state.intervals[index].accepted as f64 / interval_seconds(state, index)) as u64)
        .flat_map(|rate| std::iter::repeat_n(rate, columns))
        .collect();
    let spark = Sparkline::default()
        .data(&rates)
        .direction(RenderDirection::RightToLeft)
        .style(Style::new().fg(Color::Indexed(31)));
    frame.render_widget(spark, area);
}

fn latencies(state: &LiveState) -> Paragraph<'_> {
    let show = |value: Option<u64>| value.map_or("-".to_owned(), nanos);
    let row = |name: &str, times: &CoarseHistogram, about: &'static str| {
        let quantiles = [0.5, 0.9, 0.99, 0.999].map(|quantile| show(times.quantile(quantile)));
        let mut text = format!("{name:<9}");
        for value in quantiles.into_iter().chain([show(times.max())]) {
            let _ = write!(text, "{value:>9}");
        }
        Line::from(vec![Span::raw(text), Span::styled(format!("  {about}"), FAINT)])
    };
    let heads = ["p50", "p90", "p99", "p99.9", "max"].map(|head| format!("{head:>9}"));
    let mut lines = vec![
        Line::default(),
        Line::styled(format!("{:<9}{}", "", heads.concat()), FAINT),
        row("response", &state.response, "due until done"),
    ];
    let is_delivered = state.delivery.count() > 0;
    if is_delivered {
        lines.push(row("delivery", &state.delivery, "start until read"));
    }
    let service = if is_delivered {
        "read until done"
    } else {
        "start until done"
    };
    lines.push(row("service", &state.service, service));
    lines.push(row("lag", &state.lag, "due until start"));
    Paragraph::new(lines)
}

fn ledger_and_cost(state: &LiveState) -> Paragraph<'_> {
    let totals = &state.totals;
    let gone = state.rejected + totals.unknown;
    let on_the_way = totals.samples.saturating_sub(state.accepted + gone);
    let lost_style = |samples: u64| if samples > 0 { STRONG.fg(Color::Red) } else { FAINT };
    let cell = |name: &str, samples: u64| Span::styled(format!("  {name} {}", count(samples)), lost_style(samples));
    let ledger = Line::from(vec![
        Span::styled("sent ", FAINT),
        Span::raw(count(totals.samples)),
        Span::styled("  accepted ", FAINT),
        Span::raw(count(state.accepted)),
        Span::styled(format!("  on the way {}", count(on_the_way)), FAINT),
    ]);
    let losses = Line::from(vec![
        Span::styled("of them", FAINT),
        cell("rejected", state.rejected),
        cell("unknown", totals.unknown),
        cell("shed", totals.shed),
    ]);
    Paragraph::new(vec![ledger, losses, processes(state)])
}

fn processes(state: &LiveState) -> Line<'_> {
    let Some(index) = state.intervals.len().checked_sub(1) else {
        return Line::default();
    };
    let (interval, seconds) = (&state.intervals[index], interval_seconds(state, index));
    let one = |name: String, cpu_ns: u64, rss: u64| {
        [
            Span::styled(format!("{name} "), FAINT),
            Span::raw(format!(
                "{:.2} cores, {}  ",
                cpu_ns as f64 / 1e9 / seconds,
                bytes(rss as f64)
            )),
        ]
    };
    let own = one("tsb".to_owned(), interval.cpu_ns, interval.rss_bytes);
    let others = interval
        .watched
        .iter()
        .flat_map(|other| one(format!("pid {}", other.pid), other.cpu_ns, other.rss_bytes));
    Line::from(own.into_iter().chain(others).collect::<Vec<_>>())
}

fn heat(frame: &mut Frame<'_>, state: &LiveState, settings: ViewSettings, area: Rect) {
    if area.height < 4 {
        return;
    }
    let [title, map, axis] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]).areas(area);
    let scale = if settings.is_by_column {
        "each column"
    } else {
        "the whole map"
    };
    let heading = Line::from(vec![
        Span::raw("response time"),
        Span::styled(format!(", brighter: a larger share of {scale}"), FAINT),
    ]);
    frame.render_widget(Paragraph::new(heading), title);
    let wide = stretch(state, settings, columns_in(area.width));
    let columns = columns(state, settings, columns_in(area.width) / wide);
    let intervals: usize = columns.len() * settings.intervals_per_column();
    let span = (0..state.intervals.len())
        .rev()
        .take(intervals)
        .map(|index| interval_seconds(state, index))
        .sum::<f64>();
    frame.render_widget(
        HeatMap {
            columns: &columns,
            wide,
            is_by_column: settings.is_by_column,
        },
        map,
    );
    let per_column = nanos(state.subject.interval_ns * settings.intervals_per_column() as u64);
    let text = format!("the last {span:.0} s, {per_column} per column");
    frame.render_widget(Paragraph::new(Line::styled(text, FAINT)).right_aligned(), axis);
}

/// The intervals of each column, oldest first. Column borders are multiples of the column length
/// since the first interval of the run, so a column keeps its intervals as time passes.
fn columns(state: &LiveState, settings: ViewSettings, most: usize) -> Vec<Vec<&Cells>> {
    let intervals: Vec<&Cells> = state
        .intervals
        .iter()
        .filter_map(|interval| interval.response_cells.as_ref())
        .collect();
    let length = settings.intervals_per_column();
    // The oldest column may have lost its first intervals.
    let left = (length - state.earlier_intervals % length) % length;
    let (oldest, others) = intervals.split_at(left.min(intervals.len()));
    let chunks: Vec<Vec<&Cells>> = [oldest]
        .into_iter()
        .filter(|oldest| !oldest.is_empty())
        .chain(others.chunks(length))
        .map(<[_]>::to_vec)
        .collect();
    let first = chunks.len().saturating_sub(most);
    chunks.into_iter().skip(first).collect()
}

fn keys(settings: ViewSettings) -> Paragraph<'static> {
    let pause = if settings.is_paused { "go on" } else { "pause" };
    let end = if settings.is_stopping {
        "end at once"
    } else {
        "end with the report"
    };
    let pairs = [
        ("?", "help"),
        ("p", pause),
        ("+ -", "time"),
        ("s", "scale of colours"),
        ("q", end),
    ];
    let spans = pairs
        .into_iter()
        .flat_map(|(key, what)| [Span::styled(key, STRONG), Span::styled(format!(" {what}   "), FAINT)]);
    Paragraph::new(Line::from(spans.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests;
