//! Shows a run in progress: a view on the terminal, and metrics for other tools.

mod display;
mod heat_map;
mod help;
mod keys;
mod openmetrics;
mod state;
mod terminal;
mod view;

use std::io::IsTerminal;

pub use display::Display;
pub use state::{CoarseHistogram, LiveState, SharedState};
pub use terminal::Terminal;

use crate::args::{Progress, RunArgs};

/// Whether to open the view. With `--progress auto`, only on a terminal that allows it.
fn wants_view(args: &RunArgs) -> bool {
    let is_wanted = match args.progress {
        Progress::Lines => false,
        Progress::Live => true,
        Progress::Auto => has_terminal() && allows_view(|name| std::env::var(name).ok()),
    };
    is_wanted && !args.output.quiet
}

fn has_terminal() -> bool {
    let are_terminals =
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    are_terminals && is_in_foreground()
}

/// Whether this process is in the foreground: the kernel stops a background job that changes its
/// terminal. A terminal that does not control this process has no such rule.
fn is_in_foreground() -> bool {
    let group = rustix::termios::tcgetpgrp(std::io::stdin());
    group.map_or(true, |group| group == rustix::process::getpgrp())
}

/// Whether the environment permits a view: no NO_COLOR (no-color.org), no dumb terminal, no
/// build server.
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
