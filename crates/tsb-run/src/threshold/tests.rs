//! Figures by name, conditions on them, and what passes no threshold.

use proptest::prelude::*;
use tsb_core::Durability;
use tsb_core::ledger::Counter;
use tsb_core::report::{
    CpuBelow, DurabilityReport, Latency, LedgerReport, QueryLatency, Rate, Run, Target, ThresholdOutcome,
};
use tsb_core::verdict::{Status, Verdict};

use super::*;

fn run() -> Run {
    Run::new(
        Target::new("memory", "inproc", "exact"),
        Verdict::new(Status::Valid, vec!["nothing limited it".to_owned()]),
        DurabilityReport::new(Durability::Volatile, 1),
        Rate::held(54_000.0),
        LedgerReport::default(),
        Latency::new("the store has returned"),
    )
}

/// A run whose response p99 is `p99_ns`.
fn with_p99(p99_ns: u64) -> Run {
    let mut run = run();
    let response = &mut run.latency.response;
    (response.count, response.p99_ns, response.max_ns) = (10_000, Some(p99_ns), Some(p99_ns * 2));
    run.latency.missing = 0;
    run
}

fn condition(text: &str) -> Condition {
    text.parse()
        .unwrap_or_else(|error: ConditionError| panic!("{text}: {error}"))
}

fn outcome(text: &str, run: &Run) -> Outcome {
    condition(text).check(run, None).outcome
}

#[test]
fn a_figure_is_compared_with_its_limit() {
    let run = with_p99(51_200_000);
    for (text, expected) in [
        ("response.p99>50ms", Outcome::True),
        ("response.p99 < 50ms", Outcome::False),
        ("response.p99>=51.2ms", Outcome::True),
        ("response.p99<=51.2ms", Outcome::True),
        ("response.p99>51.2ms", Outcome::False),
    ] {
        assert_eq!(outcome(text, &run), expected, "{text}");
    }
    let said = condition("response.p99>50ms").check(&run, None).sentence;
    assert_eq!(said, "response.p99 is 51.2 ms, above 50.0 ms");
}

#[test]
fn a_change_is_one_from_the_baseline() {
    let (before, after) = (with_p99(40_000_000), with_p99(44_200_000));
    let more = condition("response.p99>+10%");
    assert!(more.needs_baseline() && !condition("response.p99>10ms").needs_baseline());
    let evaluation = more.check(&after, Some(&before));
    assert_eq!(evaluation.outcome, Outcome::True);
    assert_eq!(
        evaluation.sentence,
        "response.p99 is 44.2 ms, above 44.0 ms (40.0 ms before: +10.5 %)"
    );
    assert_eq!(more.check(&before, Some(&before)).outcome, Outcome::False);
    assert_eq!(
        condition("response.p99<-10%").check(&before, Some(&after)).outcome,
        Outcome::False
    );
    // Without a baseline, and with one that never answered, nothing is decided.
    assert_eq!(more.check(&after, None).outcome, Outcome::Absent);
    let mut unanswered = with_p99(1);
    unanswered.latency.missing = 10_000;
    assert_eq!(more.check(&after, Some(&unanswered)).outcome, Outcome::Absent);
}

#[test]
fn repeated_rounds_are_judged_by_their_median_and_by_every_verdict() {
    let mut rounds = [10_000_000, 60_000_000, 45_000_000].map(with_p99);
    let check = |text: &str, rounds: &[Run]| condition(text).check_rounds(&rounds.iter().collect::<Vec<_>>(), &[]);
    let evaluation = check("response.p99<50ms", &rounds);
    assert_eq!(
        (evaluation.outcome, evaluation.measured),
        (Outcome::True, Some(Reading::exact(45e6)))
    );
    assert_eq!(check("valid", &rounds).outcome, Outcome::True);
    rounds[1].verdict.status = Status::Noisy;
    let mixed = check("valid", &rounds);
    assert_eq!(mixed.outcome, Outcome::Absent);
    assert!(
        mixed
            .sentence
            .starts_with("2 of 3 rounds are VALID, and the run is NOISY"),
        "{}",
        mixed.sentence
    );
    assert_eq!(check("invalid", &rounds).outcome, Outcome::False);
    assert_eq!(check("valid", &[]).outcome, Outcome::Absent);
    rounds[2].latency.response.p99_ns = None;
    assert_eq!(check("response.p99<50ms", &rounds).outcome, Outcome::Absent);
}

#[test]
fn a_count_over_rounds_is_that_of_the_worst_round() {
    let with_lost = |lost| {
        let mut run = run();
        run.ledger
            .counts
            .set(Counter::Lost, lost)
            .set(Counter::Verified, 100 - lost);
        run
    };
    let rounds = [0, 5, 0].map(with_lost);
    let rounds: Vec<&Run> = rounds.iter().collect();
    let check = |text: &str| condition(text).check_rounds(&rounds, &[]);
    let lost = check("lost=0");
    assert_eq!(
        (lost.outcome, lost.measured),
        (Outcome::False, Some(Reading::exact(5.0)))
    );
    assert_eq!(check("verified>96").outcome, Outcome::False);
}

#[test]
fn what_a_run_does_not_have_passes_no_threshold() {
    let mut run = run();
    run.staleness = None;
    for text in [
        "staleness.p99>2s",
        "staleness.p99<2s",
        "refused=0",
        "query.q1.p99>1s",
        "watched.rss<1GiB",
    ] {
        for threshold in [
            Threshold::fail_if(condition(text)),
            Threshold::fail_unless(condition(text)),
        ] {
            let report = threshold.check(&run, None);
            assert_eq!(report.outcome, ThresholdOutcome::Absent, "{text}");
            assert!(
                !report.is_passed() && report.why.starts_with("there is no "),
                "{}",
                report.why
            );
        }
    }
}

#[test]
fn operations_without_an_answer_are_later_than_all_others() {
    let mut run = with_p99(1_000_000);
    run.latency.curves = None;
    // 10,000 were answered; of 10,050 the p99 lies between that of the answered ones and the longest.
    run.latency.missing = 50;
    assert_eq!(outcome("response.p99<1ms", &run), Outcome::False);
    assert_eq!(outcome("response.p99<1500us", &run), Outcome::Absent);
    assert_eq!(outcome("response.p99<3ms", &run), Outcome::True);
    run.latency.missing = 200;
    let evaluation = condition("response.p99>1h").check(&run, None);
    assert_eq!(evaluation.outcome, Outcome::True);
    assert!(
        evaluation.sentence.contains("response.p99 is endless"),
        "{}",
        evaluation.sentence
    );
}

#[test]
fn bounds_decide_only_what_lies_outside_of_them() {
    let mut run = run();
    run.ledger.counts.set(Counter::Lost, 0);
    assert_eq!(outcome("lost=0", &run), Outcome::True);
    run.ledger.lost_at_most = Some(5);
    assert_eq!(outcome("lost=0", &run), Outcome::Absent);
    assert_eq!(outcome("lost<=5", &run), Outcome::True);
    assert_eq!(outcome("lost>5", &run), Outcome::False);
    run.cost.store_cpu_ns_per_sample = None;
    run.cost.store_cpu_below = Some(CpuBelow::new(3.0));
    run.cost.store_threads_cpu_ns_per_sample = Some(10.0);
    run.cost.store_flush_cpu_ns_per_sample = None;
    assert_eq!(outcome("cost.store<20ns", &run), Outcome::True);
    assert_eq!(outcome("cost.store>12ns", &run), Outcome::Absent);
    assert_eq!(outcome("cost.store>9ns", &run), Outcome::True);
}

#[test]
fn a_verdict_is_a_condition_too() {
    let mut run = run();
    run.verdict.status = Status::Valid;
    assert!(Threshold::fail_unless(condition("valid")).check(&run, None).is_passed());
    run.verdict.status = Status::Noisy;
    assert!(!Threshold::fail_unless(condition("valid")).check(&run, None).is_passed());
    assert!(!Threshold::fail_if(condition("noisy")).check(&run, None).is_passed());
}

#[test]
fn query_streams_have_figures_under_their_names() {
    let mut run = run();
    let mut stream = QueryLatency::new("q1@10/s");
    (stream.response.count, stream.response.p99_ns) = (2_000, Some(9_000_000));
    (stream.answers, stream.wrong) = (2_000, 1);
    run.query_latency.insert("q1(series=3,span=2h)".to_owned(), stream);
    assert_eq!(outcome("query.q1(series=3,span=2h).p99<10ms", &run), Outcome::True);
    assert_eq!(outcome("query.q1(series=3,span=2h).wrong=0", &run), Outcome::False);
    let absent = condition("query.other.p99<10ms").check(&run, None);
    assert!(
        absent.sentence.contains("there are q1(series=3,span=2h)"),
        "{}",
        absent.sentence
    );
    let listed = Condition::list("query.q1(series=3,span=2h).p99<10ms,lost=0").unwrap();
    assert_eq!(listed.len(), 2);
    assert!(
        Figure::all_of(&run)
            .iter()
            .any(|figure| figure.name() == "query.q1(series=3,span=2h).service.p50")
    );
}

#[test]
fn a_wrong_condition_says_what_would_be_right() {
    for (text, cause, hint) in [
        (
            "respnse.p99>50ms",
            "no figure and no verdict is called \"respnse.p99\"",
            "response.p99",
        ),
        ("response.p98>50ms", "is called \"response.p98\"", "response.p9"),
        ("valdi", "is called \"valdi\"", "valid"),
        (
            "response.p99>2GiB",
            "response.p99 is a time: \"2GiB\" is a size",
            "response.p99>50ms",
        ),
        ("response.p99>50", "\"50\" has no unit", "response.p99>50ms"),
        ("rss<50ms", "rss is a size: \"50ms\" is a time", "rss>2GiB"),
        (
            "response.p99",
            "response.p99 is compared with nothing",
            "response.p99>50ms",
        ),
        ("response.p99=50ms", "never exactly 50.0 ms", "> or <"),
        ("lost<0", "no lost is below 0", "lost>1000"),
        ("response.p99>+5ms", "written in percent", "response.p99>+10%"),
        ("response.p99=+5%", "never exactly", "response.p99>+5%"),
        ("held<-200%", "below nothing", ""),
        ("query.q1.p98>1s", "no figure of a query stream", "p99"),
        ("", "empty", "response.p99>50ms"),
        (">5ms", "is called \"\"", ""),
    ] {
        let error = text.parse::<Condition>().unwrap_err();
        assert!(error.to_string().contains(cause), "{text}: {error}");
        assert!(
            error.hint().unwrap_or_default().contains(hint) || error.to_string().contains(hint),
            "{text}: {:?}",
            error.hint()
        );
    }
}

#[test]
fn every_figure_is_found_by_its_name_and_no_name_occurs_twice() {
    let all = Figure::all();
    for figure in &all {
        assert_eq!(Figure::named(figure.name()).unwrap().name(), figure.name());
        let alike = all.iter().filter(|other| other.name() == figure.name());
        assert_eq!(alike.count(), 1, "{figure}");
        // Its example is one that it takes.
        assert!(
            format!("{figure}>{}", figure.unit().example())
                .parse::<Condition>()
                .is_ok(),
            "{figure}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_is_read_with_a_panic(text in "[a-z0-9.<>=!+%(), -]{0,40}") {
        match text.parse::<Condition>() {
            Ok(condition) => {
                let said = condition.to_string();
                let again = said.parse::<Condition>().map(|again| again.to_string());
                prop_assert_eq!(again.map_err(|error| error.to_string()), Ok(said));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        let _ = Condition::list(&text);
    }

    #[test]
    fn a_condition_and_its_opposite_are_never_both_true(p99 in 1_u64..1_000_000, limit in 1_u64..1_000_000, missing in 0_u64..200) {
        let mut run = with_p99(p99);
        run.latency.missing = missing;
        for (one, other) in [(">", "<="), ("<", ">=")] {
            let one = outcome(&format!("response.p99{one}{limit}ns"), &run);
            let other = outcome(&format!("response.p99{other}{limit}ns"), &run);
            let opposite = match one {
                Outcome::True => Outcome::False,
                Outcome::False => Outcome::True,
                Outcome::Absent => Outcome::Absent,
            };
            prop_assert_eq!(other, opposite);
        }
    }

    #[test]
    fn a_change_says_the_same_as_the_limit_that_it_means(before in 1_000_u64..1_000_000, after in 1_000_u64..1_000_000, percent in 0_u64..100) {
        let (old, new) = (with_p99(before), with_p99(after));
        let change = condition(&format!("response.p99>+{percent}%")).check(&new, Some(&old)).outcome;
        let is_more = after as f64 > before as f64 * (1.0 + percent as f64 / 100.0);
        prop_assert_eq!(change, if is_more { Outcome::True } else { Outcome::False });
    }
}
