//! From what a user writes (`memory:?retention=7d`) to a store: the only registry.
//!
//! Grammar: `[wrapper+]...scheme:[path][?option=value[&option=value]...]`.
//! A wrapper's own options carry its name: `throttle+memory:?throttle.rate=1000`.

use crate::error::{Error, Result};
use crate::null::NullStore;
use crate::store::Store;

/// Opens the store that `spec` describes.
pub fn open(spec: &str) -> Result<Box<dyn Store>> {
    match spec {
        "null:" => Ok(Box::new(NullStore::new())),
        _ => Err(Error::Spec {
            spec: spec.to_owned(),
            what: "unknown scheme; try null:".to_owned(),
        }),
    }
}
