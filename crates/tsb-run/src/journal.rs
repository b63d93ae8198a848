//! The journal of a run: what a run that is killed leaves behind instead of a report.
//!
//! While samples are sent, a thread of its own writes down which of them have been
//! acknowledged, and at which durability, from marks that the emitter and the store keep
//! anyway. `tsb verify` reads the file and holds the store against it. A record may say less
//! than was acknowledged, never more. Every byte: `docs/formats/run-journal.md`.

mod claims;
mod file;
mod follow;
mod read;
mod record;

pub use claims::{Claims, Marks};
pub use file::{Journal, beside};
pub use follow::{Followed, Follower, Way};
pub use read::{Contents, Section, is_journal, read};
pub use record::{Claim, Header, Reached, Record};
