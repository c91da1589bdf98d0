//! A canonical encoding of configuration values: values with equal meaning have equal bytes.
//!
//! [`Canonical::of`] turns any value that can be serialized into a tree in which the keys of every
//! table are sorted, absent options are left out, and floating-point numbers are their exact bits.
//! [`protocol::codec`] then gives the tree its bytes. So the bytes depend neither on the order of
//! fields in a struct nor on how another crate prints numbers.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// A configuration value in canonical form. The order of the variants is part of the encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Canonical {
    /// No value. Left out of tables.
    Absent,
    /// A Boolean value.
    Bool(bool),
    /// A whole number.
    Whole(i128),
    /// The bits of a 64-bit floating-point number; -0 as 0, and one NaN for all.
    Float(u64),
    /// A text.
    Text(String),
    /// A list, in its order.
    List(Vec<Canonical>),
    /// A table, sorted by key.
    Table(BTreeMap<String, Canonical>),
}

/// Error of a value that has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CanonicalError(String);

impl serde::ser::Error for CanonicalError {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self(what.to_string())
    }
}

impl Canonical {
    /// The canonical form of a value.
    ///
    /// # Errors
    /// [`CanonicalError`]: a table with a key that is not a text, or an error of the value's own
    /// serialization.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, CanonicalError> {
        value.serialize(CanonicalSerializer)
    }

    /// A table of these keys and values; absent values are left out.
    pub fn table<'a>(entries: impl IntoIterator<Item = (&'a str, Canonical)>) -> Self {
        let present = entries
            .into_iter()
            .filter(|(_, value)| *value != Self::Absent);
        Self::Table(present.map(|(key, value)| (key.into(), value)).collect())
    }

    fn float(value: f64) -> Self {
        let value = if value.is_nan() {
            f64::NAN
        } else {
            value + 0.0
        };
        Self::Float(value.to_bits())
    }

    /// The value of an enum's variant, under the variant's name.
    fn under(name: &str, value: Canonical) -> Self {
        Self::Table(BTreeMap::from([(name.to_owned(), value)]))
    }
}

/// Serializes into a [`Canonical`].
struct CanonicalSerializer;

type CanonicalResult = Result<Canonical, CanonicalError>;

/// A list that is being serialized, and the variant that it belongs to.
struct Items(Vec<Canonical>, Option<&'static str>);

/// A table that is being serialized, the key whose value comes next, and the variant that it
/// belongs to.
struct Fields(
    BTreeMap<String, Canonical>,
    Option<String>,
    Option<&'static str>,
);

impl Items {
    fn new(len: usize, variant: Option<&'static str>) -> Self {
        Self(Vec::with_capacity(len.min(1024)), variant)
    }

    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.0.push(Canonical::of(value)?);
        Ok(())
    }

    fn done(self) -> Canonical {
        let list = Canonical::List(self.0);
        match self.1 {
            Some(variant) => Canonical::under(variant, list),
            None => list,
        }
    }
}

impl Fields {
    fn new(variant: Option<&'static str>) -> Self {
        Self(BTreeMap::new(), None, variant)
    }

    fn add<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), CanonicalError> {
        let value = Canonical::of(value)?;
        if value != Canonical::Absent {
            self.0.insert(key.to_owned(), value);
        }
        Ok(())
    }

    fn done(self) -> Canonical {
        let table = Canonical::Table(self.0);
        match self.2 {
            Some(variant) => Canonical::under(variant, table),
            None => table,
        }
    }
}

impl Serializer for CanonicalSerializer {
    type Ok = Canonical;
    type Error = CanonicalError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Fields;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Fields;

    fn serialize_bool(self, value: bool) -> CanonicalResult {
        Ok(Canonical::Bool(value))
    }
    fn serialize_i8(self, value: i8) -> CanonicalResult {
        Ok(Canonical::Whole(value.into()))
    }
    fn serialize_i16(self, value: i16) -> CanonicalResult {
        Ok(Canonical::Whole(value.into()))
    }
    fn serialize_i32(self, value: i32) -> CanonicalResult {
        Ok(Canonical::Whole(value.into()))
    }
    fn serialize_i64(self, value: i64) -> CanonicalResult {
        Ok(Canonical::Whole(value.into()))
    }
    fn serialize_i128(self, value: i128) -> CanonicalResult {
        Ok(Canonical::Whole(value))
    }
    fn serialize_u8(self, value: u8) -> CanonicalResult {
        Ok(Canonical::Whole(value.into()))
    }
    fn serialize_u16(self, value: u16) -> CanonicalResult {
        Ok(Canonical::Whole(value.into()))
    }
    fn serialize_u32(self, value: u32) -> CanonicalResult {
        Ok(Canonical::Whole(value.into()))
    }
    fn serialize_u64(self, value: u64) -> CanonicalResult {
        Ok(Canonical::Whole(value.into()))
    }
    fn serialize_f32(self, value: f32) -> CanonicalResult {
        Ok(Canonical::float(value.into()))
    }
    fn serialize_f64(self, value: f64) -> CanonicalResult {
        Ok(Canonical::float(value))
    }
    fn serialize_char(self, value: char) -> CanonicalResult {
        Ok(Canonical::Text(value.into()))
    }
    fn serialize_str(self, value: &str) -> CanonicalResult {
        Ok(Canonical::Text(value.into()))
    }
    fn serialize_bytes(self, value: &[u8]) -> CanonicalResult {
        let bytes = value.iter().map(|&byte| Canonical::Whole(byte.into()));
        Ok(Canonical::List(bytes.collect()))
    }
    fn serialize_none(self) -> CanonicalResult {
        Ok(Canonical::Absent)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> CanonicalResult {
        value.serialize(self)
    }
    fn serialize_unit(self) -> CanonicalResult {
        Ok(Canonical::Absent)
    }
    fn serialize_unit_struct(self, _: &'static str) -> CanonicalResult {
        Ok(Canonical::Absent)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> CanonicalResult {
        Ok(Canonical::Text(variant.into()))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> CanonicalResult {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> CanonicalResult {
        Ok(Canonical::under(variant, value.serialize(self)?))
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Items, CanonicalError> {
        Ok(Items::new(len.unwrap_or(0), None))
    }
    fn serialize_tuple(self, len: usize) -> Result<Items, CanonicalError> {
        Ok(Items::new(len, None))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Items, CanonicalError> {
        Ok(Items::new(len, None))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items, CanonicalError> {
        Ok(Items::new(len, Some(variant)))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Fields, CanonicalError> {
        Ok(Fields::new(None))
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, CanonicalError> {
        Ok(Fields::new(None))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Fields, CanonicalError> {
        Ok(Fields::new(Some(variant)))
    }
}

/// Implements the traits of all kinds of lists.
macro_rules! items {
    ($($name:ident $add:ident),*) => {$(
        impl $name for Items {
            type Ok = Canonical;
            type Error = CanonicalError;
            fn $add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
                self.add(value)
            }
            fn end(self) -> CanonicalResult {
                Ok(self.done())
            }
        }
    )*};
}
items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

/// Implements the traits of both kinds of structs.
macro_rules! fields {
    ($($name:ident),*) => {$(
        impl $name for Fields {
            type Ok = Canonical;
            type Error = CanonicalError;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), CanonicalError> {
                self.add(key, value)
            }
            fn end(self) -> CanonicalResult {
                Ok(self.done())
            }
        }
    )*};
}
fields!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Fields {
    type Ok = Canonical;
    type Error = CanonicalError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CanonicalError> {
        let Canonical::Text(key) = Canonical::of(key)? else {
            return Err(CanonicalError::custom("the key of a table must be a text"));
        };
        self.1 = Some(key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        let key = self.1.take();
        let key = key.ok_or_else(|| CanonicalError::custom("a value came without its key"))?;
        self.add(&key, value)
    }

    fn end(self) -> CanonicalResult {
        Ok(self.done())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde::Serialize;
    use std::collections::HashMap;

    use super::*;

    fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
        protocol::codec::encode(&Canonical::of(value).unwrap())
    }

    #[test]
    fn the_order_of_fields_does_not_change_the_bytes() {
        #[derive(Serialize)]
        struct Ab {
            a: u8,
            b: Option<f64>,
        }
        #[derive(Serialize)]
        struct Ba {
            b: f64,
            c: Option<u8>,
            a: u64,
        }
        let ab = bytes(&Ab { a: 1, b: Some(0.1) });
        let ba = Ba {
            b: 0.1,
            c: None,
            a: 1,
        };
        assert_eq!(ab, bytes(&ba));
        assert_eq!(
            ab,
            bytes(&serde_json::json!({ "b": 0.1, "c": null, "a": 1 }))
        );
        assert_ne!(ab, bytes(&Ab { a: 1, b: None }));
        let map: HashMap<_, _> = (0..40u8).map(|n| (n.to_string(), n)).collect();
        let sorted: BTreeMap<_, _> = map.clone().into_iter().collect();
        assert_eq!(bytes(&map), bytes(&sorted));
    }

    #[test]
    fn floats_are_exact_and_differ_from_whole_numbers() {
        assert_ne!(bytes(&0.1f64), bytes(&(0.1 + f64::EPSILON / 16.0)));
        assert_ne!(bytes(&1.0f64), bytes(&1u8));
        assert_ne!(bytes(&f64::INFINITY), bytes(&f64::NEG_INFINITY));
        assert_ne!(bytes(&f64::INFINITY), bytes(&f64::NAN));
        assert_eq!(bytes(&0.0f64), bytes(&-0.0f64));
        assert_eq!(bytes(&f64::NAN), bytes(&-f64::NAN));
        assert_ne!(bytes(&u64::MAX), bytes(&-1i64));
    }

    #[test]
    fn enums_of_every_kind_differ_by_name_and_content() {
        #[derive(Serialize)]
        enum Kinds {
            Unit,
            Newtype(u8),
            Tuple(u8, u8),
            Struct { a: u8 },
        }
        let all = [
            bytes(&Kinds::Unit),
            bytes(&Kinds::Newtype(1)),
            bytes(&Kinds::Tuple(1, 2)),
            bytes(&Kinds::Tuple(2, 1)),
            bytes(&Kinds::Struct { a: 1 }),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn a_key_that_is_not_a_text_is_refused() {
        let map = BTreeMap::from([(vec![1u8], 2u8)]);
        let error = Canonical::of(&map).unwrap_err().to_string();
        assert_eq!(error, "the key of a table must be a text");
    }
}
