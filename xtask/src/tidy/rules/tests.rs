//! Each rule on a snippet that keeps it and one that breaks it.

use super::RULES;
use crate::tidy::tests::findings;

const LIBRARY: &str = "crates/tsb-core/src/x.rs";

fn check(rule: &str, path: &str, text: &str, expected: &[&str]) {
    assert_eq!(findings(RULES, rule, path, text), expected, "{rule} on {path}:\n{text}");
}

#[test]
fn a_file_says_what_it_is_for() {
    check("file head", LIBRARY, "//! For this.\n", &[]);
    check("file head", LIBRARY, "use x;\n", &["1: does not start with a //! head"]);
    check("file head", LIBRARY, "", &["1: does not start with a //! head"]);
}

#[test]
fn sources_and_manifests_are_ascii() {
    check("ascii", LIBRARY, "// plain\n", &[]);
    check("ascii", "Cargo.toml", "a = 1\n# \u{2192}\n", &["2: holds \\u{2192}"]);
    check("ascii", "README.md", "\u{2192}\n", &[]);
}

#[test]
fn tests_do_not_count_towards_the_length() {
    let body = "fn a() {}\n".repeat(600);
    check("file length", LIBRARY, &body, &[]);
    let tests = format!("{body}#[cfg(test)]\nmod tests {{\n{body}}}\n");
    check("file length", LIBRARY, &tests, &[]);
    check(
        "file length",
        LIBRARY,
        &format!("{body}fn b() {{}}\n"),
        &["0: 601 lines without tests"],
    );
}

#[test]
fn tokio_stays_in_its_two_places() {
    let text = "use tokio::net;\n";
    check("tokio", LIBRARY, text, &["1: tokio"]);
    check("tokio", "crates/tsb-core/src/net/tcp.rs", text, &[]);
    check("tokio", "crates/tsb-core/src/net.rs", text, &[]);
    check("tokio", "crates/tsb-cli/src/run.rs", text, &[]);
    check("tokio", LIBRARY, "// tokio is elsewhere\n", &[]);
}

#[test]
fn libraries_do_not_read_the_environment() {
    let text = "std::env::var(\"A\")\n";
    check("environment", LIBRARY, text, &["1: std::env", "1: env::var"]);
    check("environment", LIBRARY, "env!(\"CARGO\")\n", &[]);
    check("environment", LIBRARY, "let s = \"std::env\";\n", &[]);
    check("environment", "crates/tsb-cli/src/main.rs", text, &[]);
    let test = "#[cfg(test)]\nmod tests {\nfn f() { std::env::args() }\n}\n";
    check("environment", LIBRARY, test, &[]);
}

#[test]
fn no_test_sleeps() {
    let text = "tokio::time::sleep(pause).await;\n";
    check("sleep", "crates/a/tests/t.rs", text, &["1: sleeps"]);
    check("sleep", "crates/tsb-core/src/net/x.rs", text, &[]);
    check("sleep", "crates/a/tests/t.rs", "clock.wait_until(due);\n", &[]);
}

#[test]
fn every_test_asserts() {
    check(
        "assertion",
        LIBRARY,
        "#[test]\nfn t() {\n    f();\n}\n",
        &["1: t asserts nothing"],
    );
    check("assertion", LIBRARY, "#[test]\nfn t() {\n    assert!(f());\n}\n", &[]);
    check(
        "assertion",
        LIBRARY,
        "#[test]\nfn t() -> R {\n    f()?;\n    Ok(())\n}\n",
        &[],
    );
    check("assertion", LIBRARY, "#[test]\nfn t() {\n    check(1, 2);\n}\n", &[]);
    check(
        "assertion",
        LIBRARY,
        "#[test]\nfn t() {\n    // assert!\n}\n",
        &["1: t asserts nothing"],
    );
    let second = "#[test]\nfn a() { assert!(true_of(1)); }\n#[test]\nfn b() { go(); }\n";
    check("assertion", LIBRARY, second, &["3: b asserts nothing"]);
    let helped = "fn agree() {\n    assert!(f());\n}\nfn all() {\n    agree();\n}\n#[test]\nfn t() {\n    all();\n}\n";
    check("assertion", LIBRARY, helped, &[]);
    let property = "proptest! {\n    #[test]\n    fn p(x in 0..9) {\n        prop_assert!(x < 9);\n    }\n}\n";
    check("assertion", LIBRARY, property, &[]);
}

#[test]
fn nothing_is_left_unfinished() {
    check(
        "unfinished",
        LIBRARY,
        concat!("// TO", "DO later\n"),
        &[concat!("1: TO", "DO")],
    );
    check("unfinished", LIBRARY, "#[ignore]\n#[test]\n", &["1: #[ignore"]);
    check("unfinished", LIBRARY, "let s = \"#[ignore]\";\n", &[]);
}

#[test]
fn the_store_trait_has_no_bodies() {
    let good = "pub trait Store: Debug {\n    fn a(&self);\n    fn b(&self) -> R;\n}\n";
    check("store trait", LIBRARY, good, &[]);
    let bad = "pub trait Store: Debug {\n    fn a(&self);\n    fn b(&self) {\n    }\n}\n";
    check("store trait", LIBRARY, bad, &["3: a method of Store has a body"]);
    check(
        "store trait",
        LIBRARY,
        "pub trait StoreExt: Store {\n    fn b(&self) {}\n}\n",
        &[],
    );
}

#[test]
fn nothing_that_changes_is_global() {
    check(
        "global",
        LIBRARY,
        "static N: AtomicU64 = AtomicU64::new(0);\n",
        &["1: a global that changes"],
    );
    check(
        "global",
        LIBRARY,
        "static mut N: u64 = 0;\n",
        &["1: a global that changes"],
    );
    check("global", LIBRARY, "static NAMES: [&str; 2] = [\"a\", \"b\"];\n", &[]);
}

#[test]
fn a_crate_has_one_unsafe_module() {
    let tree = |second: &str| {
        let files = [("crates/a/src/x.rs", "unsafe { f() }\n"), (second, "unsafe { g() }\n")];
        let mut found = Vec::new();
        super::unsafe_modules(&crate::tidy::source::Tree::of_texts(&files), &mut found);
        found.len()
    };
    assert_eq!(tree("crates/a/src/y.rs"), 1);
    assert_eq!(tree("crates/b/src/y.rs"), 0);
    check("unsafe", LIBRARY, "#![deny(unsafe_code)] // unsafe\n", &[]);
}
