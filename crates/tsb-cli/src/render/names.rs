//! Names for runs that are shown together.

use tsb_core::report::Run;

use tsb_run::units::{count, scaled};

/// The letter of a run, short enough for a column header; `run N` from the 27th on.
pub fn letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index) if index < 26 => char::from(b'A' + index).to_string(),
        _ => format!("run {}", index + 1),
    }
}

/// A name for each run: its label, or its store with whatever distinguishes it from the others.
pub fn names(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = runs.iter().map(first).collect();
    for tell in TELLS {
        let parts: Vec<Option<String>> = runs.iter().map(tell).collect();
        let same = |index: usize| -> Vec<usize> {
            (0..runs.len())
                .filter(|&other| runs[other].label.is_none() && names[other] == names[index])
                .collect()
        };
        let added = (0..runs.len()).map(|index| {
            let same = same(index);
            let differs = same.iter().any(|&other| parts[other] != parts[index]);
            let is_open = runs[index].label.is_none() && same.len() > 1;
            parts[index].as_ref().filter(|_| is_open && differs)
        });
        let longer: Vec<String> = names
            .iter()
            .zip(added)
            .map(|(name, part)| part.map_or_else(|| name.clone(), |part| format!("{name}, {part}")))
            .collect();
        names = longer;
    }
    names
}

fn first(run: &Run) -> String {
    run.label.clone().unwrap_or_else(|| run.target.store.clone())
}

/// Properties that may distinguish two runs of one store, the most useful first.
const TELLS: [fn(&Run) -> Option<String>; 6] = [
    |run| Some(path(run)),
    |run| {
        run.rate
            .asked_per_second
            .map_or(Some("closed loop".to_owned()), |asked| {
                Some(format!("{}/s asked", scaled(asked)))
            })
    },
    |run| Some(format!("{} series", count(run.offered.series))),
    |run| Some(run.durability.level.to_string()),
    |run| Some(format!("seed {}", run.seed)),
    |run| Some(format!("begun {}", moment(run.started_at_ns))),
];

/// How samples reached the store.
pub fn path(run: &Run) -> String {
    match &run.target.protocol {
        Some(protocol) => format!("over {} ({protocol})", run.target.transport),
        None => "in process".to_owned(),
    }
}

/// A time in UTC, to the second.
pub fn moment(at_ns: i64) -> String {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(u64::try_from(at_ns).unwrap_or(0));
    let text = humantime::format_rfc3339_seconds(at).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        serde_json::from_str(include_str!("../../fixtures/reports/schema-1-first.json")).unwrap()
    }

    #[test]
    fn stores_with_names_of_their_own_need_nothing_more() {
        let mut other = run();
        other.target.store = "sqlite".to_owned();
        assert_eq!(names(&[run(), other]), ["memory", "sqlite"]);
        assert_eq!(names(&[run()]), ["memory"]);
    }

    #[test]
    fn two_of_one_store_are_told_apart_by_what_differs() {
        let mut other = run();
        other.target.transport = "inproc".to_owned();
        other.target.protocol = None;
        assert_eq!(names(&[run(), other]), ["memory, over tcp (tsb)", "memory, in process"]);
        let mut other = run();
        other.started_at_ns = 1_700_000_000_000_000_000;
        let named = names(&[run(), other]);
        assert_eq!(named[1], "memory, begun 2023-11-14 22:13:20 UTC");
        assert_ne!(named[0], named[1]);
    }

    #[test]
    fn a_label_is_the_name() {
        let mut other = run();
        other.label = Some("after".to_owned());
        assert_eq!(names(&[run(), other]), ["memory", "after"]);
    }

    #[test]
    fn the_27th_run_has_a_number() {
        assert_eq!(
            (letter(0), letter(25), letter(26)),
            ("A".into(), "Z".into(), "run 27".into())
        );
    }
}
