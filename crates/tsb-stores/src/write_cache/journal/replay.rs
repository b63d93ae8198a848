//! Replays a journal: collects the samples that were accepted and not settled.
//!
//! Replay changes nothing on the medium, whatever it finds: an unfinished end stays, and damaged
//! parts of a segment are skipped. Record numbers have no gaps, so missing records can be
//! counted.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::ops::Range;

use tsb_core::{SeriesId, SeriesKey};

use super::super::chunk::Sample;
use super::count::Counted;
use super::findings::{Gap, Wrong};
use super::head::{Begins, Head, Marker};
use super::medium::{Medium, read};
use super::order::{self, Marked, Place};
use super::record::Record;
use super::scan::{Piece, Scan};
use crate::damage::Damage;
use crate::error::{Error, Result};

/// Samples by the key of their series, each with the number of its record.
pub(in super::super) type ReplayedSamples = HashMap<SeriesKey, Vec<(u64, Sample)>, foldhash::fast::FixedState>;

/// Updates by the name of their file, each with the number of its record.
pub type ReplayedUpdates = HashMap<SeriesKey, Vec<(u64, String)>, foldhash::fast::FixedState>;

/// A segment that is no longer written.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) name: String,
    pub(super) number: u32,
    /// The number of its first record; 0 if unknown.
    pub(super) first_record: u64,
    /// Upper bound of the numbers of its records.
    pub(super) last_record: u64,
    pub(super) bytes: u64,
    /// Damaged: once its records are settled it is kept aside, not removed.
    pub(super) is_damaged: bool,
}

/// The result of replaying a journal.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) samples: ReplayedSamples,
    pub(super) updates: ReplayedUpdates,
    pub(super) segments: VecDeque<Sealed>,
    /// The oldest segment that must exist, by the marker or, without one, by name.
    pub(super) oldest: u32,
    /// The number of its first record; 0 if unknown.
    pub(super) oldest_record: u64,
    pub(super) next_number: u32,
    pub(super) next_record: u64,
    /// Whether there is a readable marker.
    pub(super) has_marker: bool,
    /// Whether there is an unreadable marker.
    pub(super) is_marker_damaged: bool,
    /// Bytes after the last whole record, which a crash left unfinished.
    pub(super) torn_bytes: u64,
    /// The damage found.
    pub(super) damage: Vec<Damage>,
}

/// Reads all segments in order.
///
/// # Errors
/// [`Error::LaterFormat`] if a later version wrote one of the files; [`Error::Backend`] if one
/// cannot be read; [`Error::Corrupt`] if no number is left for another segment.
pub(super) fn replay(medium: &dyn Medium) -> Result<Found> {
    let names = read(medium, "", "list", |_| medium.names())?;
    let marked = Marked::read(medium, &names)?;
    let counted = Counted::read(medium, &names)?;
    let places = order::by_name(&names);
    let (mut replay, numbers) = Replay::run(medium, (marked, counted), &places)?;
    let is_misnamed = |(place, number): (&Place, &Option<u32>)| number.is_some_and(|number| number != place.named);
    if places.iter().zip(&numbers).any(is_misnamed) {
        (replay, _) = Replay::run(medium, (marked, counted), &order::by_head(places, &numbers))?;
    }
    let mut found = replay.end();
    found.damage.extend(counted.finding(medium));
    found.damage.extend(order::kept_aside(medium, &names));
    Ok(found)
}

/// What a record holds of one series.
#[derive(Debug)]
enum Item {
    Sample(Sample),
    Update(String),
}

/// Data whose series had no name yet when it was read.
#[derive(Debug)]
struct Unnamed {
    segment: usize,
    life: u32,
    id: SeriesId,
    number: u64,
    item: Item,
}

/// The state of a replay.
#[derive(Debug)]
struct Replay<'a> {
    medium: &'a dyn Medium,
    marked: Marked,
    found: Found,
    /// What is wrong with each segment of `found.segments`.
    wrong: Vec<Wrong>,
    gaps: Vec<Gap>,
    /// The last gap lies directly before the data that is read next.
    is_behind_gap: bool,
    /// The segment that was read last numbers samples, not records.
    counts_samples: bool,
    /// The next number if nothing is missing; `None` if unknown.
    expected: Option<u64>,
    /// The highest record number that was applied.
    last: u64,
    /// Names by opening (`life`) and id.
    names: HashMap<(u32, SeriesId), SeriesKey>,
    unnamed: Vec<Unnamed>,
    /// Per series, the record up to which it is settled.
    settled: HashMap<SeriesKey, u64>,
    is_marker_needed: bool,
}

/// How the records of a segment are counted and named.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Each sample has a number; in format 1 each record has one.
    counts_samples: bool,
    life: u32,
}

/// Segments of format 1 do not name their opening: their ids are valid within the segment only.
const NO_LIFE: u32 = 0;

impl<'a> Replay<'a> {
    /// Reads the segments. Also returns the number in the head of each.
    fn run(
        medium: &'a dyn Medium,
        (marked, counted): (Marked, Counted),
        places: &[Place],
    ) -> Result<(Self, Vec<Option<u32>>)> {
        let marker = marked.known();
        let oldest = marker.map_or_else(
            || places.first().map_or(1, |place| place.number),
            |marker| marker.oldest,
        );
        let oldest_record = marker.map_or(0, |marker| marker.oldest_record);
        let mut replay = Self {
            medium,
            marked,
            found: Found {
                oldest,
                oldest_record,
                next_number: 1,
                ..Found::default()
            },
            wrong: Vec::new(),
            gaps: Vec::new(),
            is_behind_gap: false,
            counts_samples: true,
            expected: (oldest_record > 0).then_some(oldest_record),
            last: 0,
            names: HashMap::new(),
            unnamed: Vec::new(),
            settled: HashMap::new(),
            is_marker_needed: false,
        };
        let mut numbers = Vec::with_capacity(places.len());
        let mut next = oldest;
        for place in places {
            if place.number > next {
                replay.miss(next, place.number - 1);
            }
            let bytes = read(medium, &place.name, "read", |name| medium.read(name))?;
            numbers.push(order::number_in(medium, &place.name, &bytes)?);
            replay.segment(place, &bytes);
            let after = place.number.checked_add(1);
            next = next.max(after.ok_or_else(|| replay.no_more(&place.name))?);
        }
        let is_newest_there = replay.miss_the_newest(next)?;
        if let Counted::Upto(number) = counted {
            replay.meet_count(number, is_newest_there);
        }
        replay.found.next_number = replay.found.next_number.max(next);
        // Skip numbers whose file name is taken by a misnamed segment.
        let is_taken = |number: u32| places.iter().any(|place| place.named == number);
        while is_taken(replay.found.next_number) {
            let after = replay.found.next_number.checked_add(1);
            replay.found.next_number = after.ok_or_else(|| replay.no_more(""))?;
        }
        Ok((replay, numbers))
    }

    fn no_more(&self, name: &str) -> Error {
        Error::Corrupt {
            path: self.medium.path_of(name),
            offset: 0,
            what: "no segment can follow it".to_owned(),
        }
    }

    /// Notes that the segments `first` to `last` are missing.
    fn miss(&mut self, first: u32, last: u32) {
        self.gaps.push(Gap {
            first,
            last,
            lost: None,
        });
        self.is_behind_gap = true;
    }

    /// Whether the newest segment that the marker names is there.
    fn miss_the_newest(&mut self, next: u32) -> Result<bool> {
        let Some(Marker { newest, .. }) = self.marked.known().copied() else {
            return Ok(true);
        };
        if newest.number >= next {
            self.miss(next, newest.number);
            self.meet(newest.first_record);
            // Nothing records how many samples the newest segment held.
            if let Some(gap) = self.gaps.last_mut() {
                gap.lost = None;
            }
        }
        let after = newest.number.checked_add(1);
        let after = after.ok_or_else(|| self.no_more(super::medium::MARKER))?;
        self.found.next_number = self.found.next_number.max(after);
        Ok(newest.number < next)
    }

    /// Applies the count file: all records before `number` were promised.
    fn meet_count(&mut self, number: u64, is_newest_there: bool) {
        if is_newest_there {
            self.meet(number);
        } else {
            // The missing segment is reported already; only the expected number changes.
            self.expected = Some(self.expected.unwrap_or(0).max(number));
        }
    }

    fn segment(&mut self, place: &Place, bytes: &[u8]) {
        let begins = Begins::of(bytes);
        let mut wrong = Wrong::default();
        if place.named != place.number {
            wrong.misnamed = Some(place.number);
        }
        self.is_marker_needed |= matches!(begins, Begins::Second(_));
        let is_retired = begins.number() == Some(place.number) && place.number < self.found.oldest;
        if is_retired {
            self.wrong.push(wrong);
        } else {
            let rules = self.begin(place, begins, &mut wrong);
            self.wrong.push(wrong);
            self.counts_samples = rules.counts_samples;
            self.records(bytes, begins.len(), rules);
        }
        self.found.segments.push_back(Sealed {
            name: place.name.clone(),
            number: place.number,
            first_record: match begins {
                Begins::Second(head) => head.first_record,
                _ => 0,
            },
            last_record: self.next_record() - 1,
            bytes: bytes.len() as u64,
            is_damaged: false,
        });
    }

    /// Derives from the head of a segment how its records are read.
    fn begin(&mut self, place: &Place, begins: Begins, wrong: &mut Wrong) -> Rules {
        let newest = self.marked.known().map(|marker| marker.newest);
        let head = match begins {
            Begins::Second(head) => Some(head),
            // The marker has a copy of the newest segment's head.
            Begins::Damaged => newest.filter(|newest| newest.number == place.number),
            Begins::First(_) | Begins::Later(_) => None,
        };
        // A segment's head is synced before the marker names it: a crash cannot undo it.
        let is_begun = newest.is_some_and(|newest| place.number <= newest.number);
        wrong.has_no_head = matches!(begins, Begins::Damaged) && is_begun;
        if let Some(Head { first_record, .. }) = head {
            self.meet(first_record);
        }
        self.names.retain(|(life, _), _| *life != NO_LIFE);
        Rules {
            counts_samples: !matches!(begins, Begins::First(_)),
            life: head.map_or(NO_LIFE, |head| head.life),
        }
    }

    /// The records continue at `number`: numbers that were expected before it and did not appear
    /// are lost.
    fn meet(&mut self, number: u64) {
        let missing = self.expected.map(|expected| number.saturating_sub(expected));
        if std::mem::take(&mut self.is_behind_gap) {
            if let Some(gap) = self.gaps.last_mut() {
                gap.lost = missing.filter(|_| self.counts_samples);
            }
        } else if let Some((missing, before)) = missing.filter(|missing| *missing > 0).zip(self.wrong.last_mut()) {
            before.lose_tail(missing);
            before.is_loss_unknown |= !self.counts_samples;
        }
        self.expected = Some(self.expected.unwrap_or(0).max(number));
    }

    fn records(&mut self, bytes: &[u8], start: usize, rules: Rules) {
        let mut scan = Scan::new(bytes, start);
        let mut is_first = true;
        while let Some(piece) = scan.next(self.last) {
            let is_record = matches!(piece, Piece::Record(..));
            match piece {
                Piece::Record(number, record) => {
                    self.record(number, record, rules, is_first);
                    is_first = false;
                }
                Piece::Bad { from, to, what } => self.bad(from..to, what, to == bytes.len()),
            }
            if let Some(wrong) = self.wrong.last_mut() {
                wrong.ends_with_record = is_record;
            }
        }
    }

    fn bad(&mut self, at: Range<usize>, what: &'static str, is_tail: bool) {
        let Some(wrong) = self.wrong.last_mut() else { return };
        if is_tail {
            wrong.tail = Some(what);
            wrong.tail_bytes = at.len() as u64;
            return;
        }
        wrong.bad_bytes += at.len() as u64;
        if at.start == 0 {
            wrong.has_no_head = true;
        } else {
            wrong.first_bad.get_or_insert((at.start, what));
        }
    }

    fn record(&mut self, number: u64, record: Record, rules: Rules, is_first: bool) {
        let is_names = matches!(record, Record::Names(_));
        if number <= self.last {
            if let Some(wrong) = self.wrong.last_mut().filter(|_| !is_names) {
                wrong.repeated += 1;
            }
            // Apply names even if repeated: they are harmless, and later records may need them.
            if is_names {
                self.apply(number, record, rules);
            }
            return;
        }
        self.follow(number, rules, is_first);
        if !is_names {
            self.last = number;
            let numbers = if rules.counts_samples {
                record.numbers().max(1)
            } else {
                1
            };
            self.expected = Some(number.saturating_add(numbers));
        }
        self.apply(number, record, rules);
    }

    /// Counts the numbers missing before a record.
    fn follow(&mut self, number: u64, rules: Rules, is_first: bool) {
        let has_bad = self.wrong.last().is_some_and(|wrong| wrong.bad_bytes > 0);
        if is_first && !has_bad {
            // The loss is in the segments before this one, if the head has not shown it yet.
            let current = self.wrong.pop();
            self.meet(number);
            self.wrong.extend(current);
            return;
        }
        let Some(wrong) = self.wrong.last_mut() else { return };
        match self.expected {
            Some(expected) if number > expected => {
                wrong.lost += number - expected;
                // In format 1 a number stands for a write of any number of samples.
                wrong.is_loss_unknown |= !rules.counts_samples;
            }
            Some(_) => {}
            None => wrong.is_loss_unknown = true,
        }
        self.expected = Some(self.expected.unwrap_or(0).max(number));
    }

    fn apply(&mut self, number: u64, record: Record, rules: Rules) {
        match record {
            Record::Names(names) => {
                let named = names.into_iter().map(|(id, key)| ((rules.life, id), key));
                self.names.extend(named);
            }
            Record::Samples(samples) => {
                for (id, sample) in samples {
                    self.hold(rules.life, id, number, Item::Sample(sample));
                }
            }
            Record::Updates(id, lines) => {
                for line in lines.lines() {
                    self.hold(rules.life, id, number, Item::Update(line.to_owned()));
                }
            }
            Record::Marks(_, marks) => {
                for (id, upto) in marks {
                    // A mark without a name can be skipped: the store has the samples, so
                    // replaying them does no harm.
                    let Some(key) = self.names.get(&(rules.life, id)) else {
                        continue;
                    };
                    self.found.drop_upto(key, upto);
                    let settled = self.settled.entry(key.clone()).or_default();
                    *settled = upto.max(*settled);
                }
            }
        }
    }

    fn hold(&mut self, life: u32, id: SeriesId, number: u64, item: Item) {
        if let Some(key) = self.names.get(&(life, id)) {
            self.found.hold(key, number, item);
        } else {
            self.unnamed.push(Unnamed {
                segment: self.wrong.len().saturating_sub(1),
                life,
                id,
                number,
                item,
            });
        }
    }

    fn next_record(&self) -> u64 {
        self.expected.unwrap_or(1).max(self.last + 1)
    }

    /// Completes the result after all segments are read.
    fn end(mut self) -> Found {
        self.name_the_unnamed();
        self.found.next_record = self.next_record();
        self.found.has_marker = self.marked.known().is_some();
        self.found.is_marker_damaged = self.marked == Marked::Damaged;
        let medium = self.medium;
        if let Some(newest) = self.wrong.last_mut() {
            // No later segment shows what the newest one held.
            newest.is_loss_unknown |= newest.has_no_head && !newest.ends_with_record;
        }
        for (sealed, wrong) in self.found.segments.iter_mut().zip(&self.wrong) {
            sealed.is_damaged = wrong.is_damaged();
            self.found.torn_bytes += wrong.tail_bytes;
            self.found.damage.extend(wrong.findings(&medium.path_of(&sealed.name)));
        }
        let folder = order::folder(medium);
        self.found
            .damage
            .extend(self.gaps.iter().map(|gap| gap.finding(&folder)));
        let marker = self.marked.finding(medium, self.is_marker_needed);
        self.found.damage.extend(marker);
        self.found.samples.retain(|_, samples| !samples.is_empty());
        self.found.updates.retain(|_, updates| !updates.is_empty());
        self.found
    }

    /// Resolves data without names: if damage destroyed a record of names, another segment of the
    /// same opening may hold them too.
    fn name_the_unnamed(&mut self) {
        let mut is_disordered = false;
        for Unnamed {
            segment,
            life,
            id,
            number,
            item,
        } in std::mem::take(&mut self.unnamed)
        {
            let key = self.names.get(&(life, id)).filter(|_| life != NO_LIFE);
            let Some(key) = key else {
                if let Some(wrong) = self.wrong.get_mut(segment) {
                    wrong.unnamed += 1;
                }
                continue;
            };
            if self.settled.get(key).is_none_or(|upto| number > *upto) {
                self.found.hold(key, number, item);
                is_disordered = true;
            }
        }
        if is_disordered {
            let samples = self.found.samples.values_mut();
            samples.for_each(|samples| samples.sort_by_key(|(number, _)| *number));
            let updates = self.found.updates.values_mut();
            updates.for_each(|updates| updates.sort_by_key(|(number, _)| *number));
        }
    }
}

impl Found {
    fn hold(&mut self, key: &SeriesKey, number: u64, item: Item) {
        match item {
            Item::Sample(sample) => {
                if let Some(held) = self.samples.get_mut(key) {
                    held.push((number, sample));
                } else {
                    self.samples.insert(key.clone(), vec![(number, sample)]);
                }
            }
            Item::Update(line) => {
                if let Some(held) = self.updates.get_mut(key) {
                    held.push((number, line));
                } else {
                    self.updates.insert(key.clone(), vec![(number, line)]);
                }
            }
        }
    }

    fn drop_upto(&mut self, key: &SeriesKey, upto: u64) {
        if let Some(held) = self.samples.get_mut(key) {
            held.retain(|(record, _)| *record > upto);
        }
        if let Some(held) = self.updates.get_mut(key) {
            held.retain(|(record, _)| *record > upto);
        }
    }
}
