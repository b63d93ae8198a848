//! Payloads with ever new names, in the protocol of each listener.

/// What stands before the table in a page of results.
pub(super) const PREFACE: &str = "\
# Floods

What `cargo xtask floods` printed: each listener under a flood, the bound of its memory that \
[limits.md](../limits.md) states for the limits it was started with, and the peak that the kernel measured (`VmHWM`).
";

/// Bytes of the names of a flood that has many.
pub(super) const SHORT_NAME: usize = 24;

/// How samples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Graphite,
    Influx,
    InfluxHttp,
    Put,
    KairosdbHttp,
    HawkularHttp,
    Pickle,
    Statsd,
    Tsb,
    DalmatinerStream,
    DalmatinerJuly,
    Rrdcached,
}

impl Wire {
    /// Bytes of the longest names that it carries, about.
    pub(super) fn longest_name(self) -> usize {
        match self {
            Self::Graphite | Self::Pickle => 16_000,
            Self::Influx | Self::InfluxHttp | Self::DalmatinerJuly => 30_000,
            Self::Put | Self::KairosdbHttp | Self::HawkularHttp => 900,
            Self::Statsd => 400,
            Self::DalmatinerStream => 20_000,
            Self::Tsb | Self::Rrdcached => 0,
        }
    }

    /// Samples that are sent together.
    pub(super) fn together(name_bytes: usize, is_datagrams: bool) -> usize {
        let room = if is_datagrams { 32 << 10 } else { 512 << 10 };
        (room / (name_bytes + 64)).max(1)
    }

    /// What a connection begins with.
    pub(super) fn prelude(self) -> Vec<u8> {
        match self {
            // A frame with the command that enters stream mode: delay, and a bucket.
            Self::DalmatinerStream => {
                let mut frame = vec![0, 0, 0, 5, 4, 1, 2];
                frame.extend(b"bu");
                frame
            }
            Self::InfluxHttp => post(
                "/query",
                "application/x-www-form-urlencoded",
                b"q=CREATE%20DATABASE%20f",
            ),
            _ => Vec::new(),
        }
    }

    /// Samples of the names with these numbers.
    pub(super) fn samples(self, numbers: std::ops::Range<u64>, name_bytes: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for number in numbers {
            self.sample(number, &name(number, name_bytes), &mut out);
        }
        match self {
            Self::Pickle => pickle(&out),
            Self::InfluxHttp => post("/write?db=f", "text/plain", &out),
            Self::KairosdbHttp => {
                out.pop();
                post(
                    "/api/v1/datapoints",
                    "application/json",
                    &[b"[", out.as_slice(), b"]"].concat(),
                )
            }
            Self::HawkularHttp => {
                out.pop();
                let body = [b"[", out.as_slice(), b"]"].concat();
                post("/hawkular/metrics/gauges/raw", "application/json", &body)
            }
            _ => out,
        }
    }

    fn sample(self, number: u64, name: &str, out: &mut Vec<u8>) {
        let at = 1_700_000_000_u64;
        let text = match self {
            Self::Graphite => format!("{name} {number} {at}\n"),
            Self::Influx | Self::InfluxHttp => format!("{name} v={number} {at}000000000\n"),
            Self::Put => format!("put {name} {at} {number} h=a\n"),
            Self::KairosdbHttp => {
                format!("{{\"name\":\"{name}\",\"datapoints\":[[{at}000,{number}]],\"tags\":{{\"h\":\"a\"}}}},")
            }
            Self::HawkularHttp => {
                format!("{{\"id\":\"{name}\",\"data\":[{{\"timestamp\":{at}000,\"value\":{number}}}]}},")
            }
            Self::Statsd => format!("{name}:{number}|g\n"),
            // (name, (time, value)), as the second protocol of pickles has it.
            Self::Pickle => {
                out.push(b'X');
                out.extend((name.len() as u32).to_le_bytes());
                out.extend(name.as_bytes());
                out.push(b'J');
                out.extend((at as u32).to_le_bytes());
                out.push(b'G');
                out.extend((number as f64).to_be_bytes());
                out.extend([0x86, 0x86]);
                return;
            }
            // A name is elements, each behind its length.
            Self::DalmatinerStream => {
                let elements: Vec<&[u8]> = name.as_bytes().chunks(200).collect();
                out.push(5);
                out.extend(at.to_be_bytes());
                out.extend(((name.len() + elements.len()) as u16).to_be_bytes());
                for element in elements {
                    out.push(element.len() as u8);
                    out.extend(element);
                }
                out.extend(8_u32.to_be_bytes());
                out.extend((1 << 56 | number).to_be_bytes());
                return;
            }
            Self::DalmatinerJuly => {
                out.push(0);
                out.extend(at.to_be_bytes());
                out.extend([2, b'b', b'u']);
                out.extend((name.len() as u16).to_be_bytes());
                out.extend(name.as_bytes());
                out.extend(9_u16.to_be_bytes());
                out.push(1);
                out.extend(number.to_be_bytes());
                return;
            }
            Self::Tsb | Self::Rrdcached => String::new(),
        };
        out.extend(text.as_bytes());
    }

    /// The beginning of a record that never ends.
    pub(super) fn half(self) -> Vec<u8> {
        match self {
            Self::InfluxHttp => b"POST /write?db=f HTTP/1.1\r\nHost: h\r\nContent-Length: 24000000\r\n\r\n".to_vec(),
            Self::KairosdbHttp => {
                b"POST /api/v1/datapoints HTTP/1.1\r\nHost: h\r\nContent-Length: 24000000\r\n\r\n[".to_vec()
            }
            Self::HawkularHttp => {
                let target = "/hawkular/metrics/gauges/raw";
                format!("POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 24000000\r\n\r\n[").into_bytes()
            }
            // As long as a frame may be.
            Self::Pickle => 0x000f_fff0_u32.to_be_bytes().to_vec(),
            _ => self.prelude(),
        }
    }
}

/// A name of `bytes` bytes, different for each number.
fn name(number: u64, bytes: usize) -> String {
    let mut name = format!("flood.n{number}");
    let fill = bytes.saturating_sub(name.len());
    name.extend(std::iter::repeat_n('x', fill));
    name
}

/// A list of tuples, as carbon's pickle receiver reads it: a length before it.
fn pickle(tuples: &[u8]) -> Vec<u8> {
    let mut body = b"\x80\x02](".to_vec();
    body.extend(tuples);
    body.extend(b"e.");
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body);
    frame
}

fn post(target: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut request =
        format!("POST {target} HTTP/1.1\r\nHost: h\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n")
            .into_bytes();
    request.extend(body);
    request
}
