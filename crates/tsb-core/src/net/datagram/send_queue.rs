//! One socket of a datagram target, with its packer, its unsent datagrams and its waymarks.

use std::io::ErrorKind;
use std::time::Duration;

use super::send_socket::SendSocket;
use super::waymark::WaymarkSender;
use crate::emit::Operation;
use crate::net::address::Address;
use crate::net::error::NetError;
use crate::net::milepost::Milepost;
use crate::net::parker::Interruption;
use crate::net::target::TargetReport;
use crate::time::Clock;
use crate::wire::{Packer, Packets};

/// A large operation is packed in pieces of this many samples, so that its bytes are still in the
/// cache when the kernel copies them.
const PIECE: usize = 2048;

/// Datagrams sent per round where each takes a system call: few enough to stay in the cache.
const TOGETHER: usize = 16;

/// What a send needs besides the queue itself.
pub(super) struct SendContext<'a> {
    pub(super) address: &'a Address,
    pub(super) clock: &'a dyn Clock,
    pub(super) stall: Option<Duration>,
    pub(super) interruption: &'a Interruption,
    pub(super) report: &'a mut TargetReport,
}

/// A socket and the datagrams that are waiting to be sent on it.
#[derive(Debug)]
pub(super) struct SendQueue {
    socket: SendSocket,
    packer: Box<dyn Packer>,
    packets: Packets,
    marks: Option<WaymarkSender>,
    /// Whether sending has ended after an error. The error is reported once.
    is_over: bool,
}

impl SendQueue {
    pub(super) fn new(socket: SendSocket, packer: Box<dyn Packer>, limit: usize, marks: Option<WaymarkSender>) -> Self {
        let packets = Packets::new(limit, socket.segments > 1);
        Self {
            socket,
            packer,
            packets,
            marks,
            is_over: false,
        }
    }

    pub(super) fn socket(&self) -> &SendSocket {
        &self.socket
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn skipped(&self) -> u64 {
        self.packer.skipped()
    }

    /// Packs an operation and sends the datagrams that are full.
    pub(super) fn send(&mut self, operation: &Operation<'_>, context: &mut SendContext<'_>) {
        let start = operation.begun.unwrap_or_else(|| context.clock.now());
        let from = self.marked() + self.packets.closed() as u64;
        let batch = &operation.payload;
        let mut at = 0;
        while batch.len() - at > PIECE {
            self.packer.pack(&batch.slice(at..at + PIECE), &mut self.packets);
            at += PIECE;
            self.flush_full(context);
        }
        self.packer.pack(&batch.slice(at..batch.len()), &mut self.packets);
        // The milepost must be in place before the operation's last datagram is sent: the listener
        // looks for it when it reads that datagram.
        let end = self.marked() + self.packets.len() as u64;
        if let Some(marks) = &mut self.marks {
            let milepost = Milepost {
                from,
                end,
                due: operation.due,
                late: operation.late_ns,
                start,
                encoded: context.clock.now(),
                samples: batch.len() as u32,
                group: operation.slot.group,
                tick: operation.slot.tick,
            };
            context.report.untimed += u64::from(!marks.queue(from, milepost));
        }
        self.flush_full(context);
    }

    /// Sends every datagram, including the one that is not full.
    pub(super) fn flush(&mut self, context: &mut SendContext<'_>) {
        self.packets.close();
        self.flush_closed(context);
    }

    /// Sends the packer's closing datagrams, a few at a time so that the receiver can keep up.
    pub(super) fn finish(&mut self, context: &mut SendContext<'_>) {
        const PAUSE_NS: u64 = 500_000;
        self.flush(context);
        while !self.is_over {
            let more = self.packer.finish(&mut self.packets);
            self.flush(context);
            if !more {
                break;
            }
            context.clock.wait_until(context.clock.now() + PAUSE_NS);
        }
    }

    fn marked(&self) -> u64 {
        self.marks.as_ref().map_or(0, WaymarkSender::marked)
    }

    #[inline]
    fn flush_full(&mut self, context: &mut SendContext<'_>) {
        let together = if self.socket.segments > 1 {
            self.socket.segments
        } else {
            TOGETHER
        };
        if self.packets.closed() >= together {
            self.flush_closed(context);
        }
    }

    fn flush_closed(&mut self, context: &mut SendContext<'_>) {
        if let Some(marks) = &mut self.marks {
            self.packets.iter().for_each(|datagram| marks.mark(datagram));
        }
        let (mut start, mut index) = (0, 0);
        while index < self.packets.closed() {
            let (count, end) = self.run(start, index);
            let sent = if self.is_over {
                false
            } else {
                self.send_run(start, end, count, context)
            };
            if !sent && count > 1 && self.socket.segments == 1 && !self.is_over {
                // The kernel just refused segmentation: send the same datagrams again one by one.
                continue;
            }
            if !sent {
                let lost = self.packer.samples_in(&self.packets.closed_bytes().0[start..end]);
                context.report.unsent_samples += lost;
            }
            (start, index) = (end, index + count);
        }
        self.packets.clear_closed();
    }

    /// The number of datagrams from `index` that one call can send, and where the last ends: equal
    /// ones of full size, and one shorter one behind them.
    fn run(&self, start: usize, index: usize) -> (usize, usize) {
        let (_, ends) = self.packets.closed_bytes();
        let limit = self.packets.limit();
        let (mut count, mut end) = (0, start);
        while let Some(next) = ends.get(index + count) {
            let length = next - end;
            count += 1;
            end = *next;
            if length != limit || count >= self.socket.segments {
                break;
            }
        }
        (count, end)
    }

    /// Sends one run of datagrams. Returns `false` if it was not sent.
    fn send_run(&mut self, start: usize, end: usize, count: usize, context: &mut SendContext<'_>) -> bool {
        let bytes = &self.packets.closed_bytes().0[start..end];
        let mut blocked_at = None;
        let mut refusals = 0;
        loop {
            let Err(error) = self.socket.send(bytes) else {
                if let Some(since) = blocked_at {
                    context.report.blocked_ns += context.clock.now().saturating_sub(since);
                }
                context.report.written_bytes += bytes.len() as u64;
                context.report.writes += 1;
                context.report.datagrams += count as u64;
                return true;
            };
            match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => {
                    let since = *blocked_at.get_or_insert_with(|| context.clock.now());
                    if let Some(error) = self.wait(since, context) {
                        context.report.blocked_ns += context.clock.now().saturating_sub(since);
                        self.is_over = true;
                        context.report.keep(error);
                        return false;
                    }
                }
                // The error belongs to an earlier datagram; the kernel did not try to send this
                // one.
                ErrorKind::ConnectionRefused if refusals == 0 => {
                    refusals += 1;
                    context.report.refusals += 1;
                }
                kind if kind != ErrorKind::ConnectionRefused && count > 1 && self.socket.segments > 1 => {
                    self.socket.stop_segmenting();
                    return false;
                }
                _ => {
                    context.report.keep(NetError::Lost {
                        address: context.address.clone(),
                        written_bytes: context.report.written_bytes,
                        source: error,
                    });
                    return false;
                }
            }
        }
    }

    /// Waits briefly for buffer space. Returns an error once the wait has exceeded its limit.
    fn wait(&self, since: u64, context: &SendContext<'_>) -> Option<NetError> {
        let address = || context.address.clone();
        let waited_ns = context.clock.now().saturating_sub(since);
        if context.interruption.is_wanted() {
            return Some(NetError::Interrupted { address: address() });
        }
        if let Some(stall) = context.stall.filter(|stall| u128::from(waited_ns) >= stall.as_nanos()) {
            return Some(NetError::Stalled {
                address: address(),
                after_ms: stall.as_millis() as u64,
            });
        }
        let waited = self.socket.wait();
        waited.err().map(|source| NetError::Lost {
            address: address(),
            written_bytes: context.report.written_bytes,
            source,
        })
    }
}
