//! The decoders of OpenTSDB's and KairosDB's telnet protocols.

use tsb_core::wire::Protocol;
use tsb_core::wire::put::{MAX_LINE, reply};

use super::codec::{check_again, check_pieces, check_twice, clock};

/// Every line is a sample, a refused one or a malformed one, or says something else; and
/// what is written back agrees with what is reported.
pub(super) fn check(bytes: &[u8]) {
    for protocol in [Protocol::Opentsdb, Protocol::Kairosdb] {
        let found = check_pieces(protocol, bytes);
        let lines = bytes.split(|byte| *byte == b'\n').count();
        assert!(found.samples.len() + found.refused + found.malformed.len() <= lines);
        check_twice(&mut *protocol.decoder(clock()), bytes);
        // Behind the command that ends a connection nothing is read.
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
