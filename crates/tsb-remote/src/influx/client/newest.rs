//! The newest timestamps of many series.
//!
//! A series by itself is one statement. Where many series of a measurement are asked for, one
//! statement about the whole measurement costs the server less.

use std::collections::{BTreeMap, HashMap};

use tsb_core::Timestamp;

use super::InfluxClient;
use crate::influx::names::InfluxSeries;
use tsb_stores::error::Result;

const ACTION: &str = "ask for the newest samples";
/// From this number of series of a measurement and field on, all of its series are asked for.
const MANY: usize = 16;
/// Maximum number of statements per request.
const STATEMENTS: usize = 500;

/// A statement, and the places of the series that it is about.
type Question = (String, Vec<usize>);

impl InfluxClient {
    pub(super) async fn newest_of(&self, series: &[InfluxSeries], into: &mut [Option<Timestamp>]) -> Result<()> {
        into.fill(None);
        for questions in questions(series).chunks(STATEMENTS) {
            let statements: Vec<&str> = questions.iter().map(|(statement, _)| statement.as_str()).collect();
            let results = self
                .connection
                .ask::<(i64, Option<f64>)>(ACTION, &statements.join("; "))
                .await?;
            for result in results {
                let Some((_, places)) = questions.get(result.statement_id) else {
                    continue;
                };
                let mut by_tags: HashMap<_, Vec<usize>> = HashMap::new();
                for place in places {
                    by_tags.entry(series[*place].tags()).or_default().push(*place);
                }
                for rows in result.series {
                    let tags: BTreeMap<_, _> = rows.tags.into_iter().filter(|(_, value)| !value.is_empty()).collect();
                    let Some((at, _)) = rows.values.first() else { continue };
                    for place in by_tags.get(&tags).into_iter().flatten() {
                        into[*place] = Some(Timestamp(*at));
                    }
                }
            }
        }
        Ok(())
    }
}

fn questions(series: &[InfluxSeries]) -> Vec<Question> {
    let mut groups: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (place, series) in series.iter().enumerate() {
        groups
            .entry((series.measurement(), series.field()))
            .or_default()
            .push(place);
    }
    let mut questions = Vec::new();
    for ((measurement, field), places) in groups {
        let ask = |conditions: &str| {
            format!("SELECT last({field}) FROM {measurement} WHERE time <= 9223372036854775806{conditions} GROUP BY *")
        };
        if places.len() < MANY {
            let single = |place: usize| (ask(&series[place].conditions()), vec![place]);
            questions.extend(places.into_iter().map(single));
        } else {
            questions.push((ask(""), places));
        }
    }
    questions
}
