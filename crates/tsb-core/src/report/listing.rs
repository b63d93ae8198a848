//! The result of `tsb stores`: the stores that this program knows, and their options.

use serde::{Deserialize, Serialize};

use super::Written;

/// All stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// The stores, in the order in which they are explained.
    pub stores: Vec<ListedStore>,
}

/// One store, or a wrapper over another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedStore {
    /// The word before the colon or the plus sign.
    pub scheme: String,
    /// A short description.
    pub what: String,
    /// The level of its acknowledgements, and the highest level that a flush can reach.
    pub durability: String,
    /// Whether this build includes it.
    pub built: bool,
    /// The feature that includes it; absent if every build has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<String>,
    /// Whether it wraps another store.
    pub wrapper: bool,
    /// Whether a path or an address follows the colon.
    pub takes_path: bool,
    /// Its options.
    pub options: Vec<ListedOption>,
}

/// An option of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedOption {
    /// The word before the equals sign.
    pub name: String,
    /// The form and unit of its value.
    pub form: String,
    /// The value used if it is not given; absent if it then has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What it does.
    pub what: String,
}
