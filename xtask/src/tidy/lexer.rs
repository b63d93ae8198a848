//! Enough of a Rust lexer for text rules: which bytes are code, and which lines are tests.
//!
//! It is not a parser. Comments and the contents of literals are blanked in the code
//! view, so that a rule which looks for a word does not find it in a sentence.

/// One line of a Rust file, in two views.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The line without comments, string and character contents blanked.
    pub(super) code: String,
    /// The text of comments on the line, without the slashes.
    pub(super) comment: String,
    /// Whether the line belongs to a `#[cfg(test)]` item.
    pub(super) is_test: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    // How deep block comments are nested. in [1, ..)
    BlockComment(u32),
    Text,
    // How many `#` close the raw string.
    RawText(usize),
}

/// Splits a file into lines of code and comment.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut state = State::Code;
    let mut lines = Vec::new();
    for raw in text.lines() {
        let mut line = Line::default();
        let chars: Vec<char> = raw.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            at += match state {
                State::Code => step_code(&chars, at, &mut state, &mut line),
                State::LineComment => {
                    line.comment.extend(&chars[at..]);
                    chars.len() - at
                }
                State::BlockComment(depth) => step_block(&chars, at, depth, &mut state, &mut line),
                State::Text => step_text(&chars, at, &mut state, &mut line),
                State::RawText(hashes) => step_raw(&chars, at, hashes, &mut state, &mut line),
            };
        }
        if state == State::LineComment {
            state = State::Code;
        }
        lines.push(line);
    }
    mark_tests(&mut lines);
    lines
}

fn starts(chars: &[char], at: usize, what: &str) -> bool {
    what.chars()
        .enumerate()
        .all(|(offset, c)| chars.get(at + offset) == Some(&c))
}

fn step_code(chars: &[char], at: usize, state: &mut State, line: &mut Line) -> usize {
    if starts(chars, at, "//") {
        *state = State::LineComment;
        return 2;
    }
    if starts(chars, at, "/*") {
        *state = State::BlockComment(1);
        return 2;
    }
    let word_before = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if chars[at] == 'r' && (!word_before || chars[at - 1] == 'b') {
        let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
        if chars.get(at + 1 + hashes) == Some(&'"') {
            *state = State::RawText(hashes);
            line.code.push_str("r\"");
            return hashes + 2;
        }
    }
    if chars[at] == '"' {
        *state = State::Text;
        line.code.push('"');
        return 1;
    }
    if chars[at] == '\'' {
        return step_quote(chars, at, line);
    }
    line.code.push(chars[at]);
    1
}

/// A character literal is blanked; the quote of a lifetime is code.
fn step_quote(chars: &[char], at: usize, line: &mut Line) -> usize {
    let escaped = chars.get(at + 1) == Some(&'\\');
    let from = if escaped { at + 3 } else { at + 2 };
    let is_literal = escaped || chars.get(at + 2) == Some(&'\'');
    let end = chars
        .iter()
        .skip(from)
        .position(|&c| c == '\'')
        .map(|offset| from + offset);
    if let (true, Some(end)) = (is_literal, end) {
        line.code.push_str("''");
        return end + 1 - at;
    }
    line.code.push('\'');
    1
}

fn step_block(chars: &[char], at: usize, depth: u32, state: &mut State, line: &mut Line) -> usize {
    if starts(chars, at, "*/") {
        *state = if depth == 1 {
            State::Code
        } else {
            State::BlockComment(depth - 1)
        };
        2
    } else if starts(chars, at, "/*") {
        *state = State::BlockComment(depth + 1);
        2
    } else {
        line.comment.push(chars[at]);
        1
    }
}

fn step_text(chars: &[char], at: usize, state: &mut State, line: &mut Line) -> usize {
    match chars[at] {
        '\\' => 2,
        '"' => {
            *state = State::Code;
            line.code.push('"');
            1
        }
        _ => 1,
    }
}

fn step_raw(chars: &[char], at: usize, hashes: usize, state: &mut State, line: &mut Line) -> usize {
    let closes = chars[at] == '"' && chars[at + 1..].iter().take_while(|&&c| c == '#').count() >= hashes;
    if closes {
        *state = State::Code;
        line.code.push('"');
        1 + hashes
    } else {
        1
    }
}

/// Marks what follows `#[cfg(test)]`: a braced item to its end, anything else to its `;`.
fn mark_tests(lines: &mut [Line]) {
    let mut at = 0;
    while at < lines.len() {
        if lines[at].code.trim_start().starts_with("#[cfg(test)]") {
            let end = item_end(lines, at).min(lines.len() - 1);
            for line in &mut lines[at..=end] {
                line.is_test = true;
            }
            at = end;
        }
        at += 1;
    }
}

/// The last line of the item that starts at or after line `from`: where its braces
/// close, or where it ends with a semicolon before any brace.
pub(super) fn item_end(lines: &[Line], from: usize) -> usize {
    let mut depth = 0_usize;
    // Parentheses and brackets hide semicolons: `[u8; 4]`.
    let mut nested = 0_usize;
    for (index, line) in lines.iter().enumerate().skip(from) {
        for c in line.code.chars() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return index;
                    }
                }
                '(' | '[' => nested += 1,
                ')' | ']' => nested = nested.saturating_sub(1),
                ';' if depth == 0 && nested == 0 => return index,
                _ => {}
            }
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        assert_eq!(code("let a = \"x // y\"; // z"), ["let a = \"\"; "]);
        assert_eq!(code("let a = r#\"un\"safe\"#; b"), ["let a = r\"\"; b"]);
        assert_eq!(code("a /* b /* c */ d */ e"), ["a  e"]);
        assert_eq!(code("a \"one\ntwo\" b"), ["a \"", "\" b"]);
        assert_eq!(lines("x // why")[0].comment, " why");
    }

    #[test]
    fn quotes_of_lifetimes_are_code_and_characters_are_not() {
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), ["fn f<'a>(x: &'a str) {}"]);
        assert_eq!(
            code("match c { '{' => 1, '\\'' => 2, '\"' => 3 }"),
            ["match c { '' => 1, '' => 2, '' => 3 }"]
        );
        assert_eq!(code("b'\\\\' + b'a'"), ["b'' + b''"]);
    }

    #[test]
    fn a_test_module_is_marked_to_its_last_brace() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\" }\n}\nfn c() {}\n";
        let marked: Vec<bool> = lines(text).iter().map(|line| line.is_test).collect();
        assert_eq!(marked, [false, true, true, true, true, false]);
        let text = "#[cfg(test)]\nmod tests;\nfn c() {}\n";
        let marked: Vec<bool> = lines(text).iter().map(|line| line.is_test).collect();
        assert_eq!(marked, [true, true, false]);
    }
}
