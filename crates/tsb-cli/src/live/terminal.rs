//! Owns the terminal while the live view is shown: redraws it four times per second, acts on its keys
//! (`on_key`), and restores it in every case. The picture itself is made in `view`.

use std::io::{self, Stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::keys::{Key, Keyboard};
use super::state::{LiveState, SharedState};
use super::view::{ViewSettings, draw, intervals_wanted};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Signals;

/// Time between two redraws, unless a key is pressed.
const FRAME: Duration = Duration::from_millis(250);

/// Time limit for the view's thread to end. A thread that exceeds it waits for a terminal that
/// was closed, and is left to end with the process.
const GIVE_BACK_NS_MAX: u64 = 2 * SECOND_NS;

/// The terminal in use; dropping it restores it.
#[derive(Debug)]
pub struct Terminal {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Takes the terminal and shows `shared` on it. The key `q` acts as a signal.
    pub fn open(shared: Arc<SharedState>, signals: Signals) -> Result<Self, Failure> {
        let failure = |error: &io::Error| {
            Failure::usage("cannot show the live view")
                .because(error)
                .hint("--progress lines needs no terminal")
        };
        let screen = Screen::take().map_err(|error| failure(&error))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let _ = signals.before_end.set(give_back);
        let show = move || {
            let mut screen = screen;
            // A terminal that has gone away is no reason to end a run.
            let _ = screen.show(&shared, &signals, &over);
        };
        let thread = std::thread::Builder::new().name("tsb-view".to_owned()).spawn(show);
        let thread = thread.map_err(|error| Failure::new(Exit::Bug, "cannot start the live view").because(&error))?;
        Ok(Self {
            is_over,
            thread: Some(thread),
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        let clock = MonotonicClock::new();
        let deadline_ns = clock.now() + GIVE_BACK_NS_MAX;
        while !thread.is_finished() && clock.now() < deadline_ns {
            clock.wait_until(clock.now() + SECOND_NS / 100);
        }
        if thread.is_finished() {
            let _ = thread.join();
        } else {
            give_back();
        }
    }
}

/// The alternate screen on stderr, in raw mode.
struct Screen {
    terminal: ratatui::Terminal<CrosstermBackend<Stderr>>,
    keyboard: Keyboard,
}

impl Screen {
    fn take() -> io::Result<Self> {
        let keyboard = Keyboard::open()?;
        enable_raw_mode()?;
        execute!(io::stderr(), EnterAlternateScreen)?;
        let terminal = ratatui::Terminal::new(CrosstermBackend::new(io::stderr()))?;
        Ok(Self { terminal, keyboard })
    }

    fn show(&mut self, shared: &SharedState, signals: &Signals, is_over: &AtomicBool) -> io::Result<()> {
        let mut settings = ViewSettings::default();
        let mut frozen: Option<LiveState> = None;
        while !is_over.load(Ordering::Acquire) {
            settings.is_stopping = signals.stops.stop.load(Ordering::SeqCst);
            let width = usize::from(self.terminal.size()?.width);
            let fresh = frozen
                .is_none()
                .then(|| shared.snapshot(intervals_wanted(width, settings)));
            if let Some(state) = fresh.as_ref().or(frozen.as_ref()) {
                self.terminal.draw(|frame| draw(frame, state, settings))?;
            }
            for key in self.keyboard.pressed(FRAME)? {
                on_key(key, &mut settings, signals);
            }
            frozen = match (settings.is_paused, frozen) {
                (true, None) => Some(shared.snapshot(usize::MAX)),
                (true, frozen) => frozen,
                (false, _) => None,
            };
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stderr(), LeaveAlternateScreen, ratatui::crossterm::cursor::Show);
}

fn on_key(key: Key, settings: &mut ViewSettings, signals: &Signals) {
    match key {
        Key::Interrupt | Key::Char('q') => {
            signals.press();
        }
        Key::Escape => settings.is_helped = false,
        Key::Char('?') => settings.is_helped = !settings.is_helped,
        Key::Char('p' | ' ') => settings.is_paused = !settings.is_paused,
        Key::Char('+' | '=') => settings.zoom_in(),
        Key::Char('-') => settings.zoom_out(),
        Key::Char('s') => settings.is_by_column = !settings.is_by_column,
        Key::Char(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_look_and_q_asks_for_the_end() {
        let (mut settings, stop) = (ViewSettings::default(), Signals::default());
        let press = |key, settings: &mut ViewSettings| on_key(Key::Char(key), settings, &stop);
        press('p', &mut settings);
        assert!(settings.is_paused);
        press('-', &mut settings);
        assert_eq!(settings.intervals_per_column(), 2);
        press('+', &mut settings);
        assert_eq!(settings.intervals_per_column(), 1);
        assert!(!stop.stops.stop.load(Ordering::SeqCst));
        press('q', &mut settings);
        assert!(stop.stops.stop.load(Ordering::SeqCst));
    }

    #[test]
    fn a_question_mark_opens_the_help_and_closes_it() {
        let (mut settings, stop) = (ViewSettings::default(), Signals::default());
        let question = Key::Char('?');
        for (key, is_helped) in [
            (question, true),
            (question, false),
            (question, true),
            (Key::Escape, false),
        ] {
            on_key(key, &mut settings, &stop);
            assert_eq!(settings.is_helped, is_helped, "after {key:?}");
        }
        assert!(!stop.stops.stop.load(Ordering::SeqCst));
    }

    #[test]
    fn control_c_asks_for_the_end() {
        let stop = Signals::default();
        on_key(Key::Interrupt, &mut ViewSettings::default(), &stop);
        assert!(stop.stops.stop.load(Ordering::SeqCst));
    }
}
