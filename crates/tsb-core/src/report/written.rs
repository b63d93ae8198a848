//! The fields that every document but [`Report`](super::Report) begins with.

use serde::{Deserialize, Serialize};

use super::SCHEMA_VERSION;
use crate::resource::Machine;

/// The program that wrote a document, and the machine that it ran on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Written {
    /// [`SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The version of that program.
    pub tsb_version: String,
    /// The machine that it ran on.
    #[serde(default)]
    pub machine: Machine,
}

impl Written {
    /// Describes this program and this machine.
    pub fn here() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tsb_version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::examine(),
        }
    }
}
