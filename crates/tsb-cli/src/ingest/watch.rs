//! Until when listeners listen, and what is shown meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::net::{Address, ListenerStats};
use tsb_core::time::{Clock, SECOND_NS};
use tsb_stores::Damage;
use tsb_stores::spec::Typed;

use crate::args::IngestArgs;
use crate::damage::Told;
use crate::failure::Failure;
use crate::units;

/// How often progress is shown and the end looked for.
const TICK_NS: u64 = SECOND_NS / 5;

/// How often the store is asked what it has found damaged: some look through their files.
const DAMAGE_NS: u64 = 60 * SECOND_NS;

/// What is watched.
pub(super) trait Watched {
    /// What each listener has counted.
    fn listeners(&self) -> Vec<ListenerStats>;
    /// Samples accepted so far.
    fn accepted(&self) -> u64;
    /// What else the line of progress says.
    fn detail(&self) -> String;
    /// What the store has found damaged so far.
    fn damage(&self) -> Vec<Damage>;
    /// Whether there is no use in going on.
    fn has_failed(&self) -> bool {
        false
    }
}

/// Shows progress until it is time to stop: somebody asks for it, `duration_ns` is over, or
/// with `--once` the last connection has gone.
pub(super) fn watch(
    watched: &impl Watched,
    args: &IngestArgs,
    clock: &dyn Clock,
    duration_ns: Option<u64>,
    stop: &AtomicBool,
    told: &mut Told,
) {
    let started = clock.now();
    let (mut shown, mut asked, mut before) = (started, started, 0);
    while !stop.load(Ordering::SeqCst) && !watched.has_failed() {
        let now = clock.now();
        let stats = watched.listeners();
        let sum = |count: fn(&ListenerStats) -> u64| stats.iter().map(count).sum::<u64>();
        let open = sum(|stats| stats.open_connections);
        let was_once = args.once && open == 0 && sum(|stats| stats.connections) > 0;
        if was_once || duration_ns.is_some_and(|duration| now - started >= duration) {
            return;
        }
        if !args.output.quiet && now - shown >= SECOND_NS {
            let accepted = watched.accepted();
            let rate = (accepted - before) as f64 * SECOND_NS as f64 / (now - shown) as f64;
            crate::say::line(format_args!(
                "{:>6.0} s  {}/s accepted, {} in all, {}, {open} connections",
                (now - started) as f64 / SECOND_NS as f64,
                units::scaled(rate),
                units::count(accepted),
                watched.detail(),
            ));
            (shown, before) = (now, accepted);
        }
        if now - asked >= DAMAGE_NS {
            told.tell_list(watched.damage(), Told::line);
            asked = now;
        }
        clock.wait_until(now + TICK_NS);
    }
}

/// Refuses an address that other machines could reach, unless that is meant.
pub(super) fn refuse_remote(url: &Typed, address: &Address, allow_remote: bool) -> Result<(), Failure> {
    if address.is_local() || allow_remote {
        return Ok(());
    }
    Err(Failure::usage(format!("cannot listen on {url}"))
        .because_of("other machines could reach it, and there is no authentication")
        .hint("give --allow-remote if that is meant"))
}
