//! Resampling as stages of a pipeline: the server reads samples, and returns rows.
//!
//! Sums are computed in time order by `$reduce`. `$sum` compensates its rounding errors, so two
//! servers with the same samples could return different sums.

use mongodb::bson::{Bson, Document, doc};

use tsb_stores::store::{Consolidation, Resample};

/// Stages that turn samples `{n, v}` in time order (`n` in nanoseconds) into rows of the same
/// form.
pub(super) fn stages(resample: Resample) -> Vec<Document> {
    let rest = doc! { "$mod": ["$n", resample.step_ns] };
    let from_start = doc! { "$cond": [{ "$lt": ["$$r", 0] }, { "$add": ["$$r", resample.step_ns] }, "$$r"] };
    let start = doc! { "$let": { "vars": { "r": rest }, "in": { "$subtract": ["$n", from_start] } } };
    // In a pipeline NaN equals itself, and removed values are ignored.
    let number = doc! { "$cond": [{ "$eq": ["$v", f64::NAN] }, "$$REMOVE", "$v"] };
    let sum = doc! { "$reduce": { "input": "$a", "initialValue": 0.0, "in": { "$add": ["$$value", "$$this"] } } };
    let count = doc! { "$size": "$a" };
    let (accumulator, value): (Document, Bson) = match resample.consolidation {
        Consolidation::Min => (doc! { "$min": number }, "$a".into()),
        Consolidation::Max => (doc! { "$max": number }, "$a".into()),
        Consolidation::Sum => (doc! { "$push": number }, sum.into()),
        Consolidation::Average => {
            let average = doc! { "$cond": [{ "$eq": [count.clone(), 0] }, f64::NAN, { "$divide": [sum, count] }] };
            (doc! { "$push": number }, average.into())
        }
        Consolidation::Count => (doc! { "$sum": 1 }, doc! { "$toDouble": "$a" }.into()),
        Consolidation::First => (doc! { "$first": "$v" }, "$a".into()),
        Consolidation::Last => (doc! { "$last": "$v" }, "$a".into()),
    };
    vec![
        doc! { "$group": { "_id": start, "a": accumulator } },
        doc! { "$project": { "_id": 0, "n": "$_id", "v": value } },
        doc! { "$sort": { "n": 1 } },
    ]
}
