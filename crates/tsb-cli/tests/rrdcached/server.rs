//! `tsb ingest` as rrdcached, in a process of its own, and a client that speaks to it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::program::tsb;

/// `tsb ingest` as rrdcached.
pub(crate) struct Server {
    child: Child,
    pub(crate) folder: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start(folder: tempfile::TempDir, options: &str) -> Self {
        let at = folder.path().display().to_string();
        let mut command = tsb(&["ingest", "--quiet", "--format", "json", "--duration", "120s"]);
        command.args(["--listen", &format!("rrdcached+unix:{at}/socket")]);
        let options = options.replace("JOURNAL", &format!("{at}/journal"));
        command.args(["--store", &format!("write-cache+rrd:{at}/base{options}")]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut first).unwrap();
        assert!(first.starts_with("listening on rrdcached+unix:"), "{first}");
        // What it says later goes nowhere, but must not fill a pipe.
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(drop));
        Self { child, folder }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("base").join(name)
    }

    pub(crate) fn address(&self) -> String {
        format!("unix:{}/socket", self.folder.path().display())
    }

    /// Ends it as SIGKILL does.
    pub(crate) fn kill(mut self) -> tempfile::TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // Its socket stays, and does not keep the next from starting.
        assert!(self.folder.path().join("socket").exists());
        self.folder
    }

    /// Ends it in order; what it says then.
    pub(crate) fn stop(self) -> Value {
        let asked = Command::new("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status();
        assert!(asked.unwrap().success());
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success());
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["ledger"]["balanced"], true, "{result:#}");
        result
    }
}

/// A connection that sends lines and reads replies.
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    pub(crate) fn of(server: &Server) -> Self {
        let stream = UnixStream::connect(server.folder.path().join("socket")).unwrap();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(20)))
            .unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        writeln!(self.0.get_mut(), "{line}").unwrap();
        let mut reply = String::new();
        self.0.read_line(&mut reply).unwrap();
        reply.trim_end().to_owned()
    }

    /// The lines that follow a reply which counts them; none where it is an error.
    pub(crate) fn lines(&mut self, line: &str) -> Vec<String> {
        let reply = self.ask(line);
        let count: i64 = reply.split(' ').next().unwrap().parse().unwrap();
        let mut lines = Vec::new();
        for _ in 0..count {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            lines.push(line.trim_end().to_owned());
        }
        lines
    }
}
