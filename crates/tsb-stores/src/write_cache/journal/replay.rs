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
use super::count::CountState;
use super::findings::{Gap, SegmentFindings};
use super::head::{DecodedHead, Marker, SegmentHead};
use super::medium::{Medium, with_path};
use super::order::{self, MarkerState, SegmentFile};
use super::record::Record;
use super::scan::{ScanItem, Scanner};
use crate::damage::Damage;
use crate::error::{Error, Result};

/// Samples by the key of their series, each with the number of its record.
pub(in super::super) type ReplayedSamples = HashMap<SeriesKey, Vec<(u64, Sample)>, foldhash::fast::FixedState>;

/// Updates by the name of their file, each with the number of its record.
pub type ReplayedUpdates = HashMap<SeriesKey, Vec<(u64, String)>, foldhash::fast::FixedState>;

/// A segment that is no longer written.
#[derive(Debug)]
pub(super) struct SealedSegment {
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
pub(super) struct ReplayResult {
    pub(super) samples: ReplayedSamples,
    pub(super) updates: ReplayedUpdates,
    pub(super) segments: VecDeque<SealedSegment>,
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
pub(super) fn replay(medium: &dyn Medium) -> Result<ReplayResult> {
    let names = with_path(medium, "", "list", |_| medium.names())?;
    let marker_state = MarkerState::read(medium, &names)?;
    let count_state = CountState::read(medium, &names)?;
    let files = order::by_name(&names);
    let (mut replay, numbers) = JournalReplay::run(medium, (marker_state, count_state), &files)?;
    let is_misnamed =
        |(file, number): (&SegmentFile, &Option<u32>)| number.is_some_and(|number| number != file.number_in_name);
    if files.iter().zip(&numbers).any(is_misnamed) {
        (replay, _) = JournalReplay::run(medium, (marker_state, count_state), &order::by_head(files, &numbers))?;
    }
    let mut found = replay.finish();
    found.damage.extend(count_state.finding(medium));
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
struct UnnamedItem {
    segment: usize,
    opening: u32,
    id: SeriesId,
    number: u64,
    item: Item,
}

/// The state of a replay.
#[derive(Debug)]
struct JournalReplay<'a> {
    medium: &'a dyn Medium,
    marker_state: MarkerState,
    found: ReplayResult,
    /// What is wrong with each segment of `found.segments`.
    findings: Vec<SegmentFindings>,
    gaps: Vec<Gap>,
    /// The last gap lies directly before the data that is read next.
    is_after_gap: bool,
    /// The segment that was read last numbers samples, not records.
    counts_samples: bool,
    /// The next number if nothing is missing; `None` if unknown.
    expected: Option<u64>,
    /// The highest record number that was applied.
    last: u64,
    /// Names by opening and id.
    names: HashMap<(u32, SeriesId), SeriesKey>,
    unnamed: Vec<UnnamedItem>,
    /// Per series, the record up to which it is settled.
    settled: HashMap<SeriesKey, u64>,
    is_marker_needed: bool,
}

/// How the records of a segment are counted and named.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Each sample has a number; in format 1 each record has one.
    counts_samples: bool,
    opening: u32,
}

/// Segments of format 1 do not name their opening: their ids are valid within the segment only.
const NO_OPENING: u32 = 0;

impl<'a> JournalReplay<'a> {
    /// Reads the segments. Also returns the number in the head of each.
    fn run(
        medium: &'a dyn Medium,
        (marker_state, count_state): (MarkerState, CountState),
        files: &[SegmentFile],
    ) -> Result<(Self, Vec<Option<u32>>)> {
        let marker = marker_state.known();
        let oldest = marker.map_or_else(|| files.first().map_or(1, |file| file.number), |marker| marker.oldest);
        let oldest_record = marker.map_or(0, |marker| marker.oldest_record);
        let mut replay = Self {
            medium,
            marker_state,
            found: ReplayResult {
                oldest,
                oldest_record,
                next_number: 1,
                ..ReplayResult::default()
            },
            findings: Vec::new(),
            gaps: Vec::new(),
            is_after_gap: false,
            counts_samples: true,
            expected: (oldest_record > 0).then_some(oldest_record),
            last: 0,
            names: HashMap::new(),
            unnamed: Vec::new(),
            settled: HashMap::new(),
            is_marker_needed: false,
        };
        let mut numbers = Vec::with_capacity(files.len());
        let mut next = oldest;
        for file in files {
            if file.number > next {
                replay.note_missing_segments(next, file.number - 1);
            }
            let bytes = with_path(medium, &file.name, "read", |name| medium.read(name))?;
            numbers.push(order::number_in(medium, &file.name, &bytes)?);
            replay.segment(file, &bytes);
            let after = file.number.checked_add(1);
            next = next.max(after.ok_or_else(|| replay.out_of_numbers(&file.name))?);
        }
        let is_newest_there = replay.check_newest_segment(next)?;
        if let CountState::Upto(number) = count_state {
            replay.apply_count(number, is_newest_there);
        }
        replay.found.next_number = replay.found.next_number.max(next);
        // Skip numbers whose file name is taken by a misnamed segment.
        let is_taken = |number: u32| files.iter().any(|file| file.number_in_name == number);
        while is_taken(replay.found.next_number) {
            let after = replay.found.next_number.checked_add(1);
            replay.found.next_number = after.ok_or_else(|| replay.out_of_numbers(""))?;
        }
        Ok((replay, numbers))
    }

    fn out_of_numbers(&self, name: &str) -> Error {
        Error::Corrupt {
            path: self.medium.path_of(name),
            offset: 0,
            what: "no segment can follow it".to_owned(),
        }
    }

    /// Notes that the segments `first` to `last` are missing.
    fn note_missing_segments(&mut self, first: u32, last: u32) {
        self.gaps.push(Gap {
            first,
            last,
            lost: None,
        });
        self.is_after_gap = true;
    }

    /// Whether the newest segment that the marker names is there.
    fn check_newest_segment(&mut self, next: u32) -> Result<bool> {
        let Some(Marker { newest, .. }) = self.marker_state.known().copied() else {
            return Ok(true);
        };
        if newest.number >= next {
            self.note_missing_segments(next, newest.number);
            self.continue_at(newest.first_record);
            // Nothing records how many samples the newest segment held.
            if let Some(gap) = self.gaps.last_mut() {
                gap.lost = None;
            }
        }
        let after = newest.number.checked_add(1);
        let after = after.ok_or_else(|| self.out_of_numbers(super::medium::MARKER))?;
        self.found.next_number = self.found.next_number.max(after);
        Ok(newest.number < next)
    }

    /// Applies the count file: all records before `number` were promised.
    fn apply_count(&mut self, number: u64, is_newest_there: bool) {
        if is_newest_there {
            self.continue_at(number);
        } else {
            // The missing segment is reported already; only the expected number changes.
            self.expected = Some(self.expected.unwrap_or(0).max(number));
        }
    }

    fn segment(&mut self, file: &SegmentFile, bytes: &[u8]) {
        let decoded = DecodedHead::of(bytes);
        let mut findings = SegmentFindings::default();
        if file.number_in_name != file.number {
            findings.misnamed = Some(file.number);
        }
        self.is_marker_needed |= matches!(decoded, DecodedHead::Version2(_));
        let is_retired = decoded.number() == Some(file.number) && file.number < self.found.oldest;
        if is_retired {
            self.findings.push(findings);
        } else {
            let rules = self.begin(file, decoded, &mut findings);
            self.findings.push(findings);
            self.counts_samples = rules.counts_samples;
            self.records(bytes, decoded.len(), rules);
        }
        self.found.segments.push_back(SealedSegment {
            name: file.name.clone(),
            number: file.number,
            first_record: match decoded {
                DecodedHead::Version2(head) => head.first_record,
                _ => 0,
            },
            last_record: self.next_record() - 1,
            bytes: bytes.len() as u64,
            is_damaged: false,
        });
    }

    /// Derives from the head of a segment how its records are read.
    fn begin(&mut self, file: &SegmentFile, decoded: DecodedHead, findings: &mut SegmentFindings) -> Rules {
        let newest = self.marker_state.known().map(|marker| marker.newest);
        let head = match decoded {
            DecodedHead::Version2(head) => Some(head),
            // The marker has a copy of the newest segment's head.
            DecodedHead::Damaged => newest.filter(|newest| newest.number == file.number),
            DecodedHead::Version1(_) | DecodedHead::Later(_) => None,
        };
        // A segment's head is synced before the marker names it: a crash cannot undo it.
        let is_begun = newest.is_some_and(|newest| file.number <= newest.number);
        findings.has_no_head = matches!(decoded, DecodedHead::Damaged) && is_begun;
        if let Some(SegmentHead { first_record, .. }) = head {
            self.continue_at(first_record);
        }
        self.names.retain(|(opening, _), _| *opening != NO_OPENING);
        Rules {
            counts_samples: !matches!(decoded, DecodedHead::Version1(_)),
            opening: head.map_or(NO_OPENING, |head| head.opening),
        }
    }

    /// The records continue at `number`: numbers that were expected before it and did not appear
    /// are lost.
    fn continue_at(&mut self, number: u64) {
        let missing = self.expected.map(|expected| number.saturating_sub(expected));
        if std::mem::take(&mut self.is_after_gap) {
            if let Some(gap) = self.gaps.last_mut() {
                gap.lost = missing.filter(|_| self.counts_samples);
            }
        } else if let Some((missing, before)) = missing.filter(|missing| *missing > 0).zip(self.findings.last_mut()) {
            before.count_tail_as_lost(missing);
            before.is_loss_unknown |= !self.counts_samples;
        }
        self.expected = Some(self.expected.unwrap_or(0).max(number));
    }

    fn records(&mut self, bytes: &[u8], start: usize, rules: Rules) {
        let mut scan = Scanner::new(bytes, start);
        let mut is_first = true;
        while let Some(item) = scan.next(self.last) {
            let is_record = matches!(item, ScanItem::Record(..));
            match item {
                ScanItem::Record(number, record) => {
                    self.record(number, record, rules, is_first);
                    is_first = false;
                }
                ScanItem::Bad { from, to, what } => self.note_bad_bytes(from..to, what, to == bytes.len()),
            }
            if let Some(findings) = self.findings.last_mut() {
                findings.ends_with_record = is_record;
            }
        }
    }

    fn note_bad_bytes(&mut self, at: Range<usize>, what: &'static str, is_tail: bool) {
        let Some(findings) = self.findings.last_mut() else {
            return;
        };
        if is_tail {
            findings.tail = Some(what);
            findings.tail_bytes = at.len() as u64;
            return;
        }
        findings.bad_bytes += at.len() as u64;
        if at.start == 0 {
            findings.has_no_head = true;
        } else {
            findings.first_bad.get_or_insert((at.start, what));
        }
    }

    fn record(&mut self, number: u64, record: Record, rules: Rules, is_first: bool) {
        let is_names = matches!(record, Record::Names(_));
        if number <= self.last {
            if let Some(findings) = self.findings.last_mut().filter(|_| !is_names) {
                findings.repeated += 1;
            }
            // Apply names even if repeated: they are harmless, and later records may need them.
            if is_names {
                self.apply(number, record, rules);
            }
            return;
        }
        self.count_missing_before(number, rules, is_first);
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
    fn count_missing_before(&mut self, number: u64, rules: Rules, is_first: bool) {
        let has_bad = self.findings.last().is_some_and(|findings| findings.bad_bytes > 0);
        if is_first && !has_bad {
            // The loss is in the segments before this one, if the head has not shown it yet.
            let current = self.findings.pop();
            self.continue_at(number);
            self.findings.extend(current);
            return;
        }
        let Some(findings) = self.findings.last_mut() else {
            return;
        };
        match self.expected {
            Some(expected) if number > expected => {
                findings.lost += number - expected;
                // In format 1 a number stands for a write of any number of samples.
                findings.is_loss_unknown |= !rules.counts_samples;
            }
            Some(_) => {}
            None => findings.is_loss_unknown = true,
        }
        self.expected = Some(self.expected.unwrap_or(0).max(number));
    }

    fn apply(&mut self, number: u64, record: Record, rules: Rules) {
        match record {
            Record::Names(names) => {
                let named = names.into_iter().map(|(id, key)| ((rules.opening, id), key));
                self.names.extend(named);
            }
            Record::Samples(samples) => {
                for (id, sample) in samples {
                    self.add(rules.opening, id, number, Item::Sample(sample));
                }
            }
            Record::Updates(id, lines) => {
                for line in lines.lines() {
                    self.add(rules.opening, id, number, Item::Update(line.to_owned()));
                }
            }
            Record::Marks(_, marks) => {
                for (id, upto) in marks {
                    // A mark without a name can be skipped: the store has the samples, so
                    // replaying them does no harm.
                    let Some(key) = self.names.get(&(rules.opening, id)) else {
                        continue;
                    };
                    self.found.drop_upto(key, upto);
                    let settled = self.settled.entry(key.clone()).or_default();
                    *settled = upto.max(*settled);
                }
            }
        }
    }

    fn add(&mut self, opening: u32, id: SeriesId, number: u64, item: Item) {
        if let Some(key) = self.names.get(&(opening, id)) {
            self.found.add(key, number, item);
        } else {
            self.unnamed.push(UnnamedItem {
                segment: self.findings.len().saturating_sub(1),
                opening,
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
    fn finish(mut self) -> ReplayResult {
        self.resolve_unnamed();
        self.found.next_record = self.next_record();
        self.found.has_marker = self.marker_state.known().is_some();
        self.found.is_marker_damaged = self.marker_state == MarkerState::Damaged;
        let medium = self.medium;
        if let Some(newest) = self.findings.last_mut() {
            // No later segment shows what the newest one held.
            newest.is_loss_unknown |= newest.has_no_head && !newest.ends_with_record;
        }
        for (sealed, findings) in self.found.segments.iter_mut().zip(&self.findings) {
            sealed.is_damaged = findings.is_damaged();
            self.found.torn_bytes += findings.tail_bytes;
            self.found
                .damage
                .extend(findings.findings(&medium.path_of(&sealed.name)));
        }
        let folder = order::folder(medium);
        self.found
            .damage
            .extend(self.gaps.iter().map(|gap| gap.finding(&folder)));
        let marker = self.marker_state.finding(medium, self.is_marker_needed);
        self.found.damage.extend(marker);
        self.found.samples.retain(|_, samples| !samples.is_empty());
        self.found.updates.retain(|_, updates| !updates.is_empty());
        self.found
    }

    /// Resolves data without names: if damage destroyed a record of names, another segment of the
    /// same opening may hold them too.
    fn resolve_unnamed(&mut self) {
        let mut needs_sort = false;
        for UnnamedItem {
            segment,
            opening,
            id,
            number,
            item,
        } in std::mem::take(&mut self.unnamed)
        {
            let key = self.names.get(&(opening, id)).filter(|_| opening != NO_OPENING);
            let Some(key) = key else {
                if let Some(findings) = self.findings.get_mut(segment) {
                    findings.unnamed += 1;
                }
                continue;
            };
            if self.settled.get(key).is_none_or(|upto| number > *upto) {
                self.found.add(key, number, item);
                needs_sort = true;
            }
        }
        if needs_sort {
            let samples = self.found.samples.values_mut();
            samples.for_each(|samples| samples.sort_by_key(|(number, _)| *number));
            let updates = self.found.updates.values_mut();
            updates.for_each(|updates| updates.sort_by_key(|(number, _)| *number));
        }
    }
}

impl ReplayResult {
    fn add(&mut self, key: &SeriesKey, number: u64, item: Item) {
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
