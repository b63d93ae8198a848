//! Extracts the failed tests and their messages from the output of test programs.

use std::fmt;

/// Lines kept of what one test said.
const MAX_LINES: usize = 25;

/// Tests that failed, in the order in which they were named.
#[derive(Debug, Default)]
pub(super) struct Failures {
    names: Vec<String>,
    /// Lines of the tests' own words, under a heading each.
    said: Vec<String>,
    /// Lines that the test which is speaking may still add; none while nobody speaks.
    left: usize,
}

impl Failures {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Takes a line of the standard output of a program made with libtest or libtest-mimic.
    pub(super) fn add(&mut self, line: &str) {
        let result = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
        if let Some((name, "FAILED")) = result {
            self.names.push(name.trim().to_owned());
        } else if line.starts_with("---- ") {
            self.said.push(line.to_owned());
            self.left = MAX_LINES;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.left = 0;
        } else if self.left > 0 && !line.trim().is_empty() {
            self.said.push(line.to_owned());
            self.left -= 1;
        }
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.names.len(), self.names.join(", "))?;
        self.said.iter().try_for_each(|line| write!(f, "\n{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 3 tests
test keys::bounded ... ok
test keys::named ... FAILED
test wire::ignored ... ignored, needs a daemon

failures:

---- keys::named stdout ----

thread 'keys::named' panicked at src/keys.rs:7:5:
left: 1, right: 2


failures:
    keys::named

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out
";

    #[test]
    fn a_test_that_failed_is_named_with_its_words() {
        let mut failures = Failures::default();
        OUTPUT.lines().for_each(|line| failures.add(line));
        let expected = "\
1 failed: keys::named
---- keys::named stdout ----
thread 'keys::named' panicked at src/keys.rs:7:5:
left: 1, right: 2";
        assert_eq!(failures.to_string(), expected);
    }

    #[test]
    fn a_test_that_says_too_much_is_cut() {
        let mut failures = Failures::default();
        failures.add("test loud ... FAILED");
        failures.add("---- loud stdout ----");
        (0..1000).for_each(|number| failures.add(&number.to_string()));
        assert_eq!(failures.to_string().lines().count(), 2 + MAX_LINES);
    }

    #[test]
    fn all_that_passed_leaves_nothing() {
        let mut failures = Failures::default();
        failures.add("test keys::named - should panic ... ok");
        failures.add("test result: ok. 1 passed; 0 failed");
        assert!(failures.is_empty());
    }
}
