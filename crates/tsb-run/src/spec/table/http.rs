//! What clients over HTTP share: whom they trust, and the command that reaches the same server.

use tsb_remote::TlsOptions;
use tsb_stores::error::Result;

use crate::spec::Values;

/// Whom to trust, if the options ask for TLS.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for certificates to trust without TLS.
pub(super) fn tls(values: &Values<'_>) -> Result<Option<TlsOptions>> {
    let (is_on, ca) = values.tls()?;
    Ok(is_on.then_some(TlsOptions { ca }))
}

/// The beginning of a command of `curl`, without credentials, and that of a URL of the server at `host`.
///
/// # Errors
/// As [`tls`].
#[cfg(any(
    feature = "clickhouse",
    feature = "influx",
    feature = "prometheus",
    feature = "questdb",
    feature = "victoriametrics"
))]
pub(super) fn curl(values: &Values<'_>, host: &str) -> Result<(String, String)> {
    let Some(tls) = tls(values)? else {
        return Ok(("curl -sS".to_owned(), format!("http://{host}")));
    };
    let trusting = tls.ca.map_or(String::new(), |file| {
        format!(" --cacert {}", crate::spec::kept::quoted(&file.display().to_string()))
    });
    Ok((format!("curl -sS{trusting}"), format!("https://{host}")))
}
