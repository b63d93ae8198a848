//! Reads the tables `[[queries]]` of a run file: streams of queries, key by key.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use tsb_run::plan::{QueryKind, QueryRate, QueryStream};

use super::file::{KeyError, scalar};

/// The keys of a stream that are no parameters of its kind.
pub(super) const QUERY_KEYS: [&str; 3] = ["name", "kind", "rate"];

/// Reads the streams, in the order of the file.
pub(super) fn read(tables: &DeArray<'_>) -> Result<Vec<QueryStream>, KeyError> {
    tables.iter().map(read_stream).collect()
}

fn read_stream(value: &Spanned<DeValue<'_>>) -> Result<QueryStream, KeyError> {
    let DeValue::Table(table) = value.get_ref() else {
        return Err(KeyError::new(
            value.span(),
            "a stream of queries is a table: write [[queries]] above its keys, or queries = \"q1@10/s\"",
        ));
    };
    // First, because it says which parameters there are.
    let kind = text_of(table, "kind")?.ok_or_else(|| missing(value, "kind"))?;
    let mut kind = parsed(&kind, QueryKind::named)?;
    let rate = text_of(table, "rate")?.ok_or_else(|| missing(value, "rate"))?;
    let rate: QueryRate = parsed(&rate, str::parse)?;
    for (key, value) in table {
        let name: &str = key.get_ref();
        if QUERY_KEYS.contains(&name) {
            continue;
        }
        let at = |why: String| KeyError::new(key.span(), why);
        let text = scalar(name, value.get_ref()).map_err(at)?;
        kind.set(name, &text)
            .map_err(|why| at(format!("{}: {why}", kind.word())))?;
    }
    let whole = |why: String| KeyError::new(value.span(), why);
    kind.check().map_err(|why| whole(format!("{}: {why}", kind.word())))?;
    let name = text_of(table, "name")?;
    let stream = QueryStream::new(name.as_ref().map(|name| name.get_ref().as_str()), kind, rate);
    let span = name.map_or(value.span(), |name| name.span());
    stream.map_err(|why| KeyError::new(span, why.to_string()))
}

/// The value of a key as text, at its place in the file.
fn text_of(table: &DeTable<'_>, key: &str) -> Result<Option<Spanned<String>>, KeyError> {
    let Some(value) = table.get(key) else { return Ok(None) };
    let text = scalar(key, value.get_ref()).map_err(|why| KeyError::new(value.span(), why))?;
    Ok(Some(Spanned::new(value.span(), text)))
}

fn parsed<T, E: ToString>(text: &Spanned<String>, parse: impl Fn(&str) -> Result<T, E>) -> Result<T, KeyError> {
    parse(text.get_ref()).map_err(|why| KeyError::new(text.span(), why.to_string()))
}

fn missing(value: &Spanned<DeValue<'_>>, key: &str) -> KeyError {
    let why = format!("a stream of queries has a kind and a rate: {key} is missing");
    KeyError::new(value.span(), why)
}
