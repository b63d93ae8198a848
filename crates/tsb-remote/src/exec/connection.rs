//! A conversation with a program: numbered requests, many at a time, each with a deadline.
//!
//! One task writes requests, one reads answers, one reads standard error. Whatever ends the
//! conversation (the program ends, or writes what is no answer) ends every open request, with
//! the cause.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::lock;

use super::greeting::Greeting;
use super::message::{Body, Decoder, Malformed, Request};
use super::options::ExecOptions;
use super::process::{Pipes, Process, clause};
use super::said::Said;

/// Requests that wait to be written to the program.
const QUEUE: usize = 64;
/// Answers to one request that wait to be taken; beyond it, nothing more is read.
const ANSWERS: usize = 4;
/// Requests without an answer, those included whose deadline has passed.
const OPEN_MAX: usize = 4_096;
/// Maximum length of a greeting in bytes.
const GREETING_MAX: usize = 4_096;
/// Bytes that are read at a time.
const PIECE: usize = 64 * 1_024;
/// Time for the last words of a program that has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Whether a request changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Changes,
    Reads,
}

/// The state that the tasks share.
#[derive(Debug)]
struct Shared {
    process: Process,
    open: Mutex<Open>,
    said: Mutex<Said>,
}

/// The requests that are open.
#[derive(Debug, Default)]
struct Open {
    next: u32,
    waiting: HashMap<u32, mpsc::Sender<Body>>,
    /// Why the conversation is over.
    over: Option<String>,
}

impl Shared {
    /// Ends the conversation for this cause, and every open request with it.
    fn end(&self, cause: &str) {
        let cause = format!("{cause}{}", lock(&self.said).clause());
        let mut open = lock(&self.open);
        open.over.get_or_insert(cause);
        open.waiting.clear();
    }

    fn over(&self) -> Option<String> {
        lock(&self.open).over.clone()
    }
}

/// A conversation.
pub(super) struct Connection {
    program: String,
    greeting: Greeting,
    timeout: Duration,
    requests: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    shared: Arc<Shared>,
}

impl Connection {
    /// Starts the program and waits for its greeting.
    pub(super) async fn start(options: &ExecOptions) -> Result<Self> {
        let program = options.command.join(" ");
        let (process, pipes) = Process::start(options)?;
        let Pipes {
            input,
            mut output,
            errors,
        } = pipes;
        let shared = Arc::new(Shared {
            process,
            open: Mutex::default(),
            said: Mutex::default(),
        });
        let said = tokio::spawn(listen(Arc::clone(&shared), errors));
        let read = timeout(options.timeout, greeting(&mut output)).await;
        let greeting = match read {
            Ok(Ok(line)) => Greeting::parse(&line).map_err(|Malformed(what)| what),
            Ok(Err(None)) => {
                let status = shared.process.ended(LAST_WORDS).await;
                let _ = timeout(LAST_WORDS, said).await;
                Err(format!("{} before its greeting", clause(status)))
            }
            Ok(Err(Some(what))) => Err(what),
            Err(_) => Err(format!(
                "no line came within {} s; a program that writes its greeting into a buffer has to flush it",
                options.timeout.as_secs_f64()
            )),
        };
        let greeting = greeting.map_err(|what| {
            shared.process.kill();
            Error::Unanswered {
                action: format!("read the greeting of {program}"),
                source: format!("{what}{}", lock(&shared.said).clause()).into(),
            }
        })?;
        let (requests, queue) = mpsc::channel(QUEUE);
        tokio::spawn(write(queue, input));
        tokio::spawn(read_answers(Arc::clone(&shared), output, Decoder::new(greeting.form)));
        Ok(Self {
            program,
            greeting,
            timeout: options.timeout,
            requests: Mutex::new(Some(requests)),
            shared,
        })
    }

    pub(super) fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    pub(super) fn process_id(&self) -> u32 {
        self.shared.process.id()
    }

    /// What the program has written to its standard error.
    pub(super) fn messages(&self) -> Vec<String> {
        lock(&self.shared.said).messages()
    }

    /// The answer to a request that has one.
    pub(super) async fn ask(&self, action: &str, effect: Effect, request: &Request<'_>) -> Result<Body> {
        let mut answers = self.send(action, request).await?;
        self.next(action, effect, &mut answers).await
    }

    /// Sends a request, and returns where its answers arrive. Without answers its outcome is
    /// [`Self::lost`].
    ///
    /// # Errors
    /// [`Error::Unreachable`]: nothing was sent. [`Error::Overloaded`].
    pub(super) async fn send(&self, action: &str, request: &Request<'_>) -> Result<mpsc::Receiver<Body>> {
        let (answer, answers) = mpsc::channel(ANSWERS);
        let number = {
            let mut open = lock(&self.shared.open);
            if open.over.is_some() {
                drop(open);
                return Err(self.unreachable(action));
            }
            if open.waiting.len() >= OPEN_MAX {
                return Err(Error::Overloaded {
                    store: self.program.clone(),
                    what: format!("{OPEN_MAX} requests have no answer yet"),
                });
            }
            while open.waiting.contains_key(&open.next) {
                open.next = open.next.wrapping_add(1);
            }
            let number = open.next;
            open.next = number.wrapping_add(1);
            open.waiting.insert(number, answer);
            number
        };
        let mut bytes = Vec::new();
        self.greeting.form.put(number, request, &mut bytes);
        let queue = lock(&self.requests).clone();
        let is_sent = match queue {
            Some(queue) => matches!(timeout(self.timeout, queue.send(bytes)).await, Ok(Ok(()))),
            None => false,
        };
        if is_sent {
            return Ok(answers);
        }
        lock(&self.shared.open).waiting.remove(&number);
        Err(self.unreachable(action))
    }

    /// The next answer to a request.
    pub(super) async fn next(&self, action: &str, effect: Effect, answers: &mut mpsc::Receiver<Body>) -> Result<Body> {
        match timeout(self.timeout, answers.recv()).await {
            Ok(Some(Body::Error(what))) => Err(self.refused(action, &what)),
            Ok(Some(body)) => Ok(body),
            Ok(None) => Err(self.lost(action, effect)),
            Err(_) => Err(self.silent(action, effect)),
        }
    }

    /// Ends the conversation because of an answer that does not fit its request.
    pub(super) fn reject(&self, action: &str, effect: Effect, what: &str) -> Error {
        self.shared.process.kill();
        self.shared.end(&format!("tsb killed it, since {what}"));
        self.lost(action, effect)
    }

    /// Lets the program see the end of its input, and waits for its end.
    pub(super) async fn finish(&self) -> Result<()> {
        lock(&self.requests).take();
        let ended = self.shared.process.ended(self.timeout).await;
        let what = match ended {
            Some(status) if status.success() => return Ok(()),
            Some(status) => clause(Some(status)),
            None => {
                self.shared.process.kill();
                format!(
                    "it had not ended {} s after its last answer, and was killed",
                    self.timeout.as_secs_f64()
                )
            }
        };
        Err(Error::Backend {
            action: format!("close the program {}", self.program),
            source: format!("{what}{}", lock(&self.shared.said).clause()).into(),
        })
    }

    /// Kills the program.
    pub(super) fn abandon(&self) {
        lock(&self.requests).take();
        self.shared.process.kill();
    }

    fn action(&self, action: &str) -> String {
        format!("{action} with {}", self.program)
    }

    /// The error for an answer `error`.
    fn refused(&self, action: &str, what: &str) -> Error {
        let shown: String = what.chars().take(1_000).collect();
        Error::Backend {
            action: self.action(action),
            source: format!("it answered: {shown}").into(),
        }
    }

    fn unreachable(&self, action: &str) -> Error {
        let cause = self.shared.over();
        Error::Unreachable {
            action: self.action(action),
            source: cause.unwrap_or_else(|| "it reads no requests".to_owned()).into(),
        }
    }

    fn lost(&self, action: &str, effect: Effect) -> Error {
        let cause = self.shared.over();
        self.without_answer(
            action,
            effect,
            cause.unwrap_or_else(|| "the conversation is over".to_owned()),
        )
    }

    fn silent(&self, action: &str, effect: Effect) -> Error {
        let seconds = self.timeout.as_secs_f64();
        self.without_answer(
            action,
            effect,
            format!("no answer came within {seconds} s; does it flush its output?"),
        )
    }

    fn without_answer(&self, action: &str, effect: Effect, cause: String) -> Error {
        let (action, source) = (self.action(action), cause.into());
        match effect {
            Effect::Changes => Error::Unknown { action, source },
            Effect::Reads => Error::Unanswered { action, source },
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("program", &self.program)
            .field("process", &self.shared.process)
            .finish_non_exhaustive()
    }
}

/// Reads the first line byte by byte, so that nothing behind it is consumed. `Err(None)`: the
/// output ended.
async fn greeting(output: &mut Receiver) -> std::result::Result<String, Option<String>> {
    let mut line = Vec::new();
    loop {
        match output.read_u8().await {
            Ok(b'\n') => return String::from_utf8(line).map_err(|_| Some("the first line is not UTF-8".to_owned())),
            Ok(byte) if line.len() < GREETING_MAX => line.push(byte),
            Ok(_) => return Err(Some(format!("the first line has more than {GREETING_MAX} bytes"))),
            Err(_) => return Err(None),
        }
    }
}

/// Writes requests until the queue is closed or the program closes its input.
async fn write(mut queue: mpsc::Receiver<Vec<u8>>, mut input: Sender) {
    while let Some(bytes) = queue.recv().await {
        if input.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// Reads standard error to its end.
async fn listen(shared: Arc<Shared>, mut errors: Receiver) {
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = errors.read(&mut piece).await {
        lock(&shared.said).push(&piece[..length]);
    }
    lock(&shared.said).finish();
}

/// Hands answers to their requests until the output ends or is malformed.
async fn read_answers(shared: Arc<Shared>, mut output: Receiver, mut decoder: Decoder) {
    let mut piece = vec![0; PIECE];
    let malformed = loop {
        match output.read(&mut piece).await {
            Ok(length @ 1..) => decoder.push(&piece[..length]),
            Ok(0) | Err(_) => break None,
        }
        if let Err(Malformed(what)) = deliver(&shared, &mut decoder).await {
            break Some(what);
        }
    };
    let cause = if let Some(what) = malformed {
        shared.process.kill();
        format!("tsb killed it, since {what}")
    } else {
        let ended = clause(shared.process.ended(LAST_WORDS).await);
        let within = if decoder.is_within_answer() {
            " within an answer"
        } else {
            ""
        };
        // Its last words may still be on their way.
        tokio::time::sleep(LAST_WORDS / 10).await;
        format!("{ended}{within}")
    };
    shared.end(&cause);
}

async fn deliver(shared: &Shared, decoder: &mut Decoder) -> std::result::Result<(), Malformed> {
    while let Some(answer) = decoder.next()? {
        let number = answer.number;
        let is_part = matches!(answer.body, Body::Rows(_));
        let request = {
            let mut open = lock(&shared.open);
            if is_part {
                open.waiting.get(&number).cloned()
            } else {
                open.waiting.remove(&number)
            }
        };
        let Some(request) = request else {
            return Err(Malformed(format!(
                "it answered request {number}, which is not open: it was not made, or is answered already"
            )));
        };
        // Nobody waits for an answer that is late.
        let _ = request.send(answer.body).await;
    }
    Ok(())
}
