//! Credentials, which must not be printed.
//!
//! A [`Secret`] prints `***` with `Display` and with `Debug`. Code that needs the text calls
//! [`Secret::expose`], so a search finds every such place.

use std::fmt;
use std::path::Path;

use tsb_core::bytes::percent;

use crate::error::{Error, Result};

/// The text printed in place of a secret.
pub const HIDDEN: &str = "***";

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for sending it to a server.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// User and password for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    user: Secret,
    password: Secret,
}

impl Credentials {
    /// Parses `user:password` without decoding: the first colon ends the user.
    ///
    /// # Errors
    /// What is wrong, without any part of the text.
    pub fn parse(text: &str) -> std::result::Result<Self, &'static str> {
        match text.split_once(':') {
            Some((user, password)) if !user.is_empty() => Ok(Self {
                user: Secret::new(user),
                password: Secret::new(password),
            }),
            Some(_) => Err("no user stands before the colon: write user:password"),
            None => Err("there is no colon: write user:password"),
        }
    }

    /// Parses the part of an address before the `@`, with `%40` for an `@`. A user alone has an
    /// empty password.
    pub fn of_address(text: &str) -> Self {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        Self {
            user: Secret::new(decoded(user)),
            password: Secret::new(decoded(password)),
        }
    }

    /// Reads a file that holds `user:password`, in the form of [`Self::parse`]; surrounding white
    /// space is ignored.
    ///
    /// # Errors
    /// [`Error::Spec`] if the file cannot be read, holds something else, or if every user of the
    /// machine may read or change it. The error names the file, unless there is none and its name
    /// has a colon: the name may then be the credentials themselves.
    pub fn read(file: &str) -> Result<Self> {
        let wrong = |what: String| Error::Spec {
            spec: "credentials".to_owned(),
            what,
        };
        let text = std::fs::read_to_string(file).map_err(|error| {
            // `credentials=user:password` gives credentials in place of a file's name: do not
            // print it.
            if file.contains(':') && !Path::new(file).exists() {
                wrong("option credentials names a file that holds user:password, and there is no such file".to_owned())
            } else {
                wrong(format!("the credentials in {file} cannot be read: {error}"))
            }
        })?;
        if is_open_to_all(Path::new(file)) {
            return Err(wrong(format!(
                "every user of this machine can read or change the credentials in {file}: chmod o= {file}"
            )));
        }
        Self::parse(text.trim()).map_err(|why| wrong(format!("the credentials in {file} cannot be used: {why}")))
    }

    /// The user.
    pub fn user(&self) -> &str {
        self.user.expose()
    }

    /// The password.
    pub fn password(&self) -> &str {
        self.password.expose()
    }

    /// `user:password` in the form of an address. Do not print it.
    pub fn in_address(&self) -> String {
        format!(
            "{}:{}",
            percent::encoded(self.user()),
            percent::encoded(self.password())
        )
    }
}

#[cfg(unix)]
fn is_open_to_all(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    // Only regular files are checked: a shell's pipe, `<(...)`, is private whatever its mode.
    std::fs::metadata(file).is_ok_and(|there| there.is_file() && there.permissions().mode() & 0o006 != 0)
}

#[cfg(not(unix))]
fn is_open_to_all(_: &Path) -> bool {
    false
}

/// Decodes each `%40` and the like; a text that is not UTF-8 then is kept as it is.
fn decoded(text: &str) -> String {
    String::from_utf8(percent::decoded(text)).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_prints_a_secret() {
        let credentials = Credentials::parse("me:hunter2").unwrap();
        let text = format!(
            "{credentials:?} {} {:?}",
            Secret::new("hunter2"),
            Secret::new("hunter2")
        );
        assert!(!text.contains("hunter2") && !text.contains("me"), "{text}");
    }

    #[test]
    fn a_password_may_hold_anything() {
        for password in ["", "p", "p:w", "p@ss/w?rd&x=1#%40 %", "%zz", "\u{e9}"] {
            let plain = Credentials::parse(&format!("me:{password}")).unwrap();
            assert_eq!((plain.user(), plain.password()), ("me", password));
            let again = Credentials::of_address(&plain.in_address());
            assert_eq!(again, plain);
            assert!(!plain.in_address().contains(['@', '/', '?', '&', '#', ' ']));
        }
        let lenient = Credentials::of_address("me:50%&more%4");
        assert_eq!(lenient.password(), "50%&more%4");
        assert_eq!(Credentials::of_address("me").password(), "");
        for wrong in ["", "me", ":hunter2"] {
            assert!(!Credentials::parse(wrong).unwrap_err().contains("hunter2"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_read_unless_all_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let name = path.to_str().unwrap();
        let write = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o600, 0o400, 0o640] {
            write("me:hunter2\n", 0o600);
            write("me:hunter2\n", mode);
            assert_eq!(Credentials::read(name).unwrap().password(), "hunter2");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        for (text, mode, part) in [
            ("me:hunter2", 0o644, "chmod o="),
            ("me:hunter2", 0o602, "chmod o="),
            ("hunter2", 0o600, "no colon"),
        ] {
            write(text, mode);
            let error = Credentials::read(name).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("hunter2"), "{error}");
        }
        let error = Credentials::read("me:hunter2").unwrap_err().to_string();
        assert!(error.contains("no such file") && !error.contains("hunter2"), "{error}");
        let error = Credentials::read("/no/such/file").unwrap_err().to_string();
        assert!(error.contains("/no/such/file"), "{error}");
    }
}
