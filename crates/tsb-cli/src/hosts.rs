//! `tsb run --coordinator`, `tsb run --hosts-local` and `tsb join`: runs by many hosts.

#[cfg(feature = "hosts")]
mod local;
#[cfg(feature = "hosts")]
mod shared;

#[cfg(feature = "hosts")]
pub use shared::{join, lead, maker};

#[cfg(not(feature = "hosts"))]
mod unbuilt {
    use tsb_run::run::MakeRun;

    use crate::args::{HostsArgs, JoinArgs, SharedRunArgs};
    use crate::credentials;
    use crate::exit::Exit;
    use crate::failure::Failure;

    fn refusal(what: &str) -> Failure {
        Failure::usage(format!("cannot {what}"))
            .because_of("this build cannot share a run among hosts")
            .hint("build with --features hosts")
    }

    /// Makes the runs of a comparison or a search in this process.
    ///
    /// # Errors
    /// If hosts are to share them.
    pub fn maker(args: &HostsArgs) -> Result<Box<dyn MakeRun>, Failure> {
        if args.is_shared() {
            return Err(refusal("share runs"));
        }
        Ok(Box::new(credentials::open))
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
pub use unbuilt::{join, lead, maker};
