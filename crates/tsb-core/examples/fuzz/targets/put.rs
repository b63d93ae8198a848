//! Fuzzes the decoders of OpenTSDB's and KairosDB's telnet protocols.

use tsb_core::wire::Protocol;
use tsb_core::wire::put::{MAX_LINE, reply};

use super::codec::{check_again, check_pieces, check_twice, clock};

/// Every line is a sample, a refused or a malformed one, or another command; and the replies
/// agree with the reported errors.
pub(super) fn check(bytes: &[u8]) {
    for protocol in [Protocol::Opentsdb, Protocol::Kairosdb] {
        let found = check_pieces(protocol, bytes);
        let lines = bytes.split(|byte| *byte == b'\n').count();
        assert!(found.samples.len() + found.refused + found.malformed.len() <= lines);
        check_twice(&mut *protocol.decoder(clock()), bytes);
        // Nothing is read after the command that ends a connection.
        let ends = bytes.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"exit"));
        if bytes.ends_with(b"\n") && !ends {
            check_again(&mut *protocol.decoder(clock()), bytes);
        }
    }
    let found = check_pieces(Protocol::Opentsdb, bytes);
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let replies = lines
        .iter()
        .filter(|line| line.len() <= MAX_LINE && reply(line).is_some());
    assert!(replies.count() <= found.malformed.len(), "{:?}", found.malformed);
}
