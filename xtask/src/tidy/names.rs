//! Rules about names: the glossary and the code agree, and one name is one type of a crate.

use super::lexer::Line;
use super::rules::has_word;
use super::source::{Source, Tree};
use super::{Finding, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "glossary",
        why: "docs/glossary.md has one word for each thing; a synonym makes the reader look for a difference",
        check: glossary,
    },
    Rule {
        name: "one type of a name",
        why: "two types of one name in one crate make the reader look up which of them is meant",
        check: type_names,
    },
];

const PAGE: &str = "docs/glossary.md";

/// Words of the glossary's column "not", where they may stand all the same, and why.
const HOMES: &[(&str, &str, &str)] = &[
    ("datapoint", "/wire/", "fields of protocols are called so"),
    ("datapoint", "docs/formats/", "fields of protocols are called so"),
    ("data point", "/wire/otlp", "OTLP's own word"),
    ("data point", "docs/formats/otlp.md", "OTLP's own word"),
    ("timeseries", "/wire/remote_write", "a field of Prometheus' message"),
    (
        "timeseries",
        "docs/formats/remote-write.md",
        "a field of Prometheus' message",
    ),
    ("freshness", "crates/tsb-run/src/simulate", "HM9000's own word"),
];

/// Names that two types visible in their whole crate share: the crate, the name, and why.
const SHARED: &[(&str, &str, &str)] = &[
    (
        "crates/tsb-core",
        "Curve",
        "of quantiles, and of a rate: each is the word of its module",
    ),
    (
        "crates/tsb-core",
        "Field",
        "of InfluxDB's lines, and of protobuf: each is the word of its format",
    ),
    (
        "crates/tsb-core",
        "Interval",
        "figures in the report, and the histogram they come from",
    ),
    (
        "crates/tsb-core",
        "Latency",
        "figures in the report, and the histograms they come from",
    ),
    (
        "crates/tsb-core",
        "Offered",
        "report holds the serialized form of the other",
    ),
    (
        "crates/tsb-core",
        "Rate",
        "figures in the report, and an exact rate of a schedule",
    ),
    (
        "crates/tsb-core",
        "Report",
        "of an emitter, and the document that holds it",
    ),
    (
        "crates/tsb-core",
        "Run",
        "what an emitter runs, and the report of a run",
    ),
    (
        "crates/tsb-core",
        "Target",
        "trait of an emitter; report holds what describes one",
    ),
    (
        "crates/tsb-run",
        "Request",
        "to a device, and for an experiment: each is the word of its module",
    ),
];

/// A row of the glossary: the types of its word, and the words that it replaces.
struct Term<'a> {
    line: usize,
    word: &'a str,
    types: Vec<&'a str>,
    synonyms: Vec<&'a str>,
}

/// The contents of code spans.
fn spans(cell: &str) -> Vec<&str> {
    let parts = cell.split('`').enumerate();
    parts
        .filter(|(index, _)| index % 2 == 1)
        .map(|(_, span)| span)
        .collect()
}

fn terms(text: &str) -> Vec<Term<'_>> {
    let rows = text.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    let rows = rows.filter_map(|(index, line)| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [word, _, types, synonyms, _] = cells[..] else {
            return None;
        };
        Some(Term {
            line: index + 1,
            word,
            types: spans(types),
            synonyms: spans(synonyms),
        })
    });
    rows.collect()
}

fn glossary(tree: &Tree, found: &mut Vec<Finding>) {
    let Some(page) = tree.file(PAGE) else { return };
    let terms = terms(&page.text);
    for term in &terms {
        let gone = term.types.iter().filter(|name| !is_declared(tree, name));
        found.extend(gone.map(|name| Finding::new(PAGE, term.line, format!("no type is called {name}"))));
    }
    let words = terms
        .iter()
        .flat_map(|term| term.synonyms.iter().map(|&synonym| (synonym, term.word)));
    let words: Vec<(&str, &str)> = words.collect();
    for file in tree.rust().filter(|file| !file.path.starts_with("xtask/")) {
        for (number, line) in file.library_lines() {
            let text = format!("{} {}", line.comment.to_lowercase(), public_words(line));
            note_synonyms(&file.path, number, &text, &words, found);
        }
    }
    for file in tree.markdown().filter(|file| is_living(file)) {
        for (index, line) in file.text.lines().enumerate() {
            note_synonyms(&file.path, index + 1, &line.to_lowercase(), &words, found);
        }
    }
}

/// Documents that speak of today, in words of their own.
fn is_living(file: &Source) -> bool {
    let others = [PAGE, "CHANGELOG.md", "docs/adr/", "docs/results/", "fixtures/"];
    !others.iter().any(|path| file.path.starts_with(path))
}

fn note_synonyms(path: &str, number: usize, text: &str, words: &[(&str, &str)], found: &mut Vec<Finding>) {
    for (synonym, word) in words {
        let is_home = |(at_home, part, _): &(&str, &str, &str)| at_home == synonym && path.contains(part);
        let used = has_word(text, synonym) || has_word(text, &format!("{synonym}s"));
        if used && !HOMES.iter().any(is_home) {
            found.push(Finding::new(path, number, format!("{synonym}: say {word}")));
        }
    }
}

/// The words of a public name that the line declares: `pub fn p99_of` and `pub struct SeriesKey`
/// give `p99 of` and `series key`.
fn public_words(line: &Line) -> String {
    let code = line.code.trim_start();
    let Some(item) = code.strip_prefix("pub ") else {
        return String::new();
    };
    let end = item.find(['(', '<', ':', ';', '=', '{']).unwrap_or(item.len());
    let name = item[..end].trim_end().rsplit(' ').next().unwrap_or_default();
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() || c == '_' {
            words.push(' ');
        }
        words.extend(c.to_lowercase().filter(|c| *c != '_'));
    }
    words.trim_start().to_owned()
}

/// The name of the type that a line declares, and whether its whole crate can see it.
fn declared(line: &Line) -> Option<(&str, bool)> {
    let code = line.code.trim_start();
    let is_wide = code.starts_with("pub ") || code.starts_with("pub(crate) ");
    let item = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(code, |(_, item)| item),
        Some(rest) => rest.trim_start(),
        None => code,
    };
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    let kinds = ["struct ", "enum ", "trait ", "union "];
    let rest = kinds.iter().find_map(|kind| item.strip_prefix(kind))?;
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    Some((&rest[..end], is_wide))
}

fn is_declared(tree: &Tree, name: &str) -> bool {
    let mut lines = tree.rust().flat_map(Source::library_lines);
    lines.any(|(_, line)| declared(line).is_some_and(|(known, _)| known == name))
}

/// The folder of a crate: what stands before `/src/`.
fn crate_of(path: &str) -> Option<&str> {
    path.split_once("/src/").map(|(folder, _)| folder)
}

fn type_names(tree: &Tree, found: &mut Vec<Finding>) {
    let mut first: Vec<(&str, &str, &str)> = Vec::new();
    let mut shared = Vec::new();
    for file in tree.rust().filter(|file| !file.is_test_file()) {
        let Some(home) = crate_of(&file.path) else { continue };
        let lines = file.lines.iter().enumerate().filter(|(_, line)| !line.is_test);
        for (index, line) in lines {
            let Some((name, true)) = declared(line) else { continue };
            match first.iter().find(|(known, same, _)| *known == home && *same == name) {
                None => first.push((home, name, &file.path)),
                Some(_) if is_shared(home, name) => shared.push((home, name)),
                Some((_, _, other)) => {
                    let what = format!("{name} is a type in {other}, too");
                    found.push(Finding::new(&file.path, index + 1, what));
                }
            }
        }
    }
    // A tree of a test has no crates to share names.
    if tree.has("xtask/src/tidy/names.rs") {
        let stale = SHARED.iter().filter(|(home, name, _)| !shared.contains(&(home, name)));
        found.extend(stale.map(|(home, name, _)| {
            let what = format!("{home} has one type {name} only: remove the exception");
            Finding::new("xtask/src/tidy/names.rs", 0, what)
        }));
    }
}

fn is_shared(home: &str, name: &str) -> bool {
    SHARED.iter().any(|(known, same, _)| *known == home && *same == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::Tree;

    const TERMS: &str = "| word | means | in code | not | elsewhere |\n| --- | --- | --- | --- | --- |\n\
                         | quantile | x | `Curve` | `percentile` | |\n";

    fn check(rule: &str, files: &[(&str, &str)], expected: &[&str]) {
        let tree = Tree::of_texts(files);
        let rule = RULES.iter().find(|known| known.name == rule).expect("the rule exists");
        let mut found = Vec::new();
        (rule.check)(&tree, &mut found);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_synonym_is_found_in_comments_public_names_and_documents() {
        let curve = ("crates/a/src/curve.rs", "pub struct Curve;\n");
        let page = (PAGE, TERMS);
        let at = "crates/a/src/x.rs";
        let found = "crates/a/src/x.rs:1: percentile: say quantile";
        check("glossary", &[page, curve, (at, "/// The 99th percentile.\n")], &[found]);
        check(
            "glossary",
            &[page, curve, (at, "pub fn all_percentiles(&self) {}\n")],
            &[found],
        );
        check(
            "glossary",
            &[page, curve, (at, "pub struct PercentileSet;\n")],
            &[found],
        );
        check(
            "glossary",
            &[page, curve, (at, "fn percentile() {} // quantile\n")],
            &[],
        );
        let document = ("docs/x.md", "Percentiles are\n");
        check(
            "glossary",
            &[page, curve, document],
            &["docs/x.md:1: percentile: say quantile"],
        );
    }

    #[test]
    fn a_synonym_may_stand_at_its_home() {
        let page = (PAGE, "| a | x | | `datapoint` | |\n");
        check(
            "glossary",
            &[page, ("crates/a/src/wire/x.rs", "/// A datapoint.\n")],
            &[],
        );
        let elsewhere = ("crates/a/src/x.rs", "/// A datapoint.\n");
        check(
            "glossary",
            &[page, elsewhere],
            &["crates/a/src/x.rs:1: datapoint: say a"],
        );
    }

    #[test]
    fn a_type_of_the_glossary_exists() {
        check(
            "glossary",
            &[(PAGE, TERMS)],
            &["docs/glossary.md:3: no type is called Curve"],
        );
    }

    #[test]
    fn two_types_that_a_crate_can_see_have_two_names() {
        let files = [
            ("crates/a/src/x.rs", "pub struct Twin;\nstruct Own;\n"),
            ("crates/a/src/y.rs", "pub(crate) enum Twin {}\nstruct Own;\n"),
            ("crates/b/src/x.rs", "pub(super) struct Twin;\n"),
        ];
        let found = "crates/a/src/y.rs:1: Twin is a type in crates/a/src/x.rs, too";
        check("one type of a name", &files, &[found]);
    }

    #[test]
    fn every_exception_has_a_reason() {
        for (_, name, why) in SHARED.iter().chain(HOMES) {
            assert!(why.len() > 10, "{name}");
        }
    }
}
