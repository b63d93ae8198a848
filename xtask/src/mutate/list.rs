//! The mutations of the measuring code, and the tests that must catch them.

/// One break.
#[derive(Debug)]
pub(super) struct Mutation {
    /// What the broken instrument does.
    pub(super) what: &'static str,
    /// Below the root of the workspace.
    pub(super) file: &'static str,
    /// What stands there exactly once.
    pub(super) from: &'static str,
    /// What is put in its place.
    pub(super) to: &'static str,
    /// The package whose tests run.
    pub(super) package: &'static str,
    /// Which of its tests run: further arguments of `cargo test`.
    pub(super) tests: &'static [&'static str],
}

const WORKER: &str = "crates/tsb-core/src/emit/worker.rs";
const UNSENT: &str = "crates/tsb-core/src/emit/unsent.rs";
const STATE: &str = "crates/tsb-core/src/emit/state.rs";
const LEDGER: &str = "crates/tsb-core/src/ledger.rs";
const RULES: &str = "crates/tsb-core/src/verdict/rules.rs";
const MEASURED: &str = "crates/tsb-core/src/verdict/measured.rs";
const NOISE: &str = "crates/tsb-core/src/resource/noise.rs";
const MILEPOST: &str = "crates/tsb-core/src/net/milepost.rs";
const COMPARE: &str = "crates/tsb-run/src/audit/compare.rs";
const CONSOLIDATE: &str = "crates/tsb-run/src/audit/consolidate.rs";
const NEWEST: &str = "crates/tsb-run/src/audit/newest.rs";
const AUDITOR: &str = "crates/tsb-run/src/audit/auditor.rs";
const UNCERTAIN: &str = "crates/tsb-run/src/audit/consolidate/uncertain.rs";
const PHASES: &str = "crates/tsb-run/src/run/phases.rs";
const SETTLE: &str = "crates/tsb-run/src/run/ledger/settle.rs";
const KNOWN: &str = "crates/tsb-run/src/run/queries/known.rs";
const CHECK: &str = "crates/tsb-run/src/run/queries/check.rs";

/// A break in `tsb-core`, noticed by its unit tests.
const fn core(what: &'static str, file: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation {
        what,
        file,
        from,
        to,
        package: "tsb-core",
        tests: &["--lib", "--all-features"],
    }
}

/// A break in `tsb-run`, noticed by its unit tests.
const fn run(what: &'static str, file: &'static str, from: &'static str, to: &'static str) -> Mutation {
    Mutation {
        package: "tsb-run",
        tests: &["--lib"],
        ..core(what, file, from, to)
    }
}

pub(super) const MUTATIONS: &[Mutation] = &[
    core(
        "response time counts from the actual start",
        STATE,
        "self.response.record(service_ns + lag_ns);",
        "self.response.record(service_ns);",
    ),
    core(
        "service time counts from the due time",
        STATE,
        "self.service.record(service_ns);",
        "self.service.record(service_ns + lag_ns.unwrap_or(0));",
    ),
    core(
        "a late operation is due when the worker is free again",
        WORKER,
        "let due_ns = due_ns.map(|due| parts.start_ns.saturating_add(due));",
        "let due_ns = due_ns.map(|due| parts.start_ns.saturating_add(due).max(free_ns));",
    ),
    core(
        "late operations are skipped",
        WORKER,
        "let payload = source.prepare(&slot);",
        "if due_ns.is_some() && spare_ns == 0 { continue; } let payload = source.prepare(&slot);",
    ),
    core(
        "the operation that waited when the run ended is forgotten",
        UNSENT,
        "due.end.saturating_sub(issued.end.max(due.start));",
        "due.end.saturating_sub(issued.end.max(due.start)).saturating_sub(1);",
    ),
    core(
        "what was due and never sent is not counted",
        UNSENT,
        "state.never_sent(never_issued, u64::from(samples));",
        "let _ = samples;",
    ),
    core(
        "an operation in flight when its target panics is forgotten",
        WORKER,
        "state.in_flight = Some((slot, samples));",
        "state.in_flight = None;",
    ),
    core(
        "operations of an unknown fate count as done",
        STATE,
        "Outcome::Sent => self.counts.handed_over.add(samples),",
        "Outcome::Sent => self.counts.handed_over.add(samples), \
         Outcome::Unknown => self.counts.done.add(samples),",
    ),
    core(
        "the warm-up is part of the result",
        STATE,
        "let is_warm = due_ns.unwrap_or(begun_ns) >= self.warm_from_ns;",
        "let is_warm = true;",
    ),
    core(
        "an interval of the recorder is lost when it ends",
        "crates/tsb-core/src/latency/recorder.rs",
        "            self.pack();\n            self.fold(now_ns);",
        "            self.current.clear();\n            self.fold(now_ns);",
    ),
    core(
        "quantiles are printed with too few values behind them",
        "crates/tsb-core/src/latency/histogram.rs",
        "(beyond >= super::BEYOND_MIN).then(",
        "true.then(",
    ),
    core(
        "due times are rounded down",
        "crates/tsb-core/src/schedule/curve.rs",
        "u64::try_from(area.div_ceil(height))",
        "u64::try_from(area / height)",
    ),
    core(
        "the ledger leaves transport losses out of its equation",
        LEDGER,
        "parts: &[Counter::KernelDropped, Counter::LostInTransport, Counter::Received],",
        "parts: &[Counter::KernelDropped, Counter::Received],",
    ),
    core(
        "every ledger balances",
        LEDGER,
        "(u128::from(whole) != parts).then_some(",
        "false.then_some(",
    ),
    core(
        "lost samples do not make a run invalid",
        RULES,
        "(self.lost, \"were acknowledged and are not there\"),",
        "(0, \"were acknowledged and are not there\"),",
    ),
    core(
        "altered samples do not make a run invalid",
        RULES,
        "(self.altered, \"have another value than was sent\"),",
        "(0, \"have another value than was sent\"),",
    ),
    core(
        "a run of which nothing was accepted is valid",
        RULES,
        "findings.add(Status::Unverified, self.why_nothing_was_accepted());",
        "self.why_nothing_was_accepted();",
    ),
    core(
        "a generator that is late itself is not noticed where the interval is long",
        RULES,
        "(LAG_SHARE_MAX * interval_ms).min(LAG_NS_MAX as f64 / 1e6)",
        "(LAG_SHARE_MAX * interval_ms).max(LAG_NS_MAX as f64 / 1e6)",
    ),
    core(
        "what was lost on the way is not the transport's limit",
        RULES,
        "let undelivered = self.undelivered.iter().map(|undelivered| undelivered.samples).sum();",
        "let undelivered: u64 = 0;",
    ),
    core(
        "a store that refuses samples is not limited",
        RULES,
        "share(self.refused, self.received)",
        "share(0, self.received)",
    ),
    core(
        "stolen time and foreign use are not added up",
        RULES,
        "stolen + foreign,",
        "stolen.max(foreign),",
    ),
    core(
        "waiting that our own threads cause each other is noise",
        NOISE,
        "self.taken_ns += foreign_ns.min(waited_ns);",
        "self.taken_ns += waited_ns;",
    ),
    core(
        "foreign use that the run did not wait for is noise",
        NOISE,
        "self.taken_ns += foreign_ns.min(waited_ns);",
        "self.taken_ns += foreign_ns;",
    ),
    core(
        "the server that a run drives is noise",
        NOISE,
        "saturating_sub(self.last.own_cpu_ns) + target_cpu_ns;",
        "saturating_sub(self.last.own_cpu_ns);",
    ),
    core(
        "a thread that waited for a CPU is taken for a process that stood still",
        NOISE,
        "let late_ns = late_ns.saturating_sub(waited_ns);",
        "let late_ns = late_ns.saturating_sub(waited_ns.min(0));",
    ),
    core(
        "a figure beside its threshold is rounded over it",
        MEASURED,
        "shown.partial_cmp(&limit) == value.partial_cmp(&limit)",
        "shown.is_finite()",
    ),
    core(
        "series that nobody has seen are left out of the quantiles of staleness",
        "crates/tsb-core/src/staleness.rs",
        "self.visible(series, overdue_ns);",
        "let _ = (series, overdue_ns);",
    ),
    core(
        "a milepost is passed before its last byte is applied",
        MILEPOST,
        "if next.end > applied {",
        "if next.end > applied + 100 {",
    ),
    core(
        "response over a wire counts from the actual start",
        MILEPOST,
        "self.response.record(now.saturating_sub(milepost.due));",
        "self.response.record(now.saturating_sub(milepost.start));",
    ),
    core(
        "what waits in the socket counts as service",
        MILEPOST,
        "self.service.record(now - read);",
        "self.service.record(now - milepost.start.min(now));",
    ),
    core(
        "a schedule counts operations instead of samples",
        "crates/tsb-core/src/schedule.rs",
        "(None, _) => self.n += samples,",
        "(None, _) => self.n += samples.min(1),",
    ),
    core(
        "what the plan has ended is still stale",
        "crates/tsb-core/src/workload/lives.rs",
        ".filter(|block| block.ticks.contains(&tick))",
        ".filter(|block| block.ticks.start <= tick)",
    ),
    core(
        "missing frames of the binary protocol are not counted",
        "crates/tsb-core/src/wire/tsb/decode.rs",
        "self.sequence.missing = self.sequence.missing.saturating_add(missing);",
        "",
    ),
    core(
        "malformed lines are skipped without a count",
        "crates/tsb-core/src/wire/graphite/decode.rs",
        "                sink.malformed(&Malformed { what, bytes });\n                return Ok(());",
        "                drop(what);\n                return Ok(());",
    ),
    run(
        "the audit does not miss what is not there",
        COMPARE,
        "                    tally.missing += 1;\n",
        "",
    ),
    run(
        "the audit compares numbers instead of bits",
        COMPARE,
        "sent.to_bits() == found.to_bits()",
        "sent == found",
    ),
    run(
        "the audit does not count copies",
        COMPARE,
        "                tally.duplicated += 1;\n",
        "",
    ),
    run(
        "the audit takes a lost sample for an expired one",
        COMPARE,
        "if due < rules.keeps_from {",
        "if due <= rules.keeps_from.max(due) {",
    ),
    run(
        "an unknown row verifies its samples",
        CONSOLIDATE,
        "(None, None) => RowOutcome::Unknown,",
        "(None, None) => RowOutcome::Right,",
    ),
    run(
        "a sample of an unknown step counts by the rows above it",
        CONSOLIDATE,
        "is_sure && (step >= steps.open || steps.value(rule, step).is_some());",
        "is_sure;",
    ),
    run(
        "what was not taken of an unfinished step is not missed",
        CONSOLIDATE,
        "at_us > admitted",
        "at_us > admitted && false",
    ),
    run(
        "a row that left its archive must still be there",
        CONSOLIDATE,
        "None if number < self.oldest => RowOutcome::Gone,",
        "None if number < self.oldest && false => RowOutcome::Gone,",
    ),
    run(
        "a consolidated row of an earlier run is compared",
        UNCERTAIN,
        "step_of(0).filter(|_| is_continued)",
        "step_of(0).filter(|_| is_continued && false)",
    ),
    Mutation {
        tests: &["--test", "places", "--features", "sqlite"],
        ..run(
            "the samples of an earlier run are judged",
            AUDITOR,
            "start: scope.since.unwrap_or(Timestamp::MIN),",
            "start: Timestamp::MIN,",
        )
    },
    run(
        "a newest from the future is believed",
        NEWEST,
        "filter(|(said, sent)| said > sent)",
        "filter(|(said, sent)| said > sent && false)",
    ),
    run(
        "a newest that goes back is believed",
        NEWEST,
        "before.filter(|_| said < before)",
        "before.filter(|_| said > before)",
    ),
    run(
        "what was said during the run is not held against what was sent",
        NEWEST,
        ".filter(|_| said.max(largest) > sent)",
        ".filter(|_| said > sent)",
    ),
    run(
        "a newest need not be what a query returns",
        NEWEST,
        "if said != found {",
        "if said > found {",
    ),
    run(
        "a store may say that it accepted what nobody sent",
        AUDITOR,
        "said > sent + MISPLACED_NS",
        "said > sent + MISPLACED_NS && false",
    ),
    run(
        "a loss that others may hide is not bounded",
        SETTLE,
        "nameless.saturating_sub(tally.superseded + tally.expired)",
        "nameless",
    ),
    run(
        "what never reached the store is a loss of the store",
        SETTLE,
        "lost: missing.saturating_sub(nameless)",
        "lost: missing",
    ),
    run(
        "what was there when the run was read back may be gone later",
        SETTLE,
        "    absent - on_the_way\n",
        "    0\n",
    ),
    run(
        "what a server refused is taken for what it never answered",
        SETTLE,
        "let left = missing.saturating_sub(nameless);",
        "let left = *missing;",
    ),
    run(
        "a query asks for samples that are still on their way",
        KNOWN,
        "        reached + -self.slack_ns + -late_ns\n",
        "        reached + self.slack_ns + late_ns\n",
    ),
    run(
        "the newest sample may be older than one that is known",
        CHECK,
        "known.filter(|(known, _)| at < *known)",
        "known.filter(|(known, _)| at < *known && false)",
    ),
    run(
        "a refused sample makes a right answer wrong",
        CHECK,
        "            self.sent.remove(rejected.clone());\n",
        "",
    ),
    run(
        "a step of which samples have expired is compared",
        CHECK,
        "map(|at| *at >= asked.kept_from)",
        "map(|at| *at >= asked.kept_from || true)",
    ),
    core(
        "a phase that was not held is no reason",
        RULES,
        "for phase in &self.phases {",
        "for phase in &self.phases[..0] {",
    ),
    run(
        "what is accepted long after a phase counts as held by its end",
        PHASES,
        ".take(self.end + 1)",
        ".take(self.end + 2)",
    ),
    run(
        "a phase is judged for what the plan does to the store in it",
        PHASES,
        "phases.iter().filter(|phase| phase.faults.is_none());",
        "phases.iter();",
    ),
];
