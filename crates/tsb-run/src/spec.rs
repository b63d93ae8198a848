//! From what a user writes (`memory:?retention=7d`) to a store: the only registry.
//!
//! Grammar: `[wrapper+]...scheme:[path][?option=value[&option=value]...]`.
//! A wrapper's own options carry its name: `throttle+ring:?throttle.rate=1000`.
//! The path ends at the first `?`, a value at the next `&`; there are no escapes. Before the
//! hosts of a server may stand `user:password@`, with `%40` for an `@` in them.
//!
//! A [`Spec`] is parsed and checked as a whole before anything is opened. It is *not*
//! where a store's options are judged together: their constructors do that.

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

mod nearest;
mod redact;
mod table;
mod typed;
mod value;

pub use nearest::{distance, or_nearest};
use redact::redact;
pub use redact::redact_text;
use table::Make;
pub use table::{OptionInfo, Place, StoreInfo, known};
pub use typed::Typed;
pub(crate) use value::Values;
pub use value::{Kind, parse_bytes, parse_count, parse_duration_ns};

/// A store description that was understood: what to open, on top of what, and how.
///
/// `Display` and serialization give it back as it was written, but with credentials
/// replaced by `***`; a redacted text still parses, and then opens without them.
#[derive(Clone, PartialEq)]
pub struct Spec {
    // Outermost first.
    wrappers: Vec<&'static StoreInfo>,
    base: &'static StoreInfo,
    // Without credentials.
    path: String,
    // As written, in the order written; each is known to its layer and of its kind.
    options: Vec<(String, String)>,
    // Those that stand in the address, or were given later.
    credentials: Option<Credentials>,
}

/// Opens the store that `spec` describes.
pub fn open(spec: &str) -> Result<Box<dyn Store>> {
    spec.parse::<Spec>()?.open()
}

impl Spec {
    /// Opens the store on the machine's clock.
    pub fn open(&self) -> Result<Box<dyn Store>> {
        self.open_with(&(Arc::new(MonotonicClock::new()) as Arc<dyn Clock>))
    }

    /// Opens the store on a clock of the caller's: virtual time for tests.
    pub fn open_with(&self, clock: &Arc<dyn Clock>) -> Result<Box<dyn Store>> {
        let Some(Make::Store(make)) = self.base.make else {
            return Err(self.error(format!("{} opens no store", self.base.scheme)));
        };
        let values = Values::new(&self.options, self.base).with_credentials(self.credentials.as_ref());
        let mut store = make(&self.path, &values).map_err(|error| self.named(error))?;
        for wrapper in self.wrappers.iter().rev() {
            let Some(Make::Wrapper(wrap)) = wrapper.make else {
                return Err(self.error(format!("{} is no wrapper", wrapper.scheme)));
            };
            let values = Values::new(&self.options, wrapper);
            store = wrap(store, &values, clock).map_err(|error| self.named(error))?;
        }
        Ok(store)
    }

    /// Opens `write-cache+rrd:DIR` as what rrdcached is: a cache of files of any layout, by
    /// their names. The options of `rrd:` that say what files are like have no meaning then,
    /// because clients create them; `max_series` bounds the files.
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

    /// The series that the innermost store says it holds, without opening it as a store: nothing
    /// is made or changed. `None` for one that cannot say them.
    ///
    /// # Errors
    /// As opening it; [`Error::Unsupported`] for a server of a version that cannot say them.
    pub fn series(&self) -> Result<Option<Vec<SeriesKey>>> {
        let Some(list) = self.base.list else { return Ok(None) };
        let values = Values::new(&self.options, self.base).with_credentials(self.credentials.as_ref());
        list(&self.path, &values).map(Some).map_err(|error| self.named(error))
    }

    /// The scheme of the innermost store.
    pub fn scheme(&self) -> &'static str {
        self.base.scheme
    }

    /// The same store without what is wrapped around it.
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

    /// Whether it is a server's client to which nobody has given credentials: neither its
    /// address nor its option `credentials` does.
    pub fn lacks_credentials(&self) -> bool {
        let takes_them = self.base.options.iter().any(|option| option.name == "credentials");
        takes_them && self.credentials.is_none() && self.option("credentials").is_none()
    }

    /// The same store with credentials; whatever its address says.
    #[must_use]
    pub fn with_credentials(&self, credentials: Credentials) -> Self {
        Self {
            credentials: Some(credentials),
            ..self.clone()
        }
    }

    /// Whether it is a client of a server: a program of its own, which keeps the samples.
    pub fn is_client(&self) -> bool {
        self.base.place == Place::Address || self.base.scheme == "rrdcached"
    }

    /// What stands between the scheme and the options, without credentials.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of an option as it was written, if it was.
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().find(|(option, _)| option == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The same store without an option.
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

    /// Whether wrappers stand around the innermost store.
    pub fn is_wrapped(&self) -> bool {
        !self.wrappers.is_empty()
    }

    /// A constructor does not know the words of the user: put them in its error.
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
    if base.place == Place::Nowhere && !path.is_empty() {
        return Err(format!("{}: takes no path, but has {:?}", base.scheme, redact(&path)));
    }
    let mut spec = Spec {
        wrappers,
        base,
        path,
        options: Vec::new(),
        // In a text that was printed they are hidden: then there are none.
        credentials: user.filter(|user| *user != HIDDEN).map(Credentials::of_address),
    };
    for option in query.split('&').filter(|option| !option.is_empty()) {
        // What is taken for options may be a part of a password.
        let clear = |what: String| {
            if base.place == Place::Address && query.contains('@') {
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

/// What is said of options that nobody may read.
const AT: &str = "an @ stands behind the ?; in user and password write ? as %3F and @ as %40, or put them into a file \
    and name it with credentials=FILE";

/// What stands before the last `@` of an address, the path without it, and the options.
///
/// A user or password may hold a `?`: options begin behind a whole address, that is, one that
/// names a place on hosts.
fn split<'t>(base: &StoreInfo, rest: &'t str) -> (Option<&'t str>, String, &'t str) {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if base.place != Place::Address {
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

/// The entry of one layer, which must be built in.
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
        match (&self.credentials, self.base.place) {
            (Some(_), _) => {
                let hosts = self.path.trim_start_matches('/');
                write!(f, "{}{HIDDEN}@{hosts}", &self.path[..self.path.len() - hosts.len()])?;
            }
            (None, Place::Path) => f.write_str(&self.path)?,
            (None, Place::Address | Place::Nowhere) => f.write_str(&redact(&self.path))?,
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
