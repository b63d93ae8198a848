//! Prints the result of `tsb verify`, as text or as JSON.

use tsb_core::report::{JournalReport, Verification, VerifiedStore};

use crate::args::DocumentFormat;
use crate::failure::Failure;
use crate::output;
use tsb_run::{foreign, units};

/// Number of samples listed in the text; the JSON lists more.
const SHOWN: usize = 10;

/// Prints the results of the stores.
///
/// # Errors
/// If stdout cannot be written.
pub(super) fn print(stores: Vec<VerifiedStore>, format: DocumentFormat) -> Result<(), Failure> {
    let text = match format {
        DocumentFormat::Text => stores.iter().map(text).collect(),
        DocumentFormat::Json => output::document(&Verification::new(stores))?,
    };
    output::print(text.as_bytes())
}

/// One line for a store, and details below it.
pub(in super::super) fn text(store: &VerifiedStore) -> String {
    let mut lines = vec![format!("{}: {}", store.store, store.verdict.status)];
    if let Some(ledger) = &store.ledger {
        let counts = ledger.counts.counts();
        let cells = counts.map(|(counter, samples)| {
            let name = counter.name().replace('_', " ");
            format!("{name} {}", units::count(samples))
        });
        lines.push(cells.collect::<Vec<_>>().join(", "));
    }
    lines.extend(store.journal.iter().flat_map(of_journal));
    lines.extend(store.verdict.reasons.iter().cloned());
    let losses = store.ledger.as_ref().map_or(&[][..], |ledger| &ledger.losses);
    lines.extend(losses.iter().take(SHOWN).map(ToString::to_string));
    if losses.len() > SHOWN {
        lines.push(format!(
            "and {} more, named in --format json",
            units::count((losses.len() - SHOWN) as u64)
        ));
    }
    let lines: Vec<_> = lines.iter().map(|line| foreign::line(line)).collect();
    format!("{}\n", lines.join("\n  "))
}

/// Samples acknowledged at each level, and how many of them are stored.
fn of_journal(journal: &JournalReport) -> Vec<String> {
    let ended = if journal.is_over {
        "ended whole"
    } else {
        "was cut short"
    };
    let mut lines = vec![format!(
        "the run {ended}; the last record of its journal was written {:.3} s after its start, with {} samples sent",
        journal.last_record_ns as f64 / 1e9,
        units::count(journal.sent)
    )];
    for level in &journal.levels {
        let lost = level.lost_at_most.map_or_else(
            || units::count(level.lost),
            |most| format!("{} to {}", units::count(level.lost), units::count(most)),
        );
        let may = if level.must_be_there || level.lost == 0 {
            ""
        } else {
            " (what ended the run may take them)"
        };
        lines.push(format!(
            "{}: acknowledged {}, found {}, lost {lost}{may}",
            level.level,
            units::count(level.acknowledged),
            units::count(level.found)
        ));
    }
    lines.push(format!(
        "undecided: {} samples are there that were acknowledged after that record, if at all",
        units::count(journal.undecided_found)
    ));
    lines
}
