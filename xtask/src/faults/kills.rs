//! Kills: ends the program at any moment, also while it opens what an earlier kill left.

use anyhow::Result;
use rustix::process::Signal;

use super::judge::{AllowedLoss, Outcome, SentTicks, examine};
use super::rng::Rng;
use super::service::{Service, StartingProcess, micros};
use super::stores::StoreUnderTest;
use super::trial::{Trial, TrialFolder};

/// Kills of one place, before there is a new one.
const LIVES: u64 = 10;
/// The longest life, in microseconds.
const LIFE_US: u64 = 40_000;
/// Ticks of one life at the most: an RRD file here keeps 2,000 rows.
const TICKS_MAX: u64 = 150;
/// The longest part of an opening, in microseconds.
const OPENING_US: u64 = 8_000;

/// One place that is killed again and again, and examined after each kill.
pub(super) fn chain(trial: &Trial<'_>, seed: u64, lives: u64, mut each: impl FnMut(&Outcome, &str)) -> Result<()> {
    let mut rng = Rng::new(seed);
    let place = TrialFolder::new(trial, "kill", seed)?;
    let mut given = SentTicks::default();
    for life in 0..lives.min(LIVES) {
        let is_recovery = life > 0 && rng.one_in(3);
        let how = kill(trial, &place, &mut given, &mut rng, is_recovery)?;
        given.faults.push(given.acked.len());
        let allowed = AllowedLoss {
            keeps: trial.subject.after_kill,
            is_blind: false,
        };
        let outcome = examine(trial.program, trial.subject, &place.root, &mut given, allowed)?;
        each(&outcome, &format!("seed {seed}, kill {life} {how}"));
        if !matches!(outcome, Outcome::Whole | Outcome::Within) {
            place.keep_if_wrong(&outcome);
            break;
        }
    }
    Ok(())
}

/// Kills one life; says when.
fn kill(
    trial: &Trial<'_>,
    place: &TrialFolder,
    given: &mut SentTicks,
    rng: &mut Rng,
    is_recovery: bool,
) -> Result<String> {
    let starting = StartingProcess::spawn(trial.program, &[], trial.subject, &place.root)?;
    if is_recovery {
        let after = rng.below(OPENING_US);
        starting.handle.wait(micros(after));
        starting.handle.signal(Signal::KILL);
        if let Ok(service) = starting.listening()? {
            service.stop(Signal::KILL);
        }
        return Ok(format!("{after} us after an opening began"));
    }
    let Ok(service) = starting.listening()? else {
        return Ok("that came too late".to_owned());
    };
    let after = rng.below(LIFE_US);
    feed_until_killed(&service, trial.subject, given, after);
    service.stop(Signal::KILL);
    Ok(format!("{after} us after it listened"))
}

/// Sends tick after tick until another thread has killed the listener.
fn feed_until_killed(service: &Service, subject: &StoreUnderTest, given: &mut SentTicks, after_us: u64) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            service.handle.wait(micros(after_us));
            service.handle.signal(Signal::KILL);
        });
        let Ok(mut client) = service.client(subject) else {
            return;
        };
        for _ in 0..TICKS_MAX {
            let tick = given.next();
            let answer = client.send(tick);
            if !given.note(tick, &answer) {
                break;
            }
        }
    });
}
