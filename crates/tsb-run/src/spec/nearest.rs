//! Suggests names: the nearest valid name for a misspelled one.

/// The end of an error message: the nearest name, if one is near, and then all names.
pub fn or_nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>, suffix: &str) -> String {
    let names: Vec<_> = names.collect();
    let nearest = names.iter().min_by_key(|name| distance(wrong, name));
    let list = names.iter().map(|name| format!("{name}{suffix}")).collect::<Vec<_>>();
    let list = list.join(", ");
    match nearest {
        Some(name) if distance(wrong, name) <= name.len() / 2 => {
            format!("; did you mean {name}{suffix}? there are {list}")
        }
        _ => format!("; there are {list}"),
    }
}

/// The edit distance: the number of letters to insert, remove, replace or swap with the next to
/// turn `a` into `b`.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_letters() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "ring", 4),
            ("ring", "", 4),
            ("memroy", "memory", 1),
            ("rnig", "ring", 1),
            ("rnu", "run", 1),
            ("rings", "ring", 1),
            ("sitting", "kitten", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_wild_guess_gets_the_list_only() {
        let names = || ["slot", "retention"].into_iter();
        assert_eq!(
            or_nearest("slit", names(), ""),
            "; did you mean slot? there are slot, retention"
        );
        assert_eq!(or_nearest("zzzzzz", names(), ":"), "; there are slot:, retention:");
    }
}
