//! Judges answers when the run is over, and it is known which samples need not be in the store.

use serde::{Deserialize, Serialize};
use tsb_core::emit::ExceptionKind;
use tsb_core::latency::{Histogram, Quantiles, Summary};
use tsb_core::report::{QueryLatency, WrongAnswer};
use tsb_core::verdict::QueryEvidence;
use tsb_core::workload::Workload;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::Capabilities;

use super::check::{AbsentSamples, AnswerCheck, Mistake};
use super::stream::{CheckedAnswers, DifferingAnswer, QueryTally};
use super::{AskedStream, StreamTimes};
use crate::audit::NamedSamples;
use crate::plan::QueryRate;
use crate::run::path::PassResult;
use crate::run::preload::history_of;
use crate::run::rejects::Rejects;
use crate::run::run_context::RunContext;

/// Wrong answers of a stream that the report names; further ones are counted.
pub(crate) const NAMED_MAX: usize = 100;

/// What a stream of queries came to.
#[derive(Debug)]
pub(in crate::run) struct JudgedStream {
    /// Its name in reports.
    pub(in crate::run) name: String,
    /// For the report.
    pub(in crate::run) latency: QueryLatency,
    /// What the report has quantiles of; absent if its threads could not be started.
    pub(in crate::run) times: Option<QueryTimes>,
    /// For the verdict; absent if its threads could not be started.
    pub(in crate::run) evidence: Option<QueryEvidence>,
    /// What went wrong, in words.
    pub(in crate::run) violations: Vec<String>,
    /// What a reader has to know.
    pub(in crate::run) notes: Vec<String>,
}

/// Times of a stream of queries, in full.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueryTimes {
    /// Due to answered; in a closed loop, asked to answered.
    pub response: Histogram,
    /// Asked to answered.
    pub service: Histogram,
    /// Due to asked; empty in a closed loop.
    pub lag: Histogram,
}

impl QueryTimes {
    fn new(recorded: &tsb_core::emit::Latency, is_closed: bool) -> Self {
        Self {
            response: recorded.response.total.clone(),
            service: recorded.service.total.clone(),
            lag: if is_closed {
                Histogram::new()
            } else {
                recorded.lag.total.clone()
            },
        }
    }

    /// Adds those of another host.
    pub fn merge(&mut self, other: &Self) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
    }

    /// Writes their quantiles into a report.
    pub fn summarize(&self, latency: &mut QueryLatency, is_closed: bool) {
        let summary = |histogram: &Histogram| Summary::new(histogram, histogram.count());
        latency.response = Quantiles::new(&self.response);
        latency.service = summary(&self.service);
        latency.lag = (!is_closed).then(|| summary(&self.lag));
    }
}

/// Judges the answers of all streams of a run that began at timestamp `base`. `unnamed` samples
/// may be missing in the store, and nobody can say which.
pub(in crate::run) fn judge(
    context: &RunContext,
    base: Timestamp,
    capabilities: &Capabilities,
    (driven, rejects, unnamed): (&PassResult, &Rejects, u64),
    asked: Vec<AskedStream>,
) -> Vec<JudgedStream> {
    if asked.is_empty() {
        return Vec::new();
    }
    let of_kinds = |wanted: &[ExceptionKind]| {
        let exceptions = driven.exceptions.iter().filter(|(_, _, kind)| wanted.contains(kind));
        let ticks = exceptions.map(|(group, ticks, _)| (*group, ticks.clone()));
        ticks.collect::<Vec<_>>()
    };
    let absent = AbsentSamples {
        named: NamedSamples::new(
            &rejects.named().0,
            &of_kinds(&[ExceptionKind::Shed]),
            &of_kinds(&[ExceptionKind::Unknown, ExceptionKind::Lost]),
        ),
        unnamed,
    };
    let history = history_of(context, base);
    let judge_one = |asked: AskedStream| {
        let check = AnswerCheck::new(context, (base, &history), asked.stream.kind.shape(), capabilities);
        stream(&context.workload, check, &absent, asked)
    };
    asked.into_iter().map(judge_one).collect()
}

/// The answers of a stream by what they turned out to be.
#[derive(Debug, Default)]
struct Judgement {
    tally: QueryTally,
    wrong: u64,
    unjudged: u64,
    named: Vec<(u64, WrongAnswer)>,
}

impl Judgement {
    fn add(
        &mut self,
        workload: &Workload,
        check: &mut AnswerCheck<'_>,
        absent: &AbsentSamples,
        answers: CheckedAnswers,
    ) {
        let CheckedAnswers { tally, differing } = answers;
        self.tally.early += tally.early;
        self.tally.answers += tally.answers;
        self.tally.rows += tally.rows;
        self.tally.right += tally.right;
        // Nothing was refused or lost that could explain them.
        if absent.is_empty() {
            self.wrong += tally.not_kept;
        } else {
            self.unjudged += tally.not_kept;
        }
        for one in differing {
            let Some(mistake) = check.mistake(&one.asked(), &one.answer, Some(absent)) else {
                self.tally.right += 1;
                continue;
            };
            if check.is_in_doubt(&one.asked(), absent) {
                self.unjudged += 1;
                continue;
            }
            self.wrong += 1;
            if self.named.len() < NAMED_MAX {
                self.named.push((one.after_ns, named(workload, &one, mistake)));
            }
        }
    }
}

fn named(workload: &Workload, one: &DifferingAnswer, mistake: Mistake) -> WrongAnswer {
    let Mistake { series, expected, came } = mistake;
    let key = |id: SeriesId| {
        workload
            .catalog()
            .key(id)
            .map_or_else(|| id.to_string(), ToString::to_string)
    };
    let mut wrong = WrongAnswer::new(key(series), expected, came);
    wrong.after_ns = one.after_ns;
    let range = one.asked().range;
    if range.start > Timestamp::MIN {
        wrong.start_ns = Some(range.start.0);
        wrong.end_ns = Some(range.end.0);
    }
    wrong
}

fn stream(workload: &Workload, mut check: AnswerCheck<'_>, absent: &AbsentSamples, asked: AskedStream) -> JudgedStream {
    let mut judged = Judgement::default();
    for answers in asked.answers {
        judged.add(workload, &mut check, absent, answers);
    }
    judged.named.sort_by_key(|(after_ns, _)| *after_ns);
    let name = asked.stream.name.clone();
    let is_closed = asked.stream.rate == QueryRate::Max;
    let mut latency = latency(&asked.stream.asked(), is_closed, &judged, asked.times.as_ref());
    let histograms = asked
        .times
        .as_ref()
        .map(|times| QueryTimes::new(&times.latency, is_closed));
    if let Some(histograms) = &histograms {
        histograms.summarize(&mut latency, is_closed);
    }
    let mut violations = asked.failures;
    if let Some((_, first)) = judged.named.first() {
        violations.push(format!(
            "{} of {} answers to {name} were wrong, the first about {}: expected {}, came {}",
            judged.wrong, judged.tally.answers, first.series, first.expected, first.came
        ));
    }
    let evidence = asked.times.as_ref().map(|times| {
        let p99 = |histogram: &tsb_core::latency::Histogram| histogram.quantile(0.99).unwrap_or(0);
        QueryEvidence {
            name: name.clone(),
            asked_per_second: latency.asked_per_second,
            held_per_second: latency.held_per_second,
            lag_p99_ns: p99(&times.latency.lag.total),
            own_lag_p99_ns: p99(&times.latency.own_lag.total),
            answers: judged.tally.answers,
            judged: judged.tally.right + judged.wrong,
        }
    });
    JudgedStream {
        notes: notes(&name, &latency, asked.silence.as_deref()),
        times: histograms,
        name,
        latency,
        evidence,
        violations,
    }
}

fn latency(asked: &str, is_closed: bool, judged: &Judgement, times: Option<&StreamTimes>) -> QueryLatency {
    let mut latency = QueryLatency::new(asked);
    latency.answers = judged.tally.right + judged.wrong;
    latency.wrong = judged.wrong;
    latency.unjudged = judged.unjudged;
    latency.rows = judged.tally.rows;
    latency.early = judged.tally.early;
    latency.wrong_answers = judged.named.iter().map(|(_, wrong)| wrong.clone()).collect();
    let Some(times) = times else { return latency };
    let counts = &times.counts;
    latency.shed = counts.shed.operations;
    latency.unanswered = counts.unknown.operations;
    let per_second = |queries: u64, ns: u64| queries as f64 * 1e9 / ns.max(1) as f64;
    // A query that was due while there was nothing to ask for is in no count of the emitter.
    latency.asked_per_second = (!is_closed).then(|| per_second(counts.due.operations, times.asked_ns));
    latency.held_per_second = per_second(counts.done.operations, times.elapsed_ns);
    let each = |ns: u64| ns as f64 / counts.done.operations as f64;
    latency.store_cpu_ns_per_query = (counts.done.operations > 0).then(|| each(times.cpu.send_ns));
    latency
}

fn notes(name: &str, latency: &QueryLatency, silence: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    if latency.early > 0 {
        notes.push(format!(
            "{} queries of {name} were due before the store had accepted anything that they could ask for, and were not asked",
            latency.early
        ));
    }
    if let Some(silence) = silence {
        notes.push(format!(
            "{} queries of {name} were never answered; the first time: {silence}",
            latency.unanswered
        ));
    }
    if latency.unjudged > 0 {
        notes.push(format!(
            "{} answers to {name} differ from what was sent and may still be right: they depend on samples that were lost, \
             or on more refused samples than are known by name",
            latency.unjudged
        ));
    }
    notes
}
