//! Response time taken apart, in words: the parts, and a summary of the slowest operations. The
//! text and the page share it.

use tsb_core::report::{BreakdownReport, EventKind, PartShares, Run, SlowOperation};

use super::lines::Lines;
use tsb_run::units::{count, nanos};

/// A part of a response time.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name, which is also that of its share in JSON.
    pub name: &'static str,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// Its share, if the path has it.
    pub share: fn(&PartShares) -> Option<f64>,
    /// Its time in one operation, in nanoseconds.
    pub time: fn(&SlowOperation) -> Option<u64>,
}

/// The parts, in the order in which an operation goes through them.
pub const PARTS: [Part; 6] = [
    Part {
        name: "waiting",
        meaning: "behind earlier operations of the same worker or connection",
        share: |shares| Some(shares.waiting),
        time: |one| Some(one.parts.waiting_ns),
    },
    Part {
        name: "late",
        meaning: "the generator itself was late",
        share: |shares| Some(shares.late),
        time: |one| Some(one.parts.late_ns),
    },
    Part {
        name: "encoding",
        meaning: "start until encoded",
        share: |shares| shares.encoding,
        time: |one| one.parts.encoding_ns,
    },
    Part {
        name: "transport",
        meaning: "encoded until read, without waiting",
        share: |shares| shares.transport,
        time: |one| one.parts.transport_ns,
    },
    Part {
        name: "store",
        meaning: "in the store; on a wire, decoder and store",
        share: |shares| shares.store,
        time: |one| one.parts.store_ns,
    },
    Part {
        name: "unknown",
        meaning: "start until the answer: transport and store cannot be told apart",
        share: |shares| shares.unknown,
        time: |one| one.parts.unknown_ns,
    },
];

/// The parts that the path of these operations has.
pub fn parts(breakdown: &BreakdownReport) -> impl Iterator<Item = &'static Part> {
    let shares = breakdown.quantiles.last().map(|max| max.shares).unwrap_or_default();
    PARTS.iter().filter(move |part| (part.share)(&shares).is_some())
}

/// The name of a quantile, as in `p99.9`; the largest is `max`.
pub fn quantile_name(quantile: f64) -> String {
    if quantile >= 1.0 {
        "max".to_owned()
    } else {
        format!("p{}", (quantile * 1e6).round() / 1e4)
    }
}

/// The largest part of an operation.
pub fn largest(operation: &SlowOperation) -> Option<&'static Part> {
    PARTS.iter().max_by_key(|part| (part.time)(operation))
}

/// What the slowest operations consist of, and what else happened during them.
pub fn slowest(breakdown: &BreakdownReport) -> Vec<String> {
    let worst = &breakdown.worst;
    let (Some(first), Some(last)) = (worst.first(), worst.last()) else {
        return Vec::new();
    };
    let of = |part: &Part| {
        let mostly = worst
            .iter()
            .filter(|one| largest(one).is_some_and(|most| most.name == part.name));
        mostly.count()
    };
    let mostly = PARTS.iter().map(|part| (part.name, of(part))).filter(|(_, n)| *n > 0);
    let mostly: Vec<String> = mostly.map(|(name, n)| format!("{name} in {n}")).collect();
    let mut sentences = vec![format!(
        "the {} slowest took {} to {}; the largest part was {}",
        count(worst.len() as u64),
        nanos(last.response_ns),
        nanos(first.response_ns),
        mostly.join(", "),
    )];
    let during = |kind: EventKind| {
        worst
            .iter()
            .filter(move |one| one.during.iter().any(|event| event.kind == kind))
    };
    let events = EventKind::ALL.into_iter().map(|kind| (kind, during(kind).count()));
    let mut events: Vec<String> = events
        .filter(|(_, n)| *n > 0)
        .map(|(kind, n)| format!("{} during {n}", kind.words()))
        .collect();
    let quiet = worst.iter().filter(|one| one.during.is_empty()).count();
    if quiet > 0 {
        events.push(format!("nothing of note was seen during {quiet}"));
    }
    sentences.push(format!(
        "{}; what happened during one need not be its cause",
        events.join(", ")
    ));
    if breakdown.dropped_events > 0 {
        sentences.push(format!(
            "{} later events were not kept, so more may have happened during them",
            count(breakdown.dropped_events)
        ));
    }
    sentences
}

/// The table and the sentences of a run.
pub(super) fn text(run: &Run, lines: &mut Lines) {
    let Some(breakdown) = &run.latency.breakdown else {
        return;
    };
    lines.heading("Response time taken apart, shares of the operations around each quantile");
    let row = |cells: Vec<String>| cells.join(" ");
    let names = breakdown
        .quantiles
        .iter()
        .map(|one| format!("{:>8}", quantile_name(one.quantile)));
    lines.row(format!("{:15}{}", "", row(names.collect())));
    for part in parts(breakdown) {
        let shares = breakdown.quantiles.iter().map(|one| (part.share)(&one.shares));
        let shares = shares
            .map(|share| share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0)))
            .map(|share| format!("{share:>8}"));
        lines.row(format!(
            "  {:<12} {}  {}",
            part.name,
            row(shares.collect()),
            part.meaning
        ));
    }
    for sentence in slowest(breakdown) {
        lines.sentence(sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_their_usual_names() {
        let names = [0.5, 0.9, 0.99, 0.999, 1.0].map(quantile_name);
        assert_eq!(names, ["p50", "p90", "p99", "p99.9", "max"]);
    }

    #[test]
    fn the_slowest_are_summed_up_and_nothing_is_blamed() {
        let breakdown: BreakdownReport = serde_json::from_value(serde_json::json!({
            "quantiles": [],
            "worst": [
                { "group": 0, "tick": 7, "due_ns": 5, "response_ns": 9_000_000,
                  "parts": { "waiting_ns": 0, "late_ns": 1_000_000, "store_ns": 8_000_000 },
                  "during": [{ "kind": "commit", "events": 1, "overlap_ns": 10 }] },
                { "group": 0, "tick": 8, "due_ns": 6, "response_ns": 8_000_000,
                  "parts": { "waiting_ns": 7_000_000, "late_ns": 0, "store_ns": 1_000_000 } },
            ],
            "dropped_events": 3,
        }))
        .unwrap();
        assert_eq!(
            slowest(&breakdown),
            [
                "the 2 slowest took 8.00 ms to 9.00 ms; the largest part was waiting in 1, store in 1",
                "the store committed during 1, nothing of note was seen during 1; what happened during one need not \
                 be its cause",
                "3 later events were not kept, so more may have happened during them",
            ]
        );
        assert!(slowest(&BreakdownReport::default()).is_empty());
    }
}
