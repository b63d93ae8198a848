//! What the store of a spec keeps, its removal at a server, and the spec of a place of its own for
//! a round. [`crate::place`] measures and removes files.

use super::kept::Kept;
use super::table::{Keeps, NamedBy, StoreInfo};
use super::{Spec, Values};
use tsb_stores::error::{Error, Result};

impl Spec {
    /// What the store and its wrappers keep: the innermost first.
    ///
    /// # Errors
    /// [`Error::Spec`] for an address that names no place.
    pub(crate) fn kept(&self) -> Result<Vec<Kept>> {
        let layers = std::iter::once(self.base).chain(self.wrappers.iter().copied());
        let mut kept = Vec::new();
        for layer in layers {
            let values = Values::new(&self.options, layer);
            match layer.keeps {
                Keeps::Nothing => {}
                Keeps::Files { find, .. } => kept.extend(find(&self.path, &values).map(Kept::Files)),
                Keeps::AtServer { find, .. } => {
                    let found = find(&self.path, &values).map_err(|error| self.named(error))?;
                    kept.push(Kept::AtServer(found));
                }
            }
        }
        Ok(kept)
    }

    /// Removes what the innermost store keeps at a server.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if no client can remove it, otherwise as for opening.
    pub(crate) fn remove_at_server(&self) -> Result<()> {
        let Keeps::AtServer {
            remove: Some(remove), ..
        } = self.base.keeps
        else {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "removing what it keeps",
            });
        };
        let values = Values::new(&self.options, self.base).with_credentials(self.credentials.as_ref());
        remove(&self.path, &values).map_err(|error| self.named(error))
    }

    /// The same store at a place of its own for a round: each part of the spec that names a place
    /// gets the number. A store that keeps nothing stays as it is.
    #[must_use]
    pub(crate) fn of_round(&self, round: u32) -> Self {
        let mut spec = self.clone();
        let layers = std::iter::once(self.base).chain(self.wrappers.iter().copied());
        for layer in layers {
            match layer.keeps {
                Keeps::Nothing => {}
                Keeps::Files { named_by, .. } | Keeps::AtServer { named_by, .. } => spec.number(layer, named_by, round),
            }
        }
        spec
    }

    fn number(&mut self, layer: &StoreInfo, named_by: NamedBy, round: u32) {
        let (wanted, suffix) = match named_by {
            NamedBy::Path(joint) => {
                self.path = format!("{}{joint}round{joint}{round}", self.path.trim_end_matches('/'));
                return;
            }
            NamedBy::Option(name) => (name, format!("-round-{round}")),
            NamedBy::Prefix(name) => (name, format!("round-{round}-")),
        };
        match self.options.iter_mut().find(|(name, _)| name == wanted) {
            Some((_, value)) => value.push_str(&suffix),
            None if matches!(named_by, NamedBy::Prefix(_)) => self.options.push((wanted.to_owned(), suffix)),
            None => {
                let named = layer.options.iter().find(|option| option.name == wanted);
                if let Some(default) = named.and_then(|option| option.default) {
                    self.options.push((wanted.to_owned(), format!("{default}{suffix}")));
                }
            }
        }
    }
}
