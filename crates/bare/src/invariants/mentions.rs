//! The members that a value names: every [`MemberIndex`](protocol::MemberIndex) in it, wherever it stands.
//!
//! A serializer that keeps nothing but these positions, so that a field which is added to a message
//! later is found without a change here.

use std::collections::BTreeSet;
use std::fmt;

use protocol::MemberIndex;
use serde::ser::{self, Serialize};

/// The members that a value names.
pub(super) fn mentions<T: Serialize>(value: &T) -> BTreeSet<MemberIndex> {
    let mut found = MentionedMembers {
        members: BTreeSet::new(),
        inside: false,
    };
    // Nothing in it can fail.
    let _ = value.serialize(&mut found);
    found.members
}

struct MentionedMembers {
    members: BTreeSet<MemberIndex>,
    /// The next number is a member's position.
    inside: bool,
}

/// Never made: nothing in here fails.
#[derive(Debug)]
struct Never;

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot happen")
    }
}

impl std::error::Error for Never {}

impl ser::Error for Never {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Values without members in them.
macro_rules! nothing {
    ($($name:ident: $of:ty),* $(,)?) => {
        $(fn $name(self, _: $of) -> Result<(), Never> { Ok(()) })*
    };
}

impl<'a> ser::Serializer for &'a mut MentionedMembers {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = &'a mut MentionedMembers;
    type SerializeTuple = &'a mut MentionedMembers;
    type SerializeTupleStruct = &'a mut MentionedMembers;
    type SerializeTupleVariant = &'a mut MentionedMembers;
    type SerializeMap = &'a mut MentionedMembers;
    type SerializeStruct = &'a mut MentionedMembers;
    type SerializeStructVariant = &'a mut MentionedMembers;

    nothing! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_u8: u8, serialize_u32: u32, serialize_u64: u64,
        serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_str: &str,
        serialize_bytes: &[u8], serialize_unit_struct: &'static str,
    }

    fn serialize_u16(self, value: u16) -> Result<(), Never> {
        if self.inside {
            self.members.insert(MemberIndex(value));
        }
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        let before = std::mem::replace(&mut self.inside, name == "MemberIndex");
        let done = value.serialize(&mut *self);
        self.inside = before;
        done
    }

    fn serialize_none(self) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Never> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Never> {
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Never> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Never> {
        Ok(self)
    }
}

/// The parts of a sequence, each by this method of its trait.
macro_rules! elements {
    ($($of:ident: $method:ident),* $(,)?) => {
        $(impl ser::$of for &mut MentionedMembers {
            type Ok = ();
            type Error = Never;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        })*
    };
}

/// The fields of a struct.
macro_rules! fields {
    ($($of:ident),* $(,)?) => {
        $(impl ser::$of for &mut MentionedMembers {
            type Ok = ();
            type Error = Never;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                _: &'static str,
                value: &T,
            ) -> Result<(), Never> {
                value.serialize(&mut **self)
            }

            fn end(self) -> Result<(), Never> {
                Ok(())
            }
        })*
    };
}

elements! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

fields! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for &mut MentionedMembers {
    type Ok = ();
    type Error = Never;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Never> {
        key.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use protocol::Hash;
    use protocol::message::{Body, ContributionList, Entry, EntryFields};

    use super::*;

    #[test]
    fn a_member_is_found_wherever_it_stands_and_other_numbers_are_not() {
        let entry = |member: Option<u16>| Entry {
            id: Hash([7; 32]),
            fields: EntryFields {
                blob: Hash([8; 32]),
                size: 2,
                coalition: Some(5),
                weight: Some(4),
                member: member.map(MemberIndex),
            },
        };
        let body = |entries| Body::ContributionList(ContributionList { entries });
        assert!(mentions(&body(vec![entry(None), entry(None)])).is_empty());
        let named = mentions(&body(vec![entry(None), entry(Some(3))]));
        assert_eq!(named, BTreeSet::from([MemberIndex(3)]));
        // Nothing after a member counts as one.
        assert_eq!(mentions(&((MemberIndex(1), 9_u16), [2_u16])).len(), 1);
    }
}
