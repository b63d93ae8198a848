//! The emitter's end of datagram sockets.

use std::fmt;
use std::sync::Arc;

use super::send_queue::{SendContext, SendQueue};
use super::send_socket::SendSocket;
use crate::emit::{Operation, Outcome, Target};
use crate::net::address::Address;
use crate::net::error::NetError;
use crate::net::milepost::Mileposts;
use crate::net::options::EmitOptions;
use crate::net::parker::{Interrupter, Interruption};
use crate::net::target::{Closing, TargetReport};
use crate::time::Clock;
use crate::wire::Packer;

/// Packs operations into datagrams and sends them over several sockets, on the calling thread.
///
/// An operation goes to the socket of its first series, so the samples of a series keep their
/// order and each socket announces only its own series. A UDP send never waits for the receiver. A
/// send on a Unix socket waits while the receiver's queue is full, and the operations behind it
/// are late.
pub struct DatagramTarget {
    address: Address,
    clock: Arc<dyn Clock>,
    options: EmitOptions,
    send_queues: Vec<SendQueue>,
    interruption: Arc<Interruption>,
    report: TargetReport,
}

impl DatagramTarget {
    /// Opens [`EmitOptions::sockets`] sockets to `address`.
    ///
    /// `make_packer` is called once per socket with a number that is unique within this target.
    /// With `mileposts`, shared with the listener in the same process, the listener times the end
    /// of each operation; `clock` is the run's clock. No proxy may then stand between the two: the
    /// listener finds a sender's mileposts by its address, and those of an unknown address count
    /// as lost.
    ///
    /// # Errors
    /// [`NetError::Connect`].
    pub fn connect(
        address: &Address,
        options: EmitOptions,
        mut make_packer: impl FnMut(u16) -> Box<dyn Packer>,
        clock: Arc<dyn Clock>,
        mileposts: Option<&Mileposts>,
    ) -> Result<Self, NetError> {
        let mut report = TargetReport::default();
        let sockets = options.sockets.max(1);
        // A later target on the same port must have another session number; the clock in
        // microseconds differs.
        let session = (clock.wall().0 / 1_000) as u16;
        let mut send_queues = Vec::with_capacity(sockets);
        for index in 0..sockets {
            let socket = SendSocket::connect(address, &options).map_err(|source| NetError::Connect {
                address: address.clone(),
                source,
            })?;
            let marks = mileposts.map(|all| all.mark(&socket.local, sockets));
            let packer = make_packer(session.wrapping_add(index as u16));
            report.connections += 1;
            report.granted = socket.granted;
            report.segments = socket.segments as u64;
            send_queues.push(SendQueue::new(socket, packer, options.datagram_bytes, marks));
        }
        Ok(Self {
            address: address.clone(),
            clock,
            options,
            send_queues,
            interruption: Arc::default(),
            report,
        })
    }

    /// What the target has done so far.
    pub fn report(&self) -> &TargetReport {
        &self.report
    }

    /// A handle that ends a blocked send from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::new(Arc::clone(&self.interruption))
    }

    /// Sends what is packed, announces the end of the data if the protocol can, and closes the
    /// sockets.
    pub fn finish(mut self) -> TargetReport {
        self.each_queue(SendQueue::finish);
        if self.report.refusals > 0 {
            self.report.keep(NetError::Refused {
                address: self.address.clone(),
                times: self.report.refusals,
            });
        }
        // IMPORTANT: unclaimed waymarks must stay registered: the listener may not have claimed
        // them yet, and datagrams that it never receives are counted as lost from them.
        let is_lost = self.send_queues.iter().any(SendQueue::is_over);
        self.report.closing = if is_lost { Closing::Lost } else { Closing::Unconfirmed };
        self.report.segments = self
            .send_queues
            .iter()
            .map(|send_queue| send_queue.socket().segments as u64)
            .min()
            .unwrap_or(1);
        self.report
    }

    fn each_queue(&mut self, mut act: impl FnMut(&mut SendQueue, &mut SendContext<'_>)) {
        let mut context = SendContext {
            address: &self.address,
            clock: &*self.clock,
            stall: self.options.stall_timeout,
            interruption: &self.interruption,
            report: &mut self.report,
        };
        for send_queue in &mut self.send_queues {
            act(send_queue, &mut context);
        }
    }

    /// The send queue of an operation.
    #[inline]
    fn queue_of(&self, operation: &Operation<'_>) -> usize {
        let first = u64::from(operation.payload.id(0).0);
        let mixed = first.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((mixed * self.send_queues.len() as u64) >> 32) as usize
    }
}

impl Target for DatagramTarget {
    fn send(&mut self, operation: &Operation<'_>) -> Outcome {
        let samples = operation.payload.len() as u64;
        if samples == 0 {
            return Outcome::Sent;
        }
        let index = self.queue_of(operation);
        let send_queue = &mut self.send_queues[index];
        if send_queue.is_over() {
            self.report.shed_samples += samples;
            return Outcome::Shed;
        }
        self.report.operations += 1;
        self.report.samples += samples;
        let skipped = send_queue.skipped();
        let mut context = SendContext {
            address: &self.address,
            clock: &*self.clock,
            stall: self.options.stall_timeout,
            interruption: &self.interruption,
            report: &mut self.report,
        };
        send_queue.send(operation, &mut context);
        self.report.skipped_samples += send_queue.skipped() - skipped;
        if send_queue.is_over() {
            Outcome::Unknown
        } else {
            Outcome::Sent
        }
    }

    fn idle(&mut self) {
        self.each_queue(SendQueue::flush);
    }
}

impl fmt::Debug for DatagramTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatagramTarget")
            .field("address", &self.address)
            .field("sockets", &self.send_queues.len())
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
