//! An SQLite VFS that passes everything on to the system's and keeps, beside it, what a
//! medium would hold if the power went now.
//!
//! What is certain and what may be there is kept by the suite's [`LossyDisk`]. At moments
//! given in advance an image is taken: what is certain, and a random choice of the rest. The same VFS can make syncs fail, or every write find the disk full.

#![expect(unsafe_code, reason = "SQLite calls a VFS through pointers")]
#![expect(clippy::unwrap_used, reason = "a VFS has nobody to tell")]

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, MutexGuard};

use rusqlite::ffi;
use tsb_stores::conformance::{LossyDisk, LossyFile};

/// What goes wrong from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Sync,
    Full,
}

/// What is left after a power cut.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) operation: u64,
    /// Writes of the script that had been synced, and that had begun.
    pub(crate) synced: u64,
    pub(crate) begun: u64,
    disk: LossyDisk,
}

impl Image {
    pub(crate) fn put_into(&self, folder: &Path) {
        for name in self.disk.names() {
            let bytes = self.disk.open(&name).read_all();
            let name = Path::new(&name).file_name().unwrap();
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    }
}

#[derive(Debug, Default)]
struct State {
    disk: LossyDisk,
    operations: u64,
    cuts: BTreeSet<u64>,
    images: Vec<Image>,
    synced: u64,
    begun: u64,
    random: u64,
    fault: Option<Fault>,
}

impl State {
    fn chance(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// Counts an operation, before it happens.
    fn operation(&mut self) {
        self.operations += 1;
        if self.cuts.contains(&self.operations) {
            let image = self.image();
            self.images.push(image);
        }
    }

    fn image(&mut self) -> Image {
        let seed = self.chance();
        self.image_by(seed)
    }

    fn image_by(&self, seed: u64) -> Image {
        Image {
            operation: self.operations,
            synced: self.synced,
            begun: self.begun,
            disk: self.disk.after_power_cut(seed),
        }
    }
}

/// A registered VFS. It is never taken away: SQLite may use it until the process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    name: &'static str,
    state: &'static Mutex<State>,
}

/// What SQLite keeps for an open file: ours in front, the system's behind it.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    state: &'static Mutex<State>,
    /// What the medium has; nothing of the index of the log, which no power cut keeps.
    kept: Option<LossyFile>,
    real: *mut ffi::sqlite3_file,
}

struct Vfs {
    real: *mut ffi::sqlite3_vfs,
    state: &'static Mutex<State>,
}

impl Medium {
    pub(crate) fn register(name: &str, seed: u64) -> Self {
        let name: &'static CString = Box::leak(Box::new(CString::new(name).unwrap()));
        let state: &'static Mutex<State> = Box::leak(Box::new(Mutex::new(State {
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            ..State::default()
        })));
        // SAFETY: SQLite is initialised by the first call; the default VFS is there for the
        // life of the process, and ours, like all it points to, is leaked.
        unsafe {
            ffi::sqlite3_initialize();
            let real = ffi::sqlite3_vfs_find(ptr::null());
            let mut vfs = *real;
            vfs.pNext = ptr::null_mut();
            vfs.zName = name.as_ptr();
            vfs.szOsFile = size_of::<File>() as c_int + (*real).szOsFile;
            vfs.pAppData = Box::into_raw(Box::new(Vfs { real, state })).cast();
            vfs.xOpen = Some(open);
            vfs.xDelete = Some(delete);
            vfs.xAccess = Some(access);
            vfs.xFullPathname = Some(full_pathname);
            let registered = ffi::sqlite3_vfs_register(Box::into_raw(Box::new(vfs)), 0);
            assert_eq!(registered, ffi::SQLITE_OK);
        }
        Self {
            name: name.to_str().unwrap(),
            state,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.name
    }

    fn state(&self) -> MutexGuard<'static, State> {
        self.state.lock().unwrap()
    }

    /// Takes so many images, at operations chosen at random below `below`.
    pub(crate) fn cut_about(&self, cuts: u32, below: u64) {
        let mut state = self.state();
        while (state.cuts.len() as u32) < cuts {
            let at = state.chance() % below + 1;
            state.cuts.insert(at);
        }
    }

    pub(crate) fn note_begun(&self, writes: u64) {
        self.state().begun = writes;
    }

    pub(crate) fn note_synced(&self, writes: u64) {
        self.state().synced = writes;
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }

    pub(crate) fn operations(&self) -> u64 {
        self.state().operations
    }

    /// What is left when the power goes now.
    pub(crate) fn cut_now(&self, seed: u64) -> Image {
        self.state().image_by(seed)
    }

    pub(crate) fn images(&self) -> Vec<Image> {
        std::mem::take(&mut self.state().images)
    }
}

/// The VFS behind ours.
///
/// # Safety
/// `vfs` is one that [`Medium::register`] has made.
unsafe fn behind<'a>(vfs: *mut ffi::sqlite3_vfs) -> &'a Vfs {
    // SAFETY: registration has put a leaked `Vfs` there.
    unsafe { &*(*vfs).pAppData.cast::<Vfs>() }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives `szOsFile` bytes, which hold ours and the system's file.
    unsafe {
        let vfs = behind(vfs);
        let ours = file.cast::<File>();
        let real = ours.add(1).cast::<ffi::sqlite3_file>();
        (*real).pMethods = ptr::null();
        let result = (*vfs.real).xOpen.unwrap()(vfs.real, name, real, flags, out);
        let kept = flags & (ffi::SQLITE_OPEN_MAIN_DB | ffi::SQLITE_OPEN_WAL | ffi::SQLITE_OPEN_MAIN_JOURNAL) != 0;
        let name = (kept && !name.is_null()).then(|| CStr::from_ptr(name).to_str().unwrap().to_owned());
        let kept = name.filter(|_| result == ffi::SQLITE_OK).map(|name| {
            let disk = &vfs.state.lock().unwrap().disk;
            let file = disk.open(&name);
            // SQLite syncs the folder where that matters; here a name is certain at once.
            disk.sync_folder().unwrap();
            file
        });
        ptr::write(
            ours,
            File {
                base: ffi::sqlite3_file {
                    pMethods: if (*real).pMethods.is_null() {
                        ptr::null()
                    } else {
                        &raw const METHODS
                    },
                },
                state: vfs.state,
                kept,
                real,
            },
        );
        result
    }
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: as SQLite calls it, with a name that ends in a zero.
    unsafe {
        let vfs = behind(vfs);
        let mut state = vfs.state.lock().unwrap();
        state.operation();
        // SQLite deletes what may not be there.
        let _ = state.disk.remove(CStr::from_ptr(name).to_str().unwrap());
        state.disk.sync_folder().unwrap();
        drop(state);
        (*vfs.real).xDelete.unwrap()(vfs.real, name, sync)
    }
}

unsafe extern "C" fn access(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, flags: c_int, out: *mut c_int) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let real = behind(vfs).real;
        (*real).xAccess.unwrap()(real, name, flags, out)
    }
}

unsafe extern "C" fn full_pathname(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    len: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let real = behind(vfs).real;
        (*real).xFullPathname.unwrap()(real, name, len, out)
    }
}

/// Our part of a file.
///
/// # Safety
/// `file` was opened by [`open`], and SQLite uses it from one thread at a time.
unsafe fn ours<'a>(file: *mut ffi::sqlite3_file) -> &'a mut File {
    // SAFETY: `open` has written a `File` there.
    unsafe { &mut *file.cast::<File>() }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once.
    unsafe {
        let ours = ours(file);
        ours.kept = None;
        let real = ours.real;
        (*(*real).pMethods).xClose.unwrap()(real)
    }
}

unsafe extern "C" fn write(file: *mut ffi::sqlite3_file, bytes: *const c_void, len: c_int, at: i64) -> c_int {
    // SAFETY: SQLite gives `len` bytes.
    unsafe {
        let ours = ours(file);
        if let Some(kept) = &ours.kept {
            let mut state = ours.state.lock().unwrap();
            if state.fault == Some(Fault::Full) {
                return ffi::SQLITE_FULL;
            }
            state.operation();
            let written = std::slice::from_raw_parts(bytes.cast::<u8>(), len as usize);
            kept.write_at(written, at as u64).unwrap();
        }
        (*(*ours.real).pMethods).xWrite.unwrap()(ours.real, bytes, len, at)
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, len: i64) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let ours = ours(file);
        if let Some(kept) = &ours.kept {
            ours.state.lock().unwrap().operation();
            kept.set_len(len as u64).unwrap();
        }
        (*(*ours.real).pMethods).xTruncate.unwrap()(ours.real, len)
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let ours = ours(file);
        if let Some(kept) = &ours.kept {
            let mut state = ours.state.lock().unwrap();
            if state.fault == Some(Fault::Sync) {
                return ffi::SQLITE_IOERR_FSYNC;
            }
            state.operation();
            kept.sync().unwrap();
        }
        // What is certain is what this state says: the system's own sync would only wait.
        let _ = flags;
        ffi::SQLITE_OK
    }
}

/// Passes a call on to the system's file.
macro_rules! pass {
    ($name:ident, $method:ident, ($($arg:ident: $kind:ty),*)) => {
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $arg: $kind)*) -> c_int {
            // SAFETY: passed on as it came.
            unsafe {
                let real = ours(file).real;
                (*(*real).pMethods).$method.unwrap()(real $(, $arg)*)
            }
        }
    };
}

pass!(read, xRead, (into: *mut c_void, len: c_int, at: i64));
pass!(file_size, xFileSize, (out: *mut i64));
pass!(lock, xLock, (level: c_int));
pass!(unlock, xUnlock, (level: c_int));
pass!(check_reserved, xCheckReservedLock, (out: *mut c_int));
pass!(control, xFileControl, (operation: c_int, argument: *mut c_void));
pass!(sector_size, xSectorSize, ());
pass!(characteristics, xDeviceCharacteristics, ());
pass!(shm_map, xShmMap, (page: c_int, len: c_int, extend: c_int, out: *mut *mut c_void));
pass!(shm_lock, xShmLock, (offset: c_int, count: c_int, flags: c_int));
pass!(shm_unmap, xShmUnmap, (delete: c_int));

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: passed on as it came.
    unsafe {
        let real = ours(file).real;
        (*(*real).pMethods).xShmBarrier.unwrap()(real);
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};
