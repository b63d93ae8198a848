//! Sentences for each figure in which a store of ours is behind a server of the same durability.

use serde_json::Value;

use super::cells::{bytes_name, digits, number};

/// A figure that can be compared: its words, where it is, and whether more is better.
struct Figure {
    what: &'static str,
    step: &'static str,
    name: &'static str,
    is_more_better: bool,
}

/// Bytes per sample, which have two names.
const BYTES: &str = "bytes_per_sample";

const FIGURES: &[Figure] = &[
    Figure {
        what: "holds fewer series",
        step: "capacity",
        name: "found_per_second",
        is_more_better: true,
    },
    Figure {
        what: "answers later with the large fleet (response p99 in ns)",
        step: "fixed-large",
        name: "response_p99_ns",
        is_more_better: false,
    },
    Figure {
        what: "is staler with the large fleet (p99 in ms)",
        step: "fixed-large",
        name: "staleness_p99_ms",
        is_more_better: false,
    },
    Figure {
        what: "uses more CPU time with the large fleet (s per million samples)",
        step: "fixed-large",
        name: "cpu_s_per_million",
        is_more_better: false,
    },
    Figure {
        what: "takes more bytes per sample with the large fleet",
        step: "fixed-large",
        name: BYTES,
        is_more_better: false,
    },
];

/// Where a store of ours loses, as a list; nothing where none does.
pub(super) fn sentences(rows: &[&Value]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| row["is_server"] == false) {
        for figure in FIGURES {
            text.extend(figure.sentence(row, rows));
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("Where a store of ours is behind a server of this durability:\n\n{text}\n")
}

impl Figure {
    /// The sentence about one of ours, if a server is ahead of it.
    fn sentence(&self, ours: &Value, rows: &[&Value]) -> Option<String> {
        let own = self.of(ours)?;
        let servers = rows.iter().filter(|row| row["is_server"] == true);
        let of_servers = servers.filter_map(|row| Some((row["name"].as_str()?, self.of(row)?)));
        let ahead = of_servers.filter(|(_, theirs)| {
            if self.is_more_better {
                *theirs > own
            } else {
                *theirs < own
            }
        });
        let ahead: Vec<String> = ahead
            .map(|(name, theirs)| format!("{name} ({})", digits(theirs)))
            .collect();
        let name = ours["name"].as_str()?;
        (!ahead.is_empty()).then(|| {
            format!(
                "- {name} {}: {} against {}.\n",
                self.what,
                digits(own),
                ahead.join(", ")
            )
        })
    }

    /// The figure of a run that means something.
    fn of(&self, row: &Value) -> Option<f64> {
        let step = &row["steps"][self.step];
        let name = if self.name == BYTES {
            bytes_name(step)
        } else {
            self.name
        };
        number(step, name)
            .filter(|_| !["INVALID", "GENERATOR-LIMITED"].contains(&step["verdict"].as_str().unwrap_or("")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_store_of_ours_that_loses_is_named_with_who_is_ahead() {
        let row = |name: &str, is_server: bool, series: f64, cpu: f64| {
            json!({ "name": name, "is_server": is_server, "steps": {
                "capacity": { "found_per_second": series },
                "fixed-large": { "verdict": "VALID", "cpu_s_per_million": cpu },
            }})
        };
        let (ours, ahead, behind) = (
            row("sqlite", false, 9e4, 2.0),
            row("b", true, 1e5, 3.0),
            row("c", true, 8e4, 3.0),
        );
        let expected = "Where a store of ours is behind a server of this durability:\n\n\
                        - sqlite holds fewer series: 90,000 against b (100,000).\n\n";
        assert_eq!(sentences(&[&ours, &ahead, &behind]), expected);
        assert_eq!(sentences(&[&ours, &behind]), "");
    }

    #[test]
    fn bytes_are_those_that_the_table_shows() {
        let row = |name: &str, is_server: bool, figures: Value| json!({ "name": name, "is_server": is_server, "steps": { "fixed-large": figures } });
        let ours = row(
            "rrd",
            false,
            json!({ "bytes_per_sample": 1.0, "disk_bytes_per_sample": 9.0 }),
        );
        let server = row("b", true, json!({ "bytes_per_sample": 5.0 }));
        let said = sentences(&[&ours, &server]);
        assert!(
            said.contains("rrd takes more bytes per sample with the large fleet: 9.00 against b (5.00)"),
            "{said}"
        );
    }
}
