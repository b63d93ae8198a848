//! Files and stdout that results go to, opened before a run starts so that an hour is not
//! lost to a typo.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use tsb_core::report::Report;

use crate::args::OutputArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render;

/// Where the results of a run go.
#[derive(Debug)]
pub struct Outputs {
    report: Option<(PathBuf, File)>,
    hdr_log: Option<(PathBuf, File)>,
    page: Option<(PathBuf, File)>,
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| {
        Failure::usage(format!("cannot write {}", path.display()))
            .because(&error)
            .hint("nothing was run; give a path that can be written")
    })
}

/// Writes the page of a report.
pub fn write_page(report: &Report, path: &Path, file: &mut File) -> Result<(), Failure> {
    let page =
        render::html::page(report).map_err(|error| Failure::new(Exit::Bug, "cannot make the page").because(&error))?;
    file.write_all(page.as_bytes())
        .map_err(|error| Failure::usage(format!("cannot write {}", path.display())).because(&error))
}

impl Outputs {
    /// Opens what `args` name.
    pub fn open(args: &OutputArgs) -> Result<Self, Failure> {
        let open = |path: &Option<PathBuf>| -> Result<Option<(PathBuf, File)>, Failure> {
            path.as_ref().map(|path| Ok((path.clone(), create(path)?))).transpose()
        };
        Ok(Self {
            report: open(&args.out)?,
            hdr_log: open(&args.hdr_log)?,
            page: open(&args.html)?,
        })
    }

    /// Opens what `args` name, for a result that is no report of a run.
    pub fn open_without_page(args: &OutputArgs) -> Result<Self, Failure> {
        match &args.html {
            Some(path) => Err(Failure::usage(format!("cannot write {}", path.display()))
                .because_of("only reports of runs have a page")
                .hint("use tsb run, or take the JSON result")),
            None => Self::open(args),
        }
    }

    /// Where the interval log goes, if it was asked for.
    pub fn hdr_log(&mut self) -> Option<&mut File> {
        self.hdr_log.as_mut().map(|(_, file)| file)
    }

    /// Writes the report to its file and to stdout.
    pub fn write(&mut self, report: &Report, args: &OutputArgs) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        render::json::write(report, &mut bytes)
            .map_err(|error| Failure::new(Exit::Bug, "cannot serialize the report").because(&error))?;
        self.write_report_file(&bytes)?;
        if let Some((path, file)) = &mut self.page {
            write_page(report, path, file)?;
        }
        render::report(report, args.format, &mut std::io::stdout().lock())
    }

    /// Writes the JSON form to the file that was asked for, if one was.
    pub fn write_report_file(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Some((path, file)) = &mut self.report else {
            return Ok(());
        };
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|error| Failure::new(Exit::Usage, format!("cannot write {}", path.display())).because(&error))
    }
}
