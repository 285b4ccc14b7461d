//! [`UnionIds`].

use core::fmt;

use super::{FormatError, parse};

/// The type ids of a union in the order of its children: different numbers from 0 to 127.
///
/// Borrowed from whoever gave them: the format string, or a slice.
#[derive(Clone, Copy)]
pub struct UnionIds<'a>(Ids<'a>);

#[derive(Clone, Copy)]
enum Ids<'a> {
    /// Numbers with commas between them.
    Text(&'a str),
    Numbers(&'a [u8]),
}

impl<'a> UnionIds<'a> {
    /// The ids of a union with as many children.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if an id is above 127 or stands there twice.
    pub fn new(ids: &'a [u8]) -> Result<Self, FormatError<'static>> {
        Self::checked(ids.iter().map(|id| Some(*id)), Ids::Numbers(ids))
            .ok_or(FormatError { format: "", problem: parse::UNION_IDS })
    }

    /// From the part of a format string behind the colon.
    pub(super) fn parse(list: &'a str) -> Option<Self> {
        let ids = list.split(',').filter(|_| !list.is_empty()).map(parse::number);
        Self::checked(ids, Ids::Text(list))
    }

    fn checked(mut ids: impl Iterator<Item = Option<u8>>, from: Ids<'a>) -> Option<Self> {
        let mut seen = 0_u128;
        ids.try_for_each(|id| {
            let bit = 1_u128.checked_shl(u32::from(id?))?;
            let new = seen & bit == 0;
            seen |= bit;
            new.then_some(())
        })
        .map(|()| Self(from))
    }

    /// The ids.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<'a> {
        let (text, numbers) = match self.0 {
            Ids::Text(text) => (text, &[][..]),
            Ids::Numbers(numbers) => ("", numbers),
        };
        text.split(',').filter_map(parse::number).chain(numbers.iter().copied())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.0 {
            Ids::Text("") => 0,
            Ids::Text(text) => text.split(',').count(),
            Ids::Numbers(numbers) => numbers.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl PartialEq for UnionIds<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for UnionIds<'_> {}

impl fmt::Debug for UnionIds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Display for UnionIds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        self.iter().try_for_each(|id| write!(f, "{}{id}", core::mem::replace(&mut separator, ",")))
    }
}
