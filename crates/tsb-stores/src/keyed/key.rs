//! Keys: paths of segments, in the characters that every keyed store carries unchanged.

use std::borrow::Borrow;
use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// Maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 512;

/// A key: 1 to [`MAX_KEY_BYTES`] bytes, segments separated by `/`. A segment begins with a letter
/// or a digit, which are followed by letters, digits and `-_.,:`, all ASCII. A URL carries these
/// without escapes, and a segment that begins with `_` would be hidden in etcd 2.
///
/// ```
/// use tsb_stores::keyed::Key;
///
/// # fn main() -> Result<(), tsb_stores::keyed::InvalidKey> {
/// let app = Key::new("v1/apps/actual/app,version")?;
/// assert!(Key::new("v1/apps/actual/app,version/instance")?.is_below(&app));
/// assert!(!Key::new("v1/apps/actual/app,version2")?.is_below(&app));
/// assert_eq!(
///     Key::new("v1//apps").unwrap_err().to_string(),
///     "\"v1//apps\" is no key: a segment is empty; a key is segments separated by /, \
///      each a letter or digit and then letters, digits and -_.,:"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// A text that is no [`Key`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no key: {why}; a key is segments separated by /, \
     each a letter or digit and then letters, digits and -_.,:"
)]
pub struct InvalidKey {
    /// The text, shortened to [`MAX_KEY_BYTES`] characters.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl Key {
    /// Checks a text.
    ///
    /// # Errors
    /// [`InvalidKey`] with what is wrong.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidKey> {
        let text = text.as_ref();
        match fault(text) {
            None => Ok(Self(text.into())),
            Some(why) => Err(InvalidKey {
                text: text.chars().take(MAX_KEY_BYTES).collect(),
                why,
            }),
        }
    }

    /// The whole key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the key has further segments after those of `prefix`.
    pub fn is_below(&self, prefix: &Self) -> bool {
        let rest = self.0.strip_prefix(prefix.as_str());
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// The keys that this one is below, the shortest first.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(end, _)| &self.0[..end])
    }

    /// The bounds of all keys below this one, in the order of bytes: the first included, the
    /// second excluded.
    pub fn range_below(&self) -> (String, String) {
        // '0' follows '/' in ASCII.
        (format!("{self}/"), format!("{self}0"))
    }
}

/// The entries of a sorted map after the key `after` that are below `prefix`.
pub(super) fn below<'m, V>(
    map: &'m BTreeMap<Key, V>,
    prefix: Option<&Key>,
    after: Option<&Key>,
) -> btree_map::Range<'m, Key, V> {
    let below = prefix.map(Key::range_below);
    let start = match (after, &below) {
        (Some(after), _) => Bound::Excluded(after.as_str()),
        (None, Some((start, _))) => Bound::Included(start.as_str()),
        (None, None) => Bound::Unbounded,
    };
    let end = below
        .as_ref()
        .map_or(Bound::Unbounded, |(_, end)| Bound::Excluded(end.as_str()));
    map.range::<str, _>((start, end))
}

/// What is wrong with a text as a key.
fn fault(text: &str) -> Option<String> {
    if text.len() > MAX_KEY_BYTES {
        return Some(format!("it has {} bytes, {MAX_KEY_BYTES} are the most", text.len()));
    }
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.,:".contains(c);
    text.split('/').find_map(|segment| match segment.chars().next() {
        None => Some("a segment is empty".to_owned()),
        Some(first) if !first.is_ascii_alphanumeric() => Some(format!("a segment begins with {first:?}")),
        Some(_) => segment
            .chars()
            .find(|c| !is_inner(*c))
            .map(|c| format!("it contains {c:?}")),
    })
}

// Its order and hash are those of the text.
impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_only_what_every_store_carries() {
        for good in ["a", "v1/apps/a-b_c,d.e:f/0", &"k".repeat(MAX_KEY_BYTES)] {
            assert_eq!(Key::new(good).unwrap().as_str(), good);
        }
        for (bad, part) in [
            ("", "a segment is empty"),
            ("/a", "a segment is empty"),
            ("a/", "a segment is empty"),
            ("a/_b", "begins with '_'"),
            ("..", "begins with '.'"),
            ("a b", "contains ' '"),
            ("a\u{e9}", "contains '\u{e9}'"),
            ("a%2f", "contains '%'"),
            (&"k".repeat(MAX_KEY_BYTES + 1), "513 bytes, 512 are the most"),
        ] {
            let error = Key::new(bad).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn keys_below_are_exactly_those_in_the_range() {
        let prefix = Key::new("a/b").unwrap();
        let (start, end) = prefix.range_below();
        for text in [
            "a", "a/b", "a/b/c", "a/b/c/d", "a/b-c", "a/b,c/d", "a/b.c", "a/b0", "a/bc/d", "b",
        ] {
            let key = Key::new(text).unwrap();
            let is_in_range = start.as_str() <= text && text < end.as_str();
            assert_eq!(key.is_below(&prefix), is_in_range, "{text}");
            assert_eq!(
                key.is_below(&prefix),
                key.parents().any(|parent| parent == "a/b"),
                "{text}"
            );
        }
    }
}
