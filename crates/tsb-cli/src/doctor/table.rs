//! Findings as text for a terminal.

use super::{Finding, Level};

/// One line a finding, the advice below it where there is some, a count at the end.
pub fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for finding in findings {
        lines.push(format!(
            "{:<4}  {:<width$}  {}",
            finding.level.name(),
            finding.name,
            finding.value
        ));
        if let Some(advice) = &finding.advice {
            lines.push(format!("      {:<width$}  why: {}", "", finding.meaning));
            lines.push(format!("      {:<width$}  do: {advice}", ""));
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    lines.push(format!(
        "{} ok, {} to know about, {} that spoil a measurement",
        count(Level::Ok),
        count(Level::Warn),
        count(Level::Bad)
    ));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_follows_its_finding() {
        let findings = [
            Finding::ok("cores", "2 of x", "meaning"),
            Finding::ok("build", "debug", "it is slow").advise(Level::Bad, "build with --release"),
        ];
        let expected = "\
ok    cores  2 of x
bad   build  debug
             why: it is slow
             do: build with --release
1 ok, 0 to know about, 1 that spoil a measurement
";
        assert_eq!(table(&findings), expected);
    }
}
