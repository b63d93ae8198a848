//! Draws the heat map of response times as characters: each line of text shows two rows of
//! cells.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::Widget;
use tsb_core::latency::{CELLS, Cells, cell_highest};

use tsb_run::units::nanos;

/// Width of the labels at the left.
const LABELS: u16 = 8;

/// Colours from few to many operations, from the 256 that terminals share; readable on dark and
/// light backgrounds.
const RAMP: [u8; 9] = [24, 25, 31, 37, 72, 107, 143, 179, 221];

const UPPER_HALF: &str = "\u{2580}";

/// The heat map, newest column at the right.
pub(super) struct HeatMap<'a> {
    /// One or more reporting intervals per column.
    pub columns: &'a [Vec<&'a Cells>],
    /// Width of a column, in characters.
    pub wide: usize,
    /// Whether colours show the share of the column, rather than of the fullest cell.
    pub is_by_column: bool,
}

/// Number of columns that fit into a width.
pub(super) const fn columns_in(width: u16) -> usize {
    width.saturating_sub(LABELS) as usize
}

impl Widget for HeatMap<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let cells = || {
            self.columns
                .iter()
                .flatten()
                .flat_map(|cells| cells.iter())
                .map(|(cell, _)| cell)
        };
        let (Some(low), Some(high)) = (cells().min(), cells().max()) else {
            buffer.set_string(
                area.x,
                area.y,
                "no response times yet",
                Style::new().fg(Color::DarkGray),
            );
            return;
        };
        let grid = Grid::new(low, high.min(CELLS - 1), usize::from(area.height) * 2);
        grid.label(area, buffer);
        let sums: Vec<Vec<u64>> = self.columns.iter().map(|column| grid.sums(column)).collect();
        let fullest = sums.iter().flatten().copied().max().unwrap_or(0);
        let wide = self.wide.max(1);
        let start = area.x + LABELS + columns_in(area.width).saturating_sub(sums.len() * wide) as u16;
        let columns = sums.iter().flat_map(|column| std::iter::repeat_n(column, wide));
        for (x, column) in (start..area.right()).zip(columns) {
            let whole = if self.is_by_column {
                column.iter().sum()
            } else {
                fullest
            };
            for line in 0..usize::from(area.height) {
                let half = |index: usize| column.get(index).and_then(|&count| colour(count, whole));
                let (upper, lower) = (half(line * 2), half(line * 2 + 1));
                let Some(spot) = buffer.cell_mut((x, area.y + line as u16)) else {
                    continue;
                };
                match (upper, lower) {
                    (None, None) => {}
                    (None, Some(lower)) => drop(spot.set_symbol("\u{2584}").set_fg(lower)),
                    (Some(upper), None) => drop(spot.set_symbol(UPPER_HALF).set_fg(upper)),
                    (Some(upper), Some(lower)) => drop(spot.set_symbol(UPPER_HALF).set_fg(upper).set_bg(lower)),
                }
            }
        }
    }
}

/// The colour for a count: each step doubles the share.
fn colour(count: u64, whole: u64) -> Option<Color> {
    if count == 0 || whole == 0 {
        return None;
    }
    let doublings = (whole as f64 / count as f64).log2().round() as usize;
    let index = (RAMP.len() - 1).saturating_sub(doublings);
    Some(Color::Indexed(RAMP[index]))
}

/// Assigns cells to rows; row 0 is the top and slowest. With more rows than cells, a cell covers
/// several rows.
struct Grid {
    low: usize,
    cells: usize,
    rows: usize,
}

impl Grid {
    fn new(low: usize, high: usize, rows: usize) -> Self {
        Self {
            low,
            cells: high.saturating_sub(low) + 1,
            rows: rows.max(1),
        }
    }

    /// The cells of a row, counted from `low`.
    fn cells(&self, row: usize) -> std::ops::Range<usize> {
        let from_below = self.rows - 1 - row;
        let start = from_below * self.cells / self.rows;
        start..((from_below + 1) * self.cells / self.rows).max(start + 1)
    }

    fn sums(&self, column: &[&Cells]) -> Vec<u64> {
        let mut counts = vec![0; self.cells];
        for (cell, count) in column.iter().flat_map(|cells| cells.iter()) {
            if let Some(sum) = cell.checked_sub(self.low).and_then(|cell| counts.get_mut(cell)) {
                *sum += count;
            }
        }
        let sum = |row| counts.get(self.cells(row)).map_or(0, |counts| counts.iter().sum());
        (0..self.rows).map(sum).collect()
    }

    /// Draws the slowest time of every fourth line beside it.
    fn label(&self, area: Rect, buffer: &mut Buffer) {
        for line in (0..area.height).step_by(4) {
            let cell = self.low + self.cells(usize::from(line) * 2).end - 1;
            let text = nanos(cell_highest(cell));
            buffer.set_string(
                area.x,
                area.y + line,
                format!("{text:>7}"),
                Style::new().fg(Color::DarkGray),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(first: usize, counts: &[u64]) -> Cells {
        Cells {
            first,
            counts: counts.to_vec(),
        }
    }

    #[test]
    fn slow_is_above_and_many_is_bright() {
        let (old, new) = (cells(100, &[8, 0, 1]), cells(100, &[0, 0, 0, 9]));
        let area = Rect::new(0, 0, 12, 2);
        let mut buffer = Buffer::empty(area);
        let columns = vec![vec![&old], vec![&new]];
        let heat = HeatMap {
            columns: &columns,
            wide: 1,
            is_by_column: true,
        };
        heat.render(area, &mut buffer);
        // Four rows of one cell each: cell 103 on top, at the right.
        let spot = |x, y| buffer.cell((x, y)).unwrap();
        assert_eq!(
            (spot(11, 0).symbol(), spot(11, 0).fg),
            (UPPER_HALF, Color::Indexed(221))
        );
        assert_eq!(
            (spot(10, 1).symbol(), spot(10, 1).fg),
            ("\u{2584}", Color::Indexed(221))
        );
        assert_eq!(
            (spot(10, 0).symbol(), spot(10, 0).fg),
            ("\u{2584}", Color::Indexed(107))
        );
        assert_eq!(spot(9, 0).symbol(), " ");
    }

    #[test]
    fn nothing_and_damaged_cells_are_drawn_without_a_panic() {
        for columns in [
            vec![],
            vec![cells(CELLS - 1, &[1, 1, 1])],
            vec![cells(0, &[1]), cells(CELLS - 1, &[1])],
        ] {
            for (width, height) in [(0, 0), (3, 1), (80, 10)] {
                let area = Rect::new(0, 0, width, height);
                let mut buffer = Buffer::empty(area);
                let columns: Vec<Vec<&Cells>> = columns.iter().map(|cells| vec![cells]).collect();
                let heat = HeatMap {
                    columns: &columns,
                    wide: 1,
                    is_by_column: false,
                };
                heat.render(area, &mut buffer);
                assert_eq!(buffer.area, area);
            }
        }
    }
}
