//! A request.

use std::borrow::Cow;
use std::fmt::Write;

use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use tsb_core::bytes::percent;

/// A request, which can be sent several times.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, Cow<'static, str>)>,
    pub(super) body: Bytes,
    pub(super) changes: bool,
}

impl Request {
    /// A `GET` of a path, with its query; it changes nothing.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            changes: false,
        }
    }

    /// A `POST` to a path, with its query; it may change something.
    pub fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            method: Method::POST,
            body: body.into(),
            changes: true,
            ..Self::get(path)
        }
    }

    /// A `DELETE` of a path, with its query.
    pub fn delete(path: impl Into<String>) -> Self {
        Self {
            method: Method::DELETE,
            changes: true,
            ..Self::get(path)
        }
    }

    /// A `POST` of a form with these fields; it may change something.
    pub fn form(path: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        let mut body = String::new();
        for (name, value) in fields {
            let separator = if body.is_empty() { "" } else { "&" };
            // Writing to a string cannot fail.
            let _ = write!(body, "{separator}{name}={}", percent::encoded(value));
        }
        Self::post(path, body).with_header(CONTENT_TYPE.as_str(), "application/x-www-form-urlencoded")
    }

    /// The same request, which changes nothing: without an answer it is repeated.
    #[must_use]
    pub fn reading(mut self) -> Self {
        self.changes = false;
        self
    }

    /// The same request with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}
