//! The passes over the rounds: one line for each pass of each engine.

use super::Round;
use crate::report::experiment::Figure;

/// One pass of one engine over the same files, in all rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// Number of files.
    pub files: usize,
    /// The engine.
    pub way: String,
    /// `cold, across` and so on.
    pub name: String,
    /// Which of the passes of a turn, from 0.
    pub nth: usize,
    /// Percent of the files in the page cache before it; `None` where that is unknown.
    pub resident_percent: Option<Figure>,
    /// As of [`Round`], in seconds.
    pub accept: Option<Figure>,
    /// As of [`Round`], in seconds.
    pub drain: Option<Figure>,
    /// As of [`Round`], in seconds.
    pub sync: Option<Figure>,
    /// The sum of these three, in seconds.
    pub total: Option<Figure>,
    /// CPU time of an update, in microseconds.
    pub cpu_us: Option<Figure>,
    /// Bytes read per update; `None` where the kernel does not say it.
    pub read_bytes: Option<Figure>,
    /// Bytes written per update; `None` where the kernel does not say it.
    pub written_bytes: Option<Figure>,
}

/// All passes, by number of files, by their order in a turn, and by engine.
pub fn passes(rounds: &[Round]) -> Vec<Pass> {
    let mut keys: Vec<(usize, usize, &str)> = rounds
        .iter()
        .map(|round| (round.files, round.nth, round.way.as_str()))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let of = |key: (usize, usize, &str)| {
        let all: Vec<&Round> = rounds
            .iter()
            .filter(|round| (round.files, round.nth, round.way.as_str()) == key)
            .collect();
        let figure = |of_round: fn(&Round) -> Option<f64>| {
            let values: Option<Vec<f64>> = all.iter().map(|round| of_round(round)).collect();
            Figure::of(&values?)
        };
        Pass {
            files: key.0,
            nth: key.1,
            way: key.2.to_owned(),
            name: all.first().map(|round| round.pass.clone()).unwrap_or_default(),
            resident_percent: figure(|round| {
                let resident = round.resident?;
                Some(resident.bytes as f64 * 100.0 / resident.of_bytes.max(1) as f64)
            }),
            accept: figure(|round| Some(round.accept_seconds)),
            drain: figure(|round| Some(round.drain_seconds)),
            sync: figure(|round| Some(round.sync_seconds)),
            total: figure(|round| Some(round.total_seconds())),
            cpu_us: figure(|round| Some(round.cpu_us_per_update)),
            read_bytes: figure(|round| round.read_bytes_per_update),
            written_bytes: figure(|round| round.written_bytes_per_update),
        }
    };
    keys.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_one_pass_are_one_line_with_an_interval() {
        let round = |round: u32, nth: usize, accept_seconds: f64| Round {
            files: 10,
            way: "direct".to_owned(),
            round,
            nth,
            pass: "warm, within".to_owned(),
            crossing: 0,
            resident: None,
            accept_seconds,
            drain_seconds: 1.0,
            sync_seconds: 0.5,
            cpu_us_per_update: 3.0,
            read_bytes_per_update: (round == 0).then_some(1.0),
            written_bytes_per_update: Some(2.0),
        };
        let rounds = [round(0, 2, 1.0), round(0, 1, 2.0), round(1, 1, 4.0)];
        let found = passes(&rounds);
        assert_eq!(found.iter().map(|pass| pass.nth).collect::<Vec<_>>(), [1, 2]);
        let total = found[0].total.unwrap();
        assert_eq!((total.mean, total.rounds, total.low.is_some()), (4.5, 2, true));
        // One round of the two does not know it.
        assert_eq!((found[0].read_bytes, found[0].resident_percent), (None, None));
        assert_eq!(found[0].written_bytes.map(|figure| figure.mean), Some(2.0));
    }
}
