//! The end of `tsb ingest`.

use std::process::{Child, Command};

use serde_json::Value;

/// Ends a listener by Ctrl-C, and returns what it prints then.
pub(crate) fn interrupted(child: Child) -> Value {
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(asked.unwrap().success());
    ended(child)
}

/// What a listener prints that ends in order.
pub(crate) fn ended(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
