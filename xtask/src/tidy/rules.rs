//! Rules about Rust files. What a lint sees as well is left to the lint; each rule says which comes
//! nearest, and what it misses.

use super::lexer::{Line, item_end};
use super::source::{Source, Tree};
use super::{Finding, Rule};

/// Lines of one file that are not tests. The house aims at 250.
const LINES_MAX: usize = 600;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "file head",
        why: "every file opens with //! that says what it is for and what it is not, so that the tree reads as a map",
        check: file_head,
    },
    Rule {
        name: "ascii",
        why: "source and manifests are ASCII, so that nothing in them looks like something else",
        check: ascii,
    },
    Rule {
        name: "file length",
        why: "a file of more than 600 lines without its tests holds more than one concept",
        check: file_length,
    },
    Rule {
        name: "tokio",
        why: "the async shell is tsb-core's net, tsb-cli and the clients of servers; anywhere else a blocking call could run on a runtime worker",
        check: runtime,
    },
    Rule {
        name: "environment",
        why: "environment variables and arguments belong to tsb-cli and xtask; a library that reads them cannot be embedded",
        check: environment,
    },
    Rule {
        name: "sleep",
        why: "no test sleeps: one that waits for time to pass fails on a busy machine",
        check: sleep,
    },
    Rule {
        name: "assertion",
        why: "a test that asserts nothing passes whatever the code does",
        check: assertion,
    },
    Rule {
        name: "unfinished",
        why: "what is not done is an issue, not a comment or an ignored test",
        check: unfinished,
    },
    Rule {
        name: "store trait",
        why: "Store has no default methods, so that a wrapper that forgets one does not compile",
        check: store_trait,
    },
    Rule {
        name: "global",
        why: "two runs can live in one process, so nothing that changes is global",
        check: global,
    },
    Rule {
        name: "unsafe",
        why: "unsafe lives in at most one module per crate, where its invariants are stated and tested against a safe twin",
        check: unsafe_modules,
    },
];

/// Whether `word` stands in `text` with no identifier character on either side.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Reports library lines outside `allowed` paths that contain one of `words`.
fn forbid(tree: &Tree, words: &[&str], allowed: impl Fn(&Source) -> bool, found: &mut Vec<Finding>) {
    for file in tree.rust().filter(|file| !allowed(file)) {
        for (number, line) in file.library_lines() {
            for &word in words.iter().filter(|&&word| has_word(&line.code, word)) {
                found.push(Finding::new(&file.path, number, word));
            }
        }
    }
}

/// Clippy's `missing_docs_in_private_items` asks for a head, too, but for every private item with it.
fn file_head(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.rust() {
        let first = file.text.lines().next().unwrap_or_default();
        if !first.starts_with("//! ") {
            found.push(Finding::new(&file.path, 1, "does not start with a //! head"));
        } else if first.len() > 120 {
            found.push(Finding::new(
                &file.path,
                1,
                "the first line of the head is longer than 120",
            ));
        }
    }
}

/// Clippy's `non_ascii_literal` and the compiler's `non_ascii_idents` see neither comments nor manifests.
fn ascii(tree: &Tree, found: &mut Vec<Finding>) {
    let files = tree.files.iter();
    for file in files.filter(|file| file.is_rust() || file.has_extension("toml")) {
        for (index, line) in file.text.lines().enumerate().filter(|(_, line)| !line.is_ascii()) {
            let odd = line.chars().find(|c| !c.is_ascii()).unwrap_or_default();
            found.push(Finding::new(
                &file.path,
                index + 1,
                format!("holds {}", odd.escape_unicode()),
            ));
        }
    }
}

/// Clippy counts the lines of functions, not of files.
fn file_length(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.rust().filter(|file| !file.is_test_file()) {
        let length = file.lines.iter().filter(|line| !line.is_test).count();
        if length > LINES_MAX {
            found.push(Finding::new(&file.path, 0, format!("{length} lines without tests")));
        }
    }
}

/// What speaks to servers by libraries that are asynchronous, behind the bridge.
const CLIENTS: &str = "crates/tsb-remote/src/";

/// Clippy's `disallowed_types` has no place where a type is allowed.
fn runtime(tree: &Tree, found: &mut Vec<Finding>) {
    let allowed = |file: &Source| {
        file.path.starts_with("crates/tsb-cli/")
            || file.path == "crates/tsb-core/src/net.rs"
            || file.path.starts_with("crates/tsb-core/src/net/")
            || file.path.starts_with(CLIENTS)
    };
    forbid(tree, &["tokio"], allowed, found);
}

fn may_read_environment(file: &Source) -> bool {
    file.path.starts_with("crates/tsb-cli/") || file.path.starts_with("xtask/")
}

/// Clippy's `disallowed_methods` has no place where a method is allowed, and tests, examples and
/// programs read the environment.
fn environment(tree: &Tree, found: &mut Vec<Finding>) {
    forbid(
        tree,
        &["std::env", "env::var", "env::args"],
        may_read_environment,
        found,
    );
}

/// Clippy's `disallowed_methods` finds sleeping threads anywhere; it cannot tell a test from a task,
/// which may pause on the runtime's timer.
fn sleep(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.rust() {
        for (index, line) in file.lines.iter().enumerate() {
            let is_test = line.is_test || file.is_test_file();
            if is_test && has_word(&line.code, "time::sleep") {
                found.push(Finding::new(&file.path, index + 1, "sleeps"));
            }
        }
    }
}

/// What counts as an assertion in the body of a function.
const ASSERTIONS: &[&str] = &["assert", "expect![", "expect_err(", "check(", "?;", "?)", "panic!"];

/// A function of a file: its name and the lines of its body.
struct Function<'a> {
    name: &'a str,
    body: &'a [Line],
}

impl Function<'_> {
    fn asserts(&self, helpers: &[&str]) -> bool {
        let by_itself =
            |line: &Line| ASSERTIONS.iter().any(|sign| line.code.contains(sign)) || line.code.trim_end().ends_with('?');
        let calls = |line: &Line, helper: &str| {
            has_word(&line.code, helper)
                && (line.code.contains(&format!("{helper}(")) || line.code.contains(&format!("{helper}::<")))
        };
        let mut lines = self.body.iter();
        lines.any(|line| by_itself(line) || helpers.iter().any(|helper| calls(line, helper)))
    }
}

/// The functions of a file, nested ones too.
fn functions(lines: &[Line]) -> Vec<Function<'_>> {
    let starts = lines.iter().enumerate().filter(|(_, line)| has_word(&line.code, "fn"));
    let named = starts.filter_map(|(start, line)| {
        let (_, signature) = line.code.split_once("fn ")?;
        let name = signature.split(['(', '<']).next()?.trim();
        let end = item_end(lines, start).min(lines.len() - 1);
        (!name.is_empty()).then(|| Function {
            name,
            body: &lines[start..=end],
        })
    });
    named.collect()
}

/// Names of functions that assert, by themselves or through one another.
fn asserting<'a>(functions: &[Function<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    loop {
        let more: Vec<&str> = functions
            .iter()
            .filter(|f| !names.contains(&f.name) && f.asserts(&names))
            .map(|f| f.name)
            .collect();
        if more.is_empty() {
            return names;
        }
        names.extend(more);
    }
}

/// No lint looks for a test that asserts nothing.
fn assertion(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.rust() {
        let is_test = |line: &Line| {
            let attribute = line.code.trim();
            attribute == "#[test]" || attribute.starts_with("#[tokio::test")
        };
        let tests = file.lines.iter().enumerate().filter(|(_, line)| is_test(line));
        let tests: Vec<usize> = tests.map(|(index, _)| index).collect();
        if tests.is_empty() {
            continue;
        }
        let helpers = asserting(&functions(&file.lines));
        for index in tests {
            let end = item_end(&file.lines, index + 1).min(file.lines.len() - 1);
            let test = functions(&file.lines[index + 1..=end]);
            if let Some(test) = test.first().filter(|test| !test.asserts(&helpers)) {
                found.push(Finding::new(
                    &file.path,
                    index + 1,
                    format!("{} asserts nothing", test.name),
                ));
            }
        }
    }
}

/// Clippy's `todo` and `unimplemented` find stubs, and `ignore_without_reason` lets a reason pass; no
/// lint reads comments.
fn unfinished(tree: &Tree, found: &mut Vec<Finding>) {
    let notes = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    for file in tree.rust() {
        for (index, line) in file.lines.iter().enumerate() {
            for note in notes.iter().filter(|&&note| has_word(&line.comment, note)) {
                found.push(Finding::new(&file.path, index + 1, *note));
            }
            if line.code.contains("#[ignore") {
                found.push(Finding::new(&file.path, index + 1, "#[ignore"));
            }
        }
    }
}

/// Clippy's `missing_trait_methods` looks at implementations, and would ask for those of `Iterator`, too.
fn store_trait(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.rust() {
        let starts = file.lines.iter().enumerate();
        for (start, _) in starts.filter(|(_, line)| has_word(&line.code, "trait Store")) {
            let end = item_end(&file.lines, start).min(file.lines.len() - 1);
            let mut depth = 0_usize;
            for (index, line) in file.lines.iter().enumerate().take(end + 1).skip(start) {
                for c in line.code.chars() {
                    if c == '{' {
                        depth += 1;
                        if depth == 2 {
                            found.push(Finding::new(&file.path, index + 1, "a method of Store has a body"));
                        }
                    } else if c == '}' {
                        depth = depth.saturating_sub(1);
                    }
                }
            }
        }
    }
}

/// No lint looks for statics that change without `mut`.
fn global(tree: &Tree, found: &mut Vec<Finding>) {
    let kinds = ["LazyLock", "OnceLock", "OnceCell", "Mutex", "RwLock", "Atomic"];
    for file in tree.rust().filter(|file| file.path.starts_with("crates/")) {
        for (number, line) in file.library_lines() {
            let code = line.code.trim_start();
            let code = code
                .strip_prefix("pub(crate) ")
                .or_else(|| code.strip_prefix("pub "))
                .unwrap_or(code);
            let changes = code.starts_with("static ") && kinds.iter().any(|kind| code.contains(kind));
            if changes || code.starts_with("static mut ") || code.contains("lazy_static!") {
                found.push(Finding::new(&file.path, number, "a global that changes"));
            }
        }
    }
}

/// The crate of a path: its first two folders below `crates`, else the first.
fn crate_of(path: &str) -> &str {
    let folders = if path.starts_with("crates/") { 2 } else { 1 };
    let end = path
        .match_indices('/')
        .nth(folders - 1)
        .map_or(path.len(), |(at, _)| at);
    &path[..end]
}

/// The compiler's `unsafe_code` finds each place; it does not count the modules.
fn unsafe_modules(tree: &Tree, found: &mut Vec<Finding>) {
    let mut first: Vec<(&str, &str)> = Vec::new();
    for file in tree.rust() {
        let mut lines = file.lines.iter().enumerate();
        let Some((index, _)) = lines.find(|(_, line)| has_word(&line.code, "unsafe")) else {
            continue;
        };
        let home = crate_of(&file.path);
        match first.iter().find(|(known, _)| *known == home) {
            None => first.push((home, &file.path)),
            // A crate's tests may hold a counting allocator of their own.
            Some(_) if file.is_beside_the_library() => {}
            Some((_, other)) => {
                let what = format!("{home} has unsafe code here and in {other}");
                found.push(Finding::new(&file.path, index + 1, what));
            }
        }
    }
}

#[cfg(test)]
mod tests;
