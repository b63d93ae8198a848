//! Reads run files: TOML whose keys are the flags of `tsb run`, and `[[phases]]`.
//!
//! Every key is parsed like its flag, so a file and flags use the same names and values, and an
//! error shows the line of the file. docs/formats/plan.md lists the keys.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use clap::{Arg, ArgAction, CommandFactory, Parser};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use tsb_run::plan::{QueryStream, RunPhase};
use tsb_run::spec::or_nearest;

use super::phases::{self, PhaseDraft};
use super::{Apply, Plan, no_effect, queries};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::thresholds;

/// The flags of `tsb run` without the program name.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Flags {
    #[command(flatten)]
    args: RunArgs,
}

/// Flags that cannot be keys of a run file.
const NOT_KEYS: [&str; 3] = ["plan", "set", "print-plan"];

/// What stands in place of credentials.
const HIDDEN: &str = "***";

/// The key of the phases, which no flag has.
const PHASES: &str = "phases";

/// The key of the streams of queries, which may be a text as its flag, or tables.
const QUERIES: &str = "queries";

/// Keys that say how long a run is and at which rate, as phases do.
const INSTEAD_OF_PHASES: [&str; 4] = ["rate", "schedule", "duration", "fleet-time"];

/// What a run file says.
#[derive(Clone, Debug, Default)]
pub struct RunFile {
    /// Its keys, as flags.
    pub args: RunArgs,
    /// Its phases, in the order of the file.
    pub phases: Vec<RunPhase>,
    /// Its streams of queries that are tables, in the order of the file.
    pub queries: Vec<QueryStream>,
}

/// The keys of a run file, in the order of the help text.
pub fn keys() -> Vec<String> {
    let command = Flags::command();
    let names = command.get_arguments().filter_map(Arg::get_long);
    names
        .filter(|name| !NOT_KEYS.contains(name))
        .map(str::to_owned)
        .collect()
}

/// Parses the text of a run file.
///
/// # Errors
/// If a key or value is not valid; shows the line of the file.
pub(super) fn parse(path: &Path, text: &str) -> Result<RunFile, Failure> {
    let failure = || Failure::usage(format!("cannot read plan {}", path.display()));
    let malformed = |error: toml::de::Error| {
        let error = KeyError::new(error.span().unwrap_or_default(), error.message());
        failure().because_of(shown(text, &error))
    };
    let table = DeTable::parse(text).map_err(malformed)?;
    let mut table = table.into_inner();
    let wrong = |error: KeyError| {
        failure()
            .because_of(shown(text, &error))
            .hint("its keys are the names of the flags of tsb run; docs/formats/plan.md lists them")
    };
    let phases = match table.remove(PHASES) {
        Some(value) => read_phases(&value).map_err(wrong)?,
        None => Vec::new(),
    };
    // As text it is the flag.
    let tables = match table.get(QUERIES).map(Spanned::get_ref) {
        Some(DeValue::Array(tables)) => Some(queries::read(tables).map_err(wrong)?),
        _ => None,
    };
    if tables.is_some() {
        table.remove(QUERIES);
    }
    let command = Flags::command();
    let mut flags = Vec::new();
    for (key, value) in table {
        let name: &str = key.get_ref();
        let at = |why: String| KeyError::new(key.span(), why);
        if !phases.is_empty() && INSTEAD_OF_PHASES.contains(&name) {
            return Err(wrong(at(format!(
                "{name} does not go together with phases: they say how long the run is, and which rate it has when"
            ))));
        }
        let own = of_key(&command, name, value.get_ref()).map_err(|why| wrong(at(why)))?;
        let alone = read(&own).map_err(|why| wrong(at(why)))?;
        try_out(&alone).map_err(|refused| wrong(at(refused.one_line())))?;
        flags.extend(own);
    }
    let args = read(&flags).map_err(|why| failure().because_of(why))?;
    Ok(RunFile {
        args,
        phases,
        queries: tables.unwrap_or_default(),
    })
}

/// One key with its value as text, as `--set` gives it, as flags.
///
/// # Errors
/// If there is no such key, or if it does not take this value.
pub(super) fn of_text(key: &str, text: &str) -> Result<RunArgs, String> {
    let value = match text {
        "true" => DeValue::Boolean(true),
        "false" => DeValue::Boolean(false),
        _ => DeValue::String(text.into()),
    };
    let flags = of_key(&Flags::command(), key, &value)?;
    read(&flags)
}

/// What is wrong with a part of the file.
#[derive(Debug)]
pub(super) struct KeyError {
    span: Range<usize>,
    why: String,
}

impl KeyError {
    pub(super) fn new(span: Range<usize>, why: impl Into<String>) -> Self {
        Self { span, why: why.into() }
    }
}

/// The error with its line and column, and the line of the file with a mark under the part.
fn shown(text: &str, error: &KeyError) -> String {
    let start = error.span.start.min(text.len());
    let before = text.get(..start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[line_start..].lines().next().unwrap_or_default();
    let number = (before.matches('\n').count() + 1).to_string();
    let column = before[line_start..].chars().count();
    let line = without_credentials(line);
    let marked = text.get(start..error.span.end).and_then(|part| part.lines().next());
    let marks = "^".repeat(marked.map_or(1, |part| part.chars().count()).max(1));
    let margin = " ".repeat(number.len());
    format!(
        "line {number}, column {}: {}\n{margin} |\n{number} | {line}\n{margin} | {}{marks}",
        column + 1,
        error.why,
        " ".repeat(column),
    )
}

/// A line without what may be a password: nothing behind the key where there is an `@`.
fn without_credentials(line: &str) -> Cow<'_, str> {
    if !line.contains('@') {
        return line.into();
    }
    match line.split_once('=') {
        Some((key, _)) if !key.contains(['@', '"', '\'']) => format!("{key}= {HIDDEN}").into(),
        _ => HIDDEN.into(),
    }
}

fn read_phases(value: &Spanned<DeValue<'_>>) -> Result<Vec<RunPhase>, KeyError> {
    let DeValue::Array(tables) = value.get_ref() else {
        return Err(KeyError::new(
            value.span(),
            "phases are tables: write [[phases]] above the keys of each",
        ));
    };
    tables.iter().map(read_phase).collect()
}

fn read_phase(value: &Spanned<DeValue<'_>>) -> Result<RunPhase, KeyError> {
    let DeValue::Table(table) = value.get_ref() else {
        return Err(KeyError::new(
            value.span(),
            "a phase is a table: write [[phases]] above its keys",
        ));
    };
    let mut draft = PhaseDraft::default();
    for (key, value) in table {
        let name: &str = key.get_ref();
        let at = |why: String| KeyError::new(key.span(), why);
        match value.get_ref() {
            DeValue::Table(faults) if name == phases::FAULTS => {
                for (fault, value) in faults {
                    let at = |why: String| KeyError::new(fault.span(), why);
                    let name: &str = fault.get_ref();
                    let text = scalar(name, value.get_ref()).map_err(at)?;
                    draft.set_fault(name, &text).map_err(at)?;
                }
            }
            other => {
                let text = scalar(name, other).map_err(at)?;
                draft.set(name, &text).map_err(at)?;
            }
        }
    }
    draft.finish().map_err(|why| KeyError::new(value.span(), why))
}

/// Checks that a plan accepts these flags.
fn try_out(args: &RunArgs) -> Result<(), Failure> {
    Plan::default().apply(&args.options)?;
    thresholds::of_run(args)?;
    no_effect::check_processes(&args.options)
}

/// Parses flags that come from no command line.
pub(super) fn read(flags: &[String]) -> Result<RunArgs, String> {
    let parsed = Flags::try_parse_from(flags).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.strip_prefix("error: ").unwrap_or(first).to_owned()
    });
    parsed.map(|flags| flags.args)
}

/// Converts a key and its value to flags.
fn of_key(command: &clap::Command, key: &str, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let keys = keys();
    let flag = command.get_arguments().find(|flag| flag.get_long() == Some(key));
    let Some(flag) = flag.filter(|_| !NOT_KEYS.contains(&key)) else {
        let names = keys.iter().map(String::as_str).chain([PHASES]);
        return Err(format!("unknown key {key:?}{}", or_nearest(key, names, "")));
    };
    match (flag.get_action(), value) {
        (ArgAction::SetTrue, DeValue::Boolean(true)) => Ok(vec![format!("--{key}")]),
        (ArgAction::SetTrue, DeValue::Boolean(false)) => Ok(Vec::new()),
        (ArgAction::SetTrue, _) => Err(format!("{key} is true or false")),
        (ArgAction::Append, DeValue::Array(all)) => all
            .iter()
            .map(|one| Ok(format!("--{key}={}", scalar(key, one.get_ref())?)))
            .collect(),
        _ => Ok(vec![format!("--{key}={}", scalar(key, value)?)]),
    }
}

/// Converts a value to the text that would be typed.
pub(super) fn scalar(key: &str, value: &DeValue<'_>) -> Result<String, String> {
    match value {
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
    use clap::{Args, Command};

    use super::*;
    use crate::args::HostsArgs;

    fn parsed(text: &str) -> Result<RunArgs, String> {
        whole(text).map(|file| file.args)
    }

    fn whole(text: &str) -> Result<RunFile, String> {
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
            ("phases = 1", &["line 1, column 10", "[[phases]]"]),
            ("phases = [1]", &["line 1, column 11", "[[phases]]"]),
            (
                "rate = \"1k\"\n[[phases]]\nname = \"load\"\nrate = \"1k\"\nduration = \"1s\"\n",
                &["line 1, column 1", "together with phases"],
            ),
            (
                "[[phases]]\nname = \"load\"\nrat = \"1k\"\n",
                &[
                    "line 3, column 1",
                    "\"rat\" of a phase",
                    "did you mean rate?",
                    "3 | rat = \"1k\"",
                    "  | ^^^",
                ],
            ),
            (
                "[[phases]]\nname = \"load\"\nrate = \"max\"\n",
                &["line 3", "closed loop"],
            ),
            ("[[phases]]\nname = \"load\"\nrate = \"1k..\"\n", &["line 3", "count"]),
            (
                "[[phases]]\nname = \"load\"\nchurn = \"steady:1m\"\n",
                &["line 3", "above the phases"],
            ),
            (
                "[[phases]]\nname = \"load\"\nrate = 1\n",
                &["line 1", "duration is missing"],
            ),
            ("[[phases]]\nfaults = \"stall\"\n", &["line 2", "table"]),
            (
                "[[phases]]\nfaults = { stal = \"1s\" }\n",
                &["line 2, column 12", "\"stal\" of the faults", "did you mean stall?"],
            ),
            (
                "[[phases]]\nfaults = { stall = \"soon\" }\n",
                &["line 2, column 12", "soon"],
            ),
            ("phase = 7", &["line 1", "--phase 7"]),
        ] {
            let said = parsed(text).unwrap_err();
            assert!(words.iter().all(|word| said.contains(word)), "{text:?}: {said}");
        }
    }

    #[test]
    fn errors_of_queries_name_line_and_column() {
        for (text, words) in [
            ("queries = [1]", &["line 1, column 12", "[[queries]]"][..]),
            ("queries = \"q3@1/s\"", &["line 1", "no kind of query"]),
            ("[[queries]]\nkind = \"q1\"\n", &["line 1", "rate is missing"]),
            ("[[queries]]\nrate = \"1/s\"\n", &["line 1", "kind is missing"]),
            (
                "[[queries]]\nkind = \"lats\"\nrate = \"1/s\"\n",
                &["line 2, column 8", "did you mean last?"],
            ),
            (
                "[[queries]]\nkind = \"q1\"\nrate = \"often\"\n",
                &["line 3, column 8", "no rate of queries"],
            ),
            (
                "[[queries]]\nkind = \"last\"\nrate = \"1/s\"\nspan = \"1h\"\n",
                &["line 4, column 1", "last: it has no parameter \"span\""],
            ),
            (
                "[[queries]]\nkind = \"high-cpu\"\nrate = \"1/s\"\nabove = \"much\"\n",
                &["line 4, column 1", "a number"],
            ),
            (
                "[[queries]]\nkind = \"q1\"\nrate = \"1/s\"\nstep = \"2h\"\n",
                &["line 1", "step is from"],
            ),
            (
                "[[queries]]\nname = \"a=b\"\nkind = \"q1\"\nrate = \"1/s\"\n",
                &["line 2, column 8", "a name is"],
            ),
            (
                "[[phases]]\nname = \"load\"\nqueries = \"q9@1/s\"\n",
                &["line 3, column 1", "no kind of query"],
            ),
        ] {
            let said = parsed(text).unwrap_err();
            assert!(words.iter().all(|word| said.contains(word)), "{text:?}: {said}");
        }
    }

    /// The keys in the table of a section of the document.
    fn listed(heading: &str) -> Vec<&'static str> {
        let document = include_str!("../../fixtures/plan.md");
        let section = document
            .split("\n## ")
            .find(|section| section.starts_with(heading))
            .unwrap();
        let rows = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let mut listed: Vec<&str> = rows.map(|(key, _)| key).collect();
        listed.sort_unstable();
        listed
    }

    #[test]
    fn the_document_lists_the_keys_and_no_others() {
        let mut keys = keys();
        keys.sort_unstable();
        assert_eq!(listed("Run files"), keys);
        let faults = phases::FAULT_KEYS.map(|key| format!("faults.{key}"));
        let of_a_phase = phases::PHASE_KEYS.into_iter().filter(|key| *key != phases::FAULTS);
        let mut keys: Vec<String> = of_a_phase.map(str::to_owned).chain(faults).collect();
        keys.sort_unstable();
        assert_eq!(listed("Phases"), keys);
        let parameters = ["above", "below", "by", "series", "span", "step"];
        let mut keys: Vec<&str> = queries::QUERY_KEYS.into_iter().chain(parameters).collect();
        keys.sort_unstable();
        assert_eq!(listed("Queries"), keys);
    }

    #[test]
    fn every_flag_of_a_run_is_a_key() {
        let command = crate::args::command();
        let run = command.find_subcommand("run").unwrap();
        let flags = run.get_arguments().filter_map(Arg::get_long);
        let sharing = HostsArgs::augment_args(Command::new("sharing"));
        let of_sharing: Vec<&str> = sharing.get_arguments().filter_map(Arg::get_long).collect();
        let flags = flags.filter(|flag| {
            !NOT_KEYS.contains(flag) && !of_sharing.contains(flag) && !["help", "version"].contains(flag)
        });
        let mut flags: Vec<&str> = flags.collect();
        let mut keys = keys();
        flags.sort_unstable();
        keys.sort_unstable();
        assert_eq!(flags, keys);
    }

    #[test]
    fn a_line_that_is_shown_holds_no_password() {
        for text in [
            "store = \"mongo:me:hunter@h",
            "store = \"mongo:me:hunter@h\" x",
            "store = [\n  \"mongo:me:hunter@h?a=b\" x\n]",
            "store = [\"memory:\", \"mong:me:hunter@h\"]\n",
            "\"hunter@\" = 1",
            "stor = \"mongo://me:hunter@h/db\"",
        ] {
            let said = parsed(text).map(|_| ()).unwrap_err();
            assert!(said.contains("| ") && said.contains("***"), "{said}");
            assert!(!said.split("| ").skip(1).any(|part| part.contains("hunter")), "{said}");
        }
    }

    #[test]
    fn an_error_shows_its_line_where_it_has_tabs_and_other_letters() {
        let text = "# \u{fc}ber\n\tseed = \"x\"\n";
        let error = KeyError::new(9..13, "no");
        let expected = "line 2, column 2: no\n  |\n2 | \tseed = \"x\"\n  |  ^^^^";
        assert_eq!(shown(text, &error), expected);
        let after = KeyError::new(text.len() + 5..text.len() + 9, "gone");
        assert!(shown(text, &after).starts_with("line 3, column 1: gone"));
    }
}
