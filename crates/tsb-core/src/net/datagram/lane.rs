//! One socket of a datagram target, with its packer, its unsent datagrams and its waymarks.

use std::io::ErrorKind;
use std::time::Duration;

use super::outlet::Outlet;
use super::waymark::Marks;
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

/// What a send needs besides the lane itself.
pub(super) struct Means<'a> {
    pub(super) address: &'a Address,
    pub(super) clock: &'a dyn Clock,
    pub(super) stall: Option<Duration>,
    pub(super) interruption: &'a Interruption,
    pub(super) report: &'a mut TargetReport,
}

/// A socket and the datagrams that are waiting to be sent on it.
#[derive(Debug)]
pub(super) struct Lane {
    outlet: Outlet,
    packer: Box<dyn Packer>,
    packets: Packets,
    marks: Option<Marks>,
    /// Whether sending has ended after an error. The error is reported once.
    is_over: bool,
}

impl Lane {
    pub(super) fn new(outlet: Outlet, packer: Box<dyn Packer>, limit: usize, marks: Option<Marks>) -> Self {
        let packets = Packets::new(limit, outlet.segments > 1);
        Self {
            outlet,
            packer,
            packets,
            marks,
            is_over: false,
        }
    }

    pub(super) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn skipped(&self) -> u64 {
        self.packer.skipped()
    }

    /// Packs an operation and sends the datagrams that are full.
    pub(super) fn send(&mut self, operation: &Operation<'_>, means: &mut Means<'_>) {
        let start = means.clock.now();
        let from = self.marked() + self.packets.closed() as u64;
        let batch = &operation.batch;
        let mut at = 0;
        while batch.len() - at > PIECE {
            self.packer.pack(&batch.slice(at..at + PIECE), &mut self.packets);
            at += PIECE;
            self.flush_full(means);
        }
        self.packer.pack(&batch.slice(at..batch.len()), &mut self.packets);
        // The milepost must be in place before the operation's last datagram is sent: the listener
        // looks for it when it reads that datagram.
        let end = self.marked() + self.packets.len() as u64;
        let milepost = Milepost {
            from,
            end,
            due: operation.due,
            start,
            samples: batch.len() as u32,
            group: operation.slot.group,
            tick: operation.slot.tick,
        };
        if let Some(marks) = &mut self.marks {
            means.report.untimed += u64::from(!marks.lay(from, milepost));
        }
        self.flush_full(means);
    }

    /// Sends every datagram, including the one that is not full.
    pub(super) fn flush(&mut self, means: &mut Means<'_>) {
        self.packets.close();
        self.flush_closed(means);
    }

    /// Sends the packer's closing datagrams, a few at a time so that the receiver can keep up.
    pub(super) fn finish(&mut self, means: &mut Means<'_>) {
        const PAUSE_NS: u64 = 500_000;
        self.flush(means);
        while !self.is_over {
            let more = self.packer.finish(&mut self.packets);
            self.flush(means);
            if !more {
                break;
            }
            means.clock.wait_until(means.clock.now() + PAUSE_NS);
        }
    }

    fn marked(&self) -> u64 {
        self.marks.as_ref().map_or(0, Marks::marked)
    }

    #[inline]
    fn flush_full(&mut self, means: &mut Means<'_>) {
        let together = if self.outlet.segments > 1 {
            self.outlet.segments
        } else {
            TOGETHER
        };
        if self.packets.closed() >= together {
            self.flush_closed(means);
        }
    }

    fn flush_closed(&mut self, means: &mut Means<'_>) {
        if let Some(marks) = &mut self.marks {
            self.packets.iter().for_each(|datagram| marks.mark(datagram));
        }
        let (mut start, mut index) = (0, 0);
        while index < self.packets.closed() {
            let (count, end) = self.run(start, index);
            let sent = if self.is_over {
                false
            } else {
                self.send_run(start, end, count, means)
            };
            if !sent && count > 1 && self.outlet.segments == 1 && !self.is_over {
                // The kernel just refused segmentation: send the same datagrams again one by one.
                continue;
            }
            if !sent {
                let lost = self.packer.samples_in(&self.packets.closed_bytes().0[start..end]);
                means.report.unsent_samples += lost;
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
            if length != limit || count >= self.outlet.segments {
                break;
            }
        }
        (count, end)
    }

    /// Sends one run of datagrams. Returns `false` if it was not sent.
    fn send_run(&mut self, start: usize, end: usize, count: usize, means: &mut Means<'_>) -> bool {
        let bytes = &self.packets.closed_bytes().0[start..end];
        let mut blocked_at = None;
        let mut refusals = 0;
        loop {
            let Err(error) = self.outlet.send(bytes) else {
                if let Some(since) = blocked_at {
                    means.report.blocked_ns += means.clock.now().saturating_sub(since);
                }
                means.report.written_bytes += bytes.len() as u64;
                means.report.writes += 1;
                means.report.datagrams += count as u64;
                return true;
            };
            match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => {
                    let since = *blocked_at.get_or_insert_with(|| means.clock.now());
                    if let Some(error) = self.wait(since, means) {
                        means.report.blocked_ns += means.clock.now().saturating_sub(since);
                        self.is_over = true;
                        means.report.keep(error);
                        return false;
                    }
                }
                // The error belongs to an earlier datagram; the kernel did not try to send this
                // one.
                ErrorKind::ConnectionRefused if refusals == 0 => {
                    refusals += 1;
                    means.report.refusals += 1;
                }
                _ if count > 1 && self.outlet.segments > 1 => {
                    self.outlet.stop_segmenting();
                    return false;
                }
                _ => {
                    means.report.keep(NetError::Lost {
                        address: means.address.clone(),
                        written_bytes: means.report.written_bytes,
                        source: error,
                    });
                    return false;
                }
            }
        }
    }

    /// Waits briefly for buffer space. Returns an error once the wait has exceeded its limit.
    fn wait(&self, since: u64, means: &Means<'_>) -> Option<NetError> {
        let address = || means.address.clone();
        let waited_ns = means.clock.now().saturating_sub(since);
        if means.interruption.is_wanted() {
            return Some(NetError::Interrupted { address: address() });
        }
        if let Some(stall) = means.stall.filter(|stall| u128::from(waited_ns) >= stall.as_nanos()) {
            return Some(NetError::Stalled {
                address: address(),
                after_ms: stall.as_millis() as u64,
            });
        }
        let waited = self.outlet.wait();
        waited.err().map(|source| NetError::Lost {
            address: address(),
            written_bytes: means.report.written_bytes,
            source,
        })
    }
}
