//! Rules about code that the compiler cannot check. The rule that bounds its number of modules
//! is among the others.

use super::rules::has_word;
use super::source::Tree;
use super::{Finding, Rule};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "sanitized",
    why: "cargo xtask sanitize runs every module with unsafe under the address sanitizer; one that it does not name is never looked at",
    check: sanitized,
}];

/// No lint knows the list of the jobs.
fn sanitized(tree: &Tree, found: &mut Vec<Finding>) {
    let covered = crate::sanitize::covered();
    for file in tree.rust().filter(|file| !covered.contains(file.path.as_str())) {
        let mut lines = file.lines.iter().enumerate();
        if let Some((index, _)) = lines.find(|(_, line)| has_word(&line.code, "unsafe")) {
            let what = "no job of xtask/src/sanitize.rs covers this file";
            found.push(Finding::new(&file.path, index + 1, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::findings;

    #[test]
    fn a_module_with_unsafe_that_is_not_sanitized_is_found() {
        let text = "unsafe { f() }\n";
        let found = findings(RULES, "sanitized", "crates/tsb-core/src/other.rs", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(findings(RULES, "sanitized", "crates/tsb-rrd/src/system.rs", text).is_empty());
    }
}
