//! Matches the runs of two reports by store.

use tsb_core::report::Run;

use crate::render::names::path;

/// The runs of one store in two reports. One of the lists may be empty, not both.
#[derive(Debug)]
pub(super) struct Matched<'r> {
    /// The name shown.
    pub name: String,
    /// In the earlier report.
    pub a: Vec<&'r Run>,
    /// In the later one.
    pub b: Vec<&'r Run>,
}

/// Matches runs that have the same name. Where each report has runs of one name only, these are
/// matched whatever they are called.
pub(super) fn matched<'r>(a: &'r [Run], b: &'r [Run]) -> Vec<Matched<'r>> {
    let mut all: Vec<Matched<'r>> = Vec::new();
    // The order of the later report first.
    for run in b {
        entry(&mut all, name(run)).b.push(run);
    }
    for run in a {
        entry(&mut all, name(run)).a.push(run);
    }
    match all.as_mut_slice() {
        [later, earlier] if later.a.is_empty() && earlier.b.is_empty() => {
            later.a = std::mem::take(&mut earlier.a);
            later.name = format!("{} and {}", earlier.name, later.name);
            all.truncate(1);
            all
        }
        _ => all,
    }
}

fn entry<'a, 'r>(all: &'a mut Vec<Matched<'r>>, name: String) -> &'a mut Matched<'r> {
    let index = all.iter().position(|one| one.name == name).unwrap_or_else(|| {
        let (a, b) = (Vec::new(), Vec::new());
        all.push(Matched { name, a, b });
        all.len() - 1
    });
    &mut all[index]
}

fn name(run: &Run) -> String {
    let store = run.label.as_ref().unwrap_or(&run.target.store);
    format!("{store} {}", path(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(store: &str) -> Run {
        let mut run: Run = serde_json::from_str(include_str!("../../fixtures/reports/schema-2.json")).unwrap();
        store.clone_into(&mut run.target.store);
        run
    }

    fn counts(a: &[&str], b: &[&str]) -> Vec<(String, usize, usize)> {
        let [a, b] = [a, b].map(|stores| stores.iter().map(|store| run(store)).collect::<Vec<Run>>());
        let all = matched(&a, &b);
        all.into_iter()
            .map(|one| (one.name, one.a.len(), one.b.len()))
            .collect()
    }

    #[test]
    fn stores_are_matched_by_name_and_their_rounds_kept_together() {
        let path = path(&run("x"));
        let named = |store: &str| format!("{store} {path}");
        assert_eq!(
            counts(&["sqlite", "memory", "sqlite"], &["memory", "sqlite"]),
            [(named("memory"), 1, 1), (named("sqlite"), 2, 1)]
        );
        assert_eq!(
            counts(&["ring"], &["memory", "sqlite"]),
            [(named("memory"), 0, 1), (named("sqlite"), 0, 1), (named("ring"), 1, 0)]
        );
    }

    #[test]
    fn two_reports_of_one_store_each_are_compared_whatever_they_are_called() {
        let both = counts(&["sqlite"], &["memory", "memory"]);
        assert_eq!(both.len(), 1);
        assert_eq!((both[0].1, both[0].2), (1, 2));
        assert!(both[0].0.contains("sqlite") && both[0].0.contains("memory"), "{both:?}");
    }
}
