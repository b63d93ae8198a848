//! Samples as Prometheus remote write and OTLP carry them, written with lengths alone: a flood
//! needs no more of protobuf and snappy.

/// A time series with one sample: a field of remote write's `WriteRequest`.
pub(super) fn time_series(name: &str, value: f64, millis: u64) -> Vec<u8> {
    let label = [field(1, b"__name__"), field(2, name.as_bytes())].concat();
    let mut sample = fixed(1, value.to_bits());
    sample.push(2 << 3);
    varint(millis, &mut sample);
    field(1, &[field(1, &label), field(2, &sample)].concat())
}

/// A gauge with one data point: a field of OTLP's `ScopeMetrics`.
pub(super) fn metric(name: &str, value: f64, nanos: u64) -> Vec<u8> {
    let point = [fixed(3, nanos), fixed(4, value.to_bits())].concat();
    let gauge = field(1, &point);
    field(2, &[field(1, name.as_bytes()), field(5, &gauge)].concat())
}

/// OTLP's request to export these fields of a `ScopeMetrics`.
pub(super) fn export(metrics: &[u8]) -> Vec<u8> {
    field(1, &field(2, metrics))
}

/// A snappy block of literals, which compress nothing.
pub(super) fn snappy(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    varint(bytes.len() as u64, &mut out);
    for literal in bytes.chunks(1 << 16) {
        // A literal whose length less one follows in two bytes.
        out.push(61 << 2);
        out.extend(((literal.len() - 1) as u16).to_le_bytes());
        out.extend(literal);
    }
    out
}

/// A field that holds bytes behind their length.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    varint(bytes.len() as u64, &mut out);
    out.extend(bytes);
    out
}

/// A field of eight bytes.
fn fixed(number: u8, bits: u64) -> Vec<u8> {
    let mut out = vec![number << 3 | 1];
    out.extend(bits.to_le_bytes());
    out
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
