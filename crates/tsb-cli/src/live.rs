//! A run while it goes on: a view on the terminal, and metrics for those who watch with
//! other tools.

mod board;
mod exposed;
mod heat;
mod help;
mod keys;
mod openmetrics;
mod terminal;
mod view;

use std::io::IsTerminal;
use std::sync::Arc;

pub use board::{Board, Phase, State, Subject, Timed, Times};
pub use exposed::Exposed;
pub use terminal::Terminal;

use crate::args::{Progress, RunArgs};
use crate::failure::Failure;
use crate::run::Hooks;

/// Serves metrics of the run, if that was asked for.
pub fn expose(args: &RunArgs, hooks: &mut Hooks) -> Result<Option<Exposed>, Failure> {
    let Some(address) = args.expose else { return Ok(None) };
    let board = Arc::clone(hooks.board.get_or_insert_default());
    let exposed = Exposed::start(address, args.expose_remote, board)?;
    hooks.say(|| format!("metrics on http://{}/metrics", exposed.address()));
    Ok(Some(exposed))
}

/// Opens the live view, if there is a terminal to show it on.
pub fn view(args: &RunArgs, hooks: &mut Hooks) -> Result<Option<Terminal>, Failure> {
    let is_wanted = match args.progress {
        Progress::Lines => false,
        Progress::Live => true,
        Progress::Auto => has_terminal() && allows_view(|name| std::env::var(name).ok()),
    };
    if args.output.quiet || !is_wanted {
        return Ok(None);
    }
    let board = Arc::clone(hooks.board.get_or_insert_default());
    hooks.has_view = true;
    Terminal::open(board, hooks.signals()).map(Some)
}

fn has_terminal() -> bool {
    let are_terminals =
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    are_terminals && is_in_foreground()
}

/// Whether the terminal is ours to take: a job in the background that changes it is stopped
/// by the kernel. A terminal that does not control this process has no such rule.
fn is_in_foreground() -> bool {
    let group = rustix::termios::tcgetpgrp(std::io::stdin());
    group.map_or(true, |group| group == rustix::process::getpgrp())
}

/// What the environment says: NO_COLOR (no-color.org), a dumb terminal, or a build server.
fn allows_view(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && !is_set("CI") && variable("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_can_turn_the_view_off() {
        let check = |variables: &[(&str, &str)]| {
            allows_view(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(check(&[("TERM", "xterm-256color")]));
        assert!(check(&[("TERM", "xterm"), ("NO_COLOR", "")]));
        assert!(!check(&[("TERM", "dumb")]));
        assert!(!check(&[]));
        assert!(!check(&[("TERM", "xterm"), ("NO_COLOR", "1")]));
        assert!(!check(&[("TERM", "xterm"), ("CI", "true")]));
    }
}
