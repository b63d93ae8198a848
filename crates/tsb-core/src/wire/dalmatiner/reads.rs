//! Answers what the last version's clients ask in command mode: the points of a metric, the metrics
//! of a bucket, the buckets, and what a bucket is like.

use std::ops::ControlFlow;

use snap::raw::Encoder as Snappy;

use super::{bucket, elements, first_of, key_of_elements, point_of};
use crate::bytes::{cut, cut_slice};
use crate::series::SeriesKey;
use crate::time::{SECOND_NS, Timestamp};
use crate::wire::SampleReader;

/// Most points of an answer: 12 days of seconds, 8 MiB.
const POINTS_MAX: u32 = 1 << 20;
/// Most bytes of a list.
const LIST_MAX: usize = 64 << 20;
/// Points that an answer compresses at a time.
const PART: usize = 64 << 10;

/// Milliseconds of a point, points of a file, and the version's other properties of a bucket:
/// points are accepted at any time, are of 8 bytes, and are kept for ever.
const RESOLUTION_MS: u64 = 1_000;
const POINTS_PER_FILE: u64 = 604_800;

/// Answers to the requests of one connection.
#[derive(Debug)]
pub(super) struct Reads {
    reader: Box<dyn SampleReader>,
    snappy: Snappy,
    /// Answers that were not handed out yet.
    pub(super) answers: Vec<u8>,
}

/// A request that reads.
#[derive(Debug, PartialEq, Eq)]
enum Request<'a> {
    Get {
        bucket: &'a [u8],
        metric: &'a [u8],
        seconds: u64,
        count: u32,
    },
    Metrics(&'a [u8]),
    Buckets,
    BucketInfo,
}

impl<'a> Request<'a> {
    /// Parses the body of a frame; `None` if it is no request that reads.
    fn parse(mut body: &'a [u8]) -> Option<Self> {
        let [code] = cut(&mut body)?;
        match code {
            1 => in_bucket(&mut body).filter(|_| body.is_empty()).map(Self::Metrics),
            2 => {
                let bucket = in_bucket(&mut body)?;
                let length = u16::from_be_bytes(cut(&mut body)?);
                let metric = cut_slice(&mut body, usize::from(length))?;
                let seconds = u64::from_be_bytes(cut(&mut body)?);
                let count = u32::from_be_bytes(cut(&mut body)?);
                // High-precision times, read repair, and the copies that must answer: there is one.
                let [_, _, _] = cut(&mut body)?;
                body.is_empty().then_some(Self::Get {
                    bucket,
                    metric,
                    seconds,
                    count,
                })
            }
            3 => body.is_empty().then_some(Self::Buckets),
            7 => in_bucket(&mut body)
                .filter(|_| body.is_empty())
                .map(|_| Self::BucketInfo),
            _ => None,
        }
    }
}

/// A bucket after its length.
fn in_bucket<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let [length] = cut(body)?;
    cut_slice(body, usize::from(length))
}

impl Reads {
    pub(super) fn new(reader: Box<dyn SampleReader>) -> Self {
        Self {
            reader,
            snappy: Snappy::new(),
            answers: Vec::new(),
        }
    }

    /// Answers the body of a frame. What the store cannot answer is answered by an error message;
    /// returns false if it is no request that reads, and nothing is answered.
    pub(super) fn answer(&mut self, body: &[u8]) -> bool {
        let Some(request) = Request::parse(body) else {
            return false;
        };
        let answered = match request {
            Request::Get {
                bucket,
                metric,
                seconds,
                count,
            } => key_of_elements(bucket, metric)
                .map_err(str::to_owned)
                .and_then(|key| self.get(&key, seconds, count)),
            Request::Metrics(of) => self.metrics(of),
            Request::Buckets => {
                self.buckets();
                Ok(())
            }
            Request::BucketInfo => {
                let mut info = Vec::with_capacity(33);
                for number in [RESOLUTION_MS, POINTS_PER_FILE, 0] {
                    info.extend_from_slice(&number.to_be_bytes());
                }
                info.push(0);
                info.extend_from_slice(&0_u64.to_be_bytes());
                self.frame(&info);
                Ok(())
            }
        };
        if let Err(why) = answered {
            let mut why = why;
            why.truncate((0..=255).rev().find(|end| why.is_char_boundary(*end)).unwrap_or(0));
            self.frame(&[&[255, why.len() as u8], why.as_bytes()].concat());
        }
        true
    }

    fn frame(&mut self, body: &[u8]) {
        self.answers.extend_from_slice(&(body.len() as u32).to_be_bytes());
        self.answers.extend_from_slice(body);
    }

    /// The points of a metric: unset ones are 0, and those behind the last are padding.
    fn get(&mut self, key: &SeriesKey, seconds: u64, count: u32) -> Result<(), String> {
        if count > POINTS_MAX {
            return Err(format!(
                "{count} points are too many: an answer has at most {POINTS_MAX}"
            ));
        }
        let start = first_of(seconds, count as usize).ok_or("a time is out of range")?;
        let end = start + i64::from(count) * SECOND_NS as i64;
        let mut data: Vec<u8> = Vec::new();
        let mut take = |times: &[Timestamp], values: &[f64]| {
            for (at, value) in times.iter().zip(values) {
                let place = (*at - start).div_euclid(SECOND_NS as i64) as usize * 8;
                // What the format cannot hold, such as NaN, is a point that is not set.
                let Some(point) = point_of(*value).filter(|_| place < 8 * count as usize) else {
                    continue;
                };
                if data.len() < place + 8 {
                    data.resize(place + 8, 0);
                }
                data[place..place + 8].copy_from_slice(&point.to_be_bytes());
            }
            ControlFlow::Continue(())
        };
        self.reader.samples(key, start, end, &mut take)?;
        self.frame(&[255]);
        let padding = count - (data.len() / 8) as u32;
        let mut parts = data.chunks(8 * PART).peekable();
        while let Some(part) = parts.next() {
            let packed = self.snappy.compress_vec(part).map_err(|error| error.to_string())?;
            if padding > 0 && parts.peek().is_none() {
                self.frame(&[&[3], &padding.to_be_bytes()[..], &packed].concat());
            } else {
                self.frame(&[&[1], &packed[..]].concat());
            }
        }
        if data.is_empty() && padding > 0 {
            let packed = self.snappy.compress_vec(&[]).map_err(|error| error.to_string())?;
            self.frame(&[&[3], &padding.to_be_bytes()[..], &packed].concat());
        }
        self.frame(&[0]);
        Ok(())
    }

    fn metrics(&mut self, of: &[u8]) -> Result<(), String> {
        let mut list = Vec::new();
        for key in self.reader.keys() {
            // A series that this wire cannot name was written by another.
            let Ok(metric) = elements(&key) else { continue };
            if bucket(&key).is_ok_and(|bucket| bucket.as_bytes() == of) {
                list.extend_from_slice(&(metric.len() as u16).to_be_bytes());
                list.extend_from_slice(&metric);
            }
            if list.len() > LIST_MAX {
                return Err(format!(
                    "the bucket has too many metrics: a list has at most {LIST_MAX} bytes"
                ));
            }
        }
        self.frame(&[&(list.len() as u64).to_be_bytes()[..], &list].concat());
        Ok(())
    }

    fn buckets(&mut self) {
        let keys = self.reader.keys();
        let mut names: Vec<&str> = keys.iter().filter_map(|key| bucket(key).ok()).collect();
        names.sort_unstable();
        names.dedup();
        let mut list = Vec::new();
        for name in names {
            list.push(name.len() as u8);
            list.extend_from_slice(name.as_bytes());
        }
        self.frame(&[&(list.len() as u32).to_be_bytes()[..], &list].concat());
    }
}
