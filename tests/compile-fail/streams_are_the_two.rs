//! No struct but the two of the specification is a stream.

use arrow_device_abi::StreamReader;
use arrow_device_abi::raw::{ArrowArray, ArrowSchema};

fn array(_: &StreamReader<ArrowArray>) {} //~ E0277

fn schema(_: &StreamReader<ArrowSchema>) {} //~ E0277

fn main() {}
