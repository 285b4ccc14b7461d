//! What can go wrong with a stream, for those who read one and those who pass the error on in another.

use alloc::string::String;
use core::fmt;

use crate::errno::EINVAL;
#[cfg(feature = "async")]
use crate::errno::EIO;
use crate::raw::ArrowDeviceType;
#[cfg(feature = "async")]
use crate::view::{Metadata, MetadataBuf};

/// Why a stream could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The stream is released: none of its callbacks may be called (S2).
    Released,
    /// A callback that every stream has is null.
    MissingCallback {
        /// Name of the field.
        callback: &'static str,
    },
    /// A callback reported a failure.
    Failed {
        /// Name of the field.
        callback: &'static str,
        /// The code as it was returned: an errno value of the platform, or whatever the producer made up (B10).
        code: i32,
        /// The producer's text, if it has one; what is not UTF-8 in it is replaced.
        message: Option<String>,
    },
    /// `get_schema` succeeded, but the schema is released.
    ReleasedSchema,
    /// An array is on another type of device than its stream (S1); it was released.
    DeviceType {
        /// The stream's device type.
        stream: ArrowDeviceType,
        /// The array's device type.
        array: ArrowDeviceType,
    },
    /// The producer of an asynchronous stream reported an error (A8).
    #[cfg(feature = "async")]
    Reported {
        /// The code as it was reported: an errno value of the platform, or whatever the producer made up (B10).
        code: i32,
        /// The producer's text, if it has one; what is not UTF-8 in it is replaced.
        message: Option<String>,
        /// The key-value pairs that came with it; none if they were malformed.
        metadata: MetadataBuf,
    },
    /// The producer of an asynchronous stream released its handler before the end, without an error, and was not asked
    /// to.
    #[cfg(feature = "async")]
    Unfinished,
    /// `extract_data` succeeded, but the array is released.
    #[cfg(feature = "async")]
    ReleasedArray,
}

impl StreamError {
    /// The producer's code, or one for what this crate found: for those who pass the error on as an errno.
    #[must_use]
    pub const fn errno(&self) -> i32 {
        match self {
            Self::Failed { code, .. } => *code,
            #[cfg(feature = "async")]
            Self::Reported { code, .. } => *code,
            #[cfg(feature = "async")]
            Self::Unfinished => EIO,
            _ => EINVAL,
        }
    }

    /// The code that the producer returned, if it reported a failure.
    #[must_use]
    pub const fn code(&self) -> Option<i32> {
        match self {
            Self::Failed { code, .. } => Some(*code),
            #[cfg(feature = "async")]
            Self::Reported { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The text that the producer gave, if it did.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Failed { message, .. } => message.as_deref(),
            #[cfg(feature = "async")]
            Self::Reported { message, .. } => message.as_deref(),
            _ => None,
        }
    }

    /// The key-value pairs that the producer gave, if it did.
    #[cfg(feature = "async")]
    #[must_use]
    pub fn metadata(&self) -> Metadata<'_> {
        match self {
            Self::Reported { metadata, .. } => metadata.as_metadata(),
            _ => Metadata::default(),
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("the stream is released or was moved away"),
            Self::MissingCallback { callback } => write!(f, "the stream has no {callback}"),
            Self::Failed { callback, code, message } => {
                write!(f, "{callback} failed with code {code}")?;
                message.as_ref().map_or(Ok(()), |message| write!(f, ": {message}"))
            }
            #[cfg(feature = "async")]
            Self::Reported { code, message, .. } => {
                write!(f, "the producer reported code {code}")?;
                message.as_ref().map_or(Ok(()), |message| write!(f, ": {message}"))
            }
            #[cfg(feature = "async")]
            Self::Unfinished => f.write_str("the producer released the handler before the end of the stream"),
            #[cfg(feature = "async")]
            Self::ReleasedArray => f.write_str("extract_data succeeded with a released array"),
            Self::ReleasedSchema => f.write_str("get_schema succeeded with a released schema"),
            Self::DeviceType { stream, array } => {
                write!(f, "an array on device type {array} came out of a stream of device type {stream}")
            }
        }
    }
}

impl core::error::Error for StreamError {}
