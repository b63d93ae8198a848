//! placeholder
pub(crate) fn missing() -> Option<String> {
    None
}
pub(crate) fn run(_: &[&str]) -> anyhow::Result<()> {
    Ok(())
}
