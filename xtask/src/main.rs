//! The workspace's own jobs: `cargo xtask ci`, `tidy`, `peers`.

fn main() {}
