//! Parses churn as a flag: `steady:10m`, `gradual:2x/10m`, `double-halve:10m`,
//! `spike:10x/10m/30s`.

use tsb_core::workload::{Churn, ChurnMode};

use tsb_run::units;

const FORMS: &str = "it is none, steady:LIFETIME, gradual:MULTIPLEx/PERIOD, double-halve:PERIOD or \
    spike:MULTIPLEx/PERIOD/LENGTH, such as spike:10x/10m/30s";

fn multiple(text: &str) -> Result<f64, String> {
    let digits = text.strip_suffix('x').unwrap_or(text);
    digits
        .parse()
        .map_err(|_| format!("{text:?} is not a multiple, such as 2x"))
}

/// Parses the flag; `none` removes churn.
pub(super) fn parse(text: &str) -> Result<Option<Churn>, String> {
    if text == "none" {
        return Ok(None);
    }
    let (kind, rest) = text.split_once(':').ok_or(FORMS)?;
    let parts: Vec<&str> = rest.split('/').collect();
    let mode = match (kind, parts.as_slice()) {
        ("steady", [lifetime]) => ChurnMode::Steady {
            lifetime_ns: units::parse_duration(lifetime)?,
        },
        ("gradual", [times, period]) => ChurnMode::Gradual {
            multiple: multiple(times)?,
            period_ns: units::parse_duration(period)?,
        },
        ("double-halve", [period]) => ChurnMode::DoubleHalve {
            period_ns: units::parse_duration(period)?,
        },
        ("spike", [times, period, length]) => ChurnMode::Spike {
            multiple: multiple(times)?,
            period_ns: units::parse_duration(period)?,
            length_ns: units::parse_duration(length)?,
        },
        _ => return Err(FORMS.to_owned()),
    };
    let churn = Churn {
        mode,
        // The completed plan knows how long the run takes.
        horizon_ns: 0,
        unit: 54,
    };
    Ok(Some(churn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_can_be_said_and_anything_else_is_refused() {
        assert_eq!(parse("none"), Ok(None));
        let spike = parse("spike:10x/10m/30s").unwrap().unwrap();
        let expected = ChurnMode::Spike {
            multiple: 10.0,
            period_ns: 600_000_000_000,
            length_ns: 30_000_000_000,
        };
        assert_eq!(spike.mode, expected);
        for good in ["steady:10m", "gradual:2x/10m", "double-halve:10m"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "steady",
            "steady:",
            "steady:ten",
            "spike:10x/10m",
            "wave:1m",
            "gradual:y/1m",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
