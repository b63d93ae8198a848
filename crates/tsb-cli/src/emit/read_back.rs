//! `tsb emit --verify-with`: a program reads back what was sent, from wherever the server keeps it.

use tsb_core::verdict::{Status, Verdict};
use tsb_run::ends::EmitReport;
use tsb_run::spec::Spec;

use crate::failure::Failure;
use crate::output::document;
use crate::{reports, say, verify};

/// The program as a store. It is started once, so that an hour of sending is not lost to a typo.
pub(super) fn reader(program: &str) -> Result<Spec, Failure> {
    let failure = || Failure::usage(format!("cannot use --verify-with {program}"));
    let spec: Spec = format!("exec:{program}")
        .parse()
        .map_err(|error: tsb_stores::Error| failure().because(&error))?;
    let opened = spec.open().map_err(|error| Failure::opening(&spec, &error))?;
    if !opened.capabilities().query {
        return Err(failure().because_of("it says query=0: it cannot read anything back"));
    }
    opened.close().map_err(|error| Failure::opening(&spec, &error))?;
    Ok(spec)
}

/// Reads back what a report says was sent, and adds what was found. Returns whether it could be
/// read; if not, the verdict says why.
pub(super) fn verify(result: &mut EmitReport, reader: &Spec) -> Result<bool, Failure> {
    let report = reports::parse_own(&document(result)?)?;
    let verified = report.runs.iter().map(|run| verify::emitted(run, reader)).next_back();
    match verified {
        Some(Ok(verified)) => {
            result.verdict = verified.verdict.clone();
            "as the program of --verify-with says".clone_into(&mut result.target.exactness);
            result.verified = Some(verified);
            Ok(true)
        }
        Some(Err(failure)) => {
            let why = format!("nothing was read back: {}", failure.one_line());
            result.verdict = Verdict::new(Status::Unverified, vec![why]);
            say::failure(failure);
            Ok(false)
        }
        None => Ok(false),
    }
}
