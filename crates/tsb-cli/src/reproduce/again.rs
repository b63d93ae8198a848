//! A saved result of an experiment, shown again.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tsb_core::report::SCHEMA_VERSION;
use tsb_core::report::experiment::{dalmatiner, hm9000, mohawk, records, rrdcached};

use crate::args::{DocumentFormat, Format, ReportArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Outputs;
use crate::render::html::{dalmatiner_page, hm9000_page, mohawk_page, records_page, rrdcached_page};

/// What is read of a document before it is known which experiment it is of.
#[derive(Deserialize)]
struct Head {
    schema_version: u32,
    experiment: Named,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Shows the result of an experiment as `tsb reproduce` did. `None` if `text` is none.
pub fn show(text: &str, args: &ReportArgs) -> Option<Result<Exit, Failure>> {
    let head: Head = serde_json::from_str(text).ok()?;
    if head.schema_version > SCHEMA_VERSION {
        let why = format!(
            "its schema_version is {}; this program reads 1 to {SCHEMA_VERSION}",
            head.schema_version
        );
        return Some(Err(Failure::usage("cannot show the experiment").because_of(why)));
    }
    let shown = match head.experiment.name.as_str() {
        super::hm9000::NAME => outputs(args).and_then(|outputs| {
            let result: hm9000::Reproduction = parsed(text)?;
            outputs.write_with_page(&result, || super::hm9000::text::page(&result), || hm9000_page(&result))
        }),
        super::records::NAME => outputs(args).and_then(|outputs| {
            let result: records::Reproduction = parsed(text)?;
            outputs.write_with_page(
                &result,
                || super::records::text::page(&result),
                || records_page(&result),
            )
        }),
        super::dalmatiner::NAME => outputs(args).and_then(|outputs| {
            let result: dalmatiner::Reproduction = parsed(text)?;
            outputs.write_with_page(
                &result,
                || super::dalmatiner::text::page(&result),
                || dalmatiner_page(&result),
            )
        }),
        super::mohawk::NAME => outputs(args).and_then(|outputs| {
            let result: mohawk::Reproduction = parsed(text)?;
            outputs.write_with_page(&result, || super::mohawk::text::page(&result), || mohawk_page(&result))
        }),
        super::rrdcached::NAME => outputs(args).and_then(|outputs| {
            let result: rrdcached::Reproduction = parsed(text)?;
            outputs.write_with_page(
                &result,
                || super::rrdcached::text::page(&result),
                || rrdcached_page(&result),
            )
        }),
        name => Err(Failure::usage(format!("cannot show an experiment of the name {name}"))
            .because_of("this program has no such experiment")
            .hint("tsb reproduce lists those that it has")),
    };
    Some(shown.map(|()| Exit::Done))
}

fn outputs(args: &ReportArgs) -> Result<Outputs, Failure> {
    let refuse = |flag: &str, why: &str| {
        Failure::usage(format!("cannot show an experiment with {flag}"))
            .because_of(why)
            .hint("give --format text or json, and --html for the page")
    };
    let format = match args.format {
        Format::Text => DocumentFormat::Text,
        Format::Json => DocumentFormat::Json,
        Format::Csv => return Err(refuse("--format csv", "it has no intervals")),
    };
    if args.csv.is_some() {
        return Err(refuse("--csv", "it has no tables of intervals"));
    }
    if !args.label.is_empty() {
        return Err(refuse("--label", "it has no runs to be named"));
    }
    Outputs::of_experiment(format, None, args.html.as_deref())
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage("cannot show the experiment")
            .because(&error)
            .hint("it was written by another version of tsb, or changed since")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> ReportArgs {
        ReportArgs {
            reports: Vec::new(),
            label: Vec::new(),
            html: None,
            csv: None,
            format: Format::Text,
        }
    }

    #[test]
    fn what_is_no_experiment_is_left_alone_and_an_unknown_one_explained() {
        for text in ["", "{}", r#"{"schema_version": 2, "runs": []}"#] {
            assert!(show(text, &args()).is_none(), "{text}");
        }
        let with = |version: u32, name: &str| {
            let text = format!(r#"{{"schema_version": {version}, "experiment": {{"name": "{name}"}}}}"#);
            let shown = show(&text, &args()).map(|shown| shown.map(drop));
            shown.unwrap().unwrap_err().to_string()
        };
        assert!(with(SCHEMA_VERSION, "astrology").contains("astrology"));
        assert!(with(SCHEMA_VERSION + 1, "hm9000").contains("cannot show the experiment"));
        assert!(with(SCHEMA_VERSION, "hm9000").contains("cannot show the experiment"));
    }
}
