//! What stands on a terminal after a program has drawn on it: as much of ECMA-48 as the live
//! view uses, which is to put the cursor somewhere, to erase, and to write.

/// Characters by row and column.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// Bytes of a sequence or a character that is not complete yet.
    begun: Vec<u8>,
}

impl Screen {
    /// Takes what the program wrote.
    pub(crate) fn draw(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.begun);
        let mut rest = bytes.as_slice();
        while let Some(taken) = self.take(rest) {
            rest = &rest[taken..];
        }
        self.begun = rest.to_vec();
    }

    /// Every row, without blanks at its end.
    pub(crate) fn text(&self) -> String {
        let rows = self.rows.iter().map(|row| row.iter().collect::<String>());
        rows.map(|row| row.trim_end().to_owned() + "\n").collect()
    }

    /// Takes one character or sequence: its bytes; `None` where it is not complete.
    fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        match *bytes.first()? {
            0x1b => self.sequence(bytes),
            b'\r' => {
                self.column = 0;
                Some(1)
            }
            b'\n' => {
                self.row += 1;
                Some(1)
            }
            first => {
                let length = match first {
                    0xf0.. => 4,
                    0xe0.. => 3,
                    0xc0.. => 2,
                    _ => 1,
                };
                let text = std::str::from_utf8(bytes.get(..length)?).unwrap_or("?");
                text.chars().for_each(|c| self.put(c));
                Some(length)
            }
        }
    }

    fn sequence(&mut self, bytes: &[u8]) -> Option<usize> {
        if *bytes.get(1)? != b'[' {
            return Some(2);
        }
        let length = 2 + bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte))?;
        let parameters = String::from_utf8_lossy(&bytes[2..length]).into_owned();
        match bytes[length] {
            b'H' => {
                let mut numbers = parameters.split(';').map(|number| number.parse().unwrap_or(1));
                self.row = numbers.next().unwrap_or(1_usize) - 1;
                self.column = numbers.next().unwrap_or(1) - 1;
            }
            b'J' => self.rows.clear(),
            _ => {}
        }
        Some(length + 1)
    }

    fn put(&mut self, c: char) {
        if self.rows.len() <= self.row {
            self.rows.resize(self.row + 1, Vec::new());
        }
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = c;
        self.column += 1;
    }
}
