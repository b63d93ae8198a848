//! Reads a folder of files as one trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::csv::Naming;
use super::error::{TraceDefect, TraceError};
use super::memory::{Trace, TraceBuilder};
use super::open::{TraceFormat, read_file};
use super::text::ReadOptions;

/// Maximum number of files in a folder, and maximum depth of nested folders.
const MAX_FILES: usize = 100_000;
const MAX_DEPTH: usize = 16;
/// Maximum number of skipped files that are named.
const NAMED_FILES: usize = 3;

/// Reads every file below a folder whose extension belongs to a format, or with `format` every
/// file, in order of their names. Hidden files are skipped.
///
/// # Errors
/// Names the file that cannot be read, or two files that would give the same series.
pub(super) fn read(folder: &Path, format: Option<TraceFormat>, options: &ReadOptions) -> Result<Trace, TraceError> {
    merged(folder, format, options).map_err(|defect| defect.reading(folder))
}

fn merged(folder: &Path, format: Option<TraceFormat>, options: &ReadOptions) -> Result<Trace, TraceDefect> {
    let (mut files, mut others) = (Vec::new(), Vec::new());
    list(folder, format, 0, &mut files, &mut others)?;
    files.sort();
    others.sort();
    if files.is_empty() {
        return Err(TraceDefect::Foreign {
            what: "no file in this folder ends in .csv, .tsv, .lp, .influx, .prom, .om, .openmetrics or .tsbtrace",
        });
    }
    let mut whole = TraceBuilder::new(options.limits);
    let mut decisions = BTreeMap::<String, u64>::new();
    let mut named = BTreeMap::<String, PathBuf>::new();
    for file in &files {
        let within = file.strip_prefix(folder).unwrap_or(file);
        let name = name_of(within);
        if let Some(other) = named.insert(name.clone(), within.to_owned()) {
            let what = "another file of the folder has the same name but for its ending";
            let defect = TraceDefect::Invalid { what };
            return Err(in_file(&other, defect));
        }
        let naming = Naming {
            series: name.clone(),
            file: Some(name),
        };
        let shown = within.display().to_string();
        let trace = match read_file(file, format, options, &naming) {
            Ok(trace) => trace,
            Err(TraceDefect::Empty { problems }) => {
                whole.problems_of(problems, &shown);
                continue;
            }
            Err(defect) => return Err(in_file(within, defect)),
        };
        for decision in &trace.decisions {
            *decisions.entry(decision.clone()).or_default() += 1;
        }
        whole.merge(trace, &shown).map_err(|defect| in_file(within, defect))?;
    }
    for (decision, count) in decisions {
        whole.decide(format!("{count} of {} files: {decision}", files.len()));
    }
    if !others.is_empty() {
        whole.decide(not_read(&others));
    }
    let trace = whole.finish();
    if trace.samples() == 0 {
        return Err(TraceDefect::Empty {
            problems: trace.problems,
        });
    }
    Ok(trace)
}

fn in_file(file: &Path, defect: TraceDefect) -> TraceDefect {
    TraceDefect::InFile {
        file: file.to_owned(),
        defect: Box::new(defect),
    }
}

fn not_read(others: &[String]) -> String {
    let named = others[..others.len().min(NAMED_FILES)].join(", ");
    let more = if others.len() > NAMED_FILES { ", ..." } else { "" };
    format!("{} files with other endings were not read: {named}{more}", others.len())
}

/// The files below a folder: those to read, and the names of the others.
fn list(
    folder: &Path,
    format: Option<TraceFormat>,
    depth: usize,
    files: &mut Vec<PathBuf>,
    others: &mut Vec<String>,
) -> Result<(), TraceDefect> {
    let entries = std::fs::read_dir(folder).map_err(TraceDefect::io("list the folder"))?;
    for entry in entries {
        let entry = entry.map_err(TraceDefect::io("list the folder"))?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            if depth == MAX_DEPTH {
                return Err(TraceDefect::Invalid {
                    what: "its folders lie more than 16 deep",
                });
            }
            list(&path, format, depth + 1, files, others)?;
        } else if format.is_some() || TraceFormat::of_path(&path).is_some() {
            files.push(path);
        } else {
            others.push(name);
        }
        if files.len() > MAX_FILES {
            return Err(TraceDefect::Invalid {
                what: "it holds more than 100,000 files",
            });
        }
    }
    Ok(())
}

/// The name of a file in a folder: its path within the folder, joined by dots, without its
/// extension.
fn name_of(within: &Path) -> String {
    let stem = within.with_extension("");
    let parts = stem.iter().map(|part| part.to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests;
