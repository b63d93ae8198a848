//! Rules about documents and about what any text file may name.

use super::rules::has_word;
use super::source::{Source, Tree};
use super::{Finding, Rule};

/// The longest line of a document that is not a table row.
const LINE_MAX: usize = 400;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "one sentence per line",
        why: "documents have one sentence per line, so that a change shows as the sentence that changed",
        check: sentences,
    },
    Rule {
        name: "links",
        why: "a link or a path in a document that leads nowhere misleads its readers",
        check: links,
    },
    Rule {
        name: "plain English",
        why: "a sentence without an actor, a number or the field's noun has to be decoded, and is read once",
        check: phrases,
    },
    Rule {
        name: "machine paths",
        why: "nothing in the repository depends on where it was written or on where packages come from",
        check: places,
    },
];

/// Phrases that say less than a name or a number would, and what to write instead.
const PHRASES: &[(&str, &str)] = &[
    ("so many", "the number, or the name of the parameter"),
    ("whoever", "who: the caller, the reader, a client"),
    ("whomever", "whom"),
    ("such a one", "the noun"),
    ("what there is to do", "pending work"),
    ("as nearly all are", "the common case, and which"),
];

/// Documents whose sentences are history.
const HISTORY: &[&str] = &["CHANGELOG.md", "docs/results/"];

fn phrases(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree
        .markdown()
        .filter(|file| !HISTORY.iter().any(|path| file.path.starts_with(path)))
    {
        for (number, line) in prose_lines(file) {
            note_phrases(&file.path, number, &words_only(line), found);
        }
    }
    for file in tree.rust() {
        for (number, line) in file.library_lines() {
            note_phrases(&file.path, number, &line.comment, found);
        }
    }
}

fn note_phrases(path: &str, number: usize, text: &str, found: &mut Vec<Finding>) {
    let text = text.to_lowercase();
    let used = PHRASES.iter().filter(|(phrase, _)| has_word(&text, phrase));
    found.extend(used.map(|(phrase, instead)| Finding::new(path, number, format!("{phrase}: say {instead}"))));
}

/// The lines of a document outside fenced code, numbered from 1.
fn prose_lines(file: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    let lines = file.text.lines().enumerate();
    lines.filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((index + 1, line))
    })
}

/// A line with the contents of code spans and link targets taken out.
fn words_only(line: &str) -> String {
    let mut kept = String::new();
    for (index, part) in line.split('`').enumerate() {
        kept.push_str(if index % 2 == 0 { part } else { "code" });
    }
    kept
}

/// The second sentence of the line, if there is one.
fn second_sentence(line: &str) -> Option<&str> {
    let marks = line
        .char_indices()
        .filter(|(_, c)| ".?!".contains(*c))
        .map(|(at, _)| at);
    let mut ends = marks.filter(|&at| ends_sentence(line, at));
    ends.next().map(|at| line[at + 1..].trim_start())
}

/// Whether the mark at byte `at` ends a sentence: a word of two letters or more before
/// it, a capital after it. `e.g.`, `1.` and `vs.` do not.
fn ends_sentence(line: &str, at: usize) -> bool {
    let before = &line[..at];
    let word = before.rsplit([' ', '(']).next().unwrap_or_default();
    let is_word = word.chars().filter(|c| c.is_alphabetic()).count() >= 2 && !word.contains('.');
    let is_abbreviation = ["vs", "no", "No", "etc", "cf"].contains(&word);
    let mut after = line[at + 1..].chars();
    let is_apart = after.next() == Some(' ');
    is_word && !is_abbreviation && is_apart && after.next().is_some_and(char::is_uppercase)
}

fn sentences(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.markdown() {
        for (number, line) in prose_lines(file) {
            if line.trim_start().starts_with('|') {
                continue;
            }
            if line.chars().count() > LINE_MAX {
                found.push(Finding::new(&file.path, number, format!("longer than {LINE_MAX}")));
            }
            if let Some(second) = second_sentence(&words_only(line)) {
                let start: String = second.chars().take(30).collect();
                found.push(Finding::new(&file.path, number, format!("a second sentence: {start}")));
            }
        }
    }
}

/// The targets of Markdown links on a line.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    let starts = line.match_indices("](");
    starts.filter_map(|(at, _)| line[at + 2..].split_once(')').map(|(target, _)| target))
}

/// `target`, relative to the folder of `path`, as a path from the root.
fn resolve(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Code spans of a line that are paths of this repository.
fn path_spans(line: &str) -> impl Iterator<Item = &str> {
    let spans = line.split('`').enumerate().filter(|(index, _)| index % 2 == 1);
    spans.map(|(_, span)| span).filter(|span| {
        let folders = ["crates/", "benches/", "fuzz/", "xtask/", "docs/", "fixtures/", ".ci/"];
        let plain = !span.contains([' ', '*', '<', '{', '(', ':', '$', '='])
            && !has_word(span, "NAME")
            && !span.contains("NNN");
        plain && folders.iter().any(|folder| span.starts_with(folder))
    })
}

/// Documents with a folder that a comment names, as paths from the root.
fn named_documents(comment: &str) -> impl Iterator<Item = &str> {
    let words = comment.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c));
    words
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.rsplit('.').next() == Some("md") && word.contains('/') && !word.contains("//"))
}

/// The comments of a Rust or TOML file, with their line numbers.
fn comments(file: &Source) -> Vec<(usize, &str)> {
    let rust = file.lines.iter().map(|line| line.comment.as_str()).enumerate();
    let is_toml = file.has_extension("toml");
    let toml = file.text.lines().enumerate().filter(|_| is_toml);
    let toml = toml.filter_map(|(index, line)| line.trim_start().strip_prefix('#').map(|comment| (index, comment)));
    rust.chain(toml).map(|(index, comment)| (index + 1, comment)).collect()
}

fn links(tree: &Tree, found: &mut Vec<Finding>) {
    for file in &tree.files {
        for (number, comment) in comments(file) {
            let gone = named_documents(comment).filter(|document| !tree.has(document));
            found.extend(gone.map(|document| Finding::new(&file.path, number, format!("no such file: {document}"))));
        }
    }
    for file in tree.markdown() {
        for (number, line) in prose_lines(file) {
            for target in link_targets(line) {
                let bare = target.split('#').next().unwrap_or_default();
                let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
                if !bare.is_empty() && !is_elsewhere && !tree.has(&resolve(&file.path, bare)) {
                    found.push(Finding::new(&file.path, number, format!("no such file: {bare}")));
                }
            }
            for span in path_spans(line).filter(|span| !tree.has(span)) {
                found.push(Finding::new(&file.path, number, format!("no such path: {span}")));
            }
        }
    }
}

fn places(tree: &Tree, found: &mut Vec<Finding>) {
    // Spelled in parts, so that this file does not name them itself.
    let roots = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/fa", "rm/"),
        concat!("/ho", "me/"),
    ];
    let hosts = [
        concat!("crates", ".io"),
        concat!("proxy.", "golang.org"),
        concat!("deb.", "debian.org"),
        concat!("py", "pi.org"),
        concat!("registry.", "npmjs"),
        concat!("repo1.", "maven"),
    ];
    for file in tree
        .files
        .iter()
        .filter(|file| !file.path.ends_with("Cargo.lock") && !file.path.starts_with("fixtures/"))
    {
        for (index, line) in file.text.lines().enumerate() {
            for root in roots.iter().filter(|root| names_root(line, root)) {
                found.push(Finding::new(&file.path, index + 1, format!("names {root}")));
            }
            for host in hosts.iter().filter(|&&host| line.contains(host)) {
                found.push(Finding::new(&file.path, index + 1, format!("names {host}")));
            }
        }
    }
}

/// Whether `root` starts a path on the line, rather than being a part of one.
fn names_root(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-*}>".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::RULES;
    use crate::tidy::source::Tree;
    use crate::tidy::tests::findings;

    fn check(rule: &str, text: &str, expected: &[&str]) {
        assert_eq!(findings(RULES, rule, "docs/x.md", text), expected, "{rule}:\n{text}");
    }

    #[test]
    fn phrases_that_say_nothing_are_found_outside_of_code_and_history() {
        let rule = "plain English";
        check(
            rule,
            "Whoever asks gets it.\n`so many` is code.\n",
            &["1: whoever: say who: the caller, the reader, a client"],
        );
        let comment = "fn f() {\n    // One in so many is read.\n    let whoever = 1;\n}\n";
        let expected = ["2: so many: say the number, or the name of the parameter"];
        assert_eq!(findings(RULES, rule, "crates/a/src/b.rs", comment), expected);
        assert!(findings(RULES, rule, "docs/results/x.md", "So many words.\n").is_empty());
    }

    #[test]
    fn a_second_sentence_on_a_line_is_found() {
        let rule = "one sentence per line";
        check(rule, "One sentence.\nAnother one.\n", &[]);
        check(
            rule,
            "One sentence. Another one.\n",
            &["1: a second sentence: Another one."],
        );
        check(rule, "For one, e.g. This, see no. 4. And 3.5 too.\n", &[]);
        check(rule, "| a cell. Another one. |\n", &[]);
        check(rule, "```text\nOne. Two.\n```\n", &[]);
        check(rule, &"word ".repeat(90), &["1: longer than 400"]);
    }

    #[test]
    fn links_and_paths_must_lead_somewhere() {
        check(
            "links",
            "See [the map](../README.md).\n",
            &["1: no such file: ../README.md"],
        );
        check(
            "links",
            "See [itself](x.md#part) and [that](https://example.org/).\n",
            &[],
        );
        check(
            "links",
            "`crates/none.rs` and `crates/NAME.rs`\n",
            &["1: no such path: crates/none.rs"],
        );
        let tree = Tree::of_texts(&[("README.md", "[a](docs/a.md) `docs/` `docs/a.md`\n"), ("docs/a.md", "")]);
        let mut found = Vec::new();
        super::links(&tree, &mut found);
        assert_eq!(found, []);
    }

    #[test]
    fn a_comment_names_documents_that_exist() {
        let expected = ["1: no such file: specs/limits.md"];
        let toml = "# The fleet of specs/limits.md: stated there.\nkey = \"specs/other.md\"\n";
        assert_eq!(findings(RULES, "links", "fixtures/x.toml", toml), expected);
        let rust = "// As specs/limits.md has it.\nconst URL: &str = \"docs/none.md\"; // https://a.b/c.md, FILE.md\n";
        assert_eq!(findings(RULES, "links", "crates/a/src/b.rs", rust), expected);
    }

    #[test]
    fn places_of_one_machine_are_found() {
        let bad = concat!("cd /wo", "rk/x\n");
        check("machine paths", bad, &[concat!("1: names /wo", "rk/")]);
        check("machine paths", concat!("a/wo", "rk/x and net", "work/\n"), &[]);
        check(
            "machine paths",
            concat!("from crates", ".io\n"),
            &[concat!("1: names crates", ".io")],
        );
    }
}
