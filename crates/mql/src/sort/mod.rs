//! In which order documents come.
