//! Parses and formats series as users write them, lists those of a store, and suggests names
//! close to a wrong one.

use std::collections::HashSet;
#[cfg(feature = "sqlite")]
use std::path::Path;

use tsb_core::SeriesKey;
use tsb_run::spec::{Spec, distance};
use tsb_stores::Error;

use crate::credentials;
use crate::exit::Exit;
use crate::failure::Failure;
use tsb_run::units::count;

/// Number of suggestions for a wrong name.
const NEAR_MAX: usize = 3;

/// Shortest part of a name that is used for suggestions, in bytes.
const PART_MIN: usize = 3;

/// The series of a store; `None` if the store cannot list them.
pub(super) fn known(spec: &Spec) -> Result<Option<Vec<SeriesKey>>, Failure> {
    match read(spec)? {
        Ok(known) => Ok(known),
        // It is asked for the samples all the same.
        Err(Error::Unsupported { .. }) => Ok(None),
        Err(error) => Err(failed(spec, &error)),
    }
}

/// The series of a store, or a failure that says why they cannot be listed.
pub(super) fn listed(spec: &Spec) -> Result<Vec<SeriesKey>, Failure> {
    let cannot = || Failure::usage(format!("cannot list the series of {spec}"));
    match read(spec)? {
        Ok(Some(known)) => Ok(known),
        Ok(None) => Err(cannot()
            .because_of("this store does not say which series it holds")
            .hint("name the series with --series")),
        Err(error @ Error::Unsupported { .. }) => Err(cannot().because(&error).hint("name the series with --series")),
        Err(error) => Err(failed(spec, &error)),
    }
}

/// Asks a store for its series, without creating or changing anything.
fn read(spec: &Spec) -> Result<tsb_stores::Result<Option<Vec<SeriesKey>>>, Failure> {
    super::check_there(spec)?;
    Ok(credentials::complete(&spec.without("drop"))?.series())
}

fn failed(spec: &Spec, error: &Error) -> Failure {
    if spec.is_client() {
        return Failure::opening(spec, error);
    }
    Failure::new(Exit::Invalid, format!("cannot read {spec}")).because(error)
}

/// Adds the layout that the file itself states, if the user gave none.
pub(super) fn completed(spec: &Spec) -> Spec {
    #[cfg(feature = "sqlite")]
    if spec.scheme() == "sqlite"
        && spec.option("layout").is_none()
        && let Ok((layout, _)) = tsb_stores::sqlite::catalog(Path::new(spec.path()))
    {
        return spec.with("layout", &format!("{layout:?}").to_lowercase());
    }
    spec.clone()
}

/// Refuses series that a store does not hold, with suggestions.
pub(super) fn check(spec: &Spec, wanted: &[SeriesKey], known: &[SeriesKey]) -> Result<(), Failure> {
    // A file that knows names only, such as one of Mohawk's layout, has the labels in the name.
    let is_known = |key: &SeriesKey| known.contains(key) || known.iter().any(|known| known.name() == key.to_string());
    let Some(wrong) = wanted.iter().find(|key| !is_known(key)) else {
        return Ok(());
    };
    let near = near(wrong, known);
    let hint = match (near.is_empty(), known.len()) {
        (_, 0) => "it holds no series at all".to_owned(),
        (true, all) => format!("tsb query {spec} --list prints its {} series", count(all as u64)),
        (false, all) => format!(
            "did you mean {}? tsb query {spec} --list prints all {}",
            near.join(" or "),
            count(all as u64)
        ),
    };
    Err(Failure::usage(format!("cannot query {spec}"))
        .because_of(format!("it holds no series {}", shown(wrong)))
        .hint(hint))
}

/// The closest names: first the same name with other labels, then names that contain it or are
/// contained in it, then names with a small edit distance.
fn near(wrong: &SeriesKey, known: &[SeriesKey]) -> Vec<String> {
    let text = shown(wrong).to_lowercase();
    let rank = |key: &SeriesKey| {
        let name = shown(key).to_lowercase();
        if key.name() == wrong.name() {
            return Some((0, 0, name));
        }
        if text.len() >= PART_MIN && (name.contains(&text) || text.contains(&name)) {
            return Some((1, name.len().abs_diff(text.len()), name));
        }
        let letters = distance(&text, &name);
        (letters <= (text.len() / 3).max(2)).then_some((2, letters, name))
    };
    let mut ranked: Vec<_> = known.iter().filter_map(|key| Some((rank(key)?, key))).collect();
    ranked.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    ranked.into_iter().take(NEAR_MAX).map(|(_, key)| shown(key)).collect()
}

/// Formats a key as it can be parsed again: `name{label=value,...}`, with quotes only around
/// ambiguous values.
pub(super) fn shown(key: &SeriesKey) -> String {
    let is_plain = |value: &str| !value.contains([',', '"', '}', '\\']);
    let labels = key.labels().iter().map(|(label, value)| {
        if is_plain(value) {
            format!("{label}={value}")
        } else {
            format!("{label}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
        }
    });
    let labels: Vec<String> = labels.collect();
    if labels.is_empty() {
        key.name().to_owned()
    } else {
        format!("{}{{{}}}", key.name(), labels.join(","))
    }
}

/// Parses each of `texts`. A series that is named twice is returned once.
pub(super) fn parse_each(texts: &[String]) -> Result<Vec<SeriesKey>, Failure> {
    let mut keys = Vec::with_capacity(texts.len());
    let mut seen = HashSet::new();
    for text in texts {
        let key = parse(text)?;
        if seen.insert(key.clone()) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// Parses `name` or `name{label=value,...}`, with or without quotes around values.
fn parse(text: &str) -> Result<SeriesKey, Failure> {
    let Some((name, labels)) = text.strip_suffix('}').and_then(|text| text.split_once('{')) else {
        return Ok(SeriesKey::new(text));
    };
    let pairs = pairs(labels).ok_or_else(|| {
        Failure::usage(format!("cannot use --series {text}")).because_of("a series is written name{label=value,...}")
    })?;
    Ok(SeriesKey::with_labels(name, pairs))
}

fn pairs(labels: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = labels;
    loop {
        let (label, after) = rest.split_once('=')?;
        let (value, after) = if let Some(quoted) = after.strip_prefix('"') {
            unquoted(quoted)?
        } else {
            let end = after.find(',').unwrap_or(after.len());
            (after[..end].to_owned(), &after[end..])
        };
        pairs.push((label.to_owned(), value));
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return after.is_empty().then_some(pairs),
        }
    }
}

/// Splits off a value up to its closing quote.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(letters.next()?.1),
            letter => value.push(letter),
        }
    }
    None
}

/// Whether a name matches a pattern: `*` is any characters, `?` is one; without either, the name
/// must contain the pattern.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return name.contains(pattern);
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut from) = (0, 0);
    // Behind the last star: where it stands, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(&letter) if letter == '?' || letter == name[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, from) = (place + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|&letter| letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_read_as_they_are_shown() {
        for text in [
            "a",
            "cpu.user{host=h1}",
            "x{a=1,b=2}",
            "x{a=\"1,b=2\"}",
            "x{a=\"q\\\"\\\\\"}",
        ] {
            assert_eq!(shown(&parse(text).unwrap()), text);
        }
        assert_eq!(
            parse("cpu{host=\"a\",id=\"7\"}").unwrap(),
            parse("cpu{host=a,id=7}").unwrap()
        );
        assert_eq!(shown(&parse("cpu{host=\"a\"}").unwrap()), "cpu{host=a}");
        for bad in ["a{b}", "a{b=\"c}", "a{b=\"c\"d}", "a{}"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_have_stars_and_question_marks() {
        let name = "cpu.user{host=h1}";
        for pattern in ["*", "cpu*", "*h1}", "cpu.????{*", "user", "c*u*r{host=h?}", ""] {
            assert!(matches(pattern, name), "{pattern}");
        }
        for pattern in ["mem*", "cpu.user", "*h2}", "?"] {
            assert_eq!(matches(pattern, name), pattern == "cpu.user", "{pattern}");
        }
    }

    #[test]
    fn near_names_are_those_with_other_labels_then_those_with_few_other_letters() {
        let known = ["cpu.user{host=a}", "cpu.user{host=b}", "cpu.system", "mem.free"].map(|text| parse(text).unwrap());
        let of = |text: &str| near(&parse(text).unwrap(), &known);
        assert_eq!(of("cpu.user"), ["cpu.user{host=a}", "cpu.user{host=b}"]);
        assert_eq!(of("mem.fre"), ["mem.free"]);
        assert_eq!(of("cpu.sytsem"), ["cpu.system"]);
        assert_eq!(of("e"), [""; 0]);
        assert_eq!(of("nothing like any of these"), [""; 0]);
    }
}
