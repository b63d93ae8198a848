//! From an answer about one series to a page of its samples.

use serde::Deserialize;

use crate::paged_series::Page;

/// A sample of an answer; what else stands there, such as tags, is skipped.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub(super) struct Sample {
    pub(super) timestamp: i64,
    pub(super) value: f64,
}

/// The samples of an answer, which were asked for up to `limit`, that lie between two milliseconds, both
/// included.
///
/// # Errors
/// Why an answer of `limit` samples does not say which ones are missing.
pub(super) fn page(
    mut samples: Vec<Sample>,
    limit: i64,
    (first, last): (i64, i64),
    keeps_copies: bool,
) -> Result<Page, &'static str> {
    let is_full = samples.len() as i64 >= limit;
    let is_in_order = samples.is_sorted_by_key(|sample| sample.timestamp);
    if is_full && !is_in_order {
        return Err("samples are not in the order of time");
    }
    if !is_in_order {
        samples.sort_by_key(|sample| sample.timestamp);
    }
    if !keeps_copies {
        // A walk through a ring may visit a slot twice.
        samples.dedup_by_key(|sample| sample.timestamp);
    }
    let resumes_ms = if is_full {
        Some(cut(&mut samples, first)?).filter(|resumes_ms| *resumes_ms <= last)
    } else {
        None
    };
    let in_range = samples
        .iter()
        .filter(|sample| (first..=last).contains(&sample.timestamp));
    Ok(Page {
        samples: in_range.map(|sample| (sample.timestamp, sample.value)).collect(),
        resumes_ms,
    })
}

/// Cuts off the samples of the last timestamp, of which there may be more, and returns it.
fn cut(samples: &mut Vec<Sample>, first: i64) -> Result<i64, &'static str> {
    let last = samples.last().map_or(i64::MIN, |sample| sample.timestamp);
    if last <= first {
        return Err("more samples stand at one time than an answer has");
    }
    samples.retain(|sample| sample.timestamp < last);
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(times: &[i64]) -> Vec<Sample> {
        let of = |timestamp: &i64| Sample {
            timestamp: *timestamp,
            value: *timestamp as f64,
        };
        times.iter().map(of).collect()
    }

    fn paged(times: &[i64], keeps_copies: bool) -> Result<(Vec<i64>, Option<i64>), &'static str> {
        let page = page(samples(times), 4, (10, 20), keeps_copies)?;
        Ok((page.samples.iter().map(|(ms, _)| *ms).collect(), page.resumes_ms))
    }

    #[test]
    fn what_is_beside_the_range_is_left_out() {
        assert_eq!(paged(&[9, 10, 20], false), Ok((vec![10, 20], None)));
        assert_eq!(paged(&[], false), Ok((vec![], None)));
    }

    #[test]
    fn a_full_answer_goes_on_at_its_last_time() {
        assert_eq!(paged(&[9, 11, 12, 13], false), Ok((vec![11, 12], Some(13))));
        assert_eq!(paged(&[11, 12, 12, 12], true), Ok((vec![11], Some(12))));
        assert_eq!(paged(&[10, 19, 20, 21], false), Ok((vec![10, 19, 20], None)));
    }

    #[test]
    fn a_walk_through_a_ring_is_put_in_order() {
        assert_eq!(paged(&[15, 11, 15], false), Ok((vec![11, 15], None)));
        assert_eq!(paged(&[15, 11, 15], true), Ok((vec![11, 15, 15], None)));
    }

    #[test]
    fn a_full_answer_that_hides_samples_is_refused() {
        assert!(paged(&[12, 11, 13, 14], false).is_err());
        assert!(paged(&[10, 10, 10, 10], true).is_err());
        assert!(paged(&[7, 8, 9, 10], false).is_err());
    }
}
