//! The write caches of DalmatinerDB's two rounds: which points wait, and which are written
//! together. Pure: no file, no clock.

/// What a cache does with a point before it is in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CachePolicy {
    /// Nothing waits: each write ends with its points in a file.
    Off,
    /// Round 1 (July 2014): consecutive points of a metric wait; a gap, a repeated or a late point
    /// writes them.
    Round1,
    /// Round 2 (September 2014): a window of points of a metric waits, in any order; a point past
    /// it writes the window, and one before it is written at once.
    #[default]
    Round2,
}

/// The rules of the cache of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheRules {
    pub(super) policy: CachePolicy,
    /// Points of a full entry; at least 1.
    pub(super) points: usize,
    /// Whether round 2 forgets how much is used, as it did.
    pub(super) has_defect: bool,
}

/// Takes blocks of consecutive points that are to be written: the first one's number, and the
/// points.
pub(super) trait WriteBlock {
    /// Why a block could not be written.
    type Error;

    /// Writes a block, which is never empty.
    fn write(&mut self, first: i64, points: &[u64]) -> Result<(), Self::Error>;
}

/// The waiting points of one metric.
#[derive(Debug, Default)]
pub(super) struct Entry {
    // The number of the first point.
    start: i64,
    // Off and round 1: the points, without gaps. Round 2: the window, where 0 is no point.
    points: Vec<u64>,
    // Round 2: how many points of the window will be written.
    used: usize,
    // Round 2: the length of the window; a point beyond it writes the window first.
    limit: usize,
    // Round 2: whether a window has been written, so that the next is of full length.
    is_past_first: bool,
    // Points of written windows that were taken and not written: those that the defect loses.
    forgotten: u64,
}

impl Entry {
    /// Whether no point waits.
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The number of the newest point that will be written.
    pub(super) fn newest(&self) -> Option<i64> {
        (!self.is_empty()).then(|| self.start + self.used as i64 - 1)
    }

    /// Whether a point with this number waits.
    #[inline]
    pub(super) fn has(&self, point: i64) -> bool {
        let index = point
            .checked_sub(self.start)
            .and_then(|index| usize::try_from(index).ok());
        !self.is_empty()
            && index
                .and_then(|index| self.points.get(index))
                .is_some_and(|word| *word != 0)
    }

    /// Bytes reserved for waiting points.
    pub(super) fn bytes(&self) -> u64 {
        (self.points.capacity() * size_of::<u64>()) as u64
    }

    /// Takes a point, whose word is not 0. `metric` decides the length of the first window.
    ///
    /// # Errors
    /// What `out` returns. The entry may have lost points then.
    #[inline]
    pub(super) fn put<W: WriteBlock>(
        &mut self,
        rules: &CacheRules,
        metric: u32,
        (point, word): (i64, u64),
        out: &mut W,
    ) -> Result<(), W::Error> {
        match rules.policy {
            CachePolicy::Round2 => self.put_in_window(rules, metric, (point, word), out),
            CachePolicy::Off | CachePolicy::Round1 => self.put_in_block(rules.points, (point, word), out),
        }
    }

    fn put_in_block<W: WriteBlock>(
        &mut self,
        full: usize,
        (point, word): (i64, u64),
        out: &mut W,
    ) -> Result<(), W::Error> {
        let end = self.start + self.points.len() as i64;
        let (is_empty, is_full) = (self.points.is_empty(), self.points.len() >= full);
        if !is_empty && !is_full && point == end {
            self.points.push(word);
        } else if !is_empty && !is_full && point + 1 == self.start {
            self.points.insert(0, word);
            self.start = point;
        } else if is_full {
            // The entry and the new point are written, in one block where it is next.
            if point == end {
                self.points.push(word);
                self.write_block(out)?;
            } else {
                self.write_block(out)?;
                out.write(point, &[word])?;
            }
        } else {
            self.write_block(out)?;
            self.points.push(word);
            self.start = point;
        }
        self.used = self.points.len();
        Ok(())
    }

    fn write_block<W: WriteBlock>(&mut self, out: &mut W) -> Result<(), W::Error> {
        let outcome = if self.points.is_empty() {
            Ok(())
        } else {
            out.write(self.start, &self.points)
        };
        self.points.clear();
        self.used = 0;
        outcome
    }

    #[inline]
    fn put_in_window<W: WriteBlock>(
        &mut self,
        rules: &CacheRules,
        metric: u32,
        (point, word): (i64, u64),
        out: &mut W,
    ) -> Result<(), W::Error> {
        if !self.is_empty() {
            if point < self.start {
                return out.write(point, &[word]);
            }
            if point - self.start >= self.limit as i64 {
                self.write_window(out)?;
            }
        }
        if self.is_empty() {
            self.open_window(rules, metric, point);
        }
        let index = (point - self.start) as usize;
        self.points[index] = word;
        self.used = if rules.has_defect {
            index + 1
        } else {
            self.used.max(index + 1)
        };
        Ok(())
    }

    fn open_window(&mut self, rules: &CacheRules, metric: u32, point: i64) {
        self.points.resize(rules.points, 0);
        self.start = point;
        self.limit = if self.is_past_first {
            rules.points
        } else {
            1 + spread(metric) as usize % rules.points
        };
    }

    /// Writes the runs of points that are set. The original wrote what lay between them too, over
    /// points that were in the file.
    fn write_window<W: WriteBlock>(&mut self, out: &mut W) -> Result<(), W::Error> {
        self.is_past_first = true;
        let mut first = self.start;
        let mut outcome = Ok(());
        for run in self.points[..self.used].chunk_by(|left, right| (*left == 0) == (*right == 0)) {
            if outcome.is_ok() && run[0] != 0 {
                outcome = out.write(first, run);
            }
            first += run.len() as i64;
        }
        self.forgotten += self.points[self.used..].iter().filter(|word| **word != 0).count() as u64;
        self.points.fill(0);
        self.used = 0;
        outcome
    }

    /// Number of points that were taken and not written since this was asked last.
    pub(super) fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.forgotten)
    }

    /// Writes every waiting point.
    ///
    /// # Errors
    /// What `out` returns. The entry is empty in any case.
    pub(super) fn write_all<W: WriteBlock>(&mut self, rules: &CacheRules, out: &mut W) -> Result<(), W::Error> {
        match rules.policy {
            _ if self.is_empty() => Ok(()),
            CachePolicy::Round2 => self.write_window(out),
            CachePolicy::Off | CachePolicy::Round1 => self.write_block(out),
        }
    }
}

/// A number that spreads metrics evenly over the lengths of first windows.
fn spread(metric: u32) -> u32 {
    let mixed = (u64::from(metric) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests;
