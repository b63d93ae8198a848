//! A relay between client and server that can be told to misbehave.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What it does with what the server says. What the client says always arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RelayMode {
    /// Passes it on.
    Honest,
    /// Keeps it for ever.
    Silent,
    /// Passes a few bytes on and ends the stream.
    HalfWay,
    /// Says something else of the same length.
    Garbage,
    /// Accepts nobody, and ends what there is.
    Gone,
}

const RELAY_MODES: [RelayMode; 5] = [
    RelayMode::Honest,
    RelayMode::Silent,
    RelayMode::HalfWay,
    RelayMode::Garbage,
    RelayMode::Gone,
];

/// Listens until the process ends.
pub(crate) struct Relay {
    port: u16,
    mode: Arc<AtomicU8>,
}

impl Relay {
    /// To a server at this port.
    pub(crate) fn to(server: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let mode = Arc::new(AtomicU8::new(RelayMode::Honest as u8));
        let told = Arc::clone(&mode);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if of(&told) != RelayMode::Gone
                    && let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server))
                {
                    carry(&client, &server, &told);
                }
            }
        });
        Ok(Self { port, mode })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn behave(&self, mode: RelayMode) {
        self.mode.store(mode as u8, Ordering::Release);
    }
}

fn of(mode: &AtomicU8) -> RelayMode {
    RELAY_MODES[mode.load(Ordering::Acquire) as usize]
}

/// Two threads a connection, as long as both sides are there.
fn carry(client: &TcpStream, server: &TcpStream, mode: &Arc<AtomicU8>) {
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    let (Ok(from_server), Ok(to_client)) = (server.try_clone(), client.try_clone()) else {
        return;
    };
    std::thread::spawn(move || pump(from_client, to_server, |_, _| true));
    let mode = Arc::clone(mode);
    std::thread::spawn(move || pump(from_server, to_client, move |bytes, to| answer(of(&mode), bytes, to)));
}

/// Whether the stream goes on as it was.
fn answer(mode: RelayMode, bytes: &mut Vec<u8>, to: &mut TcpStream) -> bool {
    match mode {
        RelayMode::Honest => true,
        RelayMode::Silent => {
            bytes.clear();
            true
        }
        RelayMode::HalfWay => {
            let _ = to.write_all(&bytes[..bytes.len() / 2]);
            false
        }
        RelayMode::Garbage => {
            bytes
                .iter_mut()
                .enumerate()
                .for_each(|(place, byte)| *byte = (place * 37 + 11) as u8);
            true
        }
        RelayMode::Gone => false,
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, mut see: impl FnMut(&mut Vec<u8>, &mut TcpStream) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(got @ 1..) = from.read(&mut buffer) {
        let mut bytes = buffer[..got].to_vec();
        if !see(&mut bytes, &mut to) || to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
