//! Access to RocksDB's PlainTable through `plain_table.cc`.

use std::{
    ffi::{CString, c_char, c_int},
    path::Path,
    ptr::{NonNull, null_mut},
};

/// The key of every row.
pub const KEY_BYTES: usize = 8;

#[repr(C)]
struct Opaque([u8; 0]);

// These are declared in plain_table.cc.
unsafe extern "C" {
    fn plain_table_open(dir: *const c_char, is_build: c_int) -> *mut Opaque;
    fn plain_table_close(table: *mut Opaque);
    fn plain_table_put(
        table: *mut Opaque,
        key: *const c_char,
        value: *const c_char,
        value_bytes: usize,
    ) -> c_int;
    fn plain_table_finish(table: *mut Opaque) -> usize;
    fn plain_table_get(
        table: *mut Opaque,
        keys: *const c_char,
        count: usize,
        out: *mut c_char,
        sum: *mut u64,
    ) -> i64;
    fn plain_table_multi_get(
        table: *mut Opaque,
        keys: *const c_char,
        count: usize,
        out: *mut c_char,
        sum: *mut u64,
    ) -> i64;
}

/// An open table.
pub struct PlainTable {
    table: NonNull<Opaque>,
    api: Api,
}

/// The way in which the table is asked for many keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Keys one by one, each into the same pinned slice. The table is open for reading only, so RocksDB looks at no
    /// memtable.
    Get,
    /// Keys in groups, which RocksDB does only if the table is open for writing too.
    MultiGet,
}

impl PlainTable {
    /// Builds a table of these rows in a folder that does not exist yet: one file.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn build<'v>(dir: &Path, rows: impl Iterator<Item = ([u8; KEY_BYTES], &'v [u8])>) {
        let table = Self::open(dir, Api::MultiGet);
        for (key, value) in rows {
            // SAFETY: the table is open; the lengths of key and value are passed.
            let failed = unsafe {
                plain_table_put(table.table.as_ptr(), key.as_ptr().cast(), value.as_ptr().cast(), value.len())
            };
            assert_eq!(failed, 0, "RocksDB takes all rows");
        }
        // SAFETY: the table is open.
        let files = unsafe { plain_table_finish(table.table.as_ptr()) };
        assert_eq!(files, 1, "all rows lie in one file");
    }

    /// Opens a table.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub fn open(dir: &Path, api: Api) -> Self {
        let path = CString::new(dir.to_str().expect("UTF-8")).expect("a path has no zeros");
        let writes = c_int::from(api == Api::MultiGet);
        // SAFETY: a string that ends in zero; the table it gives is closed once, when this is dropped.
        let table = unsafe { plain_table_open(path.as_ptr(), writes) };
        Self { table: NonNull::new(table).expect("RocksDB opens"), api }
    }

    /// Copies the values of all keys to `out`, which they fill: all values are of one length.
    ///
    /// # Panics
    /// If a key has no value, or a read failed.
    pub fn copy(&mut self, keys: &[[u8; KEY_BYTES]], out: &mut [u8]) {
        self.read(keys, out.as_mut_ptr());
    }

    /// The sum of the first words of the values of all keys; each has 8 bytes at least.
    ///
    /// # Panics
    /// If a key has no value, or a read failed.
    pub fn touch(&mut self, keys: &[[u8; KEY_BYTES]]) -> u64 {
        self.read(keys, null_mut())
    }

    fn read(&mut self, keys: &[[u8; KEY_BYTES]], out: *mut u8) -> u64 {
        let read = match self.api {
            Api::Get => plain_table_get,
            Api::MultiGet => plain_table_multi_get,
        };
        let mut sum = 0;
        // SAFETY: the table is open and this its only user; the keys lie end to end; there is room for the values, if they are copied.
        let found =
            unsafe { read(self.table.as_ptr(), keys.as_ptr().cast(), keys.len(), out.cast(), &raw mut sum) };
        assert_eq!(found, keys.len() as i64, "RocksDB has all keys");
        sum
    }
}

impl Drop for PlainTable {
    fn drop(&mut self) {
        // SAFETY: it is open, and nobody uses it after.
        unsafe { plain_table_close(self.table.as_ptr()) };
    }
}
