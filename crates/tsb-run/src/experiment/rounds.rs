//! Rounds in which everything that is compared takes its turn.

use std::ops::ControlFlow;

use tsb_core::stats::order;

/// One turn: which round, and what of those that take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The round, from 0.
    pub round: u32,
    /// The index of what has its turn.
    pub of: usize,
}

/// Gives each of `count` things one turn per round, in an order that follows from `seed` and the
/// round. Returns what each found, by its index; `Break` ends the rounds early and loses nothing
/// of what was found before.
pub fn in_rounds<T>(
    seed: u64,
    rounds: u32,
    count: usize,
    mut take: impl FnMut(Turn) -> ControlFlow<(), T>,
) -> Vec<Vec<T>> {
    let mut found: Vec<Vec<T>> = (0..count).map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for of in order(seed, round, count).into_iter().take(count) {
            match take(Turn { round, of }) {
                ControlFlow::Continue(value) => found[of].push(value),
                ControlFlow::Break(()) => return found,
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_one_turn_per_round_in_an_order_of_the_seed() {
        let turns = |seed| {
            let mut turns = Vec::new();
            let found = in_rounds(seed, 5, 6, |turn| {
                turns.push(turn.of);
                ControlFlow::Continue(turn.round)
            });
            assert_eq!(found, vec![vec![0, 1, 2, 3, 4]; 6]);
            turns
        };
        assert_eq!(turns(1), turns(1));
        assert_ne!(turns(1), turns(2));
        let of_one = turns(1);
        assert_ne!(of_one[..6], of_one[6..12], "each round has an order of its own");
    }

    #[test]
    fn an_early_end_loses_nothing() {
        let mut left = 3;
        let found = in_rounds(7, 2, 2, |turn| {
            left -= 1;
            if left < 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(turn.of)
            }
        });
        assert_eq!(found.iter().map(Vec::len).sum::<usize>(), 3);
    }
}
