//! A server of a test's own, which can be killed and started again.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_stores::conformance::libtest_mimic::Failed;

/// How long it may take until it listens: a busy machine starts a server in tens of seconds.
const PATIENCE_S: u64 = 90;
/// Ports of servers: below those that Linux gives to clients.
const PORTS: Range<u16> = 10_000..32_000;
/// Ports of them that this process has tried.
static TRIED: AtomicU32 = AtomicU32::new(0);
/// Between two looks.
const PAUSE_NS: u64 = 20_000_000;

/// A process that listens at an address, with a folder of its own.
pub(crate) struct Daemon {
    command: Box<dyn Fn(&Path) -> Command + Send + Sync>,
    folder: TempDir,
    address: SocketAddrV4,
    child: Child,
}

impl Daemon {
    /// Starts a process that listens at a port of 127.0.0.1; `command` makes its command from its folder.
    pub(crate) fn start(port: u16, command: impl Fn(&Path) -> Command + Send + Sync + 'static) -> Result<Self, Failed> {
        Self::start_at(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port), command)
    }

    /// The same at any address.
    pub(crate) fn start_at(
        address: SocketAddrV4,
        command: impl Fn(&Path) -> Command + Send + Sync + 'static,
    ) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let child = spawn(command(folder.path()))?;
        Ok(Self {
            command: Box::new(command),
            folder,
            address,
            child,
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Ends it at once: SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<(), Failed> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Starts it on the same files.
    pub(crate) fn restart(&mut self) -> Result<(), Failed> {
        self.child = spawn((self.command)(self.folder.path()))?;
        self.await_listening()
    }

    pub(crate) fn await_listening(&self) -> Result<(), Failed> {
        until("it listens", || {
            TcpStream::connect(self.address).map(drop).map_err(Failed::from)
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(mut command: Command) -> Result<Child, Failed> {
    Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

/// Tries until it works; its last error where that takes too long.
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Result<T, Failed>) -> Result<T, Failed> {
    let clock = MonotonicClock::new();
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(error) if clock.now() > PATIENCE_S * SECOND_NS => {
                let why = error.message().unwrap_or("no reason is known");
                return Err(format!("not within {PATIENCE_S} s: {what}: {why}").into());
            }
            Err(_) => clock.wait_until(clock.now() + PAUSE_NS),
        }
    }
}

/// Ports that nobody listens at, each given once by this process. A client of another test, of which
/// there are thousands, cannot take one of them before the server listens.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], Failed> {
    let first = std::process::id();
    let mut ports = [0; N];
    for port in &mut ports {
        let mut candidates = PORTS.map(|_| {
            let place = first.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % PORTS.len() as u32;
            PORTS.start + place as u16
        });
        let free = candidates.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
        *port = free.ok_or("every port is taken")?;
    }
    Ok(ports)
}

/// Runs a program to its end; what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String, Failed> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
