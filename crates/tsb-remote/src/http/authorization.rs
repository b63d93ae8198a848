//! The header with the credentials.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;
use tsb_stores::error::{Error, Result};
use tsb_stores::secret::{Credentials, Secret};

/// The value of the header `Authorization`. It is never printed.
#[derive(Clone, Debug)]
pub struct Authorization(HeaderValue);

impl Authorization {
    /// User and password.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn basic(credentials: &Credentials) -> Result<Self> {
        let plain = format!("{}:{}", credentials.user(), credentials.password());
        Self::new("Basic", &Secret::new(BASE64_STANDARD.encode(plain)))
    }

    /// A secret of another scheme, such as `Bearer`.
    ///
    /// # Errors
    /// [`Error::Spec`], which does not quote it, for a secret that no header can hold.
    pub fn new(scheme: &str, secret: &Secret) -> Result<Self> {
        let text = format!("{scheme} {}", secret.expose());
        let mut header = HeaderValue::from_str(&text).map_err(|_| Error::Spec {
            spec: "credentials".to_owned(),
            what: "a token contains control characters; write it without line breaks".to_owned(),
        })?;
        header.set_sensitive(true);
        Ok(Self(header))
    }

    pub(super) const fn header(&self) -> &HeaderValue {
        &self.0
    }
}
