//! What operations carry: samples to be written, or anything else that a target takes.

use std::fmt::Debug;

use crate::batch::Batch;

/// What one operation carries: borrowed from the source that prepared it.
pub trait Payload: Copy + Debug {
    /// Number of samples, under which the operation is counted: 1 for a payload without samples,
    /// such as a query. An operation with 0 is not sent.
    fn samples(&self) -> u64;
}

impl Payload for Batch<'_> {
    #[inline]
    fn samples(&self) -> u64 {
        self.len() as u64
    }
}

/// A kind of operation: names the payload that sources of this kind prepare and targets take.
///
/// An operation borrows its payload, so a kind is a type without values that has a payload for
/// each lifetime. [`Writes`] is the kind of everything that sends samples; a program that drives
/// something else declares its own:
///
/// ```
/// use tsb_core::emit::{Kind, Operation, Outcome, Payload, Target};
///
/// /// The key and the value of a put.
/// #[derive(Clone, Copy, Debug)]
/// struct Put<'a>(&'a str, f64);
///
/// impl Payload for Put<'_> {
///     fn samples(&self) -> u64 {
///         1
///     }
/// }
///
/// enum Puts {}
///
/// impl Kind for Puts {
///     type Payload<'a> = Put<'a>;
/// }
///
/// fn target(map: &mut std::collections::BTreeMap<String, f64>) -> impl Target<Puts> {
///     |put: &Operation<'_, Puts>| {
///         let Put(key, value) = put.payload;
///         map.insert(key.to_owned(), value);
///         Outcome::Done { accepted: 1, rejected: 0 }
///     }
/// }
///
/// let mut map = Default::default();
/// let (begun, slot) = (None, Default::default());
/// let put = Operation { payload: Put("load", 1.5), due: 0, begun, late_ns: 0, slot };
/// let _ = target(&mut map).send(&put);
/// assert_eq!(map["load"], 1.5);
/// ```
pub trait Kind: 'static {
    /// The payload of one operation.
    type Payload<'a>: Payload;
}

/// Writes: each operation carries a [`Batch`].
#[derive(Clone, Copy, Debug)]
pub enum Writes {}

impl Kind for Writes {
    type Payload<'a> = Batch<'a>;
}

#[cfg(test)]
mod tests;
