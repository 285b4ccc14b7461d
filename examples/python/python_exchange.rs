//! The Rust half of `exchange.py`: a library that Python loads with ctypes.
//!
//! It takes a device array and its schema from whoever produced them, waits for the array, looks at every column of the
//! batch and gives both back, to be imported by somebody else: the structs that came, or new ones around the same
//! buffers. Nothing is copied on the way. And it produces batches and a stream of its own.

mod giving;
#[path = "../../tests/peers/made/mod.rs"]
mod made;
#[path = "../../tests/peers/trees.rs"]
mod trees;

use core::ffi::c_char;
use core::ptr;
use std::cell::RefCell;
use std::ffi::CString;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow_device_abi::raw::{ArrowDeviceArray, ArrowSchema};
use arrow_device_abi::{ArrayView, NoWait, OwnedDeviceArray, OwnedSchema, ReadyDeviceArray, SchemaView};

type Error = Box<dyn std::error::Error>;

/// A batch in Rust's hands, with what was computed from it.
#[derive(Debug)]
pub struct Exchange {
    schema: OwnedSchema,
    batch: ReadyDeviceArray,
    columns: Vec<Column>,
    _held: Held,
}

/// Batches taken and neither given back nor dropped, and those exported and not released.
static HELD: AtomicI64 = AtomicI64::new(0);

#[derive(Debug)]
struct Held(());

impl Held {
    fn new() -> Self {
        HELD.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Exchange {
    fn new(schema: OwnedSchema, array: OwnedDeviceArray) -> Result<Self, Error> {
        // Neither pyarrow nor nanoarrow gives CPU arrays an event; an array that has one is refused.
        let batch = array.synchronize(&NoWait)?;
        if !batch.is_host_ready() {
            return Err(format!("the host cannot read memory of {}", batch.device()).into());
        }
        let fields = schema.view()?;
        if fields.format()? != "+s" {
            return Err(format!("a record batch is a struct, this is {}", fields.format()?).into());
        }
        let view = batch.view()?;
        if fields.n_children() != view.n_children() {
            return Err("the schema is of another batch".into());
        }
        let columns = fields
            .children()
            .zip(view.children())
            // SAFETY: the host can read the memory and the batch is complete: both were asked for above.
            .map(|(field, column)| unsafe { Column::new(field?, column?) })
            .collect::<Result<_, _>>()?;
        Ok(Self { schema, batch, columns, _held: Held::new() })
    }
}

/// What Rust found out about one column. `exchange.py` has the same struct.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Number of nulls, counted in the validity bitmap.
    nulls: i64,
    /// `i`: sum of the values, or of the days of a date.
    integers: i64,
    /// `f`: sum of the values.
    floats: f64,
    /// `t`: bytes of text in all rows.
    text: i64,
    /// Which of the three was computed.
    kind: u8,
}

impl Column {
    /// # Safety
    ///
    /// - The buffers are in memory that the host can read, as long as the format wants them, and nobody writes to them.
    unsafe fn new(field: SchemaView<'_>, column: ArrayView<'_>) -> Result<Self, Error> {
        // SAFETY: passed on.
        let rows = unsafe { Rows::new(column) }?;
        let mut found = Self { nulls: rows.nulls(), integers: 0, floats: 0.0, text: 0, kind: b'i' };
        let dictionary = field.dictionary()?.zip(column.dictionary()?);
        // SAFETY: passed on; the formats say what is in the buffers.
        unsafe {
            match (field.format()?, dictionary) {
                ("l", None) => found.integers = rows.values::<i64>(1)?.sum(),
                ("i" | "tdD", None) => found.integers = rows.values::<i32>(1)?.map(i64::from).sum(),
                ("g", None) => (found.kind, found.floats) = (b'f', rows.values::<f64>(1)?.sum()),
                ("u", None) => (found.kind, found.text) = (b't', rows.texts()?.sum()),
                ("i", Some((words, values))) if words.format()? == "u" => {
                    let words = Rows::new(values)?.texts()?.collect::<Vec<_>>();
                    found.kind = b't';
                    for word in rows.values::<i32>(1)? {
                        found.text +=
                            words.get(usize::try_from(word)?).ok_or("an index beyond the dictionary")?;
                    }
                }
                (format, _) => {
                    return Err(format!("this example does not add up columns of format {format}").into());
                }
            }
        }
        Ok(found)
    }
}

/// The rows of one column: those of its buffers that its offset and length select.
#[derive(Clone, Copy)]
struct Rows<'a> {
    column: ArrayView<'a>,
    /// `None`: all rows are valid.
    validity: Option<&'a [u8]>,
}

impl<'a> Rows<'a> {
    /// # Safety
    ///
    /// - As for [`Column::new`].
    unsafe fn new(column: ArrayView<'a>) -> Result<Self, Error> {
        let bytes = (column.offset() + column.length()).div_ceil(8);
        let has_bitmap = !column.buffer(0)?.is_null();
        // SAFETY: passed on; a validity bitmap has a bit for each row.
        let validity = unsafe { has_bitmap.then(|| column.buffer_as::<u8>(0, bytes)) }.transpose()?;
        Ok(Self { column, validity })
    }

    /// The indices into the buffers.
    fn indices(self) -> impl Iterator<Item = usize> {
        self.column.offset()..self.column.offset() + self.column.length()
    }

    fn is_valid(self, index: usize) -> bool {
        self.validity.is_none_or(|bits| bits[index / 8] >> (index % 8) & 1 == 1)
    }

    fn nulls(self) -> i64 {
        self.indices().map(|index| i64::from(!self.is_valid(index))).sum()
    }

    /// The values that are not null.
    ///
    /// # Safety
    ///
    /// - The buffer holds a `T` for each row, in memory that the host can read.
    unsafe fn values<T: Copy + 'a>(self, buffer: usize) -> Result<impl Iterator<Item = T>, Error> {
        // SAFETY: passed on.
        let values =
            unsafe { self.column.buffer_as::<T>(buffer, self.column.offset() + self.column.length()) }?;
        Ok(self.indices().filter(move |&index| self.is_valid(index)).map(move |index| values[index]))
    }

    /// The sizes of the texts that are not null.
    ///
    /// # Safety
    ///
    /// - The column is one of strings with 32-bit offsets, in memory that the host can read.
    unsafe fn texts(self) -> Result<impl Iterator<Item = i64>, Error> {
        let rows = self.column.offset() + self.column.length();
        // SAFETY: passed on; there is one offset more than there are rows, but possibly none for no rows.
        let offsets = unsafe { self.column.buffer_as::<i32>(1, if rows == 0 { 0 } else { rows + 1 }) }?;
        Ok(self
            .indices()
            .filter(move |&index| self.is_valid(index))
            .map(move |index| i64::from(offsets[index + 1]) - i64::from(offsets[index])))
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

fn remember(error: &dyn core::fmt::Display) {
    LAST_ERROR.set(CString::new(error.to_string().replace('\0', " ")).unwrap_or_default());
}

/// Why the last call of this thread failed; valid until the next one fails.
#[unsafe(no_mangle)]
pub extern "C" fn exchange_last_error() -> *const c_char {
    // The text stays where it is when the `CString` is moved, and is freed only by the next `set`.
    LAST_ERROR.with_borrow(|error| error.as_c_str().as_ptr())
}

/// Batches that Rust holds.
#[unsafe(no_mangle)]
pub extern "C" fn exchange_held() -> i64 {
    HELD.load(Ordering::Relaxed)
}

/// Takes a batch. Both structs are marked released at once, also if the batch is then refused; null is a refusal.
///
/// # Safety
///
/// - Each pointer is null or points to a struct that is released, or live and the caller's to give away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_take(
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
) -> *mut Exchange {
    // SAFETY: as the caller promises; arrays of pyarrow and nanoarrow may be released on any thread.
    let array = unsafe { OwnedDeviceArray::take(array) };
    // SAFETY: as above.
    let schema = unsafe { OwnedSchema::take(schema) };
    let exchange = array.map_err(Error::from).and_then(|array| Exchange::new(schema?, array));
    match exchange {
        Ok(exchange) => Box::into_raw(Box::new(exchange)),
        Err(error) => {
            remember(&error);
            ptr::null_mut()
        }
    }
}

/// Number of rows.
///
/// # Safety
///
/// - `exchange` comes from [`exchange_take`] and was neither given back nor dropped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_rows(exchange: *const Exchange) -> i64 {
    // SAFETY: as the caller promises.
    let exchange = unsafe { &*exchange };
    exchange.batch.view().map_or(-1, |view| view.length() as i64)
}

/// Number of columns.
///
/// # Safety
///
/// - As for [`exchange_rows`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_columns(exchange: *const Exchange) -> i64 {
    // SAFETY: as the caller promises.
    let exchange = unsafe { &*exchange };
    exchange.columns.len() as i64
}

/// What was computed from a column. False if there is no such column.
///
/// # Safety
///
/// - As for [`exchange_rows`]; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_column(exchange: *const Exchange, index: usize, out: *mut Column) -> bool {
    // SAFETY: as the caller promises.
    let exchange = unsafe { &*exchange };
    let Some(column) = exchange.columns.get(index) else {
        return false;
    };
    // SAFETY: valid for writes as the caller promises.
    unsafe { out.write(*column) };
    true
}

/// Releases the batch.
///
/// # Safety
///
/// - As for [`exchange_rows`], and `exchange` is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exchange_drop(exchange: *mut Exchange) {
    // SAFETY: a box of `exchange_take`, used for the last time.
    drop(unsafe { Box::from_raw(exchange) });
}
