//! The latencies of a run: which exist, what each means on its path, and why a quantile is
//! absent. The text and the page share these descriptions.

use tsb_core::latency::{BEYOND_MIN, Summary};
use tsb_core::report::Run;

use tsb_run::units::count;

/// A kind of latency.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Its name, which is also its JSON pointer: `/latency/NAME`.
    pub name: &'static str,
    /// Start and end, in a few words.
    pub span: &'static str,
    /// The meaning as a sentence.
    pub meaning: &'static str,
}

const RESPONSE: Time = Time {
    name: "response",
    span: "due until done: what a client feels",
    meaning: "Due until done: what a client feels. It includes everything that an operation waited.",
};

const DELIVERY: Time = Time {
    name: "delivery",
    span: "start until read: sending, and waiting in the sockets",
    meaning: "Start until the receiver had read it: encoding, sending, and waiting in the sockets for a receiver that is busy.",
};

const LAG: Time = Time {
    name: "lag",
    span: "due until start: waited behind others, or for us",
    meaning: "Due until start: waited behind other operations, or for the generator. Response is lag, delivery where there is one, and service together.",
};

/// Service time, whose meaning depends on the transport.
pub fn service(run: &Run) -> Time {
    let (span, meaning) = match run.target.transport.as_str() {
        _ if run.latency.delivery.is_some() => (
            "read until done: decoder and store",
            "Read until done: what decoder and store took, once the receiver had read it. Operations that are read together end together.",
        ),
        "inproc" => (
            "start until done: what the store took",
            "Start until done: what the store took once it was asked. Alone it hides the queue before the store.",
        ),
        "http" => (
            "start until answer: wire, decoder and store",
            "Start until the answer was read: the way there and back, decoder and store. Alone it hides the queue before the connection.",
        ),
        // A sender to whom nothing answers, and a listener.
        _ if run.latency.service.count == 0 => (
            "not timed: nothing says when the store was done",
            "Not timed: nothing says when the store was done.",
        ),
        // Reports of schema 1.
        _ => (
            "start until done: sockets, decoder and store together",
            "Start until done. This report is of an earlier version, which did not tell what waited in the sockets from what decoder and store took: it is no figure of the store alone.",
        ),
    };
    Time {
        name: "service",
        span,
        meaning,
    }
}

/// The latencies of a run, in display order.
pub fn of(run: &Run) -> Vec<(Time, Summary)> {
    let latency = &run.latency;
    let delivery = latency.delivery.map(|delivery| (DELIVERY, delivery));
    let first = std::iter::once((RESPONSE, latency.response)).chain(delivery);
    first
        .chain([(service(run), latency.service), (LAG, latency.lag)])
        .collect()
}

/// Why quantiles of these operations are absent; `None` if all are present.
pub fn absent(summary: &Summary) -> Option<String> {
    let quantiles = [
        ("p50", 2, summary.p50_ns),
        ("p90", 10, summary.p90_ns),
        ("p99", 100, summary.p99_ns),
        ("p99.9", 1_000, summary.p999_ns),
    ];
    let needs = |name: &str, one_in: u64| format!("{name} needs {} operations", count(one_in * BEYOND_MIN));
    let missing: Vec<String> = quantiles
        .iter()
        .filter(|(.., value)| value.is_none())
        .map(|(name, one_in, _)| needs(name, *one_in))
        .collect();
    let why = || format!("{}; {} were timed", missing.join(", "), count(summary.count));
    (summary.count > 0 && !missing.is_empty()).then(why)
}

#[cfg(test)]
mod tests {
    use tsb_core::latency::Histogram;

    use super::*;

    #[test]
    fn an_absent_quantile_says_how_many_operations_it_needs() {
        let of = |operations: u64| {
            let mut histogram = Histogram::new();
            (0..operations).for_each(|value| histogram.record(value));
            absent(&Summary::new(&histogram, operations))
        };
        assert_eq!(of(0), None);
        assert_eq!(
            of(250).as_deref(),
            Some("p99 needs 1,000 operations, p99.9 needs 10,000 operations; 250 were timed")
        );
        assert_eq!(
            of(9_999).as_deref(),
            Some("p99.9 needs 10,000 operations; 9,999 were timed")
        );
        assert_eq!(of(10_000), None);
    }

    #[test]
    fn service_time_says_what_is_in_it() {
        let mut run: Run = serde_json::from_str(include_str!("../../fixtures/reports/schema-1-first.json")).unwrap();
        let span = |run: &Run| {
            of(run)
                .into_iter()
                .find(|(time, _)| time.name == "service")
                .unwrap()
                .0
                .span
        };
        assert!(run.latency.delivery.is_none());
        for (transport, words) in [
            ("tcp", "sockets, decoder and store together"),
            ("inproc", "what the store took"),
            ("http", "start until answer"),
        ] {
            transport.clone_into(&mut run.target.transport);
            assert!(span(&run).contains(words), "{transport}: {}", span(&run));
        }
        "tcp".clone_into(&mut run.target.transport);
        run.latency.delivery = Some(run.latency.service);
        assert_eq!(span(&run), "read until done: decoder and store");
        assert_eq!(of(&run).len(), 4);
    }
}
