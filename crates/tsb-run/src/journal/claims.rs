//! Computes which operations have reached which durability level, from the accepted operations
//! and the store's positions. Pure: no I/O, no clock.
//!
//! A mark is a snapshot: first the number of accepted operations, then the position of the
//! store, which therefore covers them. When the store reports that a level has reached that
//! position, the operations have reached the level.

use std::collections::VecDeque;
use std::sync::Arc;

use tsb_core::Durability;
use tsb_stores::Position;

use super::record::Claim;

/// Upper bound of marks waiting for one level. When it is reached, every second mark is dropped:
/// a claim then comes later, and is still true.
const WAITING_MAX: usize = 1 << 10;

/// The operations accepted up to one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Operations accepted, per worker.
    pub operations: Vec<u64>,
    /// Upper bound of the samples in these operations that were not accepted and that no record
    /// names.
    pub nameless: u64,
}

/// The operations that have reached each level.
#[derive(Debug)]
pub struct Claims {
    accepted: Arc<Marks>,
    acknowledges: Durability,
    higher: Vec<HigherLevel>,
}

/// A level above the level of an acknowledgement.
#[derive(Debug)]
struct HigherLevel {
    level: Durability,
    reached: Arc<Marks>,
    waiting: VecDeque<(Position, Arc<Marks>)>,
}

impl Claims {
    /// No operations yet, for a store with these levels and this number of workers.
    pub fn new(acknowledges: Durability, reaches: Durability, workers: usize) -> Self {
        let none = Arc::new(Marks {
            operations: vec![0; workers],
            nameless: 0,
        });
        let levels = [Durability::Volatile, Durability::Buffered, Durability::Synced];
        let higher = levels
            .into_iter()
            .filter(|level| (acknowledges < *level) && *level <= reaches);
        Self {
            acknowledges,
            higher: higher
                .map(|level| HigherLevel {
                    level,
                    reached: Arc::clone(&none),
                    waiting: VecDeque::new(),
                })
                .collect(),
            accepted: none,
        }
    }

    /// The levels above the level of an acknowledgement, lowest first.
    pub fn higher(&self) -> impl Iterator<Item = Durability> {
        self.higher.iter().map(|level| level.level)
    }

    /// Whether `marks` equals the last accepted operations.
    pub fn is_known(&self, marks: &Marks) -> bool {
        *self.accepted == *marks
    }

    /// Adds accepted operations, and a position of the store that covers them. Read `position`
    /// after `marks`, or the claim may be false.
    pub fn accept(&mut self, marks: Marks, position: Position) {
        self.accepted = Arc::new(marks);
        for level in &mut self.higher {
            if level.waiting.len() >= WAITING_MAX {
                let mut is_odd = false;
                level.waiting.retain(|_| {
                    is_odd = !is_odd;
                    is_odd
                });
            }
            level.waiting.push_back((position, Arc::clone(&self.accepted)));
        }
    }

    /// Notes the store's statement that everything up to `position` has reached `level`.
    pub fn reach(&mut self, level: Durability, position: Position) {
        // A position that has a higher level has the lower levels as well.
        for level in self.higher.iter_mut().filter(|one| one.level <= level) {
            while let Some((_, marks)) = level.waiting.pop_front_if(|(waiting, _)| *waiting <= position) {
                level.reached = marks;
            }
        }
    }

    /// The current claims, lowest level first.
    pub fn now(&self) -> Vec<Claim> {
        let claim = |level: Durability, marks: &Marks| Claim {
            level,
            operations: marks.operations.clone(),
            nameless: marks.nameless,
        };
        let lowest = claim(self.acknowledges, &self.accepted);
        let higher = self.higher.iter().map(|level| claim(level.level, &level.reached));
        std::iter::once(lowest).chain(higher).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(operations: u64) -> Marks {
        Marks {
            operations: vec![operations],
            nameless: 0,
        }
    }

    fn reached(claims: &Claims) -> Vec<(Durability, u64)> {
        let now = claims.now().into_iter();
        now.map(|claim| (claim.level, claim.operations[0])).collect()
    }

    #[test]
    fn a_level_has_what_was_accepted_before_the_position_that_it_reached() {
        let (volatile, buffered, synced) = (Durability::Volatile, Durability::Buffered, Durability::Synced);
        let mut claims = Claims::new(volatile, synced, 1);
        for accepted in 1..=4 {
            claims.accept(marks(accepted), Position(accepted * 10));
        }
        assert_eq!(reached(&claims), [(volatile, 4), (buffered, 0), (synced, 0)]);
        claims.reach(buffered, Position(35));
        claims.reach(synced, Position(19));
        assert_eq!(reached(&claims), [(volatile, 4), (buffered, 3), (synced, 1)]);
        // What is synced is buffered.
        claims.reach(synced, Position(40));
        assert_eq!(reached(&claims), [(volatile, 4), (buffered, 4), (synced, 4)]);
    }

    #[test]
    fn marks_that_are_forgotten_claim_less() {
        let mut claims = Claims::new(Durability::Buffered, Durability::Synced, 1);
        let most = 10 * WAITING_MAX as u64;
        for accepted in 1..=most {
            claims.accept(marks(accepted), Position(accepted));
        }
        assert!(claims.higher[0].waiting.len() <= WAITING_MAX);
        for position in (0..=most).step_by(97) {
            claims.reach(Durability::Synced, Position(position));
            assert!(claims.now()[1].operations[0] <= position);
        }
        claims.reach(Durability::Synced, Position(most));
        assert_eq!(claims.now()[1].operations[0], most);
    }

    #[test]
    fn a_store_that_acknowledges_what_it_reaches_has_one_level() {
        let mut claims = Claims::new(Durability::Synced, Durability::Synced, 1);
        claims.accept(marks(5), Position(1));
        assert_eq!(reached(&claims), [(Durability::Synced, 5)]);
    }
}
