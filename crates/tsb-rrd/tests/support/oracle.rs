//! rrdtool as the judge of our files: the same random layouts and updates to both, and
//! every byte compared after every call.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tsb_rrd::{
    Archive, CachedPages, Cf, DataSource, DsKind, ExclusiveFile, Layout, OpenFile, RrdFile, Session, Updated,
};

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no judge here, if there is none.
pub(crate) fn missing() -> Option<String> {
    let found = Command::new("rrdtool").arg("--version").output();
    found
        .err()
        .map(|error| format!("rrdtool cannot be started ({error}); install the package rrdtool"))
}

/// rrdtool, reading commands from a pipe.
pub(crate) struct Rrdtool {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Rrdtool {
    pub(crate) fn start(folder: &Path) -> Result<Self, Failure> {
        let mut child = Command::new("rrdtool")
            .arg("-")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let input = child.stdin.take();
        Ok(Self { child, input, output })
    }

    /// Whether the command was carried out; what it printed before saying so is dropped.
    pub(crate) fn run(&mut self, command: &str) -> Result<bool, Failure> {
        let input = self.input.as_mut().ok_or("closed")?;
        writeln!(input, "{command}")?;
        input.flush()?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(format!("rrdtool ended at {command:?}").into());
            }
            if line.starts_with("OK ") {
                return Ok(true);
            }
            if line.starts_with("ERROR: ") {
                return Ok(false);
            }
        }
    }
}

impl Drop for Rrdtool {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Numbers that look random, from a seed.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

const START_S: i64 = 1_700_000_000;

/// A layout, and the words in which rrdtool is told of it.
pub(crate) fn layout(rng: &mut Rng) -> Result<(Layout, String), Failure> {
    let step_s = rng.pick(&[1, 2, 7, 10, 60, 300]);
    let mut words = format!("--step {step_s}");
    let mut sources = Vec::new();
    for index in 0..=rng.below(4) {
        let mut source = DataSource::new(
            format!("d{index}"),
            rng.pick(&DsKind::ALL),
            step_s * rng.pick(&[1, 2, 3, 20]),
        );
        let mut bounds = ["U".to_owned(), "U".to_owned()];
        if rng.below(3) == 0 {
            source.min = rng.pick(&[0.0, -50.0, 0.5]);
            bounds[0] = source.min.to_string();
        }
        if rng.below(3) == 0 {
            source.max = rng.pick(&[100.0, 1e6, 1.5]);
            bounds[1] = source.max.to_string();
        }
        let kind = source.kind.name();
        let _ = write!(
            words,
            " DS:{}:{kind}:{}:{}:{}",
            source.name, source.heartbeat_s, bounds[0], bounds[1]
        );
        sources.push(source);
    }
    let mut archives = Vec::new();
    for _ in 0..=rng.below(6) {
        // No xff here that would be read with an error in its last bit.
        let xff = rng.pick(&[0.0, 0.25, 0.5, 0.5, 0.75]);
        let archive = Archive::new(
            rng.pick(&Cf::ALL),
            xff,
            rng.pick(&[1, 1, 2, 3, 5, 24]),
            rng.pick(&[1, 2, 3, 10, 50]),
        );
        let _ = write!(
            words,
            " RRA:{}:{xff}:{}:{}",
            archive.cf.name(),
            archive.steps,
            archive.rows
        );
        archives.push(archive);
    }
    Ok((Layout::new(step_s, sources, archives)?, words))
}

/// The time of the next update, mostly later than `now_us`.
fn moment(rng: &mut Rng, step_s: u64, now_us: &mut i64) -> String {
    let step_us = step_s as i64 * 1_000_000;
    let forward = match rng.below(20) {
        0 => 0,
        1 => -(rng.below(5) as i64) * 500_000,
        2..=6 => 1_000_000 * (1 + rng.below(step_s) as i64),
        7 => rng.below(2_000_000) as i64,
        // To the end of the step, exactly.
        8..=11 => step_us - *now_us % step_us,
        12..=15 => step_us + rng.below(3) as i64 * 1_000_000,
        16 => rng.below(step_us as u64 * 4) as i64,
        17 => step_us * (1 + rng.below(70) as i64),
        18 => step_us * (1 + rng.below(5) as i64) + 1_000_000,
        _ => 1_000_000 * (1 + rng.below(step_s * 40) as i64),
    };
    let at = *now_us + forward;
    *now_us = at.max(*now_us);
    match rng.below(3) {
        0 if at % 1_000_000 != 0 => format!("{}.{:06}", at / 1_000_000, at % 1_000_000),
        _ => {
            *now_us -= *now_us % 1_000_000;
            (at / 1_000_000).to_string()
        }
    }
}

/// A value of a data source: mostly sensible for its kind.
fn value(rng: &mut Rng, kind: DsKind, counter: &mut u64) -> String {
    const ODD: [&str; 24] = [
        "U",
        "U",
        "nan",
        "-nan",
        "inf",
        "-inf",
        "1e",
        "1e5",
        "2.5E-3",
        "-0",
        "-0.0",
        "007",
        ".5",
        "5.",
        "1e300",
        "-1e300",
        "1e600",
        "1e-400",
        "abc",
        "1x",
        "",
        "-",
        "123456789012345678901234567",
        "0.1000000000000000055511151",
    ];
    if rng.below(12) == 0 {
        return rng.pick(&ODD).to_owned();
    }
    match kind {
        DsKind::Counter | DsKind::Derive => {
            *counter = match rng.below(12) {
                0 => rng.below(1000),
                1 => u64::from(u32::MAX) - rng.below(1000),
                2 => u64::MAX - rng.below(1000),
                _ => counter.wrapping_add(rng.below(100_000)),
            };
            let sign = if kind == DsKind::Derive && rng.below(3) == 0 {
                "-"
            } else {
                ""
            };
            format!("{sign}{counter}")
        }
        _ => {
            let sign = if rng.below(4) == 0 { "-" } else { "" };
            let length = 1 + rng.below(12) as u32;
            let whole = rng.below(10_u64.pow(length));
            match rng.below(11) as usize {
                0 => format!("{sign}{whole}"),
                places => format!("{sign}{whole}.{:0places$}", rng.below(10_u64.pow(places as u32))),
            }
        }
    }
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compared {
    /// Updates in all.
    pub(crate) given: u64,
    /// Calls that rrdtool refused, and we too, with the same bytes left behind.
    pub(crate) refused: u64,
}

/// One layout and `calls` calls of it, from a seed.
pub(crate) fn compare(rrdtool: &mut Rrdtool, folder: &Path, seed: u64, calls: u64) -> Result<Compared, Failure> {
    let mut rng = Rng::new(seed);
    let (layout, words) = layout(&mut rng)?;
    let (theirs, ours) = (folder.join("theirs.rrd"), folder.join("ours.rrd"));
    let _ = std::fs::remove_file(&ours);
    if !rrdtool.run(&format!("create theirs.rrd --start {START_S} {words}"))? {
        return Err(format!("seed {seed}: rrdtool does not create {words}").into());
    }
    tsb_rrd::create(&ours, &layout, START_S, seed)?;
    same_but_for_the_first_rows(&layout, &theirs, &ours).map_err(|what| format!("seed {seed}, created: {what}"))?;
    std::fs::copy(&theirs, &ours)?;
    let mut file = Ours::open(&ours, seed)?;
    let mut session = Session::default();
    let mut now_us = START_S * 1_000_000;
    let mut counters = vec![0; layout.sources().len()];
    let mut compared = Compared::default();
    for call in 0..calls {
        let count = if rng.below(3) == 0 { 1 + rng.below(6) } else { 1 };
        let updates: Vec<String> = (0..count)
            .map(|_| {
                let mut text = moment(&mut rng, layout.step_s(), &mut now_us);
                for (source, counter) in layout.sources().iter().zip(&mut counters) {
                    text += ":";
                    text += &value(&mut rng, source.kind, counter);
                }
                if rng.below(100) == 0 { text + ":1" } else { text }
            })
            .collect();
        compared.given += count;
        let line = updates.join(" ");
        let accepted = rrdtool.run(&format!("update theirs.rrd {line}"))?;
        compared.refused += u64::from(!accepted);
        let updated = file.update(&mut session, &updates)?;
        let place = || format!("seed {seed}, call {call}: {words}: {line}");
        if accepted != updated.stopped.is_none() {
            return Err(format!("{}: rrdtool took it: {accepted}; {updated:?}", place()).into());
        }
        same(&theirs, &ours).map_err(|what| format!("{}: {what}", place()))?;
    }
    Ok(compared)
}

/// Our file, with one of the methods of updating it.
enum Ours {
    Stateless(PathBuf),
    Open(OpenFile),
    Exclusive(ExclusiveFile),
    /// With cached pages, except each fifth call, which stands for another program.
    Cached(PathBuf, Option<CachedPages>, u64),
}

impl Ours {
    fn open(path: &Path, seed: u64) -> Result<Self, Failure> {
        let file = RrdFile::open(path)?;
        Ok(match seed % 4 {
            0 => Self::Stateless(path.to_owned()),
            1 => Self::Open(OpenFile::new(file)),
            2 => Self::Cached(path.to_owned(), None, 0),
            _ => Self::Exclusive(ExclusiveFile::open(path, file.layout())?),
        })
    }

    fn update(&mut self, session: &mut Session, updates: &[String]) -> Result<Updated, Failure> {
        Ok(match self {
            Self::Stateless(path) => RrdFile::open(path)?.update_and_close(session, updates)?,
            Self::Open(file) => file.update(session, updates)?,
            Self::Exclusive(file) => file.update(session, updates)?,
            Self::Cached(path, cache, calls) => {
                *calls += 1;
                let file = RrdFile::open(path)?;
                if calls.is_multiple_of(5) {
                    file.update_and_close(session, updates)?
                } else {
                    file.update_cached(session, cache, updates)?
                }
            }
        })
    }
}

fn same(theirs: &PathBuf, ours: &PathBuf) -> Result<(), Failure> {
    differs(&std::fs::read(theirs)?, &std::fs::read(ours)?)
}

fn differs(theirs: &[u8], ours: &[u8]) -> Result<(), Failure> {
    if theirs == ours {
        return Ok(());
    }
    let at = theirs.iter().zip(ours).take_while(|(a, b)| a == b).count();
    let word = |bytes: &[u8]| bytes.get(at / 8 * 8..at / 8 * 8 + 8).map(<[u8]>::to_vec);
    let lengths = (theirs.len(), ours.len());
    Err(format!(
        "byte {at}: theirs {:x?}, ours {:x?}, lengths {lengths:?}",
        word(theirs),
        word(ours)
    )
    .into())
}

/// Which row of an archive comes first is random; all else of a new file is not.
fn same_but_for_the_first_rows(layout: &Layout, theirs: &PathBuf, ours: &PathBuf) -> Result<(), Failure> {
    let (mut theirs, mut ours) = (std::fs::read(theirs)?, std::fs::read(ours)?);
    let end = layout.header_len();
    for bytes in [&mut theirs, &mut ours] {
        if let Some(rows) = bytes.get_mut(end - 8 * layout.archives().len()..end) {
            rows.fill(0);
        }
    }
    differs(&theirs, &ours)
}
