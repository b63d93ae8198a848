//! Reads run files: TOML whose keys are the flags of `tsb run`.
//!
//! Every key is parsed like its flag, so a file and flags use the same names and values, and an
//! error names the file, the line and the key. docs/formats/plan.md lists the keys.

use std::path::Path;

use clap::{Arg, ArgAction, CommandFactory, Parser};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use tsb_run::spec::or_nearest;

use super::{Apply, Plan, no_effect};
use crate::args::RunArgs;
use crate::failure::Failure;

/// The flags of `tsb run` without the program name.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Flags {
    #[command(flatten)]
    args: RunArgs,
}

/// Flags that cannot be keys of a run file.
const NOT_KEYS: [&str; 2] = ["plan", "print-plan"];

/// The keys of a run file, in the order of the help text.
pub fn keys() -> Vec<String> {
    let command = Flags::command();
    let names = command.get_arguments().filter_map(Arg::get_long);
    names
        .filter(|name| !NOT_KEYS.contains(name))
        .map(str::to_owned)
        .collect()
}

/// Parses the text of a run file into flags.
///
/// # Errors
/// If a key or value is not valid; names the file, and the line and key if known.
pub(super) fn parse(path: &Path, text: &str) -> Result<RunArgs, Failure> {
    let failure = || Failure::usage(format!("cannot read plan {}", path.display()));
    let table = DeTable::parse(text).map_err(|error| failure().because_of(error.to_string().trim_end().to_owned()))?;
    let command = Flags::command();
    let mut flags = Vec::new();
    for (key, value) in table.into_inner() {
        let line = text[..key.span().start].matches('\n').count() + 1;
        let wrong = |why: String| {
            failure()
                .because_of(format!("line {line}: {why}"))
                .hint("its keys are the names of the flags of tsb run; docs/formats/plan.md lists them")
        };
        let own = of_key(&command, key.as_ref(), &value).map_err(wrong)?;
        let alone = read(&own).map_err(wrong)?;
        try_out(&alone).map_err(|refused| wrong(refused.one_line()))?;
        flags.extend(own);
    }
    read(&flags).map_err(|why| failure().because_of(why))
}

/// Checks that a plan accepts these flags.
fn try_out(args: &RunArgs) -> Result<(), Failure> {
    Plan::default().apply(&args.options)?;
    no_effect::check_processes(&args.options)
}

fn read(flags: &[String]) -> Result<RunArgs, String> {
    let parsed = Flags::try_parse_from(flags).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.strip_prefix("error: ").unwrap_or(first).to_owned()
    });
    parsed.map(|flags| flags.args)
}

/// Converts a key and its value to flags.
fn of_key(command: &clap::Command, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
    let keys = keys();
    let flag = command.get_arguments().find(|flag| flag.get_long() == Some(key));
    let Some(flag) = flag.filter(|_| !NOT_KEYS.contains(&key)) else {
        let names = keys.iter().map(String::as_str);
        return Err(format!("unknown key {key:?}{}", or_nearest(key, names, "")));
    };
    match (flag.get_action(), value.get_ref()) {
        (ArgAction::SetTrue, DeValue::Boolean(true)) => Ok(vec![format!("--{key}")]),
        (ArgAction::SetTrue, DeValue::Boolean(false)) => Ok(Vec::new()),
        (ArgAction::SetTrue, _) => Err(format!("{key} is true or false")),
        (ArgAction::Append, DeValue::Array(all)) => all
            .iter()
            .map(|one| Ok(format!("--{key}={}", scalar(key, one)?)))
            .collect(),
        _ => Ok(vec![format!("--{key}={}", scalar(key, value)?)]),
    }
}

/// Converts a value to the text that would be typed.
fn scalar(key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, String> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(|number| number.to_string())
            .map_err(|_| format!("{key}: {number} is too large a number")),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(on) => Ok(on.to_string()),
        other => Err(format!(
            "{key} takes a text or a number, not a value of type {}",
            other.type_str()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<RunArgs, String> {
        parse(Path::new("run.toml"), text).map_err(|failure| failure.to_string())
    }

    #[test]
    fn values_of_every_kind_are_read_as_their_flags() {
        let text = "store = \"memory:\"\nseries = 54_000\nlate = 0.01\nno-verify = true\nout = \"r.json\"\n\
            html = \"r.html\"\nquiet = true\nexpose-remote = false\nseed = 7\nsockets = 2\n";
        let args = parsed(text).unwrap();
        assert_eq!(args.options.store, ["memory:"]);
        assert_eq!(args.options.series.as_deref(), Some("54000"));
        assert_eq!(args.options.late.as_deref(), Some("0.01"));
        assert_eq!((args.options.no_verify, args.options.seed), (Some(true), Some(7)));
        assert_eq!(args.options.sockets, Some(2));
        assert_eq!(args.output.out.as_deref(), Some(Path::new("r.json")));
        assert_eq!(args.output.html.as_deref(), Some(Path::new("r.html")));
        assert!(args.output.quiet && !args.expose_remote);
        let two = parsed("store = [\"memory:\", \"ring:\"]\nwatch-pid = []").unwrap();
        assert_eq!(two.options.store, ["memory:", "ring:"]);
    }

    #[test]
    fn errors_name_file_line_and_key() {
        for (text, words) in [
            (
                "seed = 1\nrat = \"54k\"\n",
                &["run.toml", "line 2", "\"rat\"", "did you mean rate?"][..],
            ),
            ("\n\nduration = 10", &["line 3", "--duration 10"]),
            ("store = \"memry:\"", &["line 1", "memry", "memory"]),
            ("seed = \"x\"", &["line 1", "--seed"]),
            ("format = \"xml\"", &["line 1", "xml"]),
            ("quiet = 1", &["line 1", "quiet is true or false"]),
            ("rate = [1]", &["line 1", "rate", "array"]),
            ("[run]\nrate = 1", &["line 1", "\"run\""]),
            ("[store]\na = 1", &["line 1", "store", "table"]),
            ("plan = \"x\"", &["line 1", "unknown key"]),
            ("watch-pid = 4000000000", &["line 1", "4000000000"]),
            ("rate = ", &["line 1"]),
        ] {
            let said = parsed(text).unwrap_err();
            assert!(words.iter().all(|word| said.contains(word)), "{text:?}: {said}");
        }
    }

    #[test]
    fn the_document_lists_the_keys_and_no_others() {
        let document = include_str!("../../fixtures/plan.md");
        let rows = document
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let mut listed: Vec<&str> = rows.map(|(key, _)| key).collect();
        let mut keys = keys();
        listed.sort_unstable();
        keys.sort_unstable();
        assert_eq!(listed, keys);
    }
}
