//! The options of a Graphite client.

use std::path::PathBuf;
use std::time::Duration;

use crate::TlsOptions;
use tsb_core::wire::Protocol;
use tsb_stores::store::{Consolidation, MAX_SLOT_ARCHIVES, SlotArchive, SlotArchives};

/// The form in which samples are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphiteProtocol {
    /// One line per sample.
    Plaintext,
    /// Pickles of up to 500 samples.
    Pickle,
}

impl GraphiteProtocol {
    /// The name in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Pickle => "pickle",
        }
    }

    /// The form of the bytes.
    pub(super) const fn wire(self) -> Protocol {
        match self {
            Self::Plaintext => Protocol::Graphite,
            Self::Pickle => Protocol::Pickle,
        }
    }

    /// The port at which carbon takes it by default.
    pub(super) const fn port(self) -> u16 {
        match self {
            Self::Plaintext => 2003,
            Self::Pickle => 2004,
        }
    }
}

/// All options except the address.
#[derive(Clone, Debug)]
pub struct GraphiteOptions {
    /// The form in which samples are sent.
    pub protocol: GraphiteProtocol,
    /// `HOST[:PORT]` of the render API; `None`: nothing can be read back.
    pub render: Option<String>,
    /// Whom to trust at the render API; `None`: it is asked without TLS. Carbon knows none.
    pub tls: Option<TlsOptions>,
    /// What Whisper keeps of the series below the prefix, as the server's own files say.
    pub archives: SlotArchives,
    /// Maximum time until a sample that was handed over is visible.
    pub visibility_delay: Duration,
    /// Deadline of a write and of a request.
    pub timeout: Duration,
    /// Whisper's folder on this machine; `None`: it cannot be measured, nor a place removed.
    pub folder: Option<PathBuf>,
    /// Whether to remove what an earlier run left below the prefix, which needs `folder`.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for GraphiteOptions {
    /// Carbon's own defaults: a slot a minute for a day.
    fn default() -> Self {
        let mut archives = [None; MAX_SLOT_ARCHIVES];
        archives[0] = Some(SlotArchive {
            slot_s: 60,
            slots: 1_440,
        });
        Self {
            protocol: GraphiteProtocol::Plaintext,
            render: None,
            tls: None,
            archives: SlotArchives {
                archives,
                consolidation: Consolidation::Average,
                known_permille_min: 500,
            },
            visibility_delay: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
            folder: None,
            drop: false,
            max_series: 1_000_000,
        }
    }
}
