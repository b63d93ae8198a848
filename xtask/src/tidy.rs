//! The house rules that a program can check: `cargo xtask tidy`.
//!
//! Every rule carries its reason and prints it with the first finding. What a lint already checks
//! (printing, clocks, unbounded channels, stubs) is not repeated here.

mod house;
mod imports;
mod lexer;
mod listeners;
mod manifest;
mod names;
mod prose;
mod raw;
mod rules;
mod source;

use std::fmt;

use anyhow::{Result, bail};

use source::Tree;

/// One rule.
pub(crate) struct Rule {
    /// Its short name, as findings print it.
    name: &'static str,
    /// Why it is a rule: one sentence.
    why: &'static str,
    /// Finds what breaks it.
    check: fn(&Tree, &mut Vec<Finding>),
}

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    // Counted from 1; 0 is the whole file.
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Checks every rule on the files of this workspace.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::of_repository(&crate::shell::root())?;
    let (text, findings) = judge(&tree);
    print!("{text}");
    if findings > 0 {
        bail!("tidy: {findings} places break a rule");
    }
    Ok(())
}

fn all_rules() -> impl Iterator<Item = &'static Rule> {
    [
        rules::RULES,
        raw::RULES,
        prose::RULES,
        manifest::RULES,
        imports::RULES,
        listeners::RULES,
        names::RULES,
        house::RULES,
    ]
    .into_iter()
    .flatten()
}

/// What to print about a tree, and how many findings there are.
fn judge(tree: &Tree) -> (String, usize) {
    let mut lines = Vec::new();
    let mut total = 0;
    for rule in all_rules() {
        let mut findings = Vec::new();
        (rule.check)(tree, &mut findings);
        if findings.is_empty() {
            continue;
        }
        total += findings.len();
        lines.push(format!("\n{}: {}", rule.name, rule.why));
        lines.extend(findings.iter().map(|finding| format!("  {finding}")));
    }
    let files = tree.files.len();
    lines.push(format!(
        "tidy: {files} files, {} rules, {total} findings\n",
        all_rules().count()
    ));
    (lines.join("\n"), total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one rule finds in one file, as `line: what`.
    pub(super) fn findings(rules: &[Rule], name: &str, path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of_texts(&[(path, text)]);
        let rule = rules.iter().find(|rule| rule.name == name).expect("the rule exists");
        let mut found = Vec::new();
        (rule.check)(&tree, &mut found);
        found
            .into_iter()
            .map(|finding| format!("{}: {}", finding.line, finding.what))
            .collect()
    }

    #[test]
    fn every_rule_has_a_name_of_its_own_and_a_reason() {
        let rules: Vec<&Rule> = all_rules().collect();
        for rule in &rules {
            assert!(rule.why.len() > 40, "{} has no reason", rule.name);
            let same = rules.iter().filter(|other| other.name == rule.name).count();
            assert_eq!(same, 1, "{}", rule.name);
        }
    }

    #[test]
    fn a_finding_is_printed_with_its_place_and_the_reason() {
        let tree = Tree::of_texts(&[
            ("ARCHITECTURE.md", "## Code map\n| `crates/` | all |\n"),
            ("crates/tsb-core/src/x.rs", "fn x() {}\n"),
        ]);
        let (text, findings) = judge(&tree);
        assert_eq!(findings, 1, "{text}");
        assert!(text.contains("crates/tsb-core/src/x.rs:1"), "{text}");
        assert!(text.contains("what it is for"), "{text}");
    }
}
