//! The journal of a run: the file that a killed run leaves instead of a report.
//!
//! While samples are sent, a background thread records how many of them have been acknowledged,
//! and at which durability level, from counters that the emitter and the store keep anyway. `tsb
//! verify` reads the file and checks the store against it. A record may claim less than was
//! acknowledged, never more. The format is specified in `docs/formats/run-journal.md`.

mod claims;
mod file;
mod follow;
mod read;
mod record;

pub use claims::{Claims, Marks};
pub use file::{Journal, beside};
pub use follow::{Acceptance, Followed, Follower};
pub use read::{Contents, Section, is_journal, parse, read};
pub use record::{Claim, Header, Reached, Record};
