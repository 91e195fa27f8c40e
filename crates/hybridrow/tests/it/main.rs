//! The codec against recorded bytes, and against bytes that no client should send.

mod corpus;
mod hostile;
mod recorded;
