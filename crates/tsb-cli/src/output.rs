//! Writes results to files and to stdout. Files are checked to be writable before a run starts,
//! so that an hour is not lost to a typo. Outputs fail independently: a full disk does not
//! prevent the text on stdout.

mod target;

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tsb_core::report::Report;

pub use target::Target;

use crate::args::{DocumentFormat, Format, OutputArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{render, say};
use tsb_run::foreign;
use tsb_run::journal::Journal;

/// The outputs of a command.
#[derive(Debug)]
pub struct Outputs {
    format: Format,
    report: Option<Target>,
    page: Option<Target>,
    hdr_log: Option<(Target, Vec<u8>)>,
    journal: Option<Arc<Journal>>,
}

/// Writes text to stdout, with control characters escaped. A reader that has closed the pipe is
/// no error.
///
/// # Errors
/// [`Exit::Unwritten`] if stdout cannot be written.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(bytes);
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(foreign::lines(&text).as_bytes());
    ignore_broken_pipe(written.and_then(|()| stdout.flush()))
}

/// Converts the result of a write to stdout: a reader that has closed the pipe is no error.
///
/// # Errors
/// [`Exit::Unwritten`] for any other failure.
pub fn ignore_broken_pipe(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::unwritten("to stdout", &error)),
        _ => Ok(()),
    }
}

/// The JSON form of a report.
pub fn json(report: &Report) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    tsb_run::json::write(report, &mut bytes)
        .map_err(|error| Failure::new(Exit::Bug, "cannot serialize the report").because(&error))?;
    Ok(bytes)
}

/// The JSON form of any other document of the report model, with a last line feed.
pub fn document(document: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(document)
        .map(|json| json + "\n")
        .map_err(|error| Failure::new(Exit::Bug, "cannot serialize the result").because(&error))
}

/// Writes the HTML page of a report.
pub fn write_page(report: &Report, target: &Target) -> Result<(), Failure> {
    let page =
        render::html::page(report).map_err(|error| Failure::new(Exit::Bug, "cannot make the page").because(&error))?;
    target.write(page.as_bytes())
}

/// Returns the first failure and prints the others to stderr.
pub fn first_failure(failures: impl IntoIterator<Item = Failure>) -> Result<(), Failure> {
    let mut failures = failures.into_iter();
    let Some(first) = failures.next() else { return Ok(()) };
    failures.for_each(say::failure);
    Err(first)
}

/// Refuses two outputs that name one file.
fn check_apart(named: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    for (index, (flag, path)) in named.iter().enumerate() {
        let same = named[..index].iter().find(|(_, other)| path.is_some() && other == path);
        if let (Some((other, _)), Some(path)) = (same, path) {
            return Err(Failure::usage(format!("cannot write {}", path.display()))
                .because_of(format!("{other} and {flag} name the same file")));
        }
    }
    Ok(())
}

impl Outputs {
    /// Checks that the files named by `args` can be written.
    ///
    /// # Errors
    /// If one cannot, or two outputs name the same file.
    pub fn open(args: &OutputArgs) -> Result<Self, Failure> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Target::prepare).transpose();
        check_apart(&[
            ("--out", args.out.as_deref()),
            ("--html", args.html.as_deref()),
            ("--hdr-log", args.hdr_log.as_deref()),
        ])?;
        Ok(Self {
            format: args.format,
            report: open(&args.out)?,
            page: open(&args.html)?,
            hdr_log: open(&args.hdr_log)?.map(|target| (target, Vec::new())),
            journal: None,
        })
    }

    /// Writes the report of one end of a wire, which has fewer fields than that of a run. `text`
    /// makes its text form.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_partial(&self, result: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        let json = document(result)?;
        let report = crate::reports::parse_own(&json)?;
        let file = self.report.as_ref().map(|target| target.write(json.as_bytes()));
        let journal = self.end_journal(file.as_ref());
        let page = self.page.as_ref().map(|target| write_page(&report, target));
        let log = self.hdr_log.as_ref().map(|(target, bytes)| target.write(bytes));
        let shown = match self.format {
            Format::Json => Ok(json.into_bytes()),
            Format::Text => Ok(text().into_bytes()),
            Format::Csv => render::bytes(&report, Format::Csv),
        };
        let stdout = shown.and_then(|bytes| print(&bytes));
        let all = [file, Some(journal), page, log, Some(stdout)].into_iter().flatten();
        first_failure(all.filter_map(Result::err))
    }

    /// As [`Self::open`], for a result that is not a report of a run: it has no page, no
    /// interval log and no table.
    ///
    /// # Errors
    /// As [`Self::open`], and if one of these is requested.
    pub fn open_without_page(args: &OutputArgs) -> Result<Self, Failure> {
        let refused = [("--html", &args.html), ("--hdr-log", &args.hdr_log)];
        let refused = refused
            .into_iter()
            .find_map(|(flag, path)| Some((flag, path.as_ref()?)));
        match refused {
            Some((flag, path)) => Err(Failure::usage(format!("cannot write {flag} {}", path.display()))
                .because_of("this command has neither a page nor an interval log")
                .hint("take the JSON result, with --out")),
            None if args.format == Format::Csv => {
                Err(Failure::usage("cannot write this result as CSV").hint("give --format json"))
            }
            None => Self::open(args),
        }
    }

    /// The outputs of a result for which no page, log or table is offered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn of_document(format: DocumentFormat, out: Option<&Path>) -> Result<Self, Failure> {
        Self::of_experiment(format, out, None)
    }

    /// As [`Self::of_document`], for a result that has a page.
    ///
    /// # Errors
    /// If a file cannot be written, or both are the same.
    pub fn of_experiment(format: DocumentFormat, out: Option<&Path>, html: Option<&Path>) -> Result<Self, Failure> {
        check_apart(&[("--out", out), ("--html", html)])?;
        Ok(Self {
            format: match format {
                DocumentFormat::Text => Format::Text,
                DocumentFormat::Json => Format::Json,
            },
            report: out.map(Target::prepare).transpose()?,
            page: html.map(Target::prepare).transpose()?,
            hdr_log: None,
            journal: None,
        })
    }

    /// The buffer of the interval log, if one was requested.
    pub fn hdr_log(&mut self) -> Option<&mut Vec<u8>> {
        self.hdr_log.as_mut().map(|(_, bytes)| bytes)
    }

    /// Sets the journal that the complete report makes superfluous.
    pub fn supersedes(&mut self, journal: Option<Arc<Journal>>) {
        self.journal = journal;
    }

    /// Ends the journal if the report was written to its file, or if there is no file for it.
    fn end_journal(&self, file: Option<&Result<(), Failure>>) -> Result<(), Failure> {
        match &self.journal {
            Some(journal) if file.is_none_or(Result::is_ok) => Ok(journal.finish()?),
            _ => Ok(()),
        }
    }

    /// The file of the JSON report, if one was named.
    pub fn report_file(&self) -> Option<&Target> {
        self.report.as_ref()
    }

    /// Writes the report to all outputs. Each is tried, even if another failed.
    ///
    /// # Errors
    /// The first failure; the others are printed to stderr.
    pub fn write(&self, report: &Report) -> Result<(), Failure> {
        let file = self.report.as_ref().map(|target| target.write(&json(report)?));
        let journal = self.end_journal(file.as_ref());
        let page = self.page.as_ref().map(|target| write_page(report, target));
        let log = self.hdr_log.as_ref().map(|(target, bytes)| target.write(bytes));
        let stdout = render::bytes(report, self.format).and_then(|bytes| print(&bytes));
        let all = [file, Some(journal), page, log, Some(stdout)].into_iter().flatten();
        first_failure(all.filter_map(Result::err))
    }

    /// As [`Self::write_value`], for a result that has a page.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_with_page(
        &self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
        page: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let page = self.page.as_ref().map(|target| target.write(page().as_bytes()));
        first_failure(
            [self.write_value(value, text).err(), page.and_then(Result::err)]
                .into_iter()
                .flatten(),
        )
    }

    /// Writes a result that is not a report of a run.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_value(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        let json = document(value)?;
        let file = self.report.as_ref().map(|target| target.write(json.as_bytes()));
        let shown = if self.format == Format::Json { json } else { text() };
        let all = [file, Some(print(shown.as_bytes()))].into_iter().flatten();
        first_failure(all.filter_map(Result::err))
    }
}
