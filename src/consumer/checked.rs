//! Streams whose arrays are checked against their schema.

use core::fmt;
use core::iter::FusedIterator;

use super::{ArrayStreamReader, Fault, Invalid, Limits, StreamReader, StreamStruct};
use crate::owned::{Owned, OwnedSchema};
use crate::raw::ArrowArrayStream;
use crate::stream_error::StreamError;
use crate::view::SchemaView;

impl<S: StreamStruct> StreamReader<S> {
    /// Asks for the schema, checks it, and checks the structure of each array against it before giving it out.
    ///
    /// # Errors
    ///
    /// A [`CheckedStreamError`] if there is no schema or it is [invalid](OwnedSchema::validate); the stream is released.
    pub fn checked(mut self, limits: Limits) -> Result<CheckedReader<S>, CheckedStreamError> {
        let schema = self.schema()?;
        schema.validate(&limits)?;
        Ok(CheckedReader { reader: self, schema, limits, check: S::validate, done: false })
    }
}

impl ArrayStreamReader {
    /// As [`checked`](Self::checked), and checks the contents of each array too: host memory can be read.
    ///
    /// # Errors
    ///
    /// As [`checked`](Self::checked).
    pub fn checked_in_full(
        self,
        limits: Limits,
    ) -> Result<CheckedReader<ArrowArrayStream>, CheckedStreamError> {
        let check: Check<ArrowArrayStream> = |array, schema, limits| {
            // SAFETY: the arrays of a stream are of its schema, as `take` was promised, and a reader checks by no other.
            unsafe { array.validate_contents(schema, limits) }
        };
        Ok(CheckedReader { check, ..self.checked(limits)? })
    }
}

type Check<S> = fn(&Owned<<S as StreamStruct>::Array>, SchemaView<'_>, &Limits) -> Result<(), Invalid>;

/// Drains a stream and checks what comes out of it: made by [`StreamReader::checked`].
///
/// An array that is invalid is released, and ends the stream as an error of the producer would: nothing is known of
/// what else it gets wrong. Whoever wants to read on all the same takes the reader [out](Self::into_inner).
#[derive(Debug)]
pub struct CheckedReader<S: StreamStruct> {
    reader: StreamReader<S>,
    schema: OwnedSchema,
    limits: Limits,
    check: Check<S>,
    /// Whether an invalid array was the end.
    done: bool,
}

impl<S: StreamStruct> CheckedReader<S> {
    /// The schema, which is valid.
    #[must_use]
    pub const fn schema(&self) -> &OwnedSchema {
        &self.schema
    }

    /// The next array, valid, or `None` at the end and ever after.
    ///
    /// # Errors
    ///
    /// A [`CheckedStreamError`]; after that there is nothing more, only `None`.
    pub fn next_array(&mut self) -> Result<Option<Owned<S::Array>>, CheckedStreamError> {
        self.next().transpose()
    }

    /// The reader, unchecked: it goes on behind the last array, also if that was invalid.
    #[must_use]
    pub fn into_inner(self) -> StreamReader<S> {
        self.reader
    }
}

impl<S: StreamStruct> Iterator for CheckedReader<S> {
    type Item = Result<Owned<S::Array>, CheckedStreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let checked = self.reader.next()?.map_err(CheckedStreamError::from).and_then(|array| {
            let schema = self.schema.view().map_err(|error| Invalid::from(Fault::Schema(error)))?;
            (self.check)(&array, schema, &self.limits)?;
            Ok(array)
        });
        self.done = checked.is_err();
        Some(checked)
    }
}

impl<S: StreamStruct> FusedIterator for CheckedReader<S> {}

/// Why a checked stream has ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckedStreamError {
    /// The stream failed.
    Stream(StreamError),
    /// The schema, or an array, is invalid; it was released.
    Invalid(Invalid),
}

impl From<StreamError> for CheckedStreamError {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

impl From<Invalid> for CheckedStreamError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl fmt::Display for CheckedStreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(error) => error.fmt(f),
            Self::Invalid(invalid) => write!(f, "out of the stream came something invalid: {invalid}"),
        }
    }
}

impl core::error::Error for CheckedStreamError {}
