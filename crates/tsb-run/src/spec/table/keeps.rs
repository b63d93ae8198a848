//! What an entry of the table keeps beyond its process, from the path and the options of a spec.

use super::super::Values;
use super::super::kept::{KeptAtServer, KeptFiles};
use tsb_stores::error::Result;

/// What an entry of the table keeps.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Keeps {
    /// Nothing that outlives the process.
    Nothing,
    /// Files of this machine.
    Files {
        /// Which, from path and options; `None` if these options name none.
        find: fn(&str, &Values<'_>) -> Option<KeptFiles>,
        /// The part of the spec that names them.
        named_by: NamedBy,
    },
    /// A part of a server.
    AtServer {
        /// Which, from path and options.
        find: fn(&str, &Values<'_>) -> Result<KeptAtServer>,
        /// Removes it; `None` if no client can.
        remove: Option<fn(&str, &Values<'_>) -> Result<()>>,
        /// The part of the spec that names it.
        named_by: NamedBy,
    },
}

/// The part of a spec that names a place, and how a number is added to it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum NamedBy {
    /// The end of the path, with this character between words: `x.db` becomes `x.db-round-3`.
    Path(char),
    /// The end of the value of this option, if it is given or has a default.
    Option(&'static str),
    /// The value of this option is the start of names: `a-` becomes `a-round-3-`.
    Prefix(&'static str),
}
