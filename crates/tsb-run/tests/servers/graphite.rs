//! Carbon with graphite-web, killed in the middle of a run, and a place from its making to its
//! removal.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tsb_core::ledger::Counter;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::verdict::Status;
use tsb_run::place::Place;
use tsb_run::spec::Spec;
use tsb_run::{Controls, Plan, open, run_plan};
use tsb_stores::conformance::libtest_mimic::{Failed, Trial};

use crate::daemon::{Daemon, free_ports};
use crate::in_flight::{AROUND_OUTAGE_NS, names_what_was_lost_on_the_way, per_second};
use crate::outage::nobody_answers;
use crate::{Test, of_program, places};

pub(crate) fn trials() -> Vec<Trial> {
    let tests: &[(&str, Test)] = &[
        ("killed_in_the_middle_of_a_run", killed),
        ("nobody_answers", |_| nobody_answers("graphite")),
        ("a_place_from_its_making_to_its_removal", place),
    ];
    of_program(places::GRAPHITE, "TSB_TEST_CARBON_PROGRAM", tests)
}

/// A cache and graphite-web over the same files.
struct Carbon {
    folder: TempDir,
    cache: Daemon,
    line: u16,
    web: Daemon,
}

impl Carbon {
    fn start(program: &str) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let [line, pickle, query, web] = free_ports()?;
        configure(folder.path(), [line, pickle, query])?;
        let (program, conf) = (program.to_owned(), folder.path().join("carbon.conf"));
        let cache = Daemon::start(line, move |_| {
            let mut command = Command::new(&program);
            command.arg(format!("--config={}", conf.display()));
            command.args(["--nodaemon", "start"]);
            command
        })?;
        let home = folder.path().to_owned();
        let web = Daemon::start(web, move |_| {
            // Debian's graphite is of Debian's Python.
            let mut command = Command::new("/usr/bin/python3");
            command.args(["-m", "django", "runserver", "--noreload", &format!("127.0.0.1:{web}")]);
            command.env("DJANGO_SETTINGS_MODULE", "graphite.settings");
            command
                .env("GRAPHITE_SETTINGS_MODULE", "tsb_graphite")
                .env("PYTHONPATH", &home);
            command
        })?;
        cache.await_listening()?;
        web.await_listening()?;
        Ok(Self {
            folder,
            cache,
            line,
            web,
        })
    }

    fn spec(&self) -> String {
        format!(
            "graphite://127.0.0.1:{}/hazard?render=127.0.0.1:{}&folder={}&archives=1s:1h&delay=10s&timeout=2s",
            self.line,
            self.web.port(),
            self.folder.path().join("whisper").display()
        )
    }
}

fn configure(folder: &Path, [line, pickle, query]: [u16; 3]) -> Result<(), Failed> {
    let home = folder.display();
    fs::create_dir_all(folder.join("whisper"))?;
    fs::write(
        folder.join("carbon.conf"),
        format!(
            "[cache]\nSTORAGE_DIR = {home}\nCONF_DIR = {home}\nLOG_DIR = {home}\nPID_DIR = {home}\n\
             LOCAL_DATA_DIR = {home}/whisper\nENABLE_UDP_LISTENER = False\nENABLE_TAGS = False\n\
             MAX_CREATES_PER_MINUTE = inf\nMAX_UPDATES_PER_SECOND = inf\nWHISPER_SPARSE_CREATE = True\n\
             CARBON_METRIC_INTERVAL = 0\nLINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {line}\n\
             PICKLE_RECEIVER_INTERFACE = 127.0.0.1\nPICKLE_RECEIVER_PORT = {pickle}\n\
             CACHE_QUERY_INTERFACE = 127.0.0.1\nCACHE_QUERY_PORT = {query}\n"
        ),
    )?;
    fs::write(
        folder.join("storage-schemas.conf"),
        "[all]\npattern = .*\nretentions = 1s:1h\n",
    )?;
    fs::write(
        folder.join("tsb_graphite.py"),
        format!(
            "SECRET_KEY = 'loopback only'\nALLOWED_HOSTS = ['127.0.0.1']\nSTORAGE_DIR = '{home}'\n\
             WHISPER_DIR = '{home}/whisper'\nLOG_DIR = '{home}'\nINDEX_FILE = '{home}/index'\n\
             CARBONLINK_HOSTS = ['127.0.0.1:{query}']\n\
             DATABASES = {{'default': {{'ENGINE': 'django.db.backends.sqlite3', 'NAME': '{home}/graphite.db'}}}}\n"
        ),
    )?;
    Ok(())
}

/// What the cache held when it was killed is lost, too.
fn killed(program: &str) -> Result<(), Failed> {
    let mut carbon = Carbon::start(program)?;
    let plan = per_second(&carbon.spec(), AROUND_OUTAGE_NS)?;
    names_what_was_lost_on_the_way(&plan, || {
        carbon.cache.kill()?;
        MonotonicClock::new().wait_until(2 * SECOND_NS);
        carbon.cache.restart()
    })
}

fn place(program: &str) -> Result<(), Failed> {
    let carbon = Carbon::start(program)?;
    let plan = per_second(&carbon.spec(), 3 * SECOND_NS)?;
    let run = |plan: &Plan| run_plan(plan, &Controls::default(), &open);
    let first = run(&plan)?.run;
    let count = |counter| first.ledger.counts.get(counter);
    // Beside other tests it may be noisy.
    let is_compared = !matches!(first.verdict.status, Status::Invalid | Status::Unverified);
    let is_whole = count(Counter::Verified) == count(Counter::Sent) && is_compared;
    if !is_whole || first.place.as_ref().is_none_or(|place| place.bytes.is_none()) {
        return Err(format!("{:?}, {:?}, {:?}", first.verdict, first.ledger, first.place).into());
    }
    let refused = run(&plan).err().ok_or("a second run is refused")?;
    if !refused.to_string().contains("it already holds") {
        return Err(refused.to_string().into());
    }
    let spec: Spec = carbon.spec().parse()?;
    let place = Place::of(&spec)?.ok_or("it has a place")?;
    if place.is_empty()? {
        return Err("the place of a run is empty".into());
    }
    place.remove()?;
    if !place.is_empty()? {
        return Err("a removed place is not empty".into());
    }
    Ok(())
}
