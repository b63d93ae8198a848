//! Sets up how a run in progress is shown: the live view, metrics for other tools, or lines on
//! stderr.

use std::sync::Arc;

use tsb_core::report::Interval;
use tsb_run::{Controls, HostStatus, IntervalLatencies, Message, Observer, Phase, Progress, RunInfo, StopFlags};

use super::{SharedState, Terminal, wants_view};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::interrupt::Signals;
use crate::metrics::{MetricsServer, MetricsSource};
use crate::say;

/// The displays of a run; dropping it restores the terminal and stops the metrics.
#[derive(Debug)]
pub struct Display {
    observer: Arc<DisplayObserver>,
    stops: StopFlags,
    // Both read the state of the observer.
    _metrics_server: Option<MetricsServer>,
    _terminal: Option<Terminal>,
}

impl Display {
    /// Shows a run as `args` say: on the live view if there is a terminal, else as lines; and as
    /// metrics.
    ///
    /// # Errors
    /// If a view was requested and cannot be drawn, or the metrics' address cannot be used.
    pub fn open(args: &RunArgs, signals: &Signals) -> Result<Self, Failure> {
        Self::with_view(args, signals, wants_view(args))
    }

    /// The same without the live view.
    ///
    /// # Errors
    /// If the metrics' address cannot be used.
    pub fn lines(args: &RunArgs, signals: &Signals) -> Result<Self, Failure> {
        Self::with_view(args, signals, false)
    }

    /// Lines of a host that takes part in a run.
    pub fn of_host(quiet: bool, signals: &Signals) -> Self {
        Self {
            observer: Arc::new(DisplayObserver {
                shared: None,
                has_view: false,
                quiet,
            }),
            stops: signals.stops.clone(),
            _metrics_server: None,
            _terminal: None,
        }
    }

    fn with_view(args: &RunArgs, signals: &Signals, has_view: bool) -> Result<Self, Failure> {
        let is_read = has_view || args.expose.is_some();
        let shared = is_read.then(|| Arc::new(SharedState::new()));
        let drawn = shared.as_ref().filter(|_| has_view);
        let terminal = drawn.map(|shared| Terminal::open(Arc::clone(shared), signals.clone()));
        let terminal = terminal.transpose()?;
        let server = shared.as_ref().zip(args.expose);
        let server = server.map(|(shared, address)| {
            let source = Arc::clone(shared) as Arc<dyn MetricsSource>;
            MetricsServer::start(address, args.expose_remote, source)
        });
        let server = server.transpose()?;
        let observer = Arc::new(DisplayObserver {
            shared,
            has_view,
            quiet: args.output.quiet,
        });
        if let Some(server) = &server {
            observer.message(Message::Note(&format!(
                "metrics on http://{}/metrics",
                server.address()
            )));
        }
        Ok(Self {
            observer,
            stops: signals.stops.clone(),
            _metrics_server: server,
            _terminal: terminal,
        })
    }

    /// Whether the live view is open.
    pub fn has_view(&self) -> bool {
        self.observer.has_view
    }

    /// Whether the view or a metrics endpoint shows intervals.
    pub fn is_watched(&self) -> bool {
        self.observer.shared.is_some()
    }

    /// The controls of a run that is shown here and ended by signals or keys.
    pub fn controls(&self) -> Controls {
        Controls {
            stops: self.stops.clone(),
            observer: Arc::clone(&self.observer) as Arc<dyn Observer>,
            sockets: std::env::temp_dir(),
            ..Controls::default()
        }
    }
}

/// Forwards the events of a run to the shared state or to stderr.
#[derive(Debug)]
struct DisplayObserver {
    shared: Option<Arc<SharedState>>,
    has_view: bool,
    quiet: bool,
}

impl Observer for DisplayObserver {
    fn begin(&self, subject: &RunInfo) {
        if let Some(shared) = &self.shared {
            shared.begin(subject.clone());
        }
    }

    fn phase(&self, phase: Phase) {
        if let Some(shared) = &self.shared {
            shared.enter(phase);
        }
    }

    fn progress(&self, progress: &Progress) {
        if let Some(shared) = &self.shared {
            shared.update(progress);
        }
    }

    fn interval(&self, interval: &Interval, timed: &IntervalLatencies) {
        if let Some(shared) = &self.shared {
            shared.add(interval.clone(), timed);
        }
    }

    fn hosts(&self, hosts: &[HostStatus<'_>]) {
        if let Some(shared) = &self.shared {
            shared.set_hosts(hosts);
        }
    }

    fn message(&self, message: Message<'_>) {
        let view = self.shared.as_ref().filter(|_| self.has_view);
        match (message, view) {
            (Message::Note(text) | Message::Warning(text), Some(shared)) => shared.say(text),
            (Message::Warning(text), None) => say::warning(text),
            (Message::Note(text) | Message::Progress(text), None) if !self.quiet => say::line(text),
            // The view draws it, or nobody wants to read it.
            _ => {}
        }
    }
}
