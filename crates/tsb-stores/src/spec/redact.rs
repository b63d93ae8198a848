//! Credentials leave no trace: what is printed of a description has none.

/// What stands in for a credential.
const HIDDEN: &str = "***";

/// Words in an option's name that make its value a credential.
const SECRET_NAMES: [&str; 4] = ["password", "passwd", "secret", "token"];

/// `text` without the user part of an address (`//user:word@host`) and without the
/// values of options that are named like a credential.
pub(super) fn redact(text: &str) -> String {
    let (address, options) = match text.find('?') {
        Some(at) => text.split_at(at),
        None if text.starts_with('&') => ("", text),
        None => (text, ""),
    };
    let mut clean = redact_user(address);
    for option in options.split_inclusive('&') {
        let (option, end) = option.strip_suffix('&').map_or((option, ""), |option| (option, "&"));
        match option.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret(name) => {
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

/// Any text for people (an error, a line of a file) without the credentials that stand in it:
/// what lies between `//` and the last `@` of a line, and the values of options that are named
/// like a credential. It rather hides too much: a password may hold spaces.
pub fn redact_text(text: &str) -> String {
    let clean: Vec<String> = text
        .split('\n')
        .map(|line| redact_options(&redact_user(line)))
        .collect();
    clean.join("\n")
}

/// A line without the values of secret options, wherever in it they stand.
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
    // Cassandra's `keyspace` is none.
    name.ends_with("key") || SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

fn redact_user(address: &str) -> String {
    let Some(start) = address.find("//").map(|at| at + 2) else {
        return address.to_owned();
    };
    let (before, authority) = address.split_at(start);
    // The last @, and not before the first slash only: a careless password may hold both.
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
            ("influx:x?token=abc&db=d&apiKey=1", "influx:x?token=***&db=d&apiKey=***"),
            ("&password=p&x=1", "&password=***&x=1"),
            ("cassandra://h?keyspace=k", "cassandra://h?keyspace=k"),
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
            ("p=1&password=p@q&x=2, y", "p=1&password=***&x=2, y"),
        ] {
            assert_eq!(redact_text(text), expected);
            assert_eq!(redact_text(&redact_text(text)), expected, "stable");
        }
    }
}
