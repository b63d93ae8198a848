//! What the line protocols of InfluxDB and QuestDB have in common.

/// A text as a field of a line, in quotation marks, which it cannot end.
pub(crate) fn string_field(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_end_its_field() {
        assert_eq!(string_field("a\"b\\"), "\"a\\\"b\\\\\"");
    }
}
