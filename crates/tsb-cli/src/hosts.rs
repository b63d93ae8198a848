//! `tsb run --coordinator`, `tsb run --hosts-local` and `tsb join`: one run by many hosts.

#[cfg(feature = "hosts")]
mod local;
#[cfg(feature = "hosts")]
mod shared;

#[cfg(feature = "hosts")]
pub use shared::{join, lead};

#[cfg(not(feature = "hosts"))]
mod unbuilt {
    use crate::args::{JoinArgs, SharedRunArgs};
    use crate::exit::Exit;
    use crate::failure::Failure;

    fn refusal(what: &str) -> Failure {
        Failure::usage(format!("cannot {what}"))
            .because_of("this build cannot share a run among hosts")
            .hint("build with --features hosts")
    }

    /// Refuses: this build leads no run.
    ///
    /// # Errors
    /// Always.
    pub fn lead(_args: &SharedRunArgs) -> Result<Exit, Failure> {
        Err(refusal("lead a run"))
    }

    /// Refuses: this build joins no run.
    ///
    /// # Errors
    /// Always.
    pub fn join(_args: &JoinArgs) -> Result<Exit, Failure> {
        Err(refusal("join a run"))
    }
}

#[cfg(not(feature = "hosts"))]
pub use unbuilt::{join, lead};
