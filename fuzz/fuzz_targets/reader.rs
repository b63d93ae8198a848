//! A target of libFuzzer: the reader that its binary is named for.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tsb_fuzz::check(env!("CARGO_BIN_NAME"), bytes));
