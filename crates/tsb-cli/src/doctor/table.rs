//! Formats findings as text for a terminal.

use super::{Level, MachineFinding};
use crate::render::lines::Lines;

/// One line per finding, its advice below it, and counts at the end; wrapped at the width of the
/// terminal.
pub fn table(findings: &[MachineFinding], width: Option<usize>) -> String {
    let names = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
    let column = names + 8;
    let mut lines = Lines::new(width);
    for finding in findings {
        let start = format!("{:<4}  {:<names$}  ", finding.level.name(), finding.name);
        lines.hang(&start, &finding.value, column);
        if let Some(advice) = &finding.advice {
            let start = " ".repeat(column);
            lines.hang(&start, &format!("why: {}", finding.meaning), column + 5);
            lines.hang(&start, &format!("do: {advice}"), column + 4);
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    lines.raw(format!(
        "{} ok, {} to know about, {} that spoil a measurement",
        count(Level::Ok),
        count(Level::Warn),
        count(Level::Bad)
    ));
    lines.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_follows_its_finding() {
        let findings = [
            MachineFinding::ok("cores", "2 of x", "meaning"),
            MachineFinding::ok("build", "debug", "it is slow").advise(Level::Bad, "build with --release"),
        ];
        let expected = "\
ok    cores  2 of x
bad   build  debug
             why: it is slow
             do: build with --release
1 ok, 0 to know about, 1 that spoil a measurement
";
        assert_eq!(table(&findings, None), expected);
    }
}
