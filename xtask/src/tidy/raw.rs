//! Rules about code that the compiler cannot check. The rule that bounds its number of modules
//! is among the others.

use super::rules::has_word;
use super::source::Tree;
use super::{Finding, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "raw memory",
        why: "two &mut to one byte, or one to a byte that another process may change, are undefined behaviour even where nothing reads through them: such memory is named by raw pointers, and lists of it by iovec",
        check: mutable_slices,
    },
    Rule {
        name: "sanitized",
        why: "cargo xtask sanitize runs every module with unsafe under the address sanitizer; one that it does not name is never looked at",
        check: sanitized,
    },
];

/// What makes a `&mut` slice of an address.
const MAKER: &str = "from_raw_parts_mut";

fn mutable_slices(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.rust() {
        for (index, line) in file.lines.iter().enumerate() {
            if has_word(&line.code, MAKER) {
                found.push(Finding::new(&file.path, index + 1, MAKER));
            }
        }
    }
}

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

    /// As the engine of RRD files once wrote through a mapping.
    #[test]
    fn a_mutable_slice_of_mapped_memory_is_found() {
        let text = "*slice = IoSliceMut::new(unsafe { std::slice::from_raw_parts_mut(place, length) });\n";
        let found = findings(RULES, "raw memory", "crates/tsb-rrd/src/system.rs", text);
        assert_eq!(found, ["1: from_raw_parts_mut"]);
        let text = "let bytes = unsafe { std::slice::from_raw_parts(data, length) };\n";
        assert!(findings(RULES, "raw memory", "crates/tsb-rrd/src/system.rs", text).is_empty());
    }

    #[test]
    fn a_module_with_unsafe_that_is_not_sanitized_is_found() {
        let text = "unsafe { f() }\n";
        let found = findings(RULES, "sanitized", "crates/tsb-core/src/other.rs", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(findings(RULES, "sanitized", "crates/tsb-rrd/src/system.rs", text).is_empty());
    }
}
