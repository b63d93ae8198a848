//! `--fail-if` and `--fail-unless`: conditions that end a command with exit code 5.

use std::str::FromStr;

use tsb_core::report::{Run, ThresholdReport};
use tsb_run::threshold::{Condition, Threshold};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::render::names::names;
use crate::render::thresholds::sentence;
use crate::say;

/// The thresholds of a run.
///
/// # Errors
/// If one cannot be read, or needs a baseline, which a run does not have.
pub fn of_run(args: &RunArgs) -> Result<Vec<Threshold>, Failure> {
    let thresholds = read(&args.fail_if, &args.fail_unless)?;
    match thresholds.iter().find(|threshold| threshold.condition.needs_baseline()) {
        Some(threshold) => Err(
            Failure::usage(format!("cannot use the condition {}", threshold.condition))
                .because_of("a run has nothing to compare with")
                .hint("give an absolute limit, or compare two reports: tsb compare OLD.json NEW.json"),
        ),
        None => Ok(thresholds),
    }
}

/// The thresholds of two flags, in their order.
///
/// # Errors
/// If one cannot be read.
pub fn read(fail_if: &[String], fail_unless: &[String]) -> Result<Vec<Threshold>, Failure> {
    let one = |flag: &str, text: &String| {
        Condition::from_str(text).map_err(|error| {
            let failure = Failure::usage(format!("cannot read {flag} {text}")).because(&error);
            let hint = error.hint().map_or(String::new(), |hint| format!("{hint}; "));
            failure.hint(format!("{hint}docs/thresholds.md lists all figures"))
        })
    };
    let ifs = fail_if
        .iter()
        .map(|text| one("--fail-if", text).map(Threshold::fail_if));
    let unless = fail_unless
        .iter()
        .map(|text| one("--fail-unless", text).map(Threshold::fail_unless));
    ifs.chain(unless).collect()
}

/// Holds runs against thresholds, and writes each that was not passed to stderr. Returns whether
/// all were passed.
pub fn check(runs: &mut [Run], thresholds: &[Threshold]) -> bool {
    for run in runs.iter_mut() {
        run.thresholds = thresholds.iter().map(|threshold| threshold.check(run, None)).collect();
    }
    let is_one = runs.len() == 1;
    let names = names(runs);
    let mut is_passed = true;
    for (run, name) in runs.iter().zip(names) {
        let of = if is_one { String::new() } else { format!("{name}: ") };
        is_passed &= tell(&of, &run.thresholds);
    }
    is_passed
}

/// Writes each threshold that was not passed to stderr, with `of` in front. Returns whether all
/// were passed.
pub fn tell(of: &str, thresholds: &[ThresholdReport]) -> bool {
    for threshold in thresholds.iter().filter(|threshold| !threshold.is_passed()) {
        say::failure(format_args!("tsb: {of}{}", sentence(threshold)));
    }
    thresholds.iter().all(ThresholdReport::is_passed)
}

#[cfg(test)]
mod tests {
    use tsb_core::report::QueryLatency;
    use tsb_run::threshold::Figure;

    use super::*;

    #[test]
    fn the_document_lists_every_figure() {
        // The page is the repository's: a package that was unpacked elsewhere does not hold it.
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        if !root.join("xtask").is_dir() {
            return;
        }
        let document = std::fs::read_to_string(root.join("docs/thresholds.md")).unwrap();
        let mut run: Run = serde_json::from_str(include_str!("../fixtures/reports/schema-2.json")).unwrap();
        run.query_latency.insert("NAME".to_owned(), QueryLatency::default());
        for figure in Figure::all_of(&run) {
            let name = figure.name();
            let family = name.rsplit_once('.').map_or(name, |(family, _)| family);
            let names = [name, family, &format!("{family}.p99")].map(|name| format!("`{name}`"));
            let is_listed = names.iter().any(|name| document.contains(name));
            assert!(is_listed, "{name}");
        }
    }

    #[test]
    fn a_condition_that_cannot_be_read_names_its_flag() {
        let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let said = read(&text(&["lost=0"]), &text(&["respnse.p99<5ms"]))
            .unwrap_err()
            .to_string();
        for word in [
            "--fail-unless respnse.p99<5ms",
            "\"respnse.p99\"",
            "response.p99",
            "docs/thresholds.md",
        ] {
            assert!(said.contains(word), "{said}");
        }
        let args = RunArgs {
            fail_if: text(&["response.p99>+10%"]),
            ..RunArgs::default()
        };
        assert!(
            of_run(&args)
                .unwrap_err()
                .to_string()
                .contains("tsb compare OLD.json NEW.json")
        );
    }
}
