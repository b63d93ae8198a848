//! The `tsb` program; everything is in the library.

fn main() -> std::process::ExitCode {
    tsb_cli::main()
}
