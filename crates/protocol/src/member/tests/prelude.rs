//! Names that most of these tests use.

pub(super) use std::collections::{BTreeMap, BTreeSet};
pub(super) use std::sync::Arc;
pub(super) use std::time::Duration;

pub(super) use bytes::Bytes;

pub(super) use super::super::*;
pub(super) use crate::effects::{Answer, Effect, Input, Record, Report, Request};
pub(super) use crate::envelope::{self, Known, Opened};
pub(super) use crate::hash::Hash;
pub(super) use crate::message::{Body, Kind, Message};
pub(super) use crate::refusal::Refusal;
pub(super) use crate::roster::MemberIndex;
pub(super) use crate::time::Time;
