//! What a terminal shows, as a grid of characters with colours, and as an SVG picture.
//!
//! It reads what `tmux capture-pane -e` prints: text and SGR sequences (ECMA-48, 8.3.117),
//! nothing that moves a cursor. Blocks are drawn as rectangles, so that they meet.
//!
//! `anstyle-svg` (0.1.12) would take its place, but draws our screens wrong: blocks and grounds are
//! characters of the viewer's font, so the rows of a heat map have gaps and nothing holds the
//! columns of a line in place; a `<` on a ground is as wide as its escape, `&lt;`, which moves the
//! ground of all that follows; and bold does not end at `22`. It has no film of several screens.

use std::fmt::Write;

/// Width and height of a character, in pixels.
const CELL: (f64, f64) = (8.0, 17.0);

/// A character as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    symbol: char,
    ink: u32,
    ground: Option<u32>,
    is_bold: bool,
}

/// The colours of text and ground where nothing else is said.
const INK: u32 = 0x00d6_dae0;
const GROUND: u32 = 0x0015_181c;

const BLANK: Cell = Cell {
    symbol: ' ',
    ink: INK,
    ground: None,
    is_bold: false,
};

/// The lines of a screen.
pub(super) fn parse(text: &str) -> Vec<Vec<Cell>> {
    let mut style = BLANK;
    text.lines().map(|line| cells(line, &mut style)).collect()
}

fn cells(line: &str, style: &mut Cell) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\u{1b}[") {
            let end = sequence
                .find(|c: char| c.is_ascii_alphabetic())
                .unwrap_or(sequence.len());
            apply(sequence.get(..end).unwrap_or_default(), style);
            rest = sequence.get(end + 1..).unwrap_or_default();
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if !c.is_control() {
            cells.push(Cell { symbol: c, ..*style });
        }
    }
    cells
}

fn apply(sequence: &str, style: &mut Cell) {
    let mut codes = sequence.split([';', ':']).map(|code| code.parse::<u32>().unwrap_or(0));
    while let Some(code) = codes.next() {
        match code {
            0 => *style = BLANK,
            1 => style.is_bold = true,
            22 => style.is_bold = false,
            30..=37 => style.ink = indexed(code - 30),
            38 => style.ink = extended(&mut codes).unwrap_or(INK),
            39 => style.ink = INK,
            40..=47 => style.ground = Some(indexed(code - 40)),
            48 => style.ground = extended(&mut codes),
            49 => style.ground = None,
            90..=97 => style.ink = indexed(code - 82),
            _ => {}
        }
    }
}

fn extended(codes: &mut impl Iterator<Item = u32>) -> Option<u32> {
    match codes.next()? {
        5 => Some(indexed(codes.next()?)),
        2 => Some(codes.next()? << 16 | codes.next()? << 8 | codes.next()?),
        _ => None,
    }
}

/// The 256 colours of xterm.
fn indexed(index: u32) -> u32 {
    const NAMED: [u32; 16] = [
        0x0015_181c,
        0x00ff_8b82,
        0x0056_d194,
        0x00e3_b341,
        0x006c_b6ff,
        0x00d2_a8ff,
        0x0056_c8d1,
        0x00d6_dae0,
        0x007d_8590,
        0x00ff_8b82,
        0x0056_d194,
        0x00e3_b341,
        0x006c_b6ff,
        0x00d2_a8ff,
        0x0056_c8d1,
        0x00ff_ffff,
    ];
    let level = |step: u32| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..16 => NAMED[index as usize],
        16..232 => {
            let cube = index - 16;
            level(cube / 36) << 16 | level(cube / 6 % 6) << 8 | level(cube % 6)
        }
        _ => (8 + 10 * (index.min(255) - 232)) * 0x0001_0101,
    }
}

/// One screen as a picture, or several as a film of a second each.
pub(super) fn svg(screens: &[Vec<Vec<Cell>>], columns: usize, lines: usize) -> String {
    let (width, height) = (columns as f64 * CELL.0 + 16.0, lines as f64 * CELL.1 + 16.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" font-family=\"ui-monospace,DejaVu Sans Mono,Consolas,monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#{GROUND:06x}\"/>\n"
    );
    let frames = screens.len();
    if frames > 1 {
        let share = 100.0 / frames as f64;
        let _ = writeln!(
            out,
            "<style>g.f{{visibility:hidden;animation:f {frames}s steps(1) infinite}}@keyframes f{{0%{{visibility:visible}}{share:.3}%{{visibility:hidden}}}}</style>"
        );
    }
    for (index, screen) in screens.iter().enumerate() {
        let attributes = if frames > 1 {
            format!(" class=\"f\" style=\"animation-delay:{index}s\"")
        } else {
            String::new()
        };
        let _ = writeln!(out, "<g transform=\"translate(8 8)\"{attributes}>");
        for (line, cells) in screen.iter().enumerate() {
            draw_line(line, cells, &mut out);
        }
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

fn draw_line(line: usize, cells: &[Cell], out: &mut String) {
    let top = line as f64 * CELL.1;
    let mut start = 0;
    for run in cells.chunk_by(|a, b| is_block(a.symbol) == is_block(b.symbol) && same_look(*a, *b)) {
        let (x, width) = (start as f64 * CELL.0, run.len() as f64 * CELL.0);
        start += run.len();
        let look = run[0];
        if let Some(ground) = look.ground {
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{}\" fill=\"#{ground:06x}\"/>",
                CELL.1
            );
        }
        if is_block(look.symbol) {
            blocks(x, top, run, out);
        } else if run.iter().any(|cell| cell.symbol != ' ') {
            words(x, top, run, out);
        }
    }
}

fn same_look(a: Cell, b: Cell) -> bool {
    (a.ink, a.ground, a.is_bold) == (b.ink, b.ground, b.is_bold)
}

/// Where a block character is filled: from and to, in eighths from the top.
fn block(symbol: char) -> Option<(u32, u32)> {
    match symbol {
        '\u{2580}' => Some((0, 4)),
        '\u{2581}'..='\u{2588}' => Some((8 - (symbol as u32 - 0x2580), 8)),
        _ => None,
    }
}

fn is_block(symbol: char) -> bool {
    block(symbol).is_some()
}

fn blocks(x: f64, top: f64, run: &[Cell], out: &mut String) {
    let mut start = x;
    for same in run.chunk_by(|a, b| a.symbol == b.symbol) {
        let width = same.len() as f64 * CELL.0;
        if let Some((from, to)) = block(same[0].symbol) {
            let eighth = CELL.1 / 8.0;
            let _ = writeln!(
                out,
                "<rect x=\"{start}\" y=\"{:.2}\" width=\"{width}\" height=\"{:.2}\" fill=\"#{:06x}\"/>",
                top + f64::from(from) * eighth,
                f64::from(to - from) * eighth,
                same[0].ink
            );
        }
        start += width;
    }
}

fn words(x: f64, top: f64, run: &[Cell], out: &mut String) {
    let text: String = run.iter().map(|cell| cell.symbol).collect();
    let skipped = text.len() - text.trim_start().len();
    let text = text.trim();
    let bold = if run[0].is_bold { " font-weight=\"700\"" } else { "" };
    let _ = write!(
        out,
        "<text x=\"{}\" y=\"{}\" textLength=\"{}\" xml:space=\"preserve\" fill=\"#{:06x}\"{bold}>",
        x + skipped as f64 * CELL.0,
        top + 13.0,
        text.chars().count() as f64 * CELL.0,
        run[0].ink
    );
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            c => out.push(c),
        }
    }
    out.push_str("</text>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_bold_are_read_and_end_where_they_end() {
        let lines = parse("a\u{1b}[1;38;5;31mb\u{1b}[48;2;1;2;3mc\u{1b}[0md\n\u{1b}[90me");
        let looks: Vec<(char, u32, Option<u32>, bool)> = lines[0]
            .iter()
            .map(|cell| (cell.symbol, cell.ink, cell.ground, cell.is_bold))
            .collect();
        assert_eq!(
            looks,
            [
                ('a', INK, None, false),
                ('b', 0x0000_87af, None, true),
                ('c', 0x0000_87af, Some(0x0001_0203), true),
                ('d', INK, None, false),
            ]
        );
        assert_eq!(lines[1][0].ink, 0x007d_8590);
        assert_eq!(parse("\u{1b}[31").len(), 1);
    }

    #[test]
    fn a_picture_has_the_words_and_the_blocks() {
        let picture = svg(&[parse("a <b>\u{2580}\u{2588}")], 10, 1);
        assert!(picture.contains(">a &lt;b></text>"), "{picture}");
        assert_eq!(picture.matches("<rect").count(), 3);
        assert!(!picture.contains("animation"));
        assert!(svg(&[parse("a"), parse("b")], 10, 1).contains("animation-delay:1s"));
    }
}
