//! A decoder's series names with their ids, and its samples that are not passed on yet.
//!
//! For decoders that have a name as a slice. There are two ways to find an entry, and both compare
//! the whole name. *In order*: the expected next name is compared. *In any order*: the decoder
//! looks ahead and announces the names of upcoming records, so that cache misses overlap, and each
//! name is compared with the entry guessed for it. A name that neither finds is looked up, and the
//! sink is asked once about an unknown name. Graphite and Influx do *not* use this; they parse
//! names within windows.

use crate::series::{SeriesId, SeriesKey};
use crate::time::{Clock, Timestamp};
use crate::wire::columns::Columns;
use crate::wire::name_order::NameOrder;
use crate::wire::names::{Hash, Names};
use crate::wire::{NotAdmitted, Room, Sink};

/// Maximum length of a name that is remembered, in bytes.
pub(crate) const LONGEST_NAME: usize = 65_534;

/// Number of names that are announced together.
const GROUP: usize = 32;

/// The names of one connection and the samples that are not passed on yet.
#[derive(Debug)]
pub(crate) struct NameLookup {
    names: Names,
    columns: Columns,
    /// Index of the expected next name; may be one past the last.
    expected: usize,
    order: NameOrder,
    ahead: Ahead,
}

/// The announced names.
#[derive(Debug, Default)]
struct Ahead {
    /// Hashes of names whose entries are not guessed yet.
    hashes: [Hash; GROUP],
    guesses: [usize; GROUP],
    // Invariant: used <= announced <= GROUP
    announced: usize,
    used: usize,
    /// Number of announced names that followed the previous one as they did originally.
    successors: usize,
}

impl NameLookup {
    /// An empty table. The clock seeds the hash, which does not affect the result.
    pub(crate) fn new(clock: &dyn Clock) -> Self {
        let seed = clock.wall().as_nanos() as u64 ^ clock.now().rotate_left(32);
        Self {
            names: Names::new(0, seed),
            columns: Columns::new(),
            expected: 0,
            order: NameOrder::new(),
            ahead: Ahead::default(),
        }
    }

    /// Charges the memory of names to the budget that all connections of a listener share, plus
    /// `beside` bytes per name for the decoder's own data.
    pub(crate) fn within(&mut self, room: &Room, beside: usize) {
        self.names.within(room, beside);
    }

    /// Whether names come in no order and none is announced. The decoder then looks ahead, calls
    /// [`Self::announce`] for upcoming names, and finally [`Self::announced`].
    #[inline(always)]
    pub(crate) fn is_blind(&self) -> bool {
        !self.order.is_kept() && self.ahead.used == self.ahead.announced
    }

    /// Announces a name; false if it was the last for which there is room. The name need not
    /// follow: a guess is verified before it is used.
    #[inline(always)]
    pub(crate) fn announce(&mut self, name: &[u8]) -> bool {
        if self.ahead.used == self.ahead.announced {
            (self.ahead.used, self.ahead.announced) = (0, 0);
        }
        let hash = self.names.hash(name);
        self.names.expect(hash);
        self.ahead.hashes[self.ahead.announced] = hash;
        self.ahead.announced += 1;
        self.ahead.announced < GROUP
    }

    /// Ends the announcements.
    pub(crate) fn announced(&mut self) {
        let ahead = &mut self.ahead;
        if 2 * ahead.successors > GROUP {
            self.order = NameOrder::new();
            (ahead.used, ahead.announced) = (0, 0);
        }
        ahead.successors = 0;
        let pairs = ahead.guesses.iter_mut().zip(&ahead.hashes);
        for (guess, hash) in pairs.take(ahead.announced) {
            *guess = self.names.guess(*hash);
        }
    }

    /// The entry of a known name. Entries are numbered consecutively.
    #[inline(always)]
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<usize> {
        if self.order.is_kept() && self.names.is(self.expected, name) {
            self.order.held(name.len());
            self.expected += 1;
            return Some(self.expected - 1);
        }
        self.seek(name)
    }

    /// The entry of a name that was not the expected one.
    #[inline(never)]
    fn seek(&mut self, name: &[u8]) -> Option<usize> {
        if self.expected >= self.names.len() {
            self.expected = 0;
        }
        let guess = self.guess();
        let entry = if self.names.is(guess, name) {
            guess
        } else {
            self.names.find(name)?
        };
        let is_successor = entry == self.expected;
        if !self.order.is_kept() {
            self.ahead.successors += usize::from(is_successor);
        } else if !is_successor && !self.order.missed() {
            self.ahead = Ahead::default();
        }
        self.expected = entry + 1;
        Some(entry)
    }

    /// The entry guessed for the next announced name, else the expected one.
    fn guess(&mut self) -> usize {
        let ahead = &mut self.ahead;
        if ahead.used == ahead.announced {
            return self.expected;
        }
        ahead.used += 1;
        ahead.guesses[ahead.used - 1]
    }

    /// The entry of a name, if there was room to remember it, and its id, if the sink admitted it.
    ///
    /// # Errors
    /// The error of `key` for a new name.
    #[inline(always)]
    pub(crate) fn entry(
        &mut self,
        name: &[u8],
        key: impl FnOnce() -> Result<SeriesKey, &'static str>,
        sink: &mut dyn Sink,
    ) -> Result<(Option<usize>, Result<SeriesId, NotAdmitted>), &'static str> {
        if let Some(entry) = self.find(name) {
            return Ok((Some(entry), self.id(entry)));
        }
        let id = sink.series(&key()?);
        let entry = self.names.insert(name, id);
        if let Some(entry) = entry {
            self.expected = entry + 1;
        }
        Ok((entry, id))
    }

    /// The series of an entry, if the sink admitted it.
    #[inline(always)]
    pub(crate) fn id(&self, entry: usize) -> Result<SeriesId, NotAdmitted> {
        self.names.id(entry)
    }

    /// Passes on one sample, or refuses it for the reason for which its name was refused.
    #[inline(always)]
    pub(crate) fn push(&mut self, id: Result<SeriesId, NotAdmitted>, at: Timestamp, value: f64, sink: &mut dyn Sink) {
        match id {
            Ok(id) if self.order.is_kept() => self.columns.push(id, at, value, sink),
            Ok(id) => self.columns.push_alone(id, at, value, sink),
            Err(why) => sink.refused(why, 1),
        }
    }

    /// Passes all samples on.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) {
        self.columns.flush(sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::{Heap, clock};

    #[test]
    fn a_name_is_asked_about_once_and_refused_ones_are_counted() {
        let mut lookup = NameLookup::new(&*clock());
        let mut heap = Heap {
            limit: 1,
            ..Heap::default()
        };
        for name in ["a", "b", "b", "a"] {
            let (_, id) = lookup
                .entry(name.as_bytes(), || Ok(SeriesKey::new(name)), &mut heap)
                .unwrap();
            for value in [1.0, 2.0] {
                lookup.push(id, Timestamp(7), value, &mut heap);
            }
        }
        let bad = lookup.entry(b"bad", || Err("no name"), &mut heap);
        lookup.flush(&mut heap);
        assert_eq!((bad, heap.asked, heap.refused), (Err("no name"), 2, 4));
        let expected = [1.0, 2.0, 1.0, 2.0].map(|value| (SeriesId(0), Timestamp(7), value));
        assert_eq!(heap.samples, expected);
    }

    /// Looks up names, announcing `ahead` of each group, and returns whether order is lost.
    fn look_up(lookup: &mut NameLookup, order: &[usize], ahead: impl Fn(usize) -> usize) -> bool {
        let mut heap = Heap::default();
        for (index, number) in order.iter().enumerate() {
            if lookup.is_blind() {
                let names = order[index..].iter().map(|number| format!("name {}", ahead(*number)));
                for name in names {
                    if !lookup.announce(name.as_bytes()) {
                        break;
                    }
                }
                lookup.announced();
            }
            let name = format!("name {number}");
            let entry = lookup.entry(name.as_bytes(), || Ok(SeriesKey::new(name.as_str())), &mut heap);
            assert_eq!(entry.unwrap().0, Some(*number));
        }
        lookup.order.is_kept()
    }

    #[test]
    fn names_in_any_order_are_found_whatever_was_announced() {
        let in_order: Vec<usize> = (0..1_000).collect();
        let shuffled: Vec<usize> = in_order.iter().map(|index| index * 7_919 % 1_000).collect();
        let announcements: [fn(usize) -> usize; 3] = [|number| number, |number| number / 2, |number| number + 2_000];
        for ahead in announcements {
            let mut lookup = NameLookup::new(&*clock());
            assert!(look_up(&mut lookup, &in_order, ahead));
            assert!(look_up(&mut lookup, &in_order, ahead));
            assert!(!look_up(&mut lookup, &shuffled, ahead));
            // An order that comes back is noticed.
            assert!(look_up(&mut lookup, &in_order, ahead));
            assert!(look_up(&mut lookup, &in_order, ahead));
        }
    }
}
