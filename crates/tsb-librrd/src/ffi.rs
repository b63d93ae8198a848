//! The calls themselves: the one place of this crate with `unsafe`.
//!
//! Its twin is `tsb-rrd`, which shares no code with librrd and is compared with it byte for
//! byte. Every function here takes owned or borrowed C strings, so that pointers are valid
//! for the call, and copies what librrd allocated before it frees it.
#![expect(unsafe_code, reason = "librrd is C")]

use std::ffi::{CStr, CString, c_char, c_int, c_ulong, c_void};
use std::ptr::{null, null_mut};

use crate::calls::Fetched;

/// The text of the last error of this thread, after a call that failed.
fn last_error() -> String {
    // SAFETY: librrd returns its own zero-ended buffer of this thread, which stays as it is
    // until this thread's next call; it is copied before that.
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

/// As C has lists of texts. librrd copies each before it changes it.
fn pointers(texts: &[CString]) -> (c_int, Vec<*const c_char>) {
    let pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
    (c_int::try_from(pointers.len()).unwrap_or(c_int::MAX), pointers)
}

fn done(status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(last_error()) }
}

pub(crate) fn create(path: &CStr, step_s: u64, start_s: i64, definitions: &[CString]) -> Result<(), String> {
    let (count, mut list) = pointers(definitions);
    clear_error();
    // SAFETY: `path` and the texts behind `list` live until the call returns, `count` is
    // the length of `list`, and null stands for "no sources" and "no template".
    done(unsafe {
        rrd_sys::rrd_create_r2(
            path.as_ptr(),
            step_s,
            start_s,
            1,
            null_mut(),
            null(),
            count,
            list.as_mut_ptr(),
        )
    })
}

pub(crate) fn update(path: &CStr, readings: &[CString]) -> Result<(), String> {
    let (count, mut list) = pointers(readings);
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
    // is freed once, here, after the copy.
    let values = unsafe {
        let values = std::slice::from_raw_parts(data, sources * rows).to_vec();
        for index in 0..sources {
            rrd_sys::rrd_freemem((*names.add(index)).cast::<c_void>());
        }
        rrd_sys::rrd_freemem(names.cast::<c_void>());
        rrd_sys::rrd_freemem(data.cast::<c_void>());
        values
    };
    Ok(Fetched {
        // The first row holds the step after `start`.
        first_s: start + step as i64,
        step_s: step,
        sources,
        values,
    })
}

pub(crate) fn version() -> String {
    // SAFETY: a constant text of the library.
    unsafe { CStr::from_ptr(rrd_sys::rrd_strversion()) }
        .to_string_lossy()
        .into_owned()
}
