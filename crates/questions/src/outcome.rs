//! What is printed of an answer.
