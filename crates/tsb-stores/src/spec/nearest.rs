//! What the user may have meant: the nearest of the names that would be right.

/// A half sentence for the end of an error: the nearest name if one is near, then all.
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

/// How many letters must be inserted, removed or replaced to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let best = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
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
            ("memroy", "memory", 2),
            ("rnig", "ring", 2),
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
