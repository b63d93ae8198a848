//! Checks, before anything is sent, that the answers of a store can be held against what was sent.

use tsb_core::net::Carrier;
use tsb_core::workload::Workload;
use tsb_stores::{Capabilities, Consolidation, Exactness};

use crate::error::Error;
use crate::plan::{Plan, QueryStream};

/// Refuses streams of queries where nobody could say what the right answer is.
pub(in crate::run) fn check(
    plan: &Plan,
    workload: &Workload,
    capabilities: &Capabilities,
    (store, is_handed_over): (&str, bool),
) -> Result<(), Error> {
    if plan.append && plan.preload_ns.is_some() {
        return Err(Error::plan("cannot write history behind samples of earlier runs")
            .because_of("--append goes on where they end, and --preload begins before")
            .hint("leave one of them out"));
    }
    let streams = plan.timed_streams();
    if streams.is_empty() {
        return Ok(());
    }
    let refused = |(why, hint): (String, &str)| {
        let failure = Error::plan(format!("cannot query {store} while it is written"));
        Err(failure.because_of(why).hint(hint))
    };
    check_way(plan, is_handed_over)
        .and_then(|()| check_store(capabilities))
        .and_then(|()| check_fleet(workload, capabilities))
        .and_then(|()| {
            streams
                .iter()
                .try_for_each(|timed| check_stream(&timed.stream, workload, capabilities))
        })
        .or_else(refused)
}

/// A reason, and a hint.
type Refusal = (String, &'static str);

fn refused(why: impl Into<String>, hint: &'static str) -> Result<(), Refusal> {
    Err((why.into(), hint))
}

/// Whether it is known what the store has at a time, by the way on which samples reach it.
fn check_way(plan: &Plan, is_handed_over: bool) -> Result<(), Refusal> {
    if plan.append {
        return refused(
            "it holds samples of earlier runs, and what they are is not known",
            "leave out --append",
        );
    }
    if is_handed_over {
        return refused(
            "many writes are in flight, and which of them the server has taken is known only from their answers, in any order",
            "give --transport tcp, which writes in order, or over http leave out --in-flight",
        );
    }
    if plan.transport.is_wire() && plan.transport.carrier() == Carrier::Datagrams {
        let why = format!(
            "datagrams over {} may be lost or overtake each other, and what reached the store is known only afterwards",
            plan.transport.name()
        );
        return refused(why, "give --transport inproc, tcp, unix or http");
    }
    Ok(())
}

/// Whether the store gives back each sample as it was accepted, at once.
fn check_store(capabilities: &Capabilities) -> Result<(), Refusal> {
    let without = "leave out --queries";
    if !capabilities.query || capabilities.exactness == Exactness::Nothing {
        return refused("it cannot return samples", without);
    }
    if matches!(capabilities.exactness, Exactness::Consolidated(_)) {
        return refused(
            "only consolidated rows come back, and which samples are in the newest of them changes while it is read",
            "leave out --queries; the rows are checked when the run is over",
        );
    }
    if matches!(capabilities.exactness, Exactness::OnePerSlot(_) | Exactness::Slots(_)) {
        return refused(
            "it keeps one sample per slot, and which one that is changes while it is read",
            without,
        );
    }
    if capabilities.visibility_delay_ms > 0 {
        let why = format!(
            "what it accepted may stay invisible for {} ms, so an answer without it is not wrong",
            capabilities.visibility_delay_ms
        );
        return refused(why, without);
    }
    Ok(())
}

/// Whether it is known which samples of the fleet must be there.
fn check_fleet(workload: &Workload, capabilities: &Capabilities) -> Result<(), Refusal> {
    let is_disordered = workload.late_ticks_max() > 0 || capabilities.retention_ns.is_some();
    if workload.tick_times().is_some() && is_disordered {
        return refused(
            "the recording has times of its own, and with samples that come late or expire it is not known which must be there",
            "leave out --late, --out-of-order and the retention, or replay the recording on a grid",
        );
    }
    Ok(())
}

/// Whether the store and the fleet have what a stream asks for.
fn check_stream(stream: &QueryStream, workload: &Workload, capabilities: &Capabilities) -> Result<(), Refusal> {
    let shape = stream.kind.shape();
    if let Some((_, by)) = shape.steps() {
        if !capabilities.resample {
            let why = format!("{} asks for steps, and the store cannot consolidate", stream.name);
            return refused(why, "ask for range or last");
        }
        let is_sum = matches!(by, Consolidation::Average | Consolidation::Sum);
        if is_sum && capabilities.exactness != Exactness::Exact {
            let why = format!("{} asks for sums, and the store rounds what is added", stream.name);
            return refused(why, "ask with by=max, min, count, first or last");
        }
    }
    if shape.series() as usize > workload.catalog().len() {
        let why = format!(
            "{} asks for {} series at once, and the fleet has {}",
            stream.name,
            shape.series(),
            workload.catalog().len()
        );
        return refused(why, "give more --series, or the query fewer: q2(series=1)");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tsb_core::Durability;

    use super::*;
    use crate::plan::Transport;

    fn refusal(queries: &str, transport: Transport, change: impl FnOnce(&mut Capabilities)) -> String {
        let mut plan = Plan {
            queries: QueryStream::parse_list(queries).unwrap(),
            transport,
            ..Plan::default()
        };
        plan.workload.series = Some(5);
        let workload = Workload::new(&plan.workload).unwrap();
        let mut capabilities = Capabilities::new(Durability::Volatile, Durability::Volatile);
        capabilities.resample = true;
        change(&mut capabilities);
        check(&plan, &workload, &capabilities, ("x", false))
            .map_or_else(|error| format!("{error:?}"), |()| String::new())
    }

    #[test]
    fn queries_that_cannot_be_checked_are_refused_with_a_reason() {
        let tcp = Transport::Tcp;
        assert_eq!(refusal("q1@1/s,last@1/s", tcp, |_| {}), "");
        for (queries, transport, change, words) in [
            (
                "last@1/s",
                tcp,
                (|c| c.query = false) as fn(&mut Capabilities),
                "cannot return",
            ),
            (
                "last@1/s",
                tcp,
                |c| c.exactness = Exactness::OnePerSlot(30),
                "one sample per slot",
            ),
            ("last@1/s", tcp, |c| c.visibility_delay_ms = 5, "invisible for 5 ms"),
            ("q1@1/s", tcp, |c| c.resample = false, "cannot consolidate"),
            (
                "downsample@1/s",
                tcp,
                |c| c.exactness = Exactness::Float32,
                "rounds what is added",
            ),
            ("last@1/s", Transport::Udp, |_| {}, "over udp may be lost"),
            ("last@1/s", Transport::Unixgram, |_| {}, "over unixgram"),
            ("q2@1/s", tcp, |_| {}, "the fleet has 5"),
            ("difference@1/s", tcp, |c| c.resample = false, "cannot consolidate"),
        ] {
            let refused = refusal(queries, transport, change);
            assert!(refused.contains(words), "{queries}: {refused}");
        }
        assert_eq!(refusal("range@1/s", tcp, |c| c.resample = false), "");
    }
}
