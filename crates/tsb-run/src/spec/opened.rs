//! A store that was opened for a run, and whether it is driven directly.

use std::sync::Arc;

use tsb_stores::{AsyncStore, Store};

/// A store that was opened for a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenedStore {
    /// Each write ends before its call returns.
    Blocking(Arc<dyn Store>),
    /// A client of a server that takes many writes at a time.
    Async(Arc<dyn AsyncStore>),
}

impl OpenedStore {
    /// The store; a call that writes waits for its answer.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Blocking(store) => Arc::clone(store),
            Self::Async(client) => Arc::clone(client) as Arc<dyn Store>,
        }
    }

    /// The store, if it takes many writes at a time.
    pub const fn client(&self) -> Option<&Arc<dyn AsyncStore>> {
        match self {
            Self::Blocking(_) => None,
            Self::Async(client) => Some(client),
        }
    }
}

impl From<Arc<dyn Store>> for OpenedStore {
    fn from(store: Arc<dyn Store>) -> Self {
        Self::Blocking(store)
    }
}

impl From<Arc<dyn AsyncStore>> for OpenedStore {
    fn from(client: Arc<dyn AsyncStore>) -> Self {
        Self::Async(client)
    }
}
