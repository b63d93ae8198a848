//! What a server keeps of samples: its class.

/// What a server keeps of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptSamples {
    /// Every sample exactly; of two with one timestamp the later one. Hawkular, and `tsb ingest` over most
    /// stores.
    Exact,
    /// One sample per slot: the last that arrives. Memory of Mohawk 0.15.
    LastOfSlot,
    /// One sample per slot: the first. Memory of Mohawk from 0.24 on. Only whole slots are timestamps
    /// then, and the client sends none that would not stay.
    FirstOfSlot,
    /// Every sample with six decimals; of two with one timestamp the earlier one. SQLite of Mohawk. The client sends
    /// none that would not stay: of each series only later samples.
    Decimals,
    /// Every sample exactly, and every copy. MongoDB of Mohawk.
    Copies,
}
