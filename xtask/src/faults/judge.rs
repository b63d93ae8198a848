//! Compares what was acknowledged with what the store returns when it is opened again.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use rustix::process::Signal;

use super::client::Answer;
use super::service::{ProcessEnd, StartingProcess, finish};
use super::stores::{Guarantee, SERIES, START_S, StoreUnderTest, value};

/// The ticks that were sent to a store.
#[derive(Clone, Debug, Default)]
pub(super) struct SentTicks {
    /// Ticks that were acknowledged, in order.
    pub(super) acked: Vec<u64>,
    /// Ticks that were sent, and of which nobody said anything.
    pub(super) unsure: Vec<u64>,
    /// The number of acknowledged ticks when each fault struck.
    pub(super) faults: Vec<usize>,
}

impl SentTicks {
    /// The next tick that was never sent.
    pub(super) fn next(&self) -> u64 {
        let last = self.acked.last().max(self.unsure.iter().max());
        last.map_or(0, |last| last + 1)
    }

    /// Notes an answer; whether more can be sent.
    pub(super) fn note(&mut self, tick: u64, answer: &Answer) -> bool {
        match answer {
            Answer::Taken => self.acked.push(tick),
            Answer::Refused(_) | Answer::Gone | Answer::Silence => self.unsure.push(tick),
        }
        *answer == Answer::Taken
    }
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All that was acknowledged is there, and nothing was said.
    Whole,
    /// All is there, and damage was reported.
    WholeAndSaid(String),
    /// Something is missing that the level of its acknowledgement does not cover.
    Within,
    /// Something is missing or changed, and the program says so.
    Said(String),
    /// The store does not open, or does not answer, and says why.
    Refused(String),
    /// Something is missing or changed in a file whose format cannot show it.
    Unseen,
    /// Something is missing or changed, and nothing was said.
    Silent(String),
    /// A panic, an abort, or an exit code that means a bug.
    Panicked(String),
    /// The program did not end.
    Hung(String),
}

/// The losses that a fault may cause without a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllowedLoss {
    pub(super) keeps: Guarantee,
    /// The damaged file's format cannot show it.
    pub(super) is_blind: bool,
}

/// Opens a place with `tsb ingest`, gives it one tick more, closes it in order, reads all of it
/// with `tsb query`, and compares.
pub(super) fn examine(
    program: &Path,
    subject: &StoreUnderTest,
    root: &Path,
    given: &mut SentTicks,
    allowed: AllowedLoss,
) -> Result<Outcome> {
    let starting = StartingProcess::spawn(program, &[], subject, root)?;
    let service = match starting.listening()? {
        Ok(service) => service,
        Err(ended) => return Ok(of_end(&ended)),
    };
    let tick = given.next();
    let answer = match service.client(subject) {
        Ok(mut client) => client.send(tick),
        Err(_) => Answer::Gone,
    };
    given.note(tick, &answer);
    let ended = service.stop(Signal::TERM);
    if ended.status.is_none() || ended.has_panicked() || !ended.is_success() {
        return Ok(of_end(&ended));
    }
    match answer {
        Answer::Silence => return Ok(Outcome::Hung("no answer to a tick".to_owned())),
        Answer::Refused(why) => return Ok(Outcome::Refused(why)),
        Answer::Gone => {
            return Ok(Outcome::Silent(format!(
                "the listener ended a connection: {}",
                ended.said
            )));
        }
        Answer::Taken => {}
    }
    let (text, read) = query(program, subject, root)?;
    if read.has_panicked() {
        return Ok(of_end(&read));
    }
    let said = Complaints {
        complaint: [ended.complaint(), read.complaint()].concat(),
        // The second opening says again what the first one has said.
        at_most: at_most_of(&ended.complaints())
            .zip(at_most_of(&read.complaints()))
            .map(|(first, second)| first.max(second)),
    };
    if !read.is_success() && text.is_empty() {
        return Ok(Outcome::Refused(said.complaint));
    }
    let found = compare(subject, given, &text);
    Ok(weigh(&found, given, allowed, &said))
}

/// What the program said of errors and damage.
#[derive(Clone, Debug, Default)]
struct Complaints {
    complaint: String,
    /// The most samples that are lost by it; none where it does not say.
    at_most: Option<u64>,
}

/// How many samples are lost at most by what was said, in the words of `Damage`.
fn at_most_of(complaints: &[&str]) -> Option<u64> {
    complaints.iter().map(|line| at_most_in(line)).sum()
}

fn at_most_in(line: &str) -> Option<u64> {
    let number = line.split_once("; at most ").map(|(_, rest)| rest.split(' ').next());
    match number {
        Some(number) => number?.parse().ok(),
        None if line.contains("; no sample is lost") => Some(0),
        // Neither means that something is lost that a crash may not take.
        None if line.contains(" ends in the middle of a record: ") => Some(0),
        None if line.contains(" was kept aside as damaged: ") => Some(0),
        None => None,
    }
}

/// All series of a place, by `tsb query`.
fn query(program: &Path, subject: &StoreUnderTest, root: &Path) -> Result<(String, ProcessEnd)> {
    let mut command = Command::new(program);
    command.args(["query", &subject.inner(root)]);
    for series in 0..SERIES {
        command.args(["--series", &subject.key(series)]);
    }
    finish(&mut command)
}

fn of_end(ended: &ProcessEnd) -> Outcome {
    if ended.status.is_none() {
        return Outcome::Hung(ended.complaint());
    }
    if ended.has_panicked() {
        return Outcome::Panicked(ended.complaint());
    }
    if ended.complaint().is_empty() {
        return Outcome::Silent(format!("ended with {:?} and no word", ended.status));
    }
    Outcome::Refused(ended.complaint())
}

/// What differs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Acknowledged ticks of which samples are missing, by their place in the order of acks, and
    /// how many.
    missing: BTreeMap<usize, u64>,
    /// Samples that nobody sent.
    wrong: Vec<String>,
}

/// Compares the CSV of `tsb query` with what was given.
pub(super) fn compare(subject: &StoreUnderTest, given: &SentTicks, text: &str) -> Differences {
    let mut rows: BTreeMap<(u64, u64), &str> = BTreeMap::new();
    let mut found = Differences::default();
    for line in text.lines().skip(1) {
        match parse(line) {
            Some((series, tick, number)) => _ = rows.insert((series, tick), number),
            None => found.wrong.push(line.to_owned()),
        }
    }
    for (index, &tick) in given.acked.iter().enumerate() {
        let missing = (0..SERIES)
            .filter(|&series| !rows.contains_key(&(series, tick)))
            .count();
        if missing > 0 && !(subject.skips_first && tick == 0) {
            found.missing.insert(index, missing as u64);
        }
    }
    // A consolidated row of a tick that may be missing has the value of the next one.
    let is_known = |tick| given.acked.contains(&tick);
    for ((series, tick), number) in rows {
        let is_right = number.parse() == Ok(value(series, tick) as f64);
        if !is_right && !given.unsure.contains(&tick) || !is_known(tick) && !given.unsure.contains(&tick) {
            found.wrong.push(format!("s{series} at tick {tick} is {number}"));
        }
    }
    found
}

/// `s0{_field=v},1700000000.000000000,0.0`
fn parse(line: &str) -> Option<(u64, u64, &str)> {
    let (rest, number) = line.rsplit_once(',')?;
    let (name, at) = rest.rsplit_once(',')?;
    let name = name.trim_matches('"').strip_prefix('s')?;
    let series = name.split('{').next()?.parse().ok()?;
    let seconds: u64 = at.strip_suffix(".000000000")?.parse().ok()?;
    Some((series, seconds.checked_sub(START_S)?, number))
}

fn weigh(found: &Differences, given: &SentTicks, allowed: AllowedLoss, said: &Complaints) -> Outcome {
    let complaint = &said.complaint;
    if found.missing.is_empty() && found.wrong.is_empty() {
        return if complaint.is_empty() {
            Outcome::Whole
        } else {
            Outcome::WholeAndSaid(complaint.clone())
        };
    }
    let is_covered = |index: &usize| match allowed.keeps {
        Guarantee::All => false,
        Guarantee::Nothing => true,
        Guarantee::AllBut(ticks) => {
            let ticks = ticks as usize;
            given
                .faults
                .iter()
                .any(|&fault| *index < fault && index + ticks >= fault)
        }
    };
    let uncovered = found.missing.iter().filter(|(index, _)| !is_covered(index));
    let lost = uncovered.map(|(_, samples)| samples).sum::<u64>() + found.wrong.len() as u64;
    // As many as are lost have to be said.
    if !complaint.is_empty() && said.at_most.is_none_or(|at_most| lost <= at_most) {
        return Outcome::Said(complaint.clone());
    }
    if lost == 0 {
        return Outcome::Within;
    }
    if allowed.is_blind {
        return Outcome::Unseen;
    }
    let first = found.missing.keys().next().map(|&index| given.acked[index]);
    let wrong = found.wrong.first().cloned().unwrap_or_default();
    Outcome::Silent(format!(
        "{} of {} acknowledged ticks are missing (the first is {first:?}), {} samples are wrong {wrong}, \
         and this is said: {complaint:?}",
        found.missing.len(),
        given.acked.len(),
        found.wrong.len(),
    ))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::faults::stores::SUBJECTS;

    fn csv(ticks: &[u64]) -> String {
        let mut text = "series,time,value\n".to_owned();
        for tick in ticks {
            for series in 0..SERIES {
                let at = START_S + tick;
                let number = value(series, *tick);
                let _ = writeln!(text, "s{series}{{_field=v}},{at}.000000000,{number}.0");
            }
        }
        text
    }

    fn given(acked: &[u64], unsure: &[u64]) -> SentTicks {
        SentTicks {
            acked: acked.to_vec(),
            unsure: unsure.to_vec(),
            faults: vec![acked.len()],
        }
    }

    fn judged(given: &SentTicks, text: &str, keeps: Guarantee, complaint: &str) -> Outcome {
        let allowed = AllowedLoss { keeps, is_blind: false };
        let said = Complaints {
            complaint: complaint.to_owned(),
            at_most: at_most_in(complaint),
        };
        weigh(&compare(&SUBJECTS[0], given, text), given, allowed, &said)
    }

    #[test]
    fn a_loss_is_not_said_by_who_says_less() {
        let given = given(&[0, 1, 2, 3], &[]);
        let text = csv(&[0, 3]);
        let judged = |keeps, complaint| judged(&given, &text, keeps, complaint);
        // Two ticks of four series.
        for enough in [
            "j/1 is not complete: it is cut; at most 8 samples are lost",
            "x.db-wal is not complete: it is gone; how many samples are lost is not known",
            "tsb: cannot read j/1",
        ] {
            assert!(matches!(judged(Guarantee::All, enough), Outcome::Said(_)), "{enough}");
        }
        for less in [
            "j/1 is not complete: it is cut; at most 7 samples are lost",
            "j/1 is damaged: a checksum; at most 1 sample is lost; the file is kept as j/1.damaged",
            "x.db-lock is damaged: its checksum; no sample is lost",
            "j/1 ends in the middle of a record: a record is cut short; 9 bytes cannot be read",
            "j/1.damaged was kept aside as damaged: remove it when it is no longer needed",
        ] {
            assert!(matches!(judged(Guarantee::All, less), Outcome::Silent(_)), "{less}");
            // What the level does not cover needs no word.
            let within = judged(Guarantee::AllBut(3), less);
            assert!(!matches!(within, Outcome::Silent(_)), "{less}: {within:?}");
        }
        assert_eq!(
            at_most_of(&["a; at most 3 samples are lost", "b; no sample is lost"]),
            Some(3)
        );
        assert_eq!(at_most_of(&["a; at most 3 samples are lost", "cannot read b"]), None);
        assert_eq!(at_most_of(&[]), Some(0));
    }

    #[test]
    fn loss_is_silent_unless_it_is_reported_or_not_covered() {
        let given = given(&[0, 1, 2, 4], &[3]);
        for ticks in [&[0, 1, 2, 4][..], &[0, 1, 2, 3, 4]] {
            assert_eq!(judged(&given, &csv(ticks), Guarantee::All, ""), Outcome::Whole);
        }
        let short = csv(&[0, 1, 2]);
        assert!(matches!(judged(&given, &short, Guarantee::All, ""), Outcome::Silent(_)));
        assert_eq!(
            judged(&given, &short, Guarantee::All, "m.db is damaged"),
            Outcome::Said("m.db is damaged".to_owned())
        );
        assert_eq!(judged(&given, &short, Guarantee::AllBut(1), ""), Outcome::Within);
        let early = csv(&[0, 2, 4]);
        assert!(matches!(
            judged(&given, &early, Guarantee::AllBut(2), ""),
            Outcome::Silent(_)
        ));
        let wrong = csv(&[0, 1, 2, 4]).replace(",17.0", ",18.0");
        assert!(matches!(
            judged(&given, &wrong, Guarantee::Nothing, ""),
            Outcome::Silent(_)
        ));
        let foreign = csv(&[0, 1, 2, 4, 9]);
        assert!(matches!(
            judged(&given, &foreign, Guarantee::Nothing, ""),
            Outcome::Silent(_)
        ));
        assert_eq!(
            judged(&given, &csv(&[0, 1, 2, 4]), Guarantee::All, "said"),
            Outcome::WholeAndSaid("said".to_owned())
        );
    }

    #[test]
    fn a_sample_of_one_series_is_enough_to_miss_a_tick() {
        let given = given(&[0, 1], &[]);
        let text = csv(&[0, 1]).replace("s2{_field=v},1700000001.000000000,6.0\n", "");
        let found = compare(&SUBJECTS[0], &given, &text);
        assert_eq!((found.missing, found.wrong.len()), (BTreeMap::from([(1, 1)]), 0));
    }

    #[test]
    fn the_next_tick_follows_all_that_were_sent() {
        assert_eq!(SentTicks::default().next(), 0);
        assert_eq!(given(&[0, 1], &[2]).next(), 3);
        assert_eq!(given(&[0, 3], &[2]).next(), 4);
    }
}
