//! Names: placeholders, invented UUIDs, and the two forms of a key.

use super::hash::{Purpose, Stream};
use super::spec::KeyForm;
use crate::series::SeriesKey;

/// The position of a series, as far as its name contains it.
#[derive(Debug)]
pub(crate) struct SeriesPosition {
    pub(crate) seed: u64,
    pub(crate) form: KeyForm,
    pub(crate) host: u64,
    pub(crate) hostname: String,
}

/// The name of a host.
pub(crate) fn hostname(template: &str, seed: u64, host: u64) -> String {
    let mut stream = Stream::new(seed, Purpose::Name, host);
    template
        .replace("{host}", &format!("{host:05}"))
        .replace("{host_uuid}", &uuid(&mut stream))
}

impl SeriesPosition {
    /// The key of a series that was drawn by share.
    pub(crate) fn by_share(&self, template: &str, item: u32) -> SeriesKey {
        let number = format!("{item:05}");
        let made_up = if template.contains("{uuid}") {
            self.uuid(0, item)
        } else {
            String::new()
        };
        match self.form {
            KeyForm::Name => {
                let name = template
                    .replace("{hostname}", &self.hostname)
                    .replace("{item}", &number);
                SeriesKey::new(name.replace("{uuid}", &made_up))
            }
            KeyForm::Labels => {
                // The rest of the name after the placeholders have become labels.
                let name = ["{hostname}", "{item}", "{uuid}"]
                    .iter()
                    .fold(template.to_owned(), |name, placeholder| name.replace(placeholder, ""));
                let parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty()).collect();
                let item = if made_up.is_empty() { number } else { made_up };
                SeriesKey::with_labels(
                    parts.join("."),
                    [("host", self.hostname.as_str()), ("item", item.as_str())],
                )
            }
        }
    }

    /// The name of one instance of a scope.
    pub(crate) fn instance(&self, scope: &str, template: &str, number: u32) -> String {
        if !template.contains("{uuid") {
            return template.replace("{n}", &number.to_string());
        }
        // The scopes of one host must have different UUIDs.
        let salt = scope
            .bytes()
            .fold(1u64, |salt, byte| salt.wrapping_mul(257).wrapping_add(u64::from(byte)));
        let uuid = self.uuid(salt, number);
        template
            .replace("{n}", &number.to_string())
            .replace("{uuid30}", &uuid[..30])
            .replace("{uuid}", &uuid)
    }

    /// The key of a series that belongs to an instance of a scope.
    pub(crate) fn by_scope(&self, family: &str, key: &str, scope: &str, instance: &str) -> SeriesKey {
        let in_name = family.contains("{instance}");
        match self.form {
            KeyForm::Name => {
                let mut name = format!("{}.{key}", family.replace("{instance}", instance));
                // An invented zone id already identifies the host; other names do not.
                if instance.len() < 30 {
                    name.push('.');
                    name.push_str(&self.hostname);
                }
                if !in_name && !instance.is_empty() {
                    name.push('.');
                    name.push_str(instance);
                }
                SeriesKey::new(name)
            }
            KeyForm::Labels => {
                let name = format!("{}.{key}", family.replace(".{instance}", ""));
                let mut labels = vec![("host", self.hostname.as_str())];
                if !instance.is_empty() {
                    labels.push((scope, instance));
                }
                SeriesKey::with_labels(name, labels)
            }
        }
    }

    fn uuid(&self, salt: u64, number: u32) -> String {
        let index = (self.host << 32) ^ u64::from(number);
        uuid(&mut Stream::new(
            self.seed ^ salt.rotate_left(32),
            Purpose::Name,
            index.wrapping_add(1 << 63),
        ))
    }
}

/// The key of a later generation of a series.
pub(crate) fn generation(key: SeriesKey, generation: u32, form: KeyForm) -> SeriesKey {
    if generation == 0 {
        return key;
    }
    match form {
        KeyForm::Name => SeriesKey::new(format!("{}.g{generation}", key.name())),
        KeyForm::Labels => {
            let mut labels = key.labels().to_vec();
            labels.push(("generation".to_owned(), generation.to_string()));
            SeriesKey::with_labels(key.name(), labels)
        }
    }
}

/// A version-4 UUID.
fn uuid(stream: &mut Stream) -> String {
    let high = (stream.next() & !0xf000) | 0x4000;
    let low = (stream.next() & (u64::MAX >> 2)) | (1 << 63);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}
