//! The calls of librrd's C functions: the only module of this crate with `unsafe`.
//!
//! The safe counterpart is `tsb-rrd`, which shares no code with librrd and is compared with it
//! byte for byte. Every function here takes owned or borrowed C strings, so that pointers are
//! valid during the call, and copies what librrd allocated before freeing it.
#![expect(unsafe_code, reason = "librrd is C")]

use std::ffi::{CStr, CString, c_char, c_int, c_ulong, c_void};
use std::ptr::{null, null_mut};

use crate::calls::{Fetched, InfoValue};

/// Message of this thread's last error, after a failed call.
fn last_error() -> String {
    // SAFETY: librrd returns this thread's own null-terminated buffer, which is unchanged until
    // this thread's next call; it is copied before that.
    let text = unsafe {
        let text = rrd_sys::rrd_get_error();
        if text.is_null() {
            return "librrd gave no reason".to_owned();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    };
    clear_error();
    text
}

fn clear_error() {
    // SAFETY: touches the error buffer of this thread only.
    unsafe { rrd_sys::rrd_clear_error() }
}

/// A C array of strings. librrd copies each before it modifies it.
fn pointers(texts: &[CString]) -> (c_int, Vec<*const c_char>) {
    let pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
    (c_int::try_from(pointers.len()).unwrap_or(c_int::MAX), pointers)
}

fn done(status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(last_error()) }
}

/// The arguments of `rrd_create_r2` besides the path, in C types.
#[derive(Debug)]
pub(crate) struct CreateArgs {
    pub(crate) step_s: u64,
    /// -1: ten seconds ago, or the value from the template or the sources.
    pub(crate) start_s: i64,
    pub(crate) keeps_old: bool,
    pub(crate) sources: Vec<CString>,
    pub(crate) template: Option<CString>,
    pub(crate) definitions: Vec<CString>,
}

pub(crate) fn create(path: &CStr, creation: &CreateArgs) -> Result<(), String> {
    let (count, mut list) = pointers(&creation.definitions);
    let (_, mut sources) = pointers(&creation.sources);
    sources.push(null());
    let sources = if creation.sources.is_empty() {
        null_mut()
    } else {
        sources.as_mut_ptr()
    };
    let template = creation.template.as_ref().map_or(null(), |template| template.as_ptr());
    clear_error();
    // SAFETY: `path`, the texts behind `list`, `sources` and `template` live until the call
    // returns; `count` is the length of `list`; `sources` ends with a null pointer; null stands
    // for "no sources" and "no template".
    done(unsafe {
        rrd_sys::rrd_create_r2(
            path.as_ptr(),
            creation.step_s,
            creation.start_s,
            c_int::from(creation.keeps_old),
            sources,
            template,
            count,
            list.as_mut_ptr(),
        )
    })
}

pub(crate) fn update(path: &CStr, updates: &[CString]) -> Result<(), String> {
    let (count, mut list) = pointers(updates);
    clear_error();
    // SAFETY: as in `create`; null stands for "no template".
    done(unsafe { rrd_sys::rrd_update_r(path.as_ptr(), null(), count, list.as_mut_ptr()) })
}

pub(crate) fn last(path: &CStr) -> Result<i64, String> {
    clear_error();
    // SAFETY: `path` lives until the call returns.
    let last = unsafe { rrd_sys::rrd_last_r(path.as_ptr()) };
    if last < 0 { Err(last_error()) } else { Ok(last) }
}

pub(crate) fn fetch(path: &CStr, function: &CStr, start_s: i64, end_s: i64, step_s: u64) -> Result<Fetched, String> {
    let (mut start, mut end): (rrd_sys::time_t, rrd_sys::time_t) = (start_s, end_s);
    let (mut step, mut sources): (c_ulong, c_ulong) = (step_s, 0);
    let mut names: *mut *mut c_char = null_mut();
    let mut data: *mut f64 = null_mut();
    clear_error();
    // SAFETY: every pointer is to a variable of this function or a text that lives until
    // the call returns. Where it succeeds it has filled all of them.
    done(unsafe {
        rrd_sys::rrd_fetch_r(
            path.as_ptr(),
            function.as_ptr(),
            &raw mut start,
            &raw mut end,
            &raw mut step,
            &raw mut sources,
            &raw mut names,
            &raw mut data,
        )
    })?;
    let (sources, step) = (sources as usize, step.max(1));
    let rows = usize::try_from((end - start) / step as i64).unwrap_or(0);
    // SAFETY: by its manual, and as seen in its answers, librrd gives `sources` names and
    // `sources * rows` values (it makes room for one row more) in memory of its own, which
    // is freed once, here, after the copy. No value may mean no memory, and null is no slice.
    let (sources, values) = unsafe {
        let values = match sources * rows {
            0 => Vec::new(),
            count => std::slice::from_raw_parts(data, count).to_vec(),
        };
        let mut texts = Vec::with_capacity(sources);
        for index in 0..sources {
            let name = *names.add(index);
            texts.push(CStr::from_ptr(name).to_string_lossy().into_owned());
            rrd_sys::rrd_freemem(name.cast::<c_void>());
        }
        rrd_sys::rrd_freemem(names.cast::<c_void>());
        rrd_sys::rrd_freemem(data.cast::<c_void>());
        (texts, values)
    };
    Ok(Fetched {
        // The first row covers the step after `start`.
        first_s: start + step as i64,
        step_s: step,
        sources,
        values,
    })
}

pub(crate) fn first(path: &CStr, archive: c_int) -> Result<i64, String> {
    clear_error();
    // SAFETY: `path` lives until the call returns.
    let first = unsafe { rrd_sys::rrd_first_r(path.as_ptr(), archive) };
    if first < 0 { Err(last_error()) } else { Ok(first) }
}

pub(crate) fn info(path: &CStr) -> Result<Vec<(String, InfoValue)>, String> {
    clear_error();
    // SAFETY: `path` lives until the call returns. The result is null, or the first node of a
    // list that is this function's until it gives it back below.
    let list = unsafe { rrd_sys::rrd_info_r(path.as_ptr()) };
    if list.is_null() {
        return Err(last_error());
    }
    let mut lines = Vec::new();
    let mut next = list;
    while !next.is_null() {
        // SAFETY: `next` is a node of the list, whose key is a zero-ended text; `type_` says
        // which field of the union librrd has set; texts are copied before the list is freed.
        let node = unsafe { &*next };
        // SAFETY: as above.
        let value = unsafe {
            match node.type_ {
                rrd_sys::rrd_info_type_RD_I_VAL => Some(InfoValue::Value(node.value.u_val)),
                rrd_sys::rrd_info_type_RD_I_CNT => Some(InfoValue::Count(node.value.u_cnt)),
                rrd_sys::rrd_info_type_RD_I_STR if !node.value.u_str.is_null() => Some(InfoValue::Text(
                    CStr::from_ptr(node.value.u_str).to_string_lossy().into_owned(),
                )),
                _ => None,
            }
        };
        // SAFETY: as above.
        let key = unsafe { CStr::from_ptr(node.key) }.to_string_lossy().into_owned();
        lines.extend(value.map(|value| (key, value)));
        next = node.next;
    }
    // SAFETY: the whole list, once.
    unsafe { rrd_sys::rrd_info_free(list) };
    Ok(lines)
}

/// A byte buffer with a size limit.
struct BoundedBuffer {
    bytes: Vec<u8>,
    limit: usize,
}

/// The callback that receives a part of a dump; any result other than `length` ends the dump.
unsafe extern "C" fn take(data: *const c_void, length: usize, user: *mut c_void) -> usize {
    if length == 0 {
        // An empty part may come as a null pointer, which is not a valid slice.
        return 0;
    }
    // SAFETY: `user` is the `BoundedBuffer` that `dump` passed to the same call of librrd, which
    // calls back on this thread only, and `dump` does not touch it meanwhile; `data` has `length`
    // bytes, by its contract.
    let (sink, part) = unsafe {
        (
            &mut *user.cast::<BoundedBuffer>(),
            std::slice::from_raw_parts(data.cast::<u8>(), length),
        )
    };
    if sink.bytes.len() + length > sink.limit {
        return 0;
    }
    sink.bytes.extend_from_slice(part);
    length
}

pub(crate) fn dump(path: &CStr, limit: usize) -> Result<Vec<u8>, String> {
    let mut sink = BoundedBuffer {
        bytes: Vec::new(),
        limit,
    };
    clear_error();
    // SAFETY: `path` and `sink` live until the call returns; `take` fits what is called back.
    done(unsafe { rrd_sys::rrd_dump_cb_r(path.as_ptr(), 1, Some(take), (&raw mut sink).cast::<c_void>()) })?;
    Ok(sink.bytes)
}

pub(crate) fn tune(arguments: &[CString]) -> Result<(), String> {
    // IMPORTANT: this call reorders the pointers, and its type says that it may change the texts.
    let mut texts: Vec<Vec<u8>> = arguments.iter().map(|text| text.as_bytes_with_nul().to_vec()).collect();
    let mut list: Vec<*mut c_char> = texts.iter_mut().map(|text| text.as_mut_ptr().cast()).collect();
    let count = c_int::try_from(list.len()).unwrap_or(c_int::MAX);
    // Like the `argv` of a program, the list ends with a null pointer.
    list.push(null_mut());
    clear_error();
    // SAFETY: `list` has `count` pointers to zero-ended texts that may be written to and live
    // until the call returns, and a null pointer behind them.
    done(unsafe { rrd_sys::rrd_tune(count, list.as_mut_ptr()) })
}

pub(crate) fn version() -> String {
    // SAFETY: a constant text of the library.
    unsafe { CStr::from_ptr(rrd_sys::rrd_strversion()) }
        .to_string_lossy()
        .into_owned()
}
