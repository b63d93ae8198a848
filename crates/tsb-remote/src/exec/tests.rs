//! The codec, on its own and with real programs.

mod codec;
mod hazards;
