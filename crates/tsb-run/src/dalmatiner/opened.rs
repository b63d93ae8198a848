//! A target that is open: its endpoint, the folder of its files, its place on a server.

use std::path::{Path, PathBuf};

use tsb_core::Durability;
use tsb_core::report::experiment::dalmatiner::TestedTarget;
use tsb_core::resource::Usage;
use tsb_core::time::Clock;
use tsb_stores::Store;

use super::target::{DalmatinerTarget, TargetWay};
use crate::error::Error;
use crate::experiment::{EndedIngest, IngestOptions, IngestProcess};
use crate::place::RoundPlace;
use crate::spec::Spec;

/// The protocol of our endpoint: DalmatinerDB's of September 2014, over one connection.
const LISTEN: &str = "dalmatiner-stream+tcp://127.0.0.1:0";

/// How a target is opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenOptions<'a> {
    /// The program `tsb`.
    pub(super) program: &'a Path,
    /// The folder of the experiment.
    pub(super) folder: &'a Path,
    /// The number of the place; no two targets of one process share it.
    pub(super) place: u32,
    /// The clock of the experiment.
    pub(super) clock: &'a dyn Clock,
}

/// An open target, which held nothing when it was opened first.
#[derive(Debug)]
pub(super) struct OpenTarget<'a> {
    target: &'a DalmatinerTarget,
    options: OpenOptions<'a>,
    /// What is written to and read.
    spec: Spec,
    /// The files of a store of ours.
    folder: PathBuf,
    process: Option<IngestProcess>,
    place: Option<RoundPlace>,
}

impl<'a> OpenTarget<'a> {
    /// Opens it in a place that holds nothing.
    ///
    /// # Errors
    /// If a folder cannot be made, the endpoint does not start, or a server does not answer.
    pub(super) fn open(target: &'a DalmatinerTarget, options: OpenOptions<'a>) -> Result<Self, Error> {
        let folder = options.folder.join(options.place.to_string());
        std::fs::create_dir(&folder)
            .map_err(|error| Error::unreachable(format!("cannot make {}", folder.display())).because(&error))?;
        let place = match target {
            DalmatinerTarget::Given(spec) => Some(RoundPlace::new(spec, options.place)?),
            DalmatinerTarget::Ours(..) => None,
        };
        let spec = match &place {
            Some(place) => place.spec().clone(),
            None => target.spec(&folder)?,
        };
        let mut opened = Self {
            target,
            options,
            spec,
            folder,
            process: None,
            place,
        };
        opened.start()?;
        Ok(opened)
    }

    /// Starts the endpoint, where the target has one.
    fn start(&mut self) -> Result<(), Error> {
        if self.target.way() != TargetWay::Tcp {
            return Ok(());
        }
        let process = IngestProcess::start(&IngestOptions {
            program: self.options.program,
            listen: LISTEN,
            store: &self.target.spec(&self.folder)?.to_string(),
            about: &self.target.to_string(),
        })?;
        let spec = format!("dalmatiner://{}/tachyon", process.address());
        self.process = Some(process);
        self.spec = spec
            .parse()
            .map_err(|error| Error::plan(format!("cannot use {spec}")).because(&error))?;
        Ok(())
    }

    /// What is written to and read.
    pub(super) const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The store of the endpoint itself, with its files; the endpoint must have ended.
    ///
    /// # Errors
    /// If this program has no such store.
    pub(super) fn files_spec(&self) -> Result<Spec, Error> {
        self.target.spec(&self.folder)
    }

    /// What our endpoint has used since its start.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.process.as_ref().and_then(IngestProcess::usage)
    }

    /// The process of our endpoint.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(IngestProcess::pid)
    }

    /// The folder of its files, if it has some here.
    pub(super) fn files(&self) -> Option<&Path> {
        self.target.has_files().then_some(&*self.folder)
    }

    /// Opens a client, or the store itself.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(super) fn connect(&self) -> Result<Box<dyn Store>, Error> {
        self.spec.open().map_err(|error| Error::opening(&self.spec, &error))
    }

    /// The target in reports, with the level of its acknowledgements and how exactly values come
    /// back.
    pub(super) fn tested(&self, acknowledged: Durability, exactness: &str) -> TestedTarget {
        TestedTarget {
            name: self.target.to_string(),
            way: self.target.way().name().to_owned(),
            acknowledged: acknowledged.to_string(),
            exactness: exactness.to_owned(),
        }
    }

    /// Ends the endpoint in order and starts it again over the same files. Clients must have been
    /// closed.
    ///
    /// # Errors
    /// If it does not end or does not start.
    pub(super) fn reopen(&mut self) -> Result<(), Error> {
        self.end()?;
        self.start()
    }

    /// Kills the endpoint. Its files stay until the value is dropped.
    ///
    /// # Errors
    /// If it cannot be killed.
    pub(super) fn kill(&mut self) -> Result<(), Error> {
        self.process.take().map_or(Ok(()), IngestProcess::kill)
    }

    /// Ends the endpoint, which writes what waits, and returns its report. Its files stay until the
    /// value is dropped.
    ///
    /// # Errors
    /// If it does not end in order.
    pub(super) fn end(&mut self) -> Result<Option<EndedIngest>, Error> {
        let ended = self.process.take().map(|process| process.end(self.options.clock));
        ended.transpose()
    }

    /// Ends it and removes what was stored.
    ///
    /// # Errors
    /// If it does not end in order, or its place cannot be removed.
    pub(super) fn remove(mut self) -> Result<(), Error> {
        self.end()?;
        self.place.take().map_or(Ok(()), RoundPlace::remove)
    }
}

impl Drop for OpenTarget<'_> {
    fn drop(&mut self) {
        // The folder of the experiment is removed as a whole in the end; what stays until then
        // only takes room.
        self.process = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
