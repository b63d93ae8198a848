//! What of a put is sent: of each key the last value, unless it is too long.

use std::collections::HashMap;

use tsb_stores::Reason;
use tsb_stores::keyed::{Key, MAX_VALUE_BYTES, Put};

/// Indices of puts that are refused, each with its reason.
pub(super) type Refused = Vec<(usize, Reason)>;

/// The puts that are sent, each with its index, and those that are refused because their values are
/// too long.
pub(super) fn to_send(puts: &[Put]) -> (Vec<(usize, &Put)>, Refused) {
    let mut refused = Vec::new();
    let mut places: HashMap<&Key, usize> = HashMap::with_capacity(puts.len());
    let mut sent: Vec<(usize, &Put)> = Vec::with_capacity(puts.len());
    for (index, put) in puts.iter().enumerate() {
        if put.value.len() > MAX_VALUE_BYTES {
            refused.push((index, Reason::Unrepresentable));
            continue;
        }
        if let Some(place) = places.get(&put.key) {
            // Etcd refuses a transaction that puts a key twice, and requests at the same time have
            // no order.
            sent[*place] = (index, put);
        } else {
            places.insert(&put.key, sent.len());
            sent.push((index, put));
        }
    }
    (sent, refused)
}

/// Each key once.
pub(super) fn distinct(keys: &[Key]) -> Vec<&Key> {
    let mut keys: Vec<&Key> = keys.iter().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A time to live in whole seconds, rounded up and at least 1, so that no key expires early.
pub(super) fn whole_seconds(ttl_ns: u64) -> u64 {
    ttl_ns.max(1).div_ceil(tsb_core::time::SECOND_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_key_the_last_value_is_sent() {
        let put = |key: &str, value: &str| Put::new(Key::new(key).unwrap(), value);
        let long = "x".repeat(MAX_VALUE_BYTES + 1);
        let puts = [put("a", "1"), put("b", "2"), put("a", "3"), put("a", &long)];
        let (sent, refused) = to_send(&puts);
        let sent: Vec<_> = sent.iter().map(|(index, put)| (*index, put.value.as_str())).collect();
        assert_eq!(sent, [(2, "3"), (1, "2")]);
        assert_eq!(refused, [(3, Reason::Unrepresentable)]);
        assert_eq!(
            [1, 999_999_999, 1_000_000_000, 1_000_000_001].map(whole_seconds),
            [1, 1, 1, 2]
        );
    }
}
