//! The help of the live view (`?`): the keys, and the meaning of the figures.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// A name and its explanation; an empty name marks a heading.
const TEXT: &[(&str, &str)] = &[
    ("", "Keys"),
    ("q, Ctrl-C", "stop sending, read back, report; twice: end at once"),
    ("p, space", "freeze the picture; the run goes on"),
    ("+ -", "less or more time in each column of the heat map"),
    ("s", "colours by share of the whole map, or of each column"),
    ("?, Esc", "open and close this help"),
    ("", "Figures"),
    (
        "held, now",
        "samples accepted per second: since the start, last interval",
    ),
    ("stalest", "age of the newest sample that a query would return"),
    ("response", "from when an operation was due until it was done"),
    ("service", "from when it was started until it was done"),
    ("lag", "from when it was due until it was started"),
    ("-", "fewer than ten operations lie beyond that quantile"),
    ("shed", "due and never sent, because the target was unreachable"),
    ("unknown", "sent, and no answer came"),
];

/// Width of the names.
const NAMES: usize = 11;

/// Draws the help over the centre of the view.
pub(super) fn overlay(frame: &mut Frame<'_>) {
    let lines: Vec<Line<'_>> = TEXT.iter().map(|&(name, what)| line(name, what)).collect();
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 4;
    let area = middle(frame.area(), width, lines.len() as u16 + 2);
    frame.render_widget(Clear, area);
    let block = Block::bordered()
        .title(" Help ")
        .title_bottom(Line::from(" ? or Esc closes ").right_aligned());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [text] = Layout::horizontal([Constraint::Min(0)])
        .horizontal_margin(1)
        .areas(inner);
    frame.render_widget(Paragraph::new(lines), text);
}

fn line(name: &'static str, what: &'static str) -> Line<'static> {
    if name.is_empty() {
        return Line::styled(what, STRONG);
    }
    Line::from(vec![Span::styled(format!("  {name:<NAMES$}"), STRONG), Span::raw(what)])
}

fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let [area] = Layout::horizontal([Constraint::Length(width)])
        .flex(Flex::Center)
        .areas(area);
    let [area] = Layout::vertical([Constraint::Length(height)])
        .flex(Flex::Center)
        .areas(area);
    area
}
