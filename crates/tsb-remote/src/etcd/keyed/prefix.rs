//! Keys of etcd below a prefix, and back.

use tsb_stores::keyed::{InvalidKey, Key};

/// The place of a store, `runs` in `etcd://HOST/runs`.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    /// With the slash that ends it.
    text: String,
}

impl Prefix {
    pub(super) fn new(place: &str) -> Self {
        Self {
            text: format!("{place}/"),
        }
    }

    /// Etcd's key.
    pub(super) fn of(&self, key: &Key) -> String {
        format!("{}{key}", self.text)
    }

    /// The folder of a prefix of the store, without a slash at its end.
    pub(super) fn folder(&self, prefix: Option<&Key>) -> String {
        match prefix {
            Some(prefix) => self.of(prefix),
            None => self.text.trim_end_matches('/').to_owned(),
        }
    }

    /// All keys below a prefix of the store, as etcd's first key and the first one behind them.
    pub(super) fn range(&self, prefix: Option<&Key>) -> (String, String) {
        let folder = self.folder(prefix);
        // '0' follows '/'.
        (format!("{folder}/"), format!("{folder}0"))
    }

    /// The key of the store.
    ///
    /// # Errors
    /// For a key that no store of keys has put there.
    pub(super) fn key(&self, of_etcd: &[u8]) -> Result<Key, InvalidKey> {
        let text = String::from_utf8_lossy(of_etcd);
        let below = text.strip_prefix(&self.text);
        below.map_or_else(|| Key::new(format!("/{text}")), Key::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_store_are_below_its_prefix_and_come_back() {
        let prefix = Prefix::new("runs");
        let key = Key::new("v1/apps/a,b").unwrap();
        assert_eq!(prefix.of(&key), "runs/v1/apps/a,b");
        assert_eq!(prefix.key(b"runs/v1/apps/a,b"), Ok(key.clone()));
        assert_eq!(prefix.range(None), ("runs/".to_owned(), "runs0".to_owned()));
        assert_eq!(
            prefix.range(Some(&key)),
            ("runs/v1/apps/a,b/".to_owned(), "runs/v1/apps/a,b0".to_owned())
        );
        for foreign in [&b"other/a"[..], b"runs/\xff", b"runs/_hidden", b"runs"] {
            assert!(prefix.key(foreign).is_err(), "{}", foreign.escape_ascii());
        }
    }
}
