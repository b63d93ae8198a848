//! A certificate for loopback, and the authority that signed it, made by the openssl program.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use tsb_stores::conformance::libtest_mimic::Failed;

use crate::daemon::output;

/// Files that live as long as this.
pub(crate) struct Certificates {
    folder: TempDir,
}

impl Certificates {
    pub(crate) fn make() -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let openssl = |line: &str| output(Command::new("openssl").args(line.split(' ')).current_dir(folder.path()));
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        openssl(&format!(
            "req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=tsb-test -days 2"
        ))?;
        openssl(&format!(
            "req {key} -keyout server.key -out server.csr -subj /CN=127.0.0.1"
        ))?;
        std::fs::write(folder.path().join("names"), "subjectAltName=IP:127.0.0.1\n")?;
        openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt",
        )?;
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name));
        let both = format!("{}{}", read("server.key")?, read("server.crt")?);
        std::fs::write(folder.path().join("server.pem"), both)?;
        Ok(Self { folder })
    }

    /// The authority's certificate.
    pub(crate) fn authority(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// `server.key`, `server.crt`, or both of them in `server.pem`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of a new file with `user:password`.
    pub(crate) fn credentials(&self, name: &str, text: &str) -> Result<String, Failed> {
        let file = self.file(name);
        std::fs::write(&file, text)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
        Ok(file.display().to_string())
    }
}
