//! What every client has to do when a run drives it directly: many in flight lose nothing, and a
//! server that is killed meanwhile costs nothing that the ledger cannot name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::verdict::Status;
use tsb_run::{AskedRate, Controls, Observer, Phase, Plan, Transport, open, run_plan};
use tsb_stores::conformance::libtest_mimic::Failed;

/// Seconds until a request is given up. What a killed server was asked ends at once, and a busy
/// machine has time to answer the rest.
pub(crate) const PATIENCE_S: u64 = 8;
/// How long one rate is measured.
const LENGTH_NS: u64 = 2 * SECOND_NS;
/// A run into which an outage falls is ended when that is over, and not by its length: on a busy
/// machine a server takes tens of seconds to start.
pub(crate) const AROUND_OUTAGE_NS: u64 = 300 * SECOND_NS;
/// How long before and after an outage samples are sent.
const BESIDE_OUTAGE_NS: u64 = 3 * SECOND_NS;

/// Operations of 54 samples.
pub(crate) fn plan(spec: &str, rate: AskedRate, duration_ns: u64, in_flight: usize) -> Result<Plan, Failed> {
    let mut plan = Plan {
        stores: vec![spec.parse()?],
        transport: Transport::Inproc,
        duration_ns: Some(duration_ns),
        rate,
        in_flight: Some(in_flight),
        calibrate: false,
        ..Plan::default()
    };
    plan.workload.fleet = "mix".parse()?;
    plan.workload.series = Some(5_400);
    Ok(plan.complete()?)
}

fn run(plan: &Plan, controls: &Controls) -> Result<Run, Failed> {
    sound(run_plan(plan, controls, &open)?.run)
}

/// A run that is not invalid, and whose ledger balances.
fn sound(run: Run) -> Result<Run, Failed> {
    if run.verdict.status == Status::Invalid || !run.ledger.counts.is_balanced() {
        return Err(format!("{:?}, {:?}", run.verdict, run.ledger).into());
    }
    Ok(run)
}

/// A closed loop with 1, 8 and 64 writes in flight, after which every sample is there; `spec` names a
/// place of its own for each. Rates are printed and not judged: other tests run meanwhile.
pub(crate) fn is_whole_with_more(spec: impl Fn(usize) -> String) -> Result<(), Failed> {
    for in_flight in [1, 8, 64] {
        let plan = plan(&spec(in_flight), AskedRate::Max, LENGTH_NS, in_flight)?;
        let run = run(&plan, &Controls::default())?;
        let (p50_ns, p99_ns) = (run.latency.response.p50_ns, run.latency.response.p99_ns);
        println!(
            "{in_flight} in flight: {:.0} samples/s, response p50 {:?} us, p99 {:?} us",
            run.rate.held_per_second,
            p50_ns.map(|ns| ns / 1_000),
            p99_ns.map(|ns| ns / 1_000),
        );
        let count = |counter| run.ledger.counts.get(counter).unwrap_or(0);
        let verified = count(Counter::Verified);
        if verified == 0 || verified != count(Counter::Accepted) {
            return Err(format!("{in_flight} in flight: {:?}", run.ledger).into());
        }
    }
    Ok(())
}

/// Hears when samples are sent.
#[derive(Default)]
struct Sending(AtomicBool);

impl Observer for Sending {
    fn phase(&self, phase: Phase) {
        if phase == Phase::Running {
            self.0.store(true, Ordering::Release);
        }
    }
}

/// A run at a steady rate during which the server is killed and started again: writes in flight end
/// as unknown or unsent, by name, and everything that was acknowledged is there.
pub(crate) fn outlives_a_kill(spec: &str, outage: impl FnOnce() -> Result<(), Failed> + Send) -> Result<(), Failed> {
    let run = interrupted_by(&steady(spec)?, outage)?;
    let count = |counter| run.ledger.counts.get(counter).unwrap_or(0);
    if count(Counter::Unknown) + count(Counter::Shed) == 0 {
        return Err("nobody noticed that the server was killed".into());
    }
    if run.ledger.counts.get(Counter::Verified).is_none() {
        return Err(format!("nothing was read back: {:?}, {:?}", run.verdict, run.notes).into());
    }
    if count(Counter::Accepted) != count(Counter::Verified) {
        return Err(format!("acknowledged and gone: {:?}", run.ledger).into());
    }
    Ok(())
}

/// The same into a server that acknowledges what it has in memory: the run is invalid, and its
/// ledger has everything that was acknowledged as verified or lost.
pub(crate) fn names_what_a_kill_took(
    spec: &str,
    outage: impl FnOnce() -> Result<(), Failed> + Send,
) -> Result<(), Failed> {
    let run = interrupted(&steady(spec)?, outage)?;
    let count = |counter| run.ledger.counts.get(counter).unwrap_or(0);
    let (lost, verified) = (count(Counter::Lost), count(Counter::Verified));
    println!("{lost} of {} acknowledged samples are gone", count(Counter::Accepted));
    let is_named = lost > 0 && verified > 0 && count(Counter::Accepted) == verified + lost;
    if !is_named || run.verdict.status != Status::Invalid || !run.ledger.counts.is_balanced() {
        return Err(format!("{:?}, {:?}", run.verdict, run.ledger).into());
    }
    Ok(())
}

/// The same into a server that acknowledges nothing: what it held, and what was sent while nothing
/// listened, is lost on the way, and everything else is there.
pub(crate) fn names_what_was_lost_on_the_way(
    plan: &Plan,
    outage: impl FnOnce() -> Result<(), Failed> + Send,
) -> Result<(), Failed> {
    let run = interrupted_by(plan, outage)?;
    let count = |counter| run.ledger.counts.get(counter).unwrap_or(0);
    let is_open = count(Counter::Confirmed) == 0 && count(Counter::Unknown) == count(Counter::Sent);
    let is_named = count(Counter::Lost) == 0 && count(Counter::Accepted) == count(Counter::Verified);
    if !is_open || !is_named || count(Counter::Shed) == 0 || count(Counter::Verified) < 2 * 54 {
        return Err(format!("{:?}, {:?}", run.verdict, run.ledger).into());
    }
    Ok(())
}

/// 54 series, each with a sample per second.
pub(crate) fn per_second(spec: &str, duration_ns: u64) -> Result<Plan, Failed> {
    let mut plan = Plan {
        stores: vec![spec.parse()?],
        transport: Transport::Inproc,
        duration_ns: Some(duration_ns),
        rate: AskedRate::Natural,
        calibrate: false,
        ..Plan::default()
    };
    plan.workload.series = Some(54);
    plan.workload.interval_ns = Some(SECOND_NS);
    Ok(plan.complete()?)
}

/// Operations of 54 samples at a steady rate, for longer than the outage.
fn steady(spec: &str) -> Result<Plan, Failed> {
    plan(spec, AskedRate::PerSecond(200 * 54), AROUND_OUTAGE_NS, 256)
}

/// A run of a plan, into which an outage falls, and which is ended after it; it must be sound.
pub(crate) fn interrupted_by(plan: &Plan, outage: impl FnOnce() -> Result<(), Failed> + Send) -> Result<Run, Failed> {
    sound(interrupted(plan, outage)?)
}

pub(crate) fn interrupted(plan: &Plan, outage: impl FnOnce() -> Result<(), Failed> + Send) -> Result<Run, Failed> {
    let sending = Arc::new(Sending::default());
    let controls = Controls {
        observer: Arc::clone(&sending) as Arc<dyn Observer>,
        ..Controls::default()
    };
    let stop = &controls.stops.stop;
    let has_ended = AtomicBool::new(false);
    let (run, outage) = std::thread::scope(|threads| {
        let killing = threads.spawn(|| {
            // Defining the series may take long beside other tests, and must succeed.
            while !sending.0.load(Ordering::Acquire) && !has_ended.load(Ordering::Acquire) {
                std::thread::park_timeout(Duration::from_millis(10));
            }
            MonotonicClock::new().wait_until(BESIDE_OUTAGE_NS);
            let outage = outage();
            MonotonicClock::new().wait_until(BESIDE_OUTAGE_NS);
            stop.store(true, Ordering::Release);
            outage
        });
        let run = run_plan(plan, &controls, &open);
        has_ended.store(true, Ordering::Release);
        (run, killing.join())
    });
    outage.map_err(|_| Failed::from("the killer panicked"))??;
    let run = run?.run;
    let count = |counter| run.ledger.counts.get(counter).unwrap_or(0);
    println!(
        "{} samples due, {} accepted, {} unknown, {} shed, {} lost on the way; lag p99 {:?} us",
        count(Counter::Due),
        count(Counter::Accepted),
        count(Counter::Unknown),
        count(Counter::Shed),
        count(Counter::LostInTransport),
        run.latency.lag.p99_ns.map(|ns| ns / 1_000),
    );
    Ok(run)
}
