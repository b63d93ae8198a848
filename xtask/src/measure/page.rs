//! docs/measurements.md: replaces the block of one section, and keeps every other line.
//!
//! All figures of the page are of one machine, which its first block names. A block stands
//! between two comments, `<!-- measured: NAME -->` and `<!-- end -->`; the words around it are
//! written by hand.

use anyhow::{Context, Result, bail};

/// The block that names the machine.
pub(super) const MACHINE: &str = "machine";

/// The text with the block of `name` replaced by `block`.
pub(super) fn replace(text: &str, name: &str, block: &str) -> Result<String> {
    let (start, end) = bounds(text, name)?;
    Ok(format!("{}{}\n{}", &text[..start], block.trim_end(), &text[end..]))
}

/// The block of `name`.
pub(super) fn block<'a>(text: &'a str, name: &str) -> Result<&'a str> {
    let (start, end) = bounds(text, name)?;
    Ok(&text[start..end])
}

fn bounds(text: &str, name: &str) -> Result<(usize, usize)> {
    let sign = format!("<!-- measured: {name} -->\n");
    let at = text.find(&sign);
    let start = at.with_context(|| format!("the page has no block {name}"))? + sign.len();
    let length = text[start..].find("<!-- end -->");
    let end = start + length.with_context(|| format!("the block {name} has no end"))?;
    if text[start..end].contains("<!--") {
        bail!("the block {name} has no end of its own");
    }
    Ok((start, end))
}

/// What stands in a section that was not measured on the page's machine.
pub(super) fn unmeasured(name: &str) -> String {
    format!("Not measured on this machine yet: `cargo xtask measure {name}`.\n")
}

/// The line of a record that names the processor, on which figures depend most.
pub(super) fn processor(record: &str) -> Option<&str> {
    record.lines().find(|line| line.starts_with("processor: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "a\n<!-- measured: x -->\nold\n<!-- end -->\nb\n<!-- measured: y -->\n<!-- end -->\n";

    #[test]
    fn only_the_named_block_changes() {
        let page = replace(PAGE, "x", "new\n\n").expect("x is there");
        assert_eq!(page, PAGE.replace("old", "new"));
        assert_eq!(block(&page, "x").expect("x is there"), "new\n");
        assert_eq!(
            replace(PAGE, "y", "new").expect("y is there").matches("new\n").count(),
            1
        );
        assert!(replace(PAGE, "z", "new").is_err());
        assert!(block("<!-- measured: x -->\nold\n", "x").is_err());
        assert!(block("<!-- measured: x -->\n<!-- measured: y -->\n<!-- end -->\n", "x").is_err());
    }

    #[test]
    fn the_processor_of_a_record_is_found() {
        assert_eq!(processor("commit: a\nprocessor: 2 of B\n"), Some("processor: 2 of B"));
        assert_eq!(processor("commit: a\n"), None);
    }
}
