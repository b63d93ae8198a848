//! Fuzzes both sides of rrdcached's protocol with arbitrary lines and words.

use tsb_core::wire::rrdcached::{
    Command, Fetched, Reply, StatusLine, Words, batch_error, command, fetched, last_update, line, scientific,
};

/// Asserts that every byte is in one line, that the words of a line survive being written by a
/// client and parsed again, and that what is parsed from a reply is bounded.
pub(super) fn check(bytes: &[u8]) {
    let mut at = 0;
    while let Some((text, len)) = line(&bytes[at..]) {
        assert!(len > text.len() && at + len <= bytes.len() && !text.contains(&b'\n'));
        at += len;
        if let Ok(text) = std::str::from_utf8(text) {
            request(text);
            reply(text);
        }
    }
    assert!(!bytes[at..].contains(&b'\n'));
}

fn request(text: &str) {
    let words: Vec<_> = Words::of(text).collect();
    assert!(words.iter().map(|word| word.len()).sum::<usize>() <= text.len());
    if let Some(command) = words.first().and_then(|word| Command::from_word(word)) {
        assert!(command.name().eq_ignore_ascii_case(&words[0]));
    }
    // A client never sends words that would end the line.
    if words.is_empty()
        || words
            .iter()
            .any(|word| word.is_empty() || word.contains(['\r', '\u{c}']))
    {
        return;
    }
    let plain: Vec<&str> = words.iter().map(|word| &**word).collect();
    let mut again = String::new();
    command(&mut again, &plain);
    let read: Vec<_> = Words::of(again.trim_end_matches('\n')).collect();
    assert_eq!(read, words);
}

fn reply(text: &str) {
    if let Some(status) = StatusLine::parse(text) {
        assert_eq!(status.is_ok(), status.code >= 0);
        assert!(
            status
                .lines()
                .is_none_or(|lines| lines <= tsb_core::wire::rrdcached::LINES_MAX)
        );
    }
    let mut said = String::new();
    Reply::Error(text).put(&mut said);
    assert_eq!(said.matches('\n').count(), 1);
    assert!(batch_error(text).is_none_or(|(number, _)| number > 0));
    let _ = last_update(text);
    if let Some(Fetched::Row(_, value)) = fetched(text) {
        let mut line = "1: ".to_owned();
        scientific(&mut line, value, 17);
        let read = fetched(&line);
        let same = |other: f64| other.to_bits() == value.to_bits() || (other.is_nan() && value.is_nan());
        assert!(matches!(read, Some(Fetched::Row(1, other)) if same(other)), "{line}");
    }
}
