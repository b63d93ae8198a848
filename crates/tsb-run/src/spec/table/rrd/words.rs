//! Parses the option values that describe an RRD file: its archives, and how values become rates.

use tsb_stores::{ArchiveRule, Consolidation, Derivation};

/// Parses `average:1:1440,max:6:1008`: consolidation, steps per row, rows. An optional fourth
/// number is the share of steps that may be unknown; its default is 0.5.
pub(super) fn parse_archives(text: &str) -> Option<Vec<ArchiveRule>> {
    text.split(',').map(parse_archive).collect()
}

fn parse_archive(text: &str) -> Option<ArchiveRule> {
    let mut parts = text.split(':');
    let consolidation = match parts.next()? {
        "average" => Consolidation::Average,
        "min" => Consolidation::Min,
        "max" => Consolidation::Max,
        "last" => Consolidation::Last,
        _ => return None,
    };
    let steps = parts.next()?.parse().ok().filter(|&steps| steps > 0)?;
    let rows = parts.next()?.parse().ok().filter(|&rows| rows > 0)?;
    let xff = parts.next().map_or(Ok(0.5), str::parse::<f64>).ok()?;
    let is_whole = parts.next().is_none() && (0.0..1.0).contains(&xff);
    is_whole.then_some(ArchiveRule {
        consolidation,
        steps,
        rows,
        unknown_permille_max: (xff * 1000.0).round().min(999.0) as u16,
    })
}

/// Parses the kind of a data source.
pub(super) fn parse_derivation(text: &str) -> Option<Derivation> {
    match text {
        "gauge" => Some(Derivation::Gauge),
        "counter" => Some(Derivation::Counter),
        "derive" => Some(Derivation::Derive),
        "absolute" => Some(Derivation::Absolute),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_read() {
        let archives = parse_archives("average:1:1440,max:6:1008:0.25").unwrap();
        assert_eq!(archives.len(), 2);
        assert_eq!(
            (archives[0].steps, archives[0].rows, archives[0].unknown_permille_max),
            (1, 1440, 500)
        );
        assert_eq!(
            (archives[1].consolidation, archives[1].unknown_permille_max),
            (Consolidation::Max, 250)
        );
        for text in [
            "",
            "average",
            "average:0:5",
            "sum:1:5",
            "max:1:5:1",
            "max:1:5:0.5:1",
            "max:1:5,",
        ] {
            assert!(parse_archives(text).is_none(), "{text:?}");
        }
    }
}
