//! Text tables for a terminal: columns padded to their widest cell.

/// Rows of cells below a heading; the first column is set left, the others as told.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// A table with these headings; a heading that starts with `>` sets its column right.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let right = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let heading = headings
            .iter()
            .map(|heading| heading.trim_start_matches('>').to_owned());
        Self {
            rows: vec![heading.collect()],
            right,
        }
    }

    /// Appends a row; missing cells are empty.
    pub(crate) fn row(&mut self, cells: &[&str]) {
        self.rows.push(cells.iter().map(|&cell| cell.to_owned()).collect());
    }

    /// The table as lines, without spaces at their ends.
    pub(crate) fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, &width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                let cell = if self.right[column] {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                };
                line.push_str(if column == 0 { "" } else { "  " });
                line.push_str(&cell);
            }
            text.push_str(line.trim_end());
            text.push('\n');
            if index == 0 {
                let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
                text.push_str(&rule.join("  "));
                text.push('\n');
            }
        }
        text
    }

    /// The table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells: Vec<&str> = cells.collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            text.push_str(&line(&mut row.iter().map(String::as_str)));
            if index == 0 {
                text.push_str(&line(
                    &mut self.right.iter().map(|&right| if right { "---:" } else { "---" }),
                ));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["step", ">seconds", "note"]);
        table.row(&["fmt", "1.5", ""]);
        table.row(&["tests", "120.0", "312 passed"]);
        let expected = "\
step   seconds  note
-----  -------  ----------
fmt        1.5
tests    120.0  312 passed
";
        assert_eq!(table.render(), expected);
        let expected = "\
| step | seconds | note |
| --- | ---: | --- |
| fmt | 1.5 |  |
| tests | 120.0 | 312 passed |
";
        assert_eq!(table.markdown(), expected);
    }
}
