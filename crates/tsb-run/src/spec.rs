//! Store specs (`memory:?retention=7d`): parses them and opens the stores. This is the only
//! registry of stores.
//!
//! Grammar: `[wrapper+]...scheme:[path][?option=value[&option=value]...]`. A wrapper's own
//! options carry its name: `throttle+ring:?throttle.rate=1000`. The path ends at the first `?`, a
//! value at the next `&`; neither has escapes. The hosts of a server may be preceded
//! by `user:password@`, in which `%40` stands for `@` and `%3F` for `?`.
//!
//! A [`Spec`] is parsed and checked as a whole before anything is opened. Combinations of options
//! are *not* checked here: the stores' constructors do that.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tsb_core::SeriesKey;
use tsb_core::time::{Clock, MonotonicClock};

use tsb_rrdcached::FileCache;
use tsb_stores::error::{Error, Result};
use tsb_stores::secret::{Credentials, HIDDEN};
use tsb_stores::store::Store;

mod keeping;
mod kept;
mod nearest;
mod opened;
mod redact;
mod table;
mod typed;
mod value;

pub(crate) use kept::{FileName, Kept, KeptFiles, beside, quoted};
pub use nearest::{distance, or_nearest};
pub use opened::OpenedStore;
use redact::redact;
pub use redact::redact_text;
use table::Make;
pub use table::{OptionInfo, PathKind, StoreInfo, known};
pub use typed::Typed;
pub(crate) use value::Values;
pub use value::{Kind, parse_bytes, parse_count, parse_duration_ns};

/// A parsed store spec: the store to open, its wrappers, and their options.
///
/// `Display` and serialization return the spec as it was written, with credentials replaced by
/// `***`. A redacted text still parses, and opens the store without credentials.
#[derive(Clone, PartialEq)]
pub struct Spec {
    // Outermost first.
    wrappers: Vec<&'static StoreInfo>,
    base: &'static StoreInfo,
    // Without credentials.
    path: String,
    // As written, in the order written; each is checked against its layer's options and kinds.
    options: Vec<(String, String)>,
    // From the address, or given later.
    credentials: Option<Credentials>,
}

/// Opens the store that `spec` describes.
///
/// # Errors
/// If it cannot be parsed; as [`Spec::open`].
pub fn open(spec: &str) -> Result<Box<dyn Store>> {
    spec.parse::<Spec>()?.open()
}

impl Spec {
    /// Opens the store with the machine's clock.
    ///
    /// # Errors
    /// [`Error::Spec`] for options that contradict each other; otherwise those of the store: a file that
    /// cannot be opened, a server that does not answer.
    pub fn open(&self) -> Result<Box<dyn Store>> {
        self.open_with(&(Arc::new(MonotonicClock::new()) as Arc<dyn Clock>))
    }

    /// Opens the store with a clock of the caller's, such as virtual time for tests.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(&self, clock: &Arc<dyn Clock>) -> Result<Box<dyn Store>> {
        let values = Values::new(&self.options, self.base).with_credentials(self.credentials.as_ref());
        let made = match self.base.make {
            Some(Make::Store(make)) => make(&self.path, &values),
            Some(Make::Client(make)) => make(&self.path, &values).map(|client| -> Box<dyn Store> { client }),
            _ => return Err(self.error(format!("{} opens no store", self.base.scheme))),
        };
        let mut store = made.map_err(|error| self.named(error))?;
        for wrapper in self.wrappers.iter().rev() {
            let Some(Make::Wrapper(wrap)) = wrapper.make else {
                return Err(self.error(format!("{} is not a wrapper", wrapper.scheme)));
            };
            let values = Values::new(&self.options, wrapper);
            store = wrap(store, &values, clock).map_err(|error| self.named(error))?;
        }
        Ok(store)
    }

    /// Opens the store for a run: a client that takes many writes at a time as such.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_for_run(&self) -> Result<OpenedStore> {
        match self.base.make {
            Some(Make::Client(make)) if !self.is_wrapped() => {
                let values = Values::new(&self.options, self.base).with_credentials(self.credentials.as_ref());
                let client = make(&self.path, &values).map_err(|error| self.named(error))?;
                Ok(OpenedStore::Async(Arc::from(client)))
            }
            _ => Ok(OpenedStore::Blocking(Arc::from(self.open()?))),
        }
    }

    /// Whether a run hands it writes without waiting for their answers: an unwrapped client that
    /// takes many at a time.
    pub fn is_async(&self) -> bool {
        matches!(self.base.make, Some(Make::Client(_))) && !self.is_wrapped()
    }

    /// Opens `write-cache+rrd:DIR` as a server like rrdcached: a cache of files of any layout, by
    /// file name. Options of `rrd:` that describe the layout of files are ignored, since clients
    /// create the files; `max_series` limits the number of files.
    ///
    /// # Errors
    /// [`Error::Spec`] for any other store.
    pub fn open_files(&self, clock: &Arc<dyn Clock>) -> Result<FileCache> {
        let wrapper = match self.wrappers.as_slice() {
            [wrapper] if wrapper.scheme == "write-cache" && self.base.scheme == "rrd" => wrapper,
            _ => return Err(self.error("files by name need write-cache+rrd:DIR".to_owned())),
        };
        let (cache, rrd) = (
            Values::new(&self.options, wrapper),
            Values::new(&self.options, self.base),
        );
        table::open_files(&self.path, &cache, &rrd, clock).map_err(|error| self.named(error))
    }

    /// The series in the innermost store, without opening it as a store: nothing is created or
    /// changed. `None` for a store that cannot list its series.
    ///
    /// # Errors
    /// As for opening; [`Error::Unsupported`] for a server whose version cannot list series.
    pub fn series(&self) -> Result<Option<Vec<SeriesKey>>> {
        let Some(list) = self.base.list else { return Ok(None) };
        let values = Values::new(&self.options, self.base).with_credentials(self.credentials.as_ref());
        list(&self.path, &values).map(Some).map_err(|error| self.named(error))
    }

    /// Opens `etcd:` as a store of keys.
    ///
    /// # Errors
    /// [`Error::Spec`] for any other store, else as for opening.
    #[cfg(feature = "hosts")]
    pub(crate) fn open_keys(&self) -> Result<Arc<dyn tsb_stores::keyed::KeyedStore>> {
        if self.scheme() != "etcd" || self.is_wrapped() {
            return Err(self.error("only etcd: keeps keys".to_owned()));
        }
        let values = Values::new(&self.options, self.base).with_credentials(self.credentials.as_ref());
        table::open_keys(&self.path, &values).map_err(|error| self.named(error))
    }

    /// The scheme of the innermost store.
    pub fn scheme(&self) -> &'static str {
        self.base.scheme
    }

    /// The same store without its wrappers.
    #[must_use]
    pub fn unwrapped(&self) -> Self {
        let is_wrappers = |name: &str| {
            let layer = name.split_once('.').map(|(layer, _)| layer);
            self.wrappers.iter().any(|wrapper| layer == Some(wrapper.scheme))
        };
        let options = self.options.iter().filter(|(name, _)| !is_wrappers(name));
        Self {
            wrappers: Vec::new(),
            base: self.base,
            path: self.path.clone(),
            options: options.cloned().collect(),
            credentials: self.credentials.clone(),
        }
    }

    /// Whether it is a client of a server without credentials: neither the address nor the option
    /// `credentials` gives any.
    pub fn lacks_credentials(&self) -> bool {
        let takes_them = self.base.options.iter().any(|option| option.name == "credentials");
        takes_them && self.credentials.is_none() && self.option("credentials").is_none()
    }

    /// The same store with these credentials in place of those in the address.
    #[must_use]
    pub fn with_credentials(&self, credentials: Credentials) -> Self {
        Self {
            credentials: Some(credentials),
            ..self.clone()
        }
    }

    /// Whether it is a client of a server, that is, of another program that stores the samples.
    pub fn is_client(&self) -> bool {
        self.base.path.is_address() || ["rrdcached", "exec"].contains(&self.base.scheme)
    }

    /// The ports at which its server listens if the address names none; empty for other stores.
    pub(crate) fn default_ports(&self) -> &'static [u16] {
        match self.base.path {
            PathKind::Address { ports } => ports,
            PathKind::Path | PathKind::Nowhere => &[],
        }
    }

    /// The part between the scheme and the options, without credentials.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of an option, as it was written, if it is given.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(option, _)| option == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The same store without this option.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut spec = self.clone();
        spec.options.retain(|(option, _)| option != name);
        spec
    }

    /// The same store with an option of its innermost layer set to a value.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut spec = self.without(name);
        if self.base.options.iter().any(|option| option.name == name) {
            spec.options.push((name.to_owned(), value.to_owned()));
        }
        spec
    }

    /// Whether the innermost store has wrappers.
    pub fn is_wrapped(&self) -> bool {
        !self.wrappers.is_empty()
    }

    /// Adds the user's spec to the error of a constructor, which does not know it.
    fn named(&self, error: Error) -> Error {
        match error {
            Error::Spec { what, .. } => self.error(what),
            other => other,
        }
    }

    fn error(&self, what: String) -> Error {
        Error::Spec {
            spec: self.to_string(),
            what,
        }
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).map_err(|what| Error::Spec {
            spec: redact(text),
            what,
        })
    }
}

fn parse(text: &str) -> std::result::Result<Spec, String> {
    let (head, rest) = text.split_once(':').ok_or_else(|| {
        let schemes = known().iter().filter(|info| !info.is_wrapper).map(|info| info.scheme);
        let scheme = text.split(['?', '/']).next().unwrap_or_default();
        format!("a store is written scheme:{}", or_nearest(scheme, schemes, ":"))
    })?;
    let mut layers = head.split('+').collect::<Vec<_>>();
    let base = find(layers.pop().unwrap_or_default(), false)?;
    let wrappers = layers
        .into_iter()
        .map(|name| find(name, true))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    if let Some(repeated) = (1..wrappers.len()).find(|&index| wrappers[..index].contains(&wrappers[index])) {
        return Err(format!("wrapper {} is named twice", wrappers[repeated].scheme));
    }
    let (user, path, query) = split(base, rest);
    if base.path == PathKind::Nowhere && !path.is_empty() {
        return Err(format!("{}: takes no path, but has {:?}", base.scheme, redact(&path)));
    }
    let mut spec = Spec {
        wrappers,
        base,
        path,
        options: Vec::new(),
        // A printed spec has `***` here: it has no credentials.
        credentials: user.filter(|user| *user != HIDDEN).map(Credentials::of_address),
    };
    for option in query.split('&').filter(|option| !option.is_empty()) {
        // The text taken for options may be a part of a password, so it is redacted.
        let clear = |what: String| {
            if base.path.is_address() && query.contains('@') {
                AT.to_owned()
            } else {
                what
            }
        };
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| clear(format!("option {option:?} has no value: write {option}=...")))?;
        check_option(&spec, name, value).map_err(clear)?;
        spec.options.push((name.to_owned(), value.to_owned()));
    }
    Ok(spec)
}

/// The hint for options that may contain credentials.
const AT: &str = "an @ stands behind the ?; in user and password write ? as %3F and @ as %40, or put them into a file \
    and name it with credentials=FILE";

/// Splits an address into the text before its last `@`, the path without that text, and the
/// options.
///
/// A user or password may contain a `?`: options begin only after a complete address, that is,
/// one with hosts and a place.
fn split<'t>(base: &StoreInfo, rest: &'t str) -> (Option<&'t str>, String, &'t str) {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !base.path.is_address() {
        return (None, path.to_owned(), query);
    }
    let whole = |path: &str| {
        let hosts = path.rsplit_once('@').map_or(path, |(_, hosts)| hosts);
        let hosts = hosts.trim_start_matches('/');
        hosts.rsplit_once('/').is_some_and(|(_, place)| !place.is_empty())
    };
    let at = match path.rfind('@') {
        Some(at) if whole(path) => Some(at),
        None if whole(path) || !rest.contains('@') => None,
        _ => rest.rfind('@'),
    };
    let Some(at) = at else {
        return (None, path.to_owned(), query);
    };
    let start = rest.find("//").map_or(0, |slashes| slashes + 2).min(at);
    let (hosts, query) = rest[at + 1..].split_once('?').unwrap_or((&rest[at + 1..], ""));
    (Some(&rest[start..at]), format!("{}{hosts}", &rest[..start]), query)
}

/// The table entry of one layer, which must be built in.
fn find(name: &str, is_wrapper: bool) -> std::result::Result<&'static StoreInfo, String> {
    let of_its_kind = || known().iter().filter(|info| info.is_wrapper == is_wrapper);
    if let Some(info) = of_its_kind().find(|info| info.scheme == name) {
        return match (info.make, info.feature) {
            (None, Some(feature)) => Err(format!("{name} is not in this build; feature {feature} would carry it")),
            _ => Ok(info),
        };
    }
    Err(match (is_wrapper, known().iter().any(|info| info.scheme == name)) {
        (true, true) => format!("{name} is a store, not a wrapper: only the last scheme can be one"),
        (false, true) => format!("{name} is a wrapper: name what it wraps, as in {name}+ring:"),
        (true, false) => format!(
            "unknown wrapper {name:?}{}",
            or_nearest(name, of_its_kind().map(|info| info.scheme), "+")
        ),
        (false, false) => format!(
            "unknown scheme {name:?}{}",
            or_nearest(name, of_its_kind().map(|info| info.scheme), ":")
        ),
    })
}

fn check_option(spec: &Spec, name: &str, value: &str) -> std::result::Result<(), String> {
    if spec.options.iter().any(|(before, _)| before == name) {
        return Err(format!("option {name} is given twice"));
    }
    let layers = || spec.wrappers.iter().copied().chain([spec.base]);
    let options = || layers().flat_map(|info| info.options);
    match options().find(|option| option.name == name) {
        Some(option) => option
            .kind
            .check(value)
            .map_err(|what| format!("option {name}: {what}")),
        None if options().next().is_none() => Err(format!("{}: takes no options, but has {name:?}", spec.base.scheme)),
        None => Err(format!(
            "unknown option {name:?}{}",
            or_nearest(name, options().map(|option| option.name), "")
        )),
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for wrapper in &self.wrappers {
            write!(f, "{}+", wrapper.scheme)?;
        }
        write!(f, "{}:", self.base.scheme)?;
        match (&self.credentials, self.base.path) {
            (Some(_), _) => {
                let hosts = self.path.trim_start_matches('/');
                write!(f, "{}{HIDDEN}@{hosts}", &self.path[..self.path.len() - hosts.len()])?;
            }
            (None, PathKind::Path) => f.write_str(&self.path)?,
            (None, PathKind::Address { .. } | PathKind::Nowhere) => f.write_str(&redact(&self.path))?,
        }
        for (index, (name, value)) in self.options.iter().enumerate() {
            let option = redact(&format!("{}{name}={value}", if index == 0 { '?' } else { '&' }));
            f.write_str(&option)?;
        }
        Ok(())
    }
}

// By hand: a derived one would print the credentials.
impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
