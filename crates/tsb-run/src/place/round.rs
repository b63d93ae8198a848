//! A place that is made for one round of a comparison or a search, and removed after it.

use super::Place;
use crate::error::Error;
use crate::spec::Spec;

/// A store at a place of its own, derived from the spec of another: `sqlite:/tmp/x.db` becomes
/// `sqlite:/tmp/x.db-round-3`.
///
/// What is stored there is removed when the value is dropped, unless it was [kept](Self::keep);
/// [`remove`](Self::remove) does the same and says whether it worked. A store that keeps nothing
/// beyond its process has no place, and keeps its spec.
#[derive(Debug)]
pub struct RoundPlace {
    spec: Spec,
    place: Option<Place>,
}

impl RoundPlace {
    /// The place of a round, which has to be empty. Nothing is made before the store is opened.
    ///
    /// # Errors
    /// [`Error::Plan`] if it is not empty, and for a spec that names no place;
    /// [`Error::Unreachable`] if a server does not answer.
    pub fn new(spec: &Spec, round: u32) -> Result<Self, Error> {
        let spec = spec.of_round(round);
        let place = Place::of(&spec)?;
        // IMPORTANT: checked before there is a value whose drop removes the place.
        match &place {
            Some(place) if !place.is_empty()? => Err(refusal(place, round)),
            _ => Ok(Self { spec, place }),
        }
    }

    /// The store of the round.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The place; `None` if the store keeps nothing.
    pub const fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Leaves what is stored there.
    pub fn keep(mut self) {
        self.place = None;
    }

    /// Removes what is stored there. The store has to be closed.
    ///
    /// # Errors
    /// As [`Place::remove`].
    pub fn remove(mut self) -> Result<(), Error> {
        self.place.take().map_or(Ok(()), |place| place.remove())
    }
}

fn refusal(place: &Place, round: u32) -> Error {
    let error = Error::plan(format!("cannot use {place} for round {round}"))
        .because_of("it is not empty: an earlier program ended before it removed it");
    match place.remove_command() {
        Some(command) => error.hint(format!("look at it, then remove it: {command}")),
        None => error.hint("look at it, then remove it by hand"),
    }
}

impl Drop for RoundPlace {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            // An error has no receiver here; the next round of this number is refused and names
            // what is left.
            let _ = place.remove();
        }
    }
}
