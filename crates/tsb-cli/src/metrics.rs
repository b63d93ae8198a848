//! Metrics for Prometheus and other scrapers: an HTTP endpoint (`server`) and the text of the
//! format (`text`). Which metrics there are is decided by each [`MetricsSource`].

pub mod server;
pub mod text;

pub use server::MetricsServer;

/// Something that has metrics.
pub trait MetricsSource: Send + Sync {
    /// The metrics as they are now, as OpenMetrics text that ends with `# EOF`.
    fn text(&self) -> String;
}
