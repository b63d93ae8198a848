//! The `tsb` program: all of it is in the library.

fn main() -> std::process::ExitCode {
    tsb_cli::main()
}
