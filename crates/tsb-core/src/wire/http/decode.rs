//! Decodes requests to samples, and produces answers.

use std::fmt;

use super::body::{BadContent, Content};
use super::chunks::{BadBody, BodyPart, Chunks};
use super::head::{BadHead, Head};
use super::outcome::{CountingSink, RequestOutcome, Response};
use super::packing::Packing;
use super::query::Parameters;
use crate::wire::{Budget, Decoder, Fatal, Malformed, Next, Peer, Sequence, Sink};

/// Maximum length of a form.
const MAX_FORM: usize = 64 << 10;

/// Answers of this length and less are bounded by the connection, longer ones by the budget.
const SMALL_ANSWER: usize = 64 << 10;

/// An HTTP interface: its requests and its answers.
pub(super) trait Service: fmt::Debug + Send {
    /// What to do with the body of a request, or an immediate answer that ignores the body.
    fn begin(&mut self, head: &Head) -> Result<Task, Response>;

    /// The decoder of the bodies' content.
    fn decoder(&mut self) -> &mut dyn Decoder;

    /// The answer to a query.
    fn asked(&mut self, parameters: &Parameters) -> Response;

    /// The answer after the samples of a body are applied.
    fn end(&mut self, outcome: &RequestOutcome) -> Response;

    /// The answer to an invalid request, in the words of this interface.
    fn bad(&self, status: u16, what: &str) -> Response;
}

/// What to do with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Decode it record by record, as it arrives.
    Records,
    /// Decode it as a whole.
    Whole,
    /// It is a form or empty: a query.
    Ask,
}

/// Decodes the requests of one connection, and answers each after its samples are applied.
///
/// Records are applied as they arrive: if a request breaks off, or its compressed body turns out
/// to be invalid, the earlier records are stored and the request is not confirmed.
#[derive(Debug)]
pub struct HttpDecoder {
    service: Box<dyn Service>,
    budget: Budget,
    request: Option<Request>,
    /// Bytes of the budget that an answer holds until the peer has taken it.
    owed: usize,
    /// Whether to send `100 Continue`.
    consents: bool,
    /// Whether all further input is discarded, because a request was refused before its end.
    is_deaf: bool,
}

/// A request that is not answered yet.
#[derive(Debug)]
struct Request {
    task: Task,
    parameters: Parameters,
    is_form: bool,
    keeps_alive: bool,
    chunks: Chunks,
    content: Content,
    /// Bytes of the budget that the content holds.
    held: usize,
    outcome: RequestOutcome,
    /// The answer, if it is already decided.
    answer: Option<Response>,
    is_over: bool,
}

/// Why a request is refused before its end.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    status: u16,
    /// The reason, as a fixed sentence.
    what: &'static str,
    /// Whether the sink was informed.
    is_told: bool,
}

const fn refusal(status: u16, what: &'static str) -> Refusal {
    Refusal {
        status,
        what,
        is_told: false,
    }
}

/// There is no memory for a body that must be held.
const BUSY: Refusal = refusal(503, "too many bodies at once");

impl From<BadHead> for Refusal {
    fn from(bad: BadHead) -> Self {
        refusal(bad.status, bad.what)
    }
}

impl From<BadBody> for Refusal {
    fn from(bad: BadBody) -> Self {
        match bad {
            BadBody::TooLong => refusal(413, "Request Entity Too Large"),
            BadBody::Malformed => refusal(400, "the chunks of a body are malformed"),
        }
    }
}

impl From<BadContent> for Refusal {
    fn from(bad: BadContent) -> Self {
        match bad {
            BadContent::TooLong => refusal(413, "Request Entity Too Large"),
            BadContent::NotGzip => refusal(400, "a compressed body is not gzip"),
            BadContent::NotSnappy => refusal(400, "a compressed body is no snappy block"),
        }
    }
}

impl From<Fatal> for Refusal {
    fn from(fatal: Fatal) -> Self {
        Self {
            is_told: true,
            ..refusal(400, fatal.what)
        }
    }
}

impl HttpDecoder {
    /// A decoder for one connection. Bodies held for all connections of a listener share one
    /// budget.
    pub(super) fn new(service: Box<dyn Service>, budget: &Budget) -> Self {
        Self {
            service,
            budget: budget.clone(),
            request: None,
            owed: 0,
            consents: false,
            is_deaf: false,
        }
    }

    fn begin(&mut self, head: Head, sink: &mut dyn Sink) -> Result<(), Refusal> {
        let chunks = Chunks::new(head.framing)?;
        let planned = self.service.begin(&head);
        let (task, answer) = match planned {
            Ok(task) => (task, None),
            Err(answer) => (Task::Ask, Some(answer)),
        };
        if let Some(what) = answer.as_ref().and_then(|answer| answer.problem) {
            let bytes = head.path.as_bytes();
            sink.malformed(&Malformed { what, bytes });
        }
        // Its records could not be decoded as they arrive.
        if task == Task::Records && head.packing == Packing::Snappy {
            return Err(refusal(415, "the encoding of a body is not gzip"));
        }
        let packing = if task == Task::Ask { Packing::None } else { head.packing };
        // A client that waits for consent is not asked for a body that would be refused.
        self.consents = head.awaits_consent && answer.is_none();
        self.is_deaf = head.awaits_consent && answer.is_some();
        self.request = Some(Request {
            task,
            is_form: head.is_form(),
            parameters: head.parameters,
            keeps_alive: head.keeps_alive && !self.is_deaf,
            chunks,
            // Queries are small, and some clients declare all their requests as compressed.
            content: Content::new(packing),
            held: 0,
            outcome: RequestOutcome::default(),
            is_over: self.is_deaf,
            answer,
        });
        Ok(())
    }

    /// Takes the available part of the current request's body.
    fn body(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Refusal> {
        let mut at = 0;
        let Some(request) = &mut self.request else {
            return Ok(0);
        };
        while !request.is_over {
            let rest = &bytes[at..];
            match request.chunks.next(rest)? {
                BodyPart::Wait => break,
                BodyPart::Frame(length) => at += length,
                BodyPart::Data { length, is_whole } => {
                    let data = &rest[..length];
                    let taken = request.data(data, is_whole, &mut *self.service, &self.budget, sink)?;
                    request.chunks.take(taken);
                    at += taken;
                    if taken == 0 {
                        break;
                    }
                }
                BodyPart::Over => {
                    request.finish(&mut *self.service, &self.budget, sink)?;
                    request.is_over = true;
                }
            }
        }
        Ok(at)
    }

    /// Answers at once, and discards all further input.
    fn refuse(&mut self, refusal: Refusal, bytes: &[u8], sink: &mut dyn Sink) {
        let what = refusal.what;
        if !refusal.is_told {
            sink.malformed(&Malformed { what, bytes });
        }
        let answer = self.service.bad(refusal.status, what);
        let held = self.request.take().map_or(0, |request| request.held);
        self.budget.give_back(held);
        self.request = Some(Request::answered(answer));
        self.is_deaf = true;
    }
}

impl Request {
    /// A refused request, which is the last of its connection.
    fn answered(answer: Response) -> Self {
        Self {
            task: Task::Ask,
            parameters: Parameters::default(),
            is_form: false,
            keeps_alive: false,
            chunks: Chunks::none(),
            content: Content::new(Packing::None),
            held: 0,
            outcome: RequestOutcome::default(),
            answer: Some(answer),
            is_over: true,
        }
    }

    /// Takes part of the available content; returns the number of bytes taken.
    fn data(
        &mut self,
        data: &[u8],
        is_whole: bool,
        service: &mut dyn Service,
        budget: &Budget,
        sink: &mut dyn Sink,
    ) -> Result<usize, Refusal> {
        if self.answer.is_some() {
            return Ok(data.len());
        }
        if self.task == Task::Records && self.content.is_direct() {
            let mut sink = CountingSink {
                inner: sink,
                outcome: &mut self.outcome,
            };
            let taken = service.decoder().decode(data, &mut sink)?;
            self.content.passed(taken);
            if !is_whole {
                return Ok(taken);
            }
            // The remainder waits for the next chunk, or for the end of the body.
            return Ok(taken + self.content.push(&data[taken..])?);
        }
        let before = self.content.waiting().len();
        let taken = self.content.push(data)?;
        if self.task == Task::Records {
            self.records(service, sink)?;
        } else {
            self.hold(self.content.waiting().len() - before, budget)?;
        }
        Ok(taken)
    }

    /// Decodes the complete records.
    fn records(&mut self, service: &mut dyn Service, sink: &mut dyn Sink) -> Result<(), Refusal> {
        let mut sink = CountingSink {
            inner: sink,
            outcome: &mut self.outcome,
        };
        let taken = service.decoder().decode(self.content.waiting(), &mut sink)?;
        self.content.consume(taken);
        Ok(())
    }

    /// Charges content that is kept until the body's end to the budget.
    fn hold(&mut self, more: usize, budget: &Budget) -> Result<(), Refusal> {
        if self.task == Task::Ask && self.content.waiting().len() > MAX_FORM {
            return Err(refusal(413, "Request Entity Too Large"));
        }
        if !budget.take(more) {
            return Err(BUSY);
        }
        self.held += more;
        Ok(())
    }

    /// Handles the end of the body.
    fn finish(&mut self, service: &mut dyn Service, budget: &Budget, sink: &mut dyn Sink) -> Result<(), Refusal> {
        if self.answer.is_some() {
            return Ok(());
        }
        let stated = self.content.stated()?;
        if !budget.take(stated) {
            return Err(BUSY);
        }
        self.held += stated;
        self.content.finish()?;
        self.outcome.bytes = self.content.length;
        match self.task {
            Task::Records => {
                self.records(service, sink)?;
                let mut sink = CountingSink {
                    inner: sink,
                    outcome: &mut self.outcome,
                };
                service.decoder().finish(self.content.waiting(), &mut sink);
            }
            Task::Whole => self.records(service, sink)?,
            Task::Ask => {
                let form = String::from_utf8_lossy(self.content.waiting());
                let form = Parameters::read(if self.is_form { &form } else { "" });
                let answer = service.asked(&form.and(&self.parameters));
                if let Some(what) = answer.problem {
                    let bytes = self.content.waiting();
                    sink.malformed(&Malformed { what, bytes });
                }
                self.answer = Some(answer);
            }
        }
        Ok(())
    }
}

impl Decoder for HttpDecoder {
    fn decode(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<usize, Fatal> {
        if self.request.as_ref().is_some_and(|request| request.is_over) {
            // The previous request must be answered first.
            return Ok(0);
        }
        if self.is_deaf {
            return Ok(bytes.len());
        }
        let mut at = 0;
        if self.request.is_none() {
            // Line ends are allowed between requests.
            at = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let begun = match Head::read(&bytes[at..]) {
                Ok(None) => return Ok(at),
                Ok(Some((head, length))) => {
                    at += length;
                    self.begin(head, sink)
                }
                Err(bad) => Err(bad.into()),
            };
            if let Err(refusal) = begun {
                self.refuse(refusal, &bytes[at.min(bytes.len())..], sink);
                return Ok(bytes.len());
            }
        }
        match self.body(&bytes[at..], sink) {
            Ok(count) => Ok(at + count),
            Err(refusal) => {
                self.refuse(refusal, &bytes[at..], sink);
                Ok(bytes.len())
            }
        }
    }

    fn answer(&mut self, peer: Peer, out: &mut Vec<u8>) -> Next {
        if std::mem::take(&mut self.consents) {
            out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let Some(request) = &mut self.request else {
            return Next::More;
        };
        request.outcome.rejected += peer.rejected;
        if !request.is_over {
            return Next::More;
        }
        let mut answer = match request.answer.take() {
            Some(answer) => answer,
            None => self.service.end(&request.outcome),
        };
        let length = answer.body.len();
        if length > SMALL_ANSWER {
            if self.budget.take(length) {
                self.owed += length;
            } else {
                answer = self.service.bad(503, "too many answers at once");
            }
        }
        answer.write(request.keeps_alive, out);
        let keeps_alive = request.keeps_alive;
        self.budget.give_back(request.held);
        self.request = None;
        match (keeps_alive, self.is_deaf) {
            (true, _) => Next::Again,
            // The client may still be sending, and closing the connection could destroy the
            // answer.
            (false, true) => Next::More,
            (false, false) => Next::Over,
        }
    }

    fn answers_taken(&mut self) {
        self.budget.give_back(std::mem::take(&mut self.owed));
    }

    fn sequence(&self) -> Option<Sequence> {
        None
    }

    fn finish(&mut self, rest: &[u8], sink: &mut dyn Sink) {
        let is_cut = self.request.as_ref().is_some_and(|request| !request.is_over);
        if is_cut || (!rest.is_empty() && !self.is_deaf) {
            let what = "the last request has no end";
            sink.malformed(&Malformed { what, bytes: rest });
        }
    }
}

impl Drop for HttpDecoder {
    fn drop(&mut self) {
        let held = self.request.as_ref().map_or(0, |request| request.held);
        self.budget.give_back(held + self.owed);
    }
}
