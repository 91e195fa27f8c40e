//! The codec against recorded frames, and against bytes that no client should send.

mod corpus;
mod hostile;
mod properties;
mod random;
mod recorded;
