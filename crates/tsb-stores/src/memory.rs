//! wip

mod codec;
