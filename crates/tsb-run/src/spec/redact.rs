//! Removes credentials from specs and from other text before it is printed.

use super::PathKind;
use super::table::{StoreInfo, known};
use tsb_stores::secret::HIDDEN;

/// If the name of an option contains one of these, its value is a credential.
const SECRET_NAMES: [&str; 7] = ["passw", "passphrase", "pwd", "secret", "token", "bearer", "apikey"];

/// If the name of an option ends in one of these, its value is a credential. Cassandra's
/// `keyspace` does not.
const SECRET_ENDS: [&str; 3] = ["key", "pass", "pw"];

/// Redacts a spec, or a text that was meant to be one: removes the text before the last `@`, the
/// values of options with the name of a credential, and, for a server, the values of unknown
/// options. It removes too much rather than too little, since a password may contain any
/// character.
pub(super) fn redact(text: &str) -> String {
    let info = text.split_once(':').and_then(|(head, _)| of_head(head));
    let user_end = match info {
        // A file's path is printed as it was written.
        Some(info) if info.path == PathKind::Path => None,
        _ if text.starts_with(['?', '&']) => None,
        _ => text.rfind('@'),
    };
    let (clean, rest) = match user_end {
        Some(at) => (format!("{}{HIDDEN}", &text[..user_start(text, at)]), &text[at..]),
        None => (String::new(), text),
    };
    clean + &without_secrets(rest, info)
}

/// The store whose scheme is the last word before the colon.
fn of_head(head: &str) -> Option<&'static StoreInfo> {
    let scheme = head.rsplit('+').next()?;
    known().iter().find(|info| info.scheme == scheme)
}

/// The start of the text before the `@`: after the slashes, or otherwise after the scheme.
fn user_start(text: &str, at: usize) -> usize {
    let behind = |what: &str| text.find(what).map(|start| start + what.len());
    let start = behind("//").filter(|&start| start <= at);
    start.or_else(|| behind(":").filter(|&start| start <= at)).unwrap_or(0)
}

/// The text without the values of secret options.
fn without_secrets(text: &str, info: Option<&StoreInfo>) -> String {
    let options_of = info.filter(|info| info.path.is_address()).map(|info| info.options);
    let is_unknown = |name: &str| {
        options_of.is_some_and(|options| !options.is_empty() && options.iter().all(|option| option.name != name))
    };
    let (address, options) = match text.find('?') {
        Some(at) => text.split_at(at),
        None if text.starts_with('&') => ("", text),
        None => (text, ""),
    };
    let mut clean = address.to_owned();
    for option in options.split_inclusive('&') {
        let (option, end) = option.strip_suffix('&').map_or((option, ""), |option| (option, "&"));
        let is_hidden = |name: &str, value: &str| {
            let name = name.trim_start_matches(['?', '&']);
            // The option `credentials` names a file; a value with a colon is credentials instead.
            is_secret(name) || is_unknown(name) || (name == "credentials" && value.contains(':'))
        };
        match option.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_hidden(name, value) => {
                clean.push_str(name);
                clean.push('=');
                clean.push_str(HIDDEN);
            }
            _ => clean.push_str(option),
        }
        clean.push_str(end);
    }
    clean
}

/// Redacts any text for people (an error, a line of a file): removes the text between `//` and
/// the last `@` of a line, and the values of options with the name of a credential. It removes
/// too much rather than too little, since a password may contain spaces.
pub fn redact_text(text: &str) -> String {
    let clean: Vec<String> = text
        .split('\n')
        .map(|line| redact_options(&redact_user(line)))
        .collect();
    clean.join("\n")
}

/// The line without the values of secret options, wherever they are.
fn redact_options(line: &str) -> String {
    let ends_value = |character: char| character.is_whitespace() || "&\"'`,;)".contains(character);
    let mut clean = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('=') {
        let (before, value) = rest.split_at(at + 1);
        let name = before[..at].rsplit(|character: char| !(character.is_alphanumeric() || "_-.".contains(character)));
        clean.push_str(before);
        let end = value.find(ends_value).unwrap_or(value.len());
        if end > 0 && name.into_iter().next().is_some_and(is_secret) {
            clean.push_str(HIDDEN);
            rest = &value[end..];
        } else {
            rest = value;
        }
    }
    clean.push_str(rest);
    clean
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_ENDS.iter().any(|secret| name.ends_with(secret)) || SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

fn redact_user(address: &str) -> String {
    let Some(start) = address.find("//").map(|at| at + 2) else {
        return address.to_owned();
    };
    let (before, authority) = address.split_at(start);
    // Split at the last `@` of the line, even after a slash: an unescaped password may contain
    // both.
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{before}{HIDDEN}@{host}"),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden_wherever_they_stand() {
        for (text, expected) in [
            ("ring:?slot=30s", "ring:?slot=30s"),
            ("mongo://h:1/db", "mongo://h:1/db"),
            ("mongo://me:pw@h:1/db?w=1", "mongo://***@h:1/db?w=1"),
            ("mongo://me:p@ss/w@h/db", "mongo://***@h/db"),
            (
                "unheard:x?token=abc&db=d&apiKey=1",
                "unheard:x?token=***&db=d&apiKey=***",
            ),
            ("&password=p&x=1", "&password=***&x=1"),
            ("unheard://h?keyspace=k", "unheard://h?keyspace=k"),
            ("mongo://me:p?w@h:1/db?w=1", "mongo://***@h:1/db?w=1"),
            ("mongo://me:p?w=1&x@h:1/db", "mongo://***@h:1/db"),
            ("mongo:me:pw@h/db", "mongo:***@h/db"),
            ("monog://me:pw@h/db", "monog://***@h/db"),
            ("me:pw@h", "me:***@h"),
            ("mongo://h/db?pwd=a&pass=b&w=1", "mongo://h/db?pwd=***&pass=***&w=1"),
            ("mongo://h/db?hunter=2&w=1", "mongo://h/db?hunter=***&w=1"),
            ("write-cache+mongo://me:pw@h/db", "write-cache+mongo://***@h/db"),
            ("influx+http://me:pw@h:1", "influx+http://***@h:1"),
            ("sqlite:/d/a@b.db?commit=1s", "sqlite:/d/a@b.db?commit=1s"),
        ] {
            assert_eq!(redact(text), expected);
            assert_eq!(redact(&redact(text)), expected, "stable");
        }
    }

    #[test]
    fn credentials_are_hidden_in_the_middle_of_a_sentence() {
        for (text, expected) in [
            ("cannot reach h:1", "cannot reach h:1"),
            (
                "cannot emit to influx+http://me:pw@h:1?db=x: no",
                "cannot emit to influx+http://***@h:1?db=x: no",
            ),
            ("'mongo://me:p w@h' and more", "'mongo://***@h' and more"),
            (
                "a: b\nstore = \"mongo://u:p@h\"\n ^^",
                "a: b\nstore = \"mongo://***@h\"\n ^^",
            ),
            (
                "invalid \"x:?token=abc\": token=1",
                "invalid \"x:?token=***\": token=***",
            ),
            ("--rate=5 --api-key=s x", "--rate=5 --api-key=*** x"),
            ("a pwd=x;y and dbpass=z", "a pwd=***;y and dbpass=***"),
            ("p=1&password=p@q&x=2, y", "p=1&password=***&x=2, y"),
        ] {
            assert_eq!(redact_text(text), expected);
            assert_eq!(redact_text(&redact_text(text)), expected, "stable");
        }
    }
}
