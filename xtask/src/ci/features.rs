//! Selects the features that can be built here: all of them, or all except those that need
//! librrd.

use anyhow::{Context, Result};
use serde_json::Value;

use super::packages;
use crate::shell::{capture, cargo};

/// The feature that needs a library of the system.
const NEEDS_LIBRRD: &str = "librrd";

/// The arguments of cargo for them.
pub(crate) fn every() -> Result<Vec<String>> {
    if packages::has_librrd() {
        return Ok(vec!["--all-features".to_owned()]);
    }
    println!("without the feature {NEEDS_LIBRRD}: librrd-dev or libclang-dev is not installed");
    let metadata = capture(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    Ok(vec!["--features".to_owned(), others(&metadata, NEEDS_LIBRRD).join(",")])
}

/// Every other feature, as `package/feature`.
fn others(metadata: &Value, unwanted: &str) -> Vec<String> {
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let mut names = Vec::new();
    for package in packages {
        let Some(name) = package["name"].as_str() else { continue };
        let features = package["features"].as_object().cloned().unwrap_or_default();
        let wanted = features.keys().filter(|feature| *feature != unwanted);
        names.extend(wanted.map(|feature| format!("{name}/{feature}")));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_features_but_one_are_named() {
        let metadata = serde_json::json!({"packages": [
            {"name": "p", "features": {"net": [], "librrd": [], "default": []}},
            {"name": "q", "features": {}},
        ]});
        assert_eq!(others(&metadata, NEEDS_LIBRRD), ["p/default", "p/net"]);
    }
}
